/* A replay on a real device, with a fake of the CUDA driver in its place: time is real, and nothing is left behind. */
#include <math.h>

#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

static strata_status_t run_on(const char *text, const char *preset, const strata_target_t *target, strata_run_result_t *result) {
    strata_trace_t *trace = trace_of(text);
    strata_strategy_t *strategy = strategy_of(preset, NULL);
    strata_run_options_t options = {.target = *target, .timeline = {.lag_ns = LAG}};
    strata_status_t status = trace && strategy ? strata_run(trace, strategy, &options, result) : STRATA_E_INVALID;
    strata_trace_delete(trace);
    strata_strategy_delete(strategy);
    return status;
}

static void expect_left_as_found(void) {
    EXPECT_EQ(fake_live_objects(), 0);
    EXPECT_EQ(fake_used(0) + fake_used(1), 0);
    EXPECT_EQ(fake_retains(0) + fake_retains(1), 0);
}

TEST(real, time_is_real) {
    static const char text[] = WORK_COLUMNS "alloc,1,1048576,0,0,,\nalloc,2,1048576,1,5000,,\nwork,1,0,0,5000,90,\n"
                                            "wait,,0,1,5001,,0\nborrow,1,0,1,5002,,\nfree,1,0,0,5003,,\nsync,,0,1,5003,,\n"
                                            "sync,,0,all,5003,,\nfree,2,0,1,20000,,\nstep,,0,0,20000,,\n";
    static const char *const presets[] = {"strata-malloc", "paddle", "system"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        strata_run_result_t r;
        fake_reset();
        ASSERT_OK(run_on(text, presets[i], &(strata_target_t){.ordinal = 1}, &r));
        EXPECT_STREQ(r.first_failure, "");
        EXPECT_EQ(r.figures.failed_operations, 0);
        EXPECT_EQ(r.figures.operations, 6);
        EXPECT_FALSE(r.work_left_out);
        EXPECT_EQ(fake_count("LaunchKernel"), 1);
        EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_malloc], 2);
        EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_synchronise], 0); /* the program's own */
        EXPECT_EQ(r.figures.gpu_lag_us, STRATA_FIGURE_NULL);
        EXPECT_EQ(r.figures.peak_device_used_bytes, STRATA_FIGURE_NULL);
        EXPECT_EQ(r.figures.deferred_peak_bytes, STRATA_FIGURE_NULL); /* who tells when a borrower ended? */
        EXPECT_TRUE(isnan(r.figures.stall_ms));
        EXPECT_GE(r.figures.end_ms, 20);
        EXPECT_GT(r.figures.device_call_ms, 0);
        expect_left_as_found();
    }
}

TEST(real, cannot_be_checked) {
    strata_run_result_t result;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS "alloc,1,1048576,0,0\nfree,1,0,0,9\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
    strata_run_options_t options = {.check = true};
    fake_reset();
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_run(trace, strategy, &options, &result), "write --device sim");
    expect_left_as_found();
}

/* A capacity can be given to simulated devices alone, so none can be searched. */
TEST(real, has_no_least_capacity) {
    strata_run_result_t result;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS "alloc,1,1048576,0,0\nfree,1,0,0,9\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
    strata_candidate_t candidate = {.label = "x", .strategy = strategy};
    strata_comparison_t comparison = {.candidates = &candidate, .candidate_count = 1, .repeat = 1, .smallest = true};
    fake_reset();
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_compare(&comparison, trace, &result), "write --device sim");
    EXPECT_EQ(fake_count("Init"), 0); /* told before anything runs */
    expect_left_as_found();
}

TEST(real, without_work_the_host_goes_on_at_once) {
    strata_run_result_t r;
    fake_reset();
    ASSERT_OK(run_on(COLUMNS "alloc,1,1048576,0,0\nfree,1,0,0,600000000\n", "strata", &(strata_target_t){0}, &r));
    EXPECT_LT(r.figures.end_ms, 60000);
    expect_left_as_found();
}

TEST(real, kernels_are_left_out_where_none_can_run) {
    strata_run_result_t r;
    fake_reset();
    strata_cuda_driver_t table = fake_table();
    table.LaunchKernel = NULL;
    strata_cuda_set_table_for_tests(&table);
    ASSERT_OK(run_on(WORK_COLUMNS "alloc,1,1048576,0,0,,\nwork,1,0,0,600000000,90,\nfree,1,0,0,600000000,,\n", "strata",
                     &(strata_target_t){0}, &r));
    EXPECT_TRUE(r.work_left_out);
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_EQ(fake_count("LaunchKernel"), 0);
    EXPECT_LT(r.figures.end_ms, 60000);
    expect_left_as_found();
}

TEST(real, out_of_memory_is_counted) {
    strata_run_result_t r;
    fake_reset();
    fake_options.memory = 4 * MIB;
    ASSERT_OK(run_on(COLUMNS "alloc,1,3145728,0,0\nalloc,2,3145728,0,1\nfree,1,0,0,2\nfree,2,0,0,3\n", "system",
                     &(strata_target_t){0}, &r));
    EXPECT_EQ(r.figures.oom_count, 1);
    EXPECT_EQ(r.figures.failed_operations, 1);
    expect_left_as_found();
}

/* The facade calls devices as the driver does, a trace from 0 on. */
TEST(real, streams_have_their_names_on_another_device) {
    strata_run_result_t r;
    fake_reset();
    ASSERT_OK(run_on(COLUMNS "alloc,1,1000,3,0\nalloc,2,1000,3,1\nfree,1,0,3,2\n",
                     "stack: [system]\nstreams: {\"3\": [auto_growth: {chunk_size: 2MiB}, system]}\n",
                     &(strata_target_t){.ordinal = 1}, &r));
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_malloc], 1);
    expect_left_as_found();
}

TEST(real, a_device_that_is_not_there) {
    strata_run_result_t r;
    fake_reset();
    EXPECT_STATUS(STRATA_E_NO_DEVICE, run_on(COLUMNS, "system", &(strata_target_t){.ordinal = 7}, &r));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, run_on(COLUMNS, "system", &(strata_target_t){.capacity = GIB}, &r));
    expect_left_as_found();
}

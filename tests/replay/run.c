/* Small programs whose figures can be counted by hand. */
#include "lab/replay/run/run.h"

#include <math.h>
#include <stdio.h>

#include "facade/registry/facade.h"
#include "lab/replay/timeline/names.h"
#include "platform/host/host_memory.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

static strata_run_result_t run_text(const char *text, const char *preset, uint64_t capacity) {
    return replay_text(text, preset, (strata_run_options_t){.target = {.capacity = capacity}, .timeline = {.lag_ns = LAG}});
}

TEST(run, counts_and_peaks) {
    strata_run_result_t r = run_text(COLUMNS "alloc,1,1000,0,0\nalloc,2,500,0,10\nfree,1,0,0,20\nalloc,3,0,0,30\nalloc,4,700,0,40\n"
                                             "free,3,0,0,50\nrelease,,0,0,60\nstep,,0,0,70\n",
                                     "system", 0);
    EXPECT_EQ(r.figures.operations, 8);
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_EQ(r.figures.live_at_end, 2);
    EXPECT_EQ(r.figures.peak_requested_bytes, 1500);
    EXPECT_EQ(r.figures.peak_allocated_bytes, 1500);
    EXPECT_EQ(r.figures.peak_reserved_bytes, 1500);
    EXPECT_NEAR(r.figures.fragmentation, 0, 1e-9);
    EXPECT_EQ(r.figures.peak_device_used_bytes, 2 * MIB);
    EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_malloc], 3);
    EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_free], 1);
    EXPECT_EQ(r.figures.gpu_lag_us, 5000);
    EXPECT_FALSE(r.figures.modelled);
    EXPECT_STREQ(r.device, "sim:h100");
}

/* malloc 37 us, free 34 us and the wait. The free at 150 us of the host's own time stands after 37 us of malloc: it finds the
 * GPU as far after as the host ran ahead, and drains it. */
TEST(run, time_shifts_by_calls_and_waits) {
    strata_run_result_t r = run_text(COLUMNS "alloc,1,256,0,0\nfree,1,0,0,150\nalloc,2,256,0,1150\n", "system", 0);
    double malloc_ms = 0.0371 + 0.0725e-3 * 256 / MIB, free_ms = 0.0335 + 0.372e-3 * 256 / MIB, ahead_ms = malloc_ms + 0.150;
    EXPECT_NEAR(r.figures.device_call_ms, 2 * malloc_ms + free_ms, 1e-5);
    EXPECT_NEAR(r.figures.stall_ms, ahead_ms, 1e-5);
    EXPECT_NEAR(r.figures.end_ms, 1.150 + 2 * malloc_ms + free_ms + ahead_ms, 1e-5);
    EXPECT_NEAR(r.figures.steady_device_ms, malloc_ms, 1e-5);
}

/* No row begins there: the trace is too short, or one kernel reaches to its end. */
TEST(run, the_last_third_may_cost_nothing) {
    EXPECT_NEAR(run_text(COLUMNS "alloc,1,256,0,0\nfree,1,0,0,1\n", "system", 0).figures.steady_device_ms, 0, 1e-9);
    strata_run_result_t r = run_text(WORK_COLUMNS "alloc,1,256,0,0,,\nalloc,2,256,0,0,,\nwork,1,0,0,5,9,\nwork,2,0,0,5,9,\n",
                                     "system", 0);
    EXPECT_GT(r.figures.device_call_ms, 0);
    EXPECT_NEAR(r.figures.steady_device_ms, 0, 1e-9);
}

TEST(run, rows_of_a_failed_alloc_are_passed_over) {
    strata_run_result_t r = run_text(WORK_COLUMNS
                                     "alloc,1,3145728,0,0,,\nalloc,2,3145728,1,0,,\nwork,1,0,0,5,10,\nwork,2,0,0,5,10,\n"
                                     "borrow,2,0,0,6,,\nunborrow,2,0,0,6,,\nfree,2,0,0,7,,\nfree,1,0,0,8,,\n",
                                     "system", 4 * MIB);
    EXPECT_EQ(r.figures.operations, 3);
    EXPECT_EQ(r.figures.failed_operations, 1);
    EXPECT_EQ(r.figures.oom_count, 1);
    EXPECT_EQ(r.figures.live_at_end, 0);
    EXPECT_STREQ(r.first_failure, "");
}

TEST(run, borrows_that_nobody_knows_are_waited_for) {
    strata_run_result_t r = run_text(WORK_COLUMNS "alloc,1,256,0,0,,\nwork,1,0,1,5,10000,\nborrow,1,0,1,6,,\nfree,1,0,0,7,,\n",
                                     "system", 0);
    EXPECT_EQ(r.figures.borrows_waited, 1);
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_NEAR(r.figures.stall_ms, 10, 0.1); /* the kernel's ten, less what the host did beside it */
    EXPECT_NEAR(r.figures.end_ms, 10.1, 0.1);
    EXPECT_EQ(r.figures.gpu_lag_us, STRATA_FIGURE_NULL);
}

TEST(run, a_free_on_another_stream_defers) {
    strata_run_result_t r = run_text(WORK_COLUMNS "alloc,1,256,0,0,,\nwork,1,0,1,5,10000,\nfree,1,0,1,7,,\nalloc,2,256,0,20,,\n",
                                     "strata", 0);
    EXPECT_EQ(r.figures.deferred_frees, 1);
    EXPECT_EQ(r.figures.deferred_peak_bytes, 256);
    EXPECT_EQ(r.figures.failed_operations, 0);
}

TEST(run, rows_of_equal_stream_and_time_are_one_kernel) {
    strata_run_result_t r = run_text(WORK_COLUMNS "alloc,1,256,0,0,,\nalloc,2,256,0,0,,\nwork,1,0,0,0,5000,\nwork,2,0,0,0,5000,\n"
                                                  "work,1,0,3,0,5000,\nfree,2,0,0,0,,\nwork,1,0,0,0,5000,\nsync,,0,0,1,,\n",
                                     "strata", 0);
    EXPECT_NEAR(r.figures.end_ms, 5.1, 0.1);
    EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_synchronise], 0);
    EXPECT_NEAR(r.figures.stall_ms, 0, 1e-9); /* the wait is the program's own */
}

TEST(run, other_places_and_devices) {
    strata_run_result_t r = run_text("op,id,size,stream,time_us,place,device,align\n"
                                     "alloc,1,100,0,0,pinned,0,\nalloc,2,100,0,0,host,0,\nalloc,3,1000,0,0,gpu,1,\n"
                                     "alloc,4,1000,0,0,managed,1,256\nalloc,5,2000,2,0,gpu,0,\nborrow,1,0,2,1,pinned,0,\n"
                                     "free,1,0,0,2,pinned,0,\nfree,2,0,0,2,host,0,\nfree,3,0,0,2,gpu,1,\nfree,4,0,0,2,managed,1,\n"
                                     "release,,0,0,3,gpu,1,\nsync,,0,all,3,gpu,1,\n",
                                     "strata-malloc", 0);
    EXPECT_STREQ(r.first_failure, "");
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_EQ(r.figures.operations, 11);
    EXPECT_EQ(r.figures.live_at_end, 1);
    EXPECT_EQ(r.figures.peak_requested_bytes, 4000);
    EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_host_alloc], 2);
    EXPECT_GE(r.figures.device_calls.made[STRATA_CALL_free], 1);
}

/* The host's memory is of no device, whichever asks. */
TEST(run, memory_of_the_host_is_asked_for_by_every_device) {
    strata_run_result_t r = run_text("op,id,size,stream,time_us,place,device\nalloc,1,100,0,0,host,1\nalloc,2,100,0,0,pinned,1\n"
                                     "free,1,,0,1,host,1\nfree,2,,0,1,pinned,1\nrelease,,,0,2,host,1\nrelease,,,0,2,pinned,1\n",
                                     "strata", 0);
    EXPECT_STREQ(r.first_failure, "");
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_EQ(r.figures.live_at_end, 0);
    EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_host_alloc], 2);
}

/* 4 MiB of one device and then of the other: never 8 at once. */
TEST(run, the_peak_of_two_devices_is_that_of_their_sum) {
    strata_run_result_t r = run_text(
        "op,id,size,stream,time_us,device\nalloc,1,4194304,0,0,0\nfree,1,,0,1,0\nalloc,2,4194304,0,2,1\n"
        "alloc,3,2097152,0,3,0\n",
        "system", 0);
    EXPECT_EQ(r.figures.peak_reserved_bytes, 6 * MIB);
    EXPECT_EQ(r.figures.peak_device_used_bytes, 6 * MIB);
}

TEST(run, a_larger_alignment_is_a_failed_operation) {
    strata_run_result_t r = run_text("op,id,size,stream,time_us,align\nalloc,1,100,0,0,4096\nfree,1,0,0,2,\n", "strata", 0);
    EXPECT_EQ(r.figures.failed_operations, 1);
    EXPECT_EQ(r.figures.oom_count, 0);
    EXPECT_CONTAINS(r.first_failure, "trace.csv:2: alloc failed: ");
}

TEST(run, a_larger_alignment_is_served_where_a_layer_serves_it) {
    strata_run_result_t r = run_text("op,id,size,stream,time_us,align\nalloc,1,100,0,0,4096\nfree,1,0,0,2,\n",
                                     "stack: [aligned: {alignment: 256}, auto_growth, system]\n", 0);
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_EQ(r.figures.operations, 2);
}

TEST(run, an_empty_trace_ends_at_once) {
    strata_run_result_t r = run_text(COLUMNS, "strata", 0);
    EXPECT_EQ(r.figures.operations, 0);
    EXPECT_NEAR(r.figures.end_ms, 0, 1e-9);
    EXPECT_TRUE(isnan(r.figures.fragmentation));
}

TEST(run, streams_are_called_by_their_numbers) {
    static const char rows[] = COLUMNS
        "alloc,1,1000,0,0\nalloc,2,1000,17,1\nalloc,3,1000,17,2\nalloc,4,1000,3,3\nalloc,5,1000,3,4\n";
    strata_run_result_t all = run_text(rows, "stack: [stream_safe, auto_growth, system]\n", 0);
    EXPECT_EQ(all.figures.device_calls.made[STRATA_CALL_malloc], 5);
    strata_run_result_t some = run_text(
        rows,
        "stack: [stream_safe, auto_growth, system]\nstreams: {\"1*\": [stream_safe, auto_growth: {chunk_size: 2MiB}, system]}\n",
        0);
    EXPECT_EQ(some.figures.device_calls.made[STRATA_CALL_malloc], 4);
    EXPECT_EQ(some.figures.failed_operations, 0);
}

#define ONE_CHUNK_EACH "stack: [stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n"

/* Chunks tell the pools apart: each has its own, and the ordinary stacks have theirs. */
TEST(run, pools_are_called_by_their_numbers) {
    static const char rows[] = "op,id,size,stream,time_us,pool,align\n"
                               "alloc,1,1000,0,0,,\nalloc,2,1000,0,1,7,\nalloc,3,1000,0,2,7,256\nalloc,4,1000,0,3,9,\n"
                               "pool_begin,,,0,4,7,\nalloc,5,1000,0,5,,\nalloc,6,1000,0,6,9,\npool_end,,,0,7,7,\nalloc,8,1000,0,8,,\n"
                               "free,2,,0,9,,\nfree,5,,0,9,,\n";
    static const struct {
        const char *pools;
        uint64_t chunks;
    } strategies[] = {{"", 1},
                      {"pools: {weights: [auto_growth, system]}\n", 1},
                      {"pools: {\"7\": [stream_safe, auto_growth: {chunk_size: 2MiB}, system]}\n", 2},
                      {"pools: {7: {}, 9: {}}\n", 3},
                      {"pools: {7: [system]}\n", 4}}; /* three blocks of pool 7, each asked for itself */
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        char text[300];
        snprintf(text, sizeof text, ONE_CHUNK_EACH "%s", strategies[i].pools);
        strata_run_result_t r = run_text(rows, text, 0);
        EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_malloc], strategies[i].chunks);
        EXPECT_EQ(r.figures.failed_operations, 0);
        EXPECT_EQ(r.figures.operations, 9);
        EXPECT_EQ(r.figures.live_at_end, 5);
    }
}

TEST(run, pools_that_a_strategy_does_not_name_are_none) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of("op,id,size,stream,time_us,pool\nalloc,1,1000,0,0,7\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("stack: [system]\n", NULL);
    uint64_t others = 5, *pools = &others;
    EXPECT_OK(strata_names_of_pools(strategy, trace, 0, &pools));
    EXPECT_EQ(pools, NULL);
}

/* Stream 0 is the default stream's: it is served from what was got at open, which counts, as what is got later does. */
TEST(run, what_is_preallocated_serves_stream_0_and_counts) {
    static const char *const rows[] = {COLUMNS "alloc,1,1048576,0,0\nfree,1,0,0,1\n",
                                       COLUMNS "alloc,2,256,7,0\nalloc,1,1048576,0,1\nfree,1,0,0,2\n",
                                       "op,id,size,stream,time_us,place\nalloc,1,1048576,0,0,managed\n",
                                       "op,id,size,stream,time_us,device\nalloc,1,1048576,0,0,0\nalloc,2,1048576,0,0,1\n"};
    static const uint64_t reserved[] = {GIB, GIB + 256, GIB, 2 * GIB}, calls[] = {1, 2, 1, 2};
    static const char *const streams[] = {
        "", "streams: {\"0\": {stack: [stream_safe, auto_growth: {preallocate: 1GiB}, system]}}\n", "pools: {\"7\": [system]}\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < sizeof streams / sizeof *streams; k++) {
            if (i == 2 && k == 1) continue; /* of the place gpu alone */
            char text[400];
            snprintf(text, sizeof text,
                     "stack: [stream_safe, auto_growth: {preallocate: %s}, system]\n"
                     "places: {managed: [auto_growth: {preallocate: %s}, system]}\n%s",
                     i == 2 ? "0" : "1GiB", i == 2 ? "1GiB" : "0", streams[k]);
            strata_run_result_t r = run_text(rows[i], text, 0);
            EXPECT_EQ(r.figures.peak_reserved_bytes, reserved[i]);
            EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_malloc], calls[i]);
            EXPECT_GT(r.figures.device_call_ms, (i == 2 ? 0.001 : 0.0001 * (double)(reserved[i] / MIB)));
            EXPECT_GE(r.figures.end_ms, r.figures.device_call_ms);
            EXPECT_EQ(r.figures.failed_operations, 0);
        }
    }
}

/* What a layer asks of the device when it is opened, and gets nothing by, is no figure: bfc asks how much memory there is. */
TEST(run, an_open_without_memory_counts_nothing) {
    strata_run_result_t r = run_text(COLUMNS "step,,0,0,0\n", "tensorflow", 0);
    EXPECT_NEAR(r.figures.device_call_ms, 0, 1e-9);
    EXPECT_NEAR(r.figures.end_ms, 0, 1e-9);
}

/* scrub fills what is fresh and what passes to another owner: to a from the device, to b, to nobody. */
TEST(run, tags_are_told_to_the_allocator) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(
        "op,id,size,stream,time_us,tag\nalloc,1,1000,0,0,a\nfree,1,,0,1,\nalloc,2,1000,0,2,a\nfree,2,,0,3,\n"
        "alloc,3,1000,0,4,b\nfree,3,,0,5,\nalloc,4,1000,0,6,\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("stack: [scrub, auto_growth, system]\n", NULL);
    strata_run_result_t r = replay_trace(trace, strategy, 0, LAG);
    EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_fill], 3);
}

TEST(run, the_least_capacity_is_found_and_replayed) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(
        COLUMNS "alloc,1,9437184,0,0\nfree,1,0,0,1\nalloc,2,5242880,0,2\nalloc,3,5242880,0,3\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("system", NULL);
    strata_candidate_t candidate = {.label = "x", .strategy = strategy, .target = {.profile = strata_sim_profile("h100")}};
    strata_comparison_t comparison = {.candidates = &candidate, .candidate_count = 1, .repeat = 2, .smallest = true};
    strata_run_result_t result;
    ASSERT_OK(strata_compare(&comparison, trace, &result));
    EXPECT_EQ(result.figures.smallest_device_bytes, 12 * MIB);
    EXPECT_STREQ(result.figures.label, "x");
    EXPECT_STREQ(result.figures.strategy, "system");
    EXPECT_STREQ(result.figures.device, "sim:h100");
    EXPECT_EQ(result.figures.host_ns_per_op.count, 2);
    EXPECT_LE(result.figures.host_ns_per_op.min, result.figures.host_ns_per_op.median);
    candidate.target.capacity = 8 * MIB;
    ASSERT_OK(strata_compare(&comparison, trace, &result));
    EXPECT_EQ(result.figures.oom_count, 2);
    EXPECT_EQ(result.figures.smallest_device_bytes, 12 * MIB);
    candidate.target.capacity = 12 * MIB - 1; /* one byte too small: the search continues above the capacity */
    ASSERT_OK(strata_compare(&comparison, trace, &result));
    EXPECT_EQ(result.figures.oom_count, 1);
    EXPECT_EQ(result.figures.smallest_device_bytes, 12 * MIB);
}

/* Searches the least capacity, from a device of so much memory (0: the profile's) on. */
static strata_status_t search_least(const char *rows, const char *preset, uint64_t capacity, strata_run_result_t *result) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(rows);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of(preset, NULL);
    strata_target_t target = {.profile = strata_sim_profile("h100"), .capacity = capacity};
    strata_candidate_t candidate = {.label = "x", .strategy = strategy, .target = target};
    strata_comparison_t comparison = {.candidates = &candidate, .candidate_count = 1, .repeat = 1, .smallest = true};
    return strata_compare(&comparison, trace, result);
}

/* More capacity does not help against other failures, or against a layer with its own limit. */
TEST(run, no_least_capacity_is_made_up) {
    static const char *const cases[][2] = {
        {"op,id,size,stream,time_us,align\nalloc,1,100,0,0,4096\n", "paddle"},
        {COLUMNS "alloc,1,9437184,0,0\n", "stack: [stream_safe, limit: {bytes: 4MiB}, system]\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strata_run_result_t result;
        ASSERT_OK(search_least(cases[i][0], cases[i][1], 0, &result));
        EXPECT_EQ(result.figures.failed_operations, 1);
        EXPECT_EQ(result.figures.smallest_device_bytes, STRATA_FIGURE_NULL);
    }
}

/* Without --smallest the search covers only candidates with the fewest failures, and only if none serves everything. */
TEST(run, the_nearest_are_searched_if_none_serves) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS "alloc,1,9437184,0,0\nalloc,2,5242880,0,1\nfree,2,0,0,2\n");
    strata_strategy_t *large CLOSED_BY(strategy_cleanup) = strategy_of("stack: [auto_growth: {chunk_size: 32MiB}, system]\n", NULL);
    strata_strategy_t *exact CLOSED_BY(strategy_cleanup) = strategy_of("system", NULL);
    strata_target_t target = {.profile = strata_sim_profile("h100"), .capacity = 12 * MIB};
    strata_candidate_t candidates[2] = {{.label = "large", .strategy = large, .target = target},
                                        {.label = "exact", .strategy = exact, .target = target}};
    strata_comparison_t comparison = {.candidates = candidates, .candidate_count = 2, .repeat = 1, .nearest = true};
    strata_run_result_t results[2];
    ASSERT_OK(strata_compare(&comparison, trace, results));
    EXPECT_EQ(results[0].figures.failed_operations, 2);
    EXPECT_EQ(results[1].figures.failed_operations, 1);
    EXPECT_EQ(results[0].needed_bytes, STRATA_FIGURE_NULL);
    EXPECT_EQ(results[1].needed_bytes, 16 * MIB);
    EXPECT_EQ(results[1].figures.smallest_device_bytes, STRATA_FIGURE_NULL);
    candidates[0].target.capacity = 64 * MIB;
    ASSERT_OK(strata_compare(&comparison, trace, results));
    EXPECT_EQ(results[1].figures.failed_operations, 1);
    EXPECT_EQ(results[1].needed_bytes, STRATA_FIGURE_NULL);
}

/* On a device too small for what is got at open the open is refused: too little, and no end of the comparison. */
TEST(run, the_least_capacity_of_a_strategy_that_opens_with_memory) {
    static const char rows[] = COLUMNS "alloc,1,1048576,0,0\nfree,1,0,0,1\n";
    static const char opens[] = "stack: [stream_safe, auto_growth: {preallocate: 1GiB}, system]\n";
    strata_run_result_t result;
    ASSERT_OK(search_least(rows, opens, 0, &result));
    EXPECT_EQ(result.figures.smallest_device_bytes, GIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, search_least(rows, opens, GIB - MIB, &result)); /* the comparison's own run is no search */
}

#define HALF_OF_IT "stack: [stream_safe, auto_growth, limit: {fraction: 0.5}, system]\n"

/* On a device of c MiB, 500 of them the context's beside it, the limit is (c + 500) / 2: 2 GiB want 3,596, far above what is used. */
TEST(run, the_least_capacity_of_a_strategy_that_may_use_a_share_of_the_device) {
    static const uint64_t capacities[] = {0, 3597 * MIB, STRATA_SIM_UNLIMITED};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        strata_run_result_t result;
        ASSERT_OK(search_least(COLUMNS "alloc,1,2147483648,0,0\nfree,1,0,0,1\n", HALF_OF_IT, capacities[i], &result));
        EXPECT_EQ(result.figures.peak_device_used_bytes, 2 * GIB);
        EXPECT_EQ(result.figures.smallest_device_bytes, 3596 * MIB);
    }
}

/* A strategy that may use half of the device serves 60 GiB on no device of 80 GiB, which the profile has. */
TEST(run, the_least_capacity_may_be_above_that_of_the_profile) {
    strata_run_result_t result;
    ASSERT_OK(search_least(COLUMNS "alloc,1,64424509440,0,0\nfree,1,0,0,1\n", HALF_OF_IT, STRATA_SIM_UNLIMITED, &result));
    EXPECT_EQ(result.figures.failed_operations, 0);
    EXPECT_EQ(result.figures.peak_device_used_bytes, 60 * GIB);
    EXPECT_EQ(result.figures.smallest_device_bytes, 120 * GIB - 500 * MIB);
}

/* Each host allocation of a run failed in turn: it ends, with a status or with failed operations, and leaves nothing. */
TEST(run, survives_every_failed_allocation) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(
        COLUMNS "alloc,1,256,0,0\nalloc,2,256,1,1\nborrow,1,0,1,2\nfree,1,0,0,3\nfree,2,0,1,4\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
    ASSERT_TRUE(trace && strategy);
    replay_trace(trace, strategy, 0, LAG); /* what lives as long as the process is made */
    uint64_t before = strata_host_allocations();
    replay_trace(trace, strategy, 0, LAG);
    uint64_t allocations = strata_host_allocations() - before;
    EXPECT_GT(allocations, 5);
    strata_run_options_t options = {.target = {.profile = strata_sim_profile("h100")}};
    for (uint64_t k = 1; k <= allocations; k++) {
        strata_run_result_t result;
        strata_host_fail_at(k, 0);
        strata_status_t status = strata_run(trace, strategy, &options, &result);
        strata_host_fail_at(0, 0);
        if (status == STRATA_OK) continue; /* something could do without */
        EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    }
}

/* The wait is the program's; what the pool gives back in it was asked for by the strategy's threshold: 1.8 us and 1.32 us a MiB. */
TEST(run, what_a_pool_gives_back_at_a_wait_of_the_program_is_the_strategys) {
    static const char *const waits[] = {"0", "all"};
    double freed_ms = 0.0018 + 1.32e-3 * 64;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        char rows[200];
        snprintf(rows, sizeof rows,
                 COLUMNS "alloc,1,67108864,0,0\nfree,1,0,0,10\nstep,,0,0,20\nstep,,0,0,30\nsync,,0,%s,1000\n"
                         "step,,0,0,20000\n",
                 waits[i]);
        strata_run_result_t kept = run_text(rows, "stack: [cuda_malloc_async]\n", 0);
        strata_run_result_t back = run_text(rows, "stack: [cuda_malloc_async: {release_threshold: 0}]\n", 0);
        EXPECT_NEAR(back.figures.device_call_ms - kept.figures.device_call_ms, freed_ms, 1e-6);
        EXPECT_NEAR(back.figures.steady_device_ms - kept.figures.steady_device_ms, freed_ms, 1e-6);
        EXPECT_NEAR(back.figures.end_ms - kept.figures.end_ms, freed_ms, 1e-6);
        EXPECT_NEAR(back.figures.stall_ms, kept.figures.stall_ms, 1e-9);
        EXPECT_EQ(back.figures.device_calls.made[STRATA_CALL_synchronise], 0);
    }
}

/* The driver's pool is a model: a run that used it says so, in the table and in JSON. */
TEST(run, figures_that_rest_on_the_pool_model_are_marked) {
    strata_run_result_t r = run_text(COLUMNS "alloc,1,1000,0,0\nborrow,1,0,2,5\nfree,1,0,0,20\n", "cuda_malloc_async", 0);
    EXPECT_TRUE(r.figures.modelled);
    EXPECT_EQ(r.figures.borrows_waited, 0);
    EXPECT_EQ(r.figures.deferred_frees, 1);
    EXPECT_FALSE(run_text(COLUMNS "alloc,1,1000,0,0\nfree,1,0,0,20\n", "strata", 0).figures.modelled);
}

enum { STREAMS = 300, LOOKS_PER_STREAM = 15 };

static void look_at_looks(void *context, const strata_run_moment_t *moment) {
    strata_domain_t *domain;
    ASSERT_OK(strata_facade_domain(strata_facade_of(moment->facade), strata_gpu(0), &domain));
    *(uint64_t *)context = domain->examined;
}

/* Each stream's first request grows: what is reserved then is asked without a look at the other streams' stacks. */
TEST(run, a_growth_does_not_look_at_every_stream) {
    static char rows[STREAMS * 40];
    int length = snprintf(rows, sizeof rows, COLUMNS);
    for (int i = 0; i < STREAMS; i++)
        length += snprintf(rows + length, sizeof rows - (size_t)length, "alloc,%d,1000,%d,%d\n", i, i, i);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(rows);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
    uint64_t looks = 0;
    strata_run_result_t result;
    strata_run_options_t options = {
        .target = {.profile = strata_sim_profile("h100")}, .inspect = look_at_looks, .inspect_context = &looks};
    ASSERT_OK(strata_run(trace, strategy, &options, &result));
    EXPECT_EQ(result.figures.operations, STREAMS);
    EXPECT_EQ(result.figures.peak_requested_bytes, STREAMS * 1000);
    EXPECT_GT(looks, 0);
    EXPECT_LE(looks, STREAMS * LOOKS_PER_STREAM);
}

/* Every figure that a fault in the measuring would change, on programs small enough to count by hand (docs/fields.md). */
#include <math.h>
#include <stdio.h>

#include "allocation/domain/layer.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

#define PLACES "op,id,size,stream,time_us,place,device,dur_us\n"
#define CHUNKS "stack: [stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n"

static strata_run_result_t run_text(const char *text, const char *strategy_text, bool check) {
    return replay_text(text, strategy_text, (strata_run_options_t){.timeline = {.lag_ns = LAG}, .check = check});
}

/* ---- over the repeats ---- */

static void expect_spread(double *values, size_t count, double min, double median, double max) {
    strata_figure_spread_t spread = strata_figure_spread(values, count);
    EXPECT_EQ(spread.count, count);
    EXPECT_NEAR(spread.min, min, 0);
    EXPECT_NEAR(spread.median, median, 0);
    EXPECT_NEAR(spread.max, max, 0);
}

TEST(figures, the_median_is_that_of_the_values_in_order) {
    expect_spread((double[]){7}, 1, 7, 7, 7);
    expect_spread((double[]){9, 1}, 2, 1, 5, 9);
    expect_spread((double[]){10, 9, 100}, 3, 9, 10, 100);
    expect_spread((double[]){4, 1, 16, 2}, 4, 1, 3, 16);
    expect_spread((double[]){5, 5, 1, 5, 0.5}, 5, 0.5, 5, 5);
    EXPECT_EQ(strata_figure_spread(NULL, 0).count, 0);
}

/* ---- peaks ---- */

/* 1 MiB in a chunk of 2; the chunk goes back; 2 MiB in another of 2. Reserved is highest, 2 MiB, for the first time at row 1, when half
 * of it was allocated. */
TEST(figures, of_equal_peaks_the_first_tells_the_fragmentation) {
    strata_run_result_t r = run_text(COLUMNS "alloc,1,1048576,0,0\nfree,1,,0,1\nrelease,,,0,2\nalloc,2,2097152,0,3\nfree,2,,0,4\n",
                                     CHUNKS, false);
    EXPECT_EQ(r.figures.peak_reserved_bytes, 2 * MIB);
    EXPECT_NEAR(r.figures.fragmentation, 0.5, 1e-12);
    EXPECT_EQ(r.peak_row, 1);
    EXPECT_EQ(r.figures.peak_allocated_bytes, 2 * MIB);
    EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_malloc], 2);
    EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_free], 1);
}

/* Row 3 is the first of two rows with 4 MiB: 2 + 2, of which 1 + 2 are allocated. */
TEST(figures, the_row_of_the_peak_is_the_one_after_which_most_is_reserved) {
    strata_run_result_t r = run_text(
        COLUMNS "alloc,1,1048576,0,0\nstep,,,0,1\nalloc,2,2097152,1,2\nstep,,,0,3\nfree,1,,0,4\nalloc,3,1048576,0,5\n", CHUNKS,
        false);
    EXPECT_EQ(r.peak_row, 3);
    EXPECT_NEAR(r.figures.fragmentation, 0.25, 1e-12);
}

/* 1,000 bytes are a block of 1,024; the chunk is 4,096. */
TEST(figures, fragmentation_is_of_what_is_allocated_and_not_of_what_was_asked) {
    strata_run_result_t r = run_text(COLUMNS "alloc,1,1000,0,0\n",
                                     "stack: [stream_safe, auto_growth: {chunk_size: 4KiB}, system]\n", false);
    EXPECT_EQ(r.figures.peak_requested_bytes, 1000);
    EXPECT_EQ(r.figures.peak_allocated_bytes, 1024);
    EXPECT_EQ(r.figures.peak_reserved_bytes, 4096);
    EXPECT_NEAR(r.figures.fragmentation, 0.75, 1e-12);
}

/* A layer that takes twice what it is asked for, and gives one half back before it answers. */
static strata_status_t greedy_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_record_t *more;
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status != STRATA_OK || strata_below_allocate(self, request, &more) != STRATA_OK) return status;
    strata_below_free(more, request->call);
    return status;
}

static const strata_layer_type_t greedy_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_greedy",
    .doc = "takes twice",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = greedy_allocate,
    .free = strata_layer_free_below,
};

/* On one device the peak is that of a moment within a call; on two it is the highest sum seen after one. */
TEST(figures, what_was_reserved_for_a_moment_counts_on_one_device) {
    const strata_layer_type_t *type = &greedy_type;
    ASSERT_OK(strata_layers_register(&type, 1, true));
    strata_run_result_t r = run_text(COLUMNS "alloc,1,4194304,0,0\n", "stack: [test_greedy, system]\n", false);
    EXPECT_EQ(r.figures.peak_reserved_bytes, 8 * MIB);
    EXPECT_EQ(r.figures.peak_device_used_bytes, 8 * MIB);
    EXPECT_EQ(r.figures.peak_allocated_bytes, 4 * MIB);
    EXPECT_NEAR(r.figures.fragmentation, 0, 1e-12); /* after the call 4 MiB were reserved */
    r = run_text("op,id,size,stream,time_us,device\nalloc,1,4194304,0,0,0\nalloc,2,2097152,0,0,1\n",
                 "stack: [test_greedy, system]\n", false);
    EXPECT_EQ(r.figures.peak_reserved_bytes, 6 * MIB);
    EXPECT_EQ(r.figures.peak_device_used_bytes, 8 * MIB); /* the first device's own, for a moment */
}

TEST(figures, what_is_freed_is_live_no_more_in_every_place_of_a_device) {
    strata_run_result_t r = run_text(
        PLACES "alloc,1,1000,0,0,managed,,\nfree,1,,0,1,,,\nalloc,2,1000,0,2,managed,,\nfree,2,,0,3,managed,,\n"
               "alloc,3,500,0,4,pinned,,\n",
        CHUNKS, false);
    EXPECT_EQ(r.figures.peak_requested_bytes, 1000);
    EXPECT_EQ(r.figures.peak_allocated_bytes, 1024);
    EXPECT_EQ(r.figures.live_at_end, 1);
    r = run_text(COLUMNS "alloc,1,1000,0,0\nalloc,2,1000,0,0\nfree,1,,3,1\nfree,2,,0,2\n", CHUNKS, false);
    EXPECT_EQ(r.figures.live_at_end, 0); /* freed by another stream or by its own */
}

/* ---- times ---- */

/* Three rows: the last third is the free. It waits for what the GPU has still to do. */
TEST(figures, the_last_third_counts_calls_and_waits) {
    strata_run_result_t r = run_text(COLUMNS "alloc,1,256,0,0\nalloc,2,256,0,0\nfree,1,,0,1000\n", "system", false);
    double free_ms = 0.0335 + 0.372e-3 * 256 / MIB, malloc_ms = 0.0371 + 0.0725e-3 * 256 / MIB;
    EXPECT_NEAR(r.figures.stall_ms, 2 * malloc_ms + 1, 1e-5); /* as far as the host has run ahead */
    EXPECT_NEAR(r.figures.steady_device_ms, free_ms + r.figures.stall_ms, 1e-5);
}

TEST(figures, a_program_ends_when_its_last_device_does) {
    strata_run_result_t r = run_text(
        PLACES "alloc,1,256,0,0,gpu,0,\nalloc,2,256,0,0,gpu,1,\nwork,1,,0,10,gpu,0,1000\nwork,2,,0,10,gpu,1,9000\n", "system",
        false);
    EXPECT_TRUE(r.figures.end_ms >= 9.01 && r.figures.end_ms < 9.5);
}

/* Borrowed twice, held once: after the free the stream has nothing to do, and a wait for it 48 ms later takes no time. */
TEST(figures, a_borrow_told_twice_ends_with_the_free) {
    strata_run_result_t r = run_text(
        COLUMNS "alloc,1,256,0,0\nborrow,1,,2,0\nborrow,1,,2,0\nfree,1,,0,1000\nstep,,,0,2000\nsync,,,2,50000\n", "strata", false);
    EXPECT_TRUE(r.figures.end_ms > 50 && r.figures.end_ms < 50.5);
}

/* ---- counts ---- */

/* A request that finds 1 MiB allowed runs the ladder, in whatever memory. */
TEST(figures, ladders_of_every_place_count) {
    static const char text[] =
        "stack: [stream_safe, auto_growth: {chunk_size: 2MiB}, limit: {bytes: 1MiB}, system]\n"
        "places: {pinned: [stream_safe, auto_growth: {chunk_size: 2MiB}, limit: {bytes: 1MiB}, system: {memory: pinned}]}\n";
    strata_run_result_t r = run_text(PLACES "alloc,1,2000000,0,0,pinned,,\nalloc,2,2000000,0,1,gpu,,\n", text, false);
    EXPECT_EQ(r.figures.recoveries, 2);
    EXPECT_EQ(r.figures.oom_count, 2);
    EXPECT_EQ(r.figures.failed_operations, 2);
    EXPECT_EQ(r.figures.live_at_end, 0);
}

/* 256 bytes wait on each device: of several the figures are sums. */
TEST(figures, deferred_bytes_and_frees_are_added_up_over_devices) {
    strata_run_result_t r = run_text(
        PLACES "alloc,1,256,0,0,gpu,0,\nalloc,2,256,0,0,gpu,1,\nalloc,3,256,0,0,gpu,1,\nwork,1,,1,5,gpu,0,9000\n"
               "work,2,,1,5,gpu,1,9000\nfree,1,,1,7,gpu,0,\nfree,2,,1,7,gpu,1,\nfree,3,,1,8,gpu,1,\n",
        "strata", false);
    EXPECT_EQ(r.figures.deferred_frees, 3);
    EXPECT_EQ(r.figures.deferred_peak_bytes, 768);
}

/* 80 GiB less what the context takes of them. */
TEST(figures, the_capacity_is_what_a_strategy_may_use) {
    const strata_sim_profile_t *profile = strata_sim_profile("h100");
    strata_run_result_t r = run_text(COLUMNS "alloc,1,256,0,0\n", "system", false);
    EXPECT_EQ(r.figures.capacity_bytes, profile->total_bytes - profile->context_bytes);
}

/* More than three faults, of which the first three are told with their histories. */
TEST(figures, the_first_three_hazards_are_told) {
    char rows[1200] = COLUMNS;
    for (int i = 1; i <= 8; i++)
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "alloc,%d,4194304,0,%d\nborrow,%d,,1,%d\nfree,%d,,0,%d\n", i,
                 30 * i, i, 30 * i + 10, i, 30 * i + 20);
    strata_run_result_t r = run_text(rows, "paddle", true);
    EXPECT_GT(r.figures.hazards, 3);
    EXPECT_CONTAINS(r.first_hazards, "hazard 3: ");
    EXPECT_LACKS(r.first_hazards, "hazard 4: ");
}

/* ---- the least capacity ---- */

/* What the first request leaves is idle where there is room for both, and goes back where there is not: the second alone has to fit. */
TEST(figures, the_least_capacity_is_exact_to_a_step) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of(CHUNKS, NULL);
    for (uint64_t i = 1; i <= 12; i++) {
        char rows[200];
        snprintf(rows, sizeof rows, COLUMNS "alloc,1,%llu,0,0\nfree,1,,0,1\nalloc,2,%llu,0,2\nfree,2,,0,3\n",
                 (unsigned long long)(i * 2 * MIB), (unsigned long long)((i + 1) * 2 * MIB));
        strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(rows);
        strata_candidate_t candidate = {.label = "x", .strategy = strategy, .target = {.profile = strata_sim_profile("h100")}};
        strata_comparison_t comparison = {.candidates = &candidate, .candidate_count = 1, .repeat = 1, .smallest = true};
        strata_run_result_t result;
        ASSERT_OK(strata_compare(&comparison, trace, &result));
        EXPECT_EQ(result.figures.peak_device_used_bytes, (2 * i + 1) * 2 * MIB);
        EXPECT_EQ(result.figures.smallest_device_bytes, (i + 1) * 2 * MIB);
    }
}

/* The preset of TensorFlow's allocator against what was measured of XLA's BFC (traces/README.md). */
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

TEST(tensorflow, reserves_what_bfc_was_measured_to_reserve) {
    static const struct {
        const char *trace;
        uint64_t mallocs, reserved;
    } measured[] = {
        {"tinytorch-mnist.csv", 9, 1612709888},
        {"lm-medium-ctx256-training.csv.gz", 11, 17179869184},
        {"lm-medium-ctx512-inference.csv.gz", 6, 2147483648},
        {"lm-benchmark-step.csv.gz", 11, 17179869184},
        {"lm-small-bf16-forward.csv.gz", 6, 1073741824},
        {"ddp-2rank-v100.csv.gz", 8, 4294967296},
        {"alexnet-training.csv.gz", 7, 2162163712},
    };
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        strata_run_result_t r = replay_named(measured[i].trace, "tensorflow", NULL, STRATA_SIM_UNLIMITED, LAG);
        EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_malloc], measured[i].mallocs);
        EXPECT_EQ(r.figures.peak_reserved_bytes, measured[i].reserved);
        EXPECT_EQ(r.figures.failed_operations, 0);
        EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_free], 0);
        EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_synchronise], 0);
        EXPECT_LE(r.figures.stall_ms, 0);
        if (strata_test_has_failed()) FAIL_TEST("so far on %s", measured[i].trace);
    }
}

/* What was measured of the peer is what its doubling takes; a bound on regions takes less, and no request fails for it. */
TEST(tensorflow, a_bound_on_regions_reserves_less) {
    static const char *const bounded[] = {"bfc.max_region=256MiB", NULL};
    static const struct {
        const char *trace;
        uint64_t peer;
    } cases[] = {{"lm-medium-ctx256-training.csv.gz", 17179869184}, {"ddp-2rank-v100.csv.gz", 4294967296}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strata_run_result_t r = replay_named(cases[i].trace, "tensorflow", bounded, STRATA_SIM_UNLIMITED, LAG);
        EXPECT_LT(r.figures.peak_reserved_bytes, cases[i].peer / 100 * 95);
        EXPECT_EQ(r.figures.failed_operations, 0);
    }
}

/* Streams share one cache: what another stream used is waited for, and borrows are the core's to wait for. */
TEST(tensorflow, waits_where_streams_share) {
    static const char *const traces[] = {"streams-prefetch.csv.gz", "streams-sharded-training.csv.gz", "streams-serving.csv.gz"};
    for (size_t i = 0; i < 3; i++) {
        strata_run_result_t r = replay_named(traces[i], "tensorflow", NULL, 80 * GIB, LAG);
        EXPECT_GT(r.figures.device_calls.made[STRATA_CALL_synchronise], 0);
        EXPECT_GT(r.figures.stall_ms, 0);
        EXPECT_GT(r.figures.borrows_waited, 0);
        EXPECT_EQ(r.figures.device_calls.made[STRATA_CALL_event_record], 0);
        EXPECT_EQ(r.figures.failed_operations, 0);
    }
}

/* The peer's own steps are all that is done: no ladder. */
TEST(tensorflow, climbs_no_ladder_but_its_own_steps) {
    strata_run_result_t tight = replay_named("streams-sharded-training.csv.gz", "tensorflow", NULL, 24 * GIB, LAG);
    EXPECT_EQ(tight.figures.recoveries, 0);
    strata_run_result_t small = replay_named("lm-medium-ctx256-training.csv.gz", "tensorflow", NULL, 8 * GIB, LAG);
    EXPECT_GT(small.figures.oom_count, 0);
    EXPECT_EQ(small.figures.recoveries, 0);
}

/* The preset of TensorFlow's allocator against what was measured of XLA's BFC (traces/README.md). */
#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"
#include "tests/replay/helpers.h"

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
        EXPECT_TRUE(r.figures.stall_ms <= 0);
        if (strata_test_has_failed()) FAIL_TEST("so far on %s", measured[i].trace);
    }
}

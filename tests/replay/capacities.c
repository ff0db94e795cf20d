/* Every strategy serves a block of 1 MiB on devices of all sizes, unlimited ones included, exactly as on the usual device. */
#include "strategy/presets.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

#define ONE_BLOCK COLUMNS "alloc,1,1048576,0,0\nfree,1,,0,10\n"

typedef struct capacity {
    const char *name;
    uint64_t bytes;
} capacity_t;

static const capacity_t capacities[] = {{"1GiB", GIB},
                                        {"288GiB", 288 * GIB},
                                        {"1TiB", 1024 * GIB},
                                        {"2TiB", 2048 * GIB},
                                        {"127TiB", 127 * 1024 * GIB},
                                        {"1000TiB", 1000 * 1024 * GIB},
                                        {"4EiB", UINT64_C(1) << 62},
                                        {"8EiB", UINT64_C(1) << 63},
                                        {"16EiB_less_a_GiB", 0 - GIB},
                                        {"16EiB_less_2", UINT64_MAX - 1},
                                        {"unlimited", STRATA_SIM_UNLIMITED}};

/* The time equals that on the usual device within 1 %, because chunks and ranges have the same sizes. A strategy whose sizes are a share of the
 * memory takes longer in proportion. */
TEST_EACH(capacities, every_preset_serves_one_block, capacity_t, capacities) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(ONE_BLOCK);
    ASSERT_TRUE(trace);
    for (const strata_preset_text_t *preset = strata_preset_texts; preset->name; preset++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of(preset->name, NULL);
        ASSERT_TRUE(strategy);
        strata_figures_t usual = replay_trace(trace, strategy, 0, LAG).figures;
        strata_figures_t f = replay_trace(trace, strategy, row->bytes, LAG).figures;
        double shares = row->bytes > 80 * GIB && row->bytes <= 1024 * GIB ? (double)row->bytes / (double)(80 * GIB) : 1;
        if (f.failed_operations != 0 || f.oom_count != 0) FAIL_TEST("%s fails", preset->name);
        EXPECT_EQ(f.operations, 2);
        EXPECT_EQ(f.peak_requested_bytes, MIB);
        EXPECT_LE(f.peak_allocated_bytes, f.peak_reserved_bytes);
        EXPECT_LE(f.peak_reserved_bytes, row->bytes);
        if (f.end_ms > usual.end_ms * shares * 1.02)
            FAIL_TEST("%s ends at %.3f ms, usually at %.3f", preset->name, f.end_ms, usual.end_ms);
    }
}

/* The full share of an unlimited device is unlimited. */
typedef struct share {
    const char *name, *text;
} share_t;

static const share_t shares[] = {
    {"limit", "stack: [limit: {fraction: 1}, system]\n"},
    {"cuda_malloc_async", "stack: [cuda_malloc_async: {throttle: 1}]\n"},
    {"bfc", "stack: [bfc: {memory_fraction: 1}, system]\n"},
    {"caching", "stack: [caching: {memory_fraction: 0.999999}, system]\n"},
    {"naive_best_fit", "stack: [naive_best_fit: {fraction: 1}, system]\n"},
};

TEST_EACH(capacities, a_share_of_all, share_t, shares) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(ONE_BLOCK);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of(row->text, NULL);
    ASSERT_TRUE(trace && strategy);
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        strata_figures_t f = replay_trace(trace, strategy, capacities[i].bytes, LAG).figures;
        if (f.failed_operations != 0) FAIL_TEST("fails with %s", capacities[i].name);
        EXPECT_LT(f.end_ms, 200);
    }
}

/* Tests the figures of a place and its pools during a pause: paused memory is neither reserved nor cached. */
#include "tests/pause/pause.h"

static strata_statistics_t of_pool(rig_t *rig, uint64_t pool) {
    strata_statistics_t f = {.struct_size = sizeof f};
    EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, pool, &f));
    return f;
}

static strata_mem_info_t info_of(rig_t *rig) {
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_mem_info(rig->s, rig->gpu, &info));
    return info;
}

TEST(pause_figures, are_exact_before_during_and_after_a_pause) {
    PAUSED_RIG(rig, "stack: [auto_growth: {chunk_size: 8MiB}, vmm]\n");
    uint64_t pool = STRATA_POOL_ORDINARY, free_before = info_of(&rig).free;
    strata_block_t a = rig_allocate(&rig, NULL, 6 * MIB), b = rig_allocate(&rig, NULL, 8 * MIB);
    EXPECT_EQ(info_of(&rig).cached, 2 * MIB);
    EXPECT_EQ(info_of(&rig).free, free_before - 16 * MIB);
    strata_paused_t report = pause_do(&rig, pool, STRATA_PAUSE_DROP);
    EXPECT_EQ(report.bytes, 16 * MIB);
    EXPECT_EQ(report.kept_bytes, 0);
    EXPECT_EQ(report.rest_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).paused_bytes, 16 * MIB);
    EXPECT_EQ(rig_figures(&rig).allocated_bytes, 14 * MIB);
    EXPECT_EQ(of_pool(&rig, pool).reserved_bytes, 0);
    EXPECT_EQ(of_pool(&rig, pool).paused_bytes, 16 * MIB);
    EXPECT_EQ(info_of(&rig).cached, 0);
    EXPECT_EQ(info_of(&rig).free, free_before);
    report = resume_do(&rig, pool);
    EXPECT_EQ(report.bytes, 16 * MIB);
    EXPECT_EQ(report.rest_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 16 * MIB);
    EXPECT_EQ(rig_figures(&rig).peak_reserved_bytes, 16 * MIB);
    EXPECT_EQ(rig_figures(&rig).paused_bytes, 0);
    EXPECT_EQ(of_pool(&rig, pool).reserved_bytes, 16 * MIB);
    EXPECT_EQ(info_of(&rig).cached, 2 * MIB);
    EXPECT_EQ(info_of(&rig).free, free_before - 16 * MIB);
    RIG_FREE(&rig, a, b);
}

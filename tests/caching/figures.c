/* What caching tells of its small and large segments (PyTorch's small_pool and large_pool). */
#include <string.h>

#include "tests/caching/caching.h"

typedef struct told {
    uint64_t small_segments, small_active, small_split, large_segments, large_active, large_split;
} told_t;

static void note(const strata_layer_figure_t *figure, void *context) {
    told_t *told = context;
    const struct {
        const char *name;
        uint64_t *value;
    } rows[] = {{"small_segment_bytes", &told->small_segments},     {"small_active_bytes", &told->small_active},
                {"small_inactive_split_bytes", &told->small_split}, {"large_segment_bytes", &told->large_segments},
                {"large_active_bytes", &told->large_active},        {"large_inactive_split_bytes", &told->large_split}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(figure->name, rows[i].name) == 0) *rows[i].value = figure->value;
}

static void expect_told(rig_t *rig, told_t wanted) {
    told_t told = {.small_segments = 1};
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, note, &told));
    EXPECT_EQ(told.small_segments, wanted.small_segments);
    EXPECT_EQ(told.small_active, wanted.small_active);
    EXPECT_EQ(told.small_split, wanted.small_split);
    EXPECT_EQ(told.large_segments, wanted.large_segments);
    EXPECT_EQ(told.large_active, wanted.large_active);
    EXPECT_EQ(told.large_split, wanted.large_split);
}

TEST(caching_figures, tell_small_and_large_segments_and_what_lies_split) {
    RIG_BY(rig, caching_open(&rig, "", 0));
    expect_told(&rig, (told_t){0});
    strata_block_t small = rig_allocate(&rig, NULL, 512 * KIB), large = rig_allocate(&rig, NULL, 4 * MIB);
    expect_told(&rig, (told_t){2 * MIB, 512 * KIB, 1536 * KIB, 20 * MIB, 4 * MIB, 16 * MIB});
    strata_stream_t borrower = rig_stream(&rig);
    rig_borrow(&rig, large.ref, borrower, MILLISECOND);
    EXPECT_OK(strata_free(rig.s, large.ref));
    /* Freed, and waiting for its borrower: active still. */
    expect_told(&rig, (told_t){2 * MIB, 512 * KIB, 1536 * KIB, 20 * MIB, 4 * MIB, 16 * MIB});
    EXPECT_OK(strata_free(rig.s, small.ref));
    /* A whole segment that is free is no split. */
    expect_told(&rig, (told_t){2 * MIB, 0, 0, 20 * MIB, 4 * MIB, 16 * MIB});
    rig_advance(&rig, 2 * MILLISECOND);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    expect_told(&rig, (told_t){0});
}

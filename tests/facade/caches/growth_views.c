/* Views of auto_growth_vmm at their bounds: how many mappings stay, which of equal ones serves, which gaps are taken. */
#include "tests/facade/support/fixture.h"

#define EXACT "stack: [auto_growth_vmm: {slack: 0, slack_least: 0, moves: false}, vmm]"
#define LATER (60ull * 1000 * 1000 * 1000) /* ns; the budget of time for views is large by then */
enum { HOLES = 96, MAPPED_MAX = 4096, MAPPED_THEN = 2048 };

typedef struct wanted {
    const char *name;
    uint64_t value;
} wanted_t;

static void find_figure(const strata_layer_figure_t *figure, void *context) {
    wanted_t *wanted = context;
    if (strcmp(figure->name, wanted->name) == 0) wanted->value += figure->value;
}

static uint64_t figure_of(rig_t *rig, const char *name) {
    wanted_t wanted = {.name = name};
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, find_figure, &wanted));
    return wanted.value;
}

/* Holes of one handle each, between blocks that live. */
static void make_holes(rig_t *rig, size_t count) {
    strata_block_t blocks[2 * HOLES];
    ASSERT_LE(count, HOLES);
    for (size_t i = 0; i < 2 * count; i++) blocks[i] = rig_allocate(rig, NULL, 2 * MIB);
    for (size_t i = 0; i < 2 * count; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

static strata_block_t allocate_over(rig_t *rig, size_t holes) { return rig_allocate(rig, NULL, holes * 2 * MIB); }

/* Each a view of its own, since none before it is as large. Returns their mappings. */
static uint64_t make_views(rig_t *rig, size_t from, size_t to, size_t without) {
    uint64_t mapped = 0;
    for (size_t holes = from; holes <= to; holes++) {
        if (holes == without) continue;
        RIG_FREE(rig, allocate_over(rig, holes));
        mapped += holes;
    }
    return mapped;
}

/* As many as may be stay; beyond that the oldest end until half of that is left. */
TEST_RIG(growth_views, the_oldest_end_where_there_are_too_many_mappings, 0, EXACT) {
    rig_advance(rig, LATER);
    make_holes(rig, HOLES);
    EXPECT_EQ(make_views(rig, 2, 91, 89), MAPPED_MAX);
    EXPECT_EQ(figure_of(rig, "viewed"), MAPPED_MAX);
    EXPECT_EQ(figure_of(rig, "views"), 89);
    EXPECT_EQ(make_views(rig, 92, 92, 0), 92);
    EXPECT_EQ(figure_of(rig, "viewed"), MAPPED_MAX + 92);
    EXPECT_EQ(figure_of(rig, "views"), 90);
    EXPECT_EQ(make_views(rig, 93, 93, 0), 93);
    uint64_t left = 0, views = 0;
    for (uint64_t holes = 92; left + holes <= MAPPED_THEN; holes--) {
        if (holes == 89) continue;
        left += holes;
        views++;
    }
    EXPECT_EQ(figure_of(rig, "viewed"), left + 93);
    EXPECT_EQ(figure_of(rig, "views"), views + 1);
    EXPECT_OK(strata_validate(rig->s));
    /* The newest is found again; the oldest was ended, and is not. */
    uint64_t maps = rig_calls(rig, STRATA_CALL_map);
    RIG_FREE(rig, allocate_over(rig, 93));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_map), maps);
}

/* The aliases of the views that end here stay mapped until the work before their end is done. */
TEST_RIG(growth_views, ended_views_stay_mapped_under_running_work, 0, EXACT) {
    enum { LONG = 50 * 1000 * 1000 };
    rig_advance(rig, LATER);
    make_holes(rig, HOLES);
    EXPECT_EQ(make_views(rig, 2, 92, 89), MAPPED_MAX + 92);
    rig_work(rig, NULL, LONG, 0);
    EXPECT_EQ(make_views(rig, 93, 93, 0), 93);
    EXPECT_EQ(make_views(rig, 94, 94, 0), 94);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_unmap), 0);
    rig_advance(rig, LONG);
    EXPECT_EQ(make_views(rig, 95, 95, 0), 95);
    EXPECT_GT(rig_calls(rig, STRATA_CALL_unmap), 0);
}

/* Of two views of one size the one that served last. */
TEST_RIG(growth_views, the_newest_of_equal_ones_serves, 0, EXACT) {
    make_holes(rig, 4);
    strata_block_t first = allocate_over(rig, 2), second = allocate_over(rig, 2);
    EXPECT_EQ(figure_of(rig, "views"), 2);
    RIG_FREE(rig, second, first);
    strata_block_t third = allocate_over(rig, 2);
    EXPECT_EQ(third.ptr, second.ptr);
    RIG_FREE(rig, third);
    /* It has served again, and so is the newest also where the other was freed last. */
    third = allocate_over(rig, 2);
    strata_block_t fourth = allocate_over(rig, 2);
    EXPECT_EQ(third.ptr, second.ptr);
    EXPECT_EQ(fourth.ptr, first.ptr);
    RIG_FREE(rig, third, fourth);
    third = allocate_over(rig, 2);
    EXPECT_EQ(third.ptr, first.ptr);
    RIG_FREE(rig, third);
}

/* Of two gaps as large as the handle the first one is taken, and of two gaps the one that is least too large. */
TEST(growth_views, the_first_of_equal_gaps_is_filled) {
    static const size_t mib[] = {4, 2, 4, 2, 2, 2, 6, 2};
    static const struct { size_t mib, filled; } rows[] = {{4, 0}, {4, 2}, {2, 4}, {6, 6}};
    RIG(rig, EXACT, 0);
    strata_block_t blocks[COUNT(mib)];
    for (size_t i = 0; i < COUNT(mib); i++) blocks[i] = rig_allocate(&rig, NULL, mib[i] * MIB);
    for (size_t i = 0; i < COUNT(mib); i += 2) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    EXPECT_EQ(rig_release(&rig), 16 * MIB);
    for (size_t i = 0; i < COUNT(rows); i++) {
        strata_block_t block = rig_allocate(&rig, NULL, rows[i].mib * MIB);
        EXPECT_EQ(block.ptr, blocks[rows[i].filled].ptr);
    }
    EXPECT_OK(strata_validate(rig.s));
}

/* What is idle at the end of a handle is a piece of a view if it is as large as the smallest handle; a unit less is none. */
TEST(growth_views, a_piece_is_as_large_as_the_smallest_handle) {
    for (size_t less = 0; less <= 512; less += 512) {
        RIG(rig, EXACT, 0);
        strata_block_t a = rig_allocate(&rig, NULL, 10 * MIB), b = rig_allocate(&rig, NULL, 2 * MIB),
                       c = rig_allocate(&rig, NULL, 10 * MIB), d = rig_allocate(&rig, NULL, 2 * MIB);
        EXPECT_OK(strata_free(rig.s, a.ref));
        strata_block_t low_of_a = rig_allocate(&rig, NULL, 8 * MIB + less), high_of_a = rig_allocate(&rig, NULL, 2 * MIB - less);
        EXPECT_OK(strata_free(rig.s, c.ref));
        strata_block_t low_of_c = rig_allocate(&rig, NULL, 4 * MIB), high_of_c = rig_allocate(&rig, NULL, 6 * MIB);
        RIG_FREE(&rig, high_of_a, low_of_c);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 24 * MIB);
        strata_block_t block = rig_allocate(&rig, NULL, 6 * MIB - less);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, less ? 26 * MIB : 24 * MIB);
        RIG_FREE(&rig, b, d, low_of_a, high_of_c, block);
    }
}

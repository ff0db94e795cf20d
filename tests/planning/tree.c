/* Graphs worked out by hand from the rules of the peer (docs/planning.md shows some): where `tree` puts each buffer. */
#include "planning/planners/forest.h"
#include "platform/status.h"
#include "tests/planning/plans.h"

enum { GRAPH = 8 };

typedef struct graph {
    const char *name;
    strata_plan_buffer_t b[GRAPH];
    uint64_t offsets[GRAPH], peak;
    uint32_t pools;
    strata_plan_pools_t mode;
    bool close_gaps;
} graph_t;

#define B(from, to, bytes)                                                                                                         \
    { .lower = from, .upper = to, .size = bytes }
#define OUT(from, to, bytes)                                                                                                       \
    { .lower = from, .upper = to, .size = bytes, .flags = STRATA_PLAN_OUTPUT }

static const graph_t graphs[] = {
    {"equal_fit", {B(0, 2, 128), B(2, 4, 128)}, {0, 0}, 128, 1, STRATA_PLAN_POOLS_INTERMEDIATES, false},
    {"smaller_fit", {B(0, 2, 256), B(2, 4, 100), B(2, 4, 64)}, {0, 0, 128}, 256, 1, STRATA_PLAN_POOLS_INTERMEDIATES, false},
    {"alignment", {B(0, 1, 1), B(0, 1, 1)}, {0, 64}, 65, 1, STRATA_PLAN_POOLS_INTERMEDIATES, false},
    {"longest_first", {B(0, 1, 64), B(0, 4, 64), B(1, 2, 64)}, {64, 0, 64}, 128, 1, STRATA_PLAN_POOLS_INTERMEDIATES, false},
    {"root_grows", {B(0, 2, 192), B(0, 2, 128), B(0, 2, 64)}, {0, 192, 320}, 384, 1, STRATA_PLAN_POOLS_INTERMEDIATES, false},
    {"empty_grows",
     {B(0, 4, 128), B(0, 2, 100), B(2, 4, 80), B(2, 4, 70)},
     {0, 128, 128, 256},
     326,
     1,
     STRATA_PLAN_POOLS_INTERMEDIATES,
     false},
    {"one_overlaps", {B(0, 4, 192), B(4, 8, 128), B(4, 6, 64)}, {0, 0, 128}, 192, 1, STRATA_PLAN_POOLS_INTERMEDIATES, false},
    {"several_overlap",
     {B(4, 6, 256), B(0, 2, 128), B(2, 4, 128), B(1, 3, 64)},
     {0, 0, 0, 256},
     320,
     1,
     STRATA_PLAN_POOLS_INTERMEDIATES,
     false},
    {"several_overlap_mended",
     {B(4, 6, 256), B(0, 2, 128), B(2, 4, 128), B(1, 3, 64)},
     {0, 0, 0, 128},
     256,
     1,
     STRATA_PLAN_POOLS_INTERMEDIATES,
     true},
    {"several_overlap_and_grow",
     {B(0, 2, 128), B(2, 4, 128), B(1, 3, 64)},
     {0, 0, 128},
     192,
     1,
     STRATA_PLAN_POOLS_INTERMEDIATES,
     true},
    {"ranges_have_holes",
     {B(6, 8, 256), B(0, 2, 128), B(1, 6, 64), B(3, 5, 64), B(2, 3, 64)},
     {0, 0, 128, 0, 0},
     256,
     1,
     STRATA_PLAN_POOLS_INTERMEDIATES,
     false},
    {"outputs_alone", {OUT(0, 2, 64), OUT(1, 3, 32), B(0, 1, 100)}, {64, 0, 128}, 228, 3, STRATA_PLAN_POOLS_INTERMEDIATES, false},
    {"before_an_output", {OUT(2, 4, 128), B(0, 2, 100)}, {0, 0}, 128, 1, STRATA_PLAN_POOLS_INTERMEDIATES, false},
    {"last_pool_grows", {OUT(0, 3, 32), B(0, 2, 100), B(1, 3, 80)}, {0, 64, 192}, 272, 2, STRATA_PLAN_POOLS_INTERMEDIATES, false},
    {"mode_none", {B(0, 2, 128), B(0, 2, 64)}, {0, 128}, 192, 2, STRATA_PLAN_POOLS_NONE, false},
    {"mode_outputs", {OUT(0, 2, 64), OUT(0, 2, 128), B(0, 2, 32)}, {0, 64, 192}, 224, 2, STRATA_PLAN_POOLS_OUTPUTS, false},
    {"mode_combined", {OUT(0, 2, 64), B(0, 1, 128)}, {128, 0}, 192, 1, STRATA_PLAN_POOLS_COMBINED, false},
};

static size_t size_of(const graph_t *graph) {
    size_t count = 0;
    while (count < GRAPH && graph->b[count].size) count++;
    return count;
}

TEST_EACH(plan_tree, puts_buffers_where_the_rules_do, graph_t, graphs) {
    uint64_t o[GRAPH];
    size_t count = size_of(row);
    strata_plan_options_t options = {
        .struct_size = sizeof options, .planner = "tree", .pools = row->mode, .close_gaps = row->close_gaps};
    strata_plan_result_t result = plans_make_with(&options, row->b, count, o);
    for (size_t i = 0; i < count; i++) EXPECT_EQ(o[i], row->offsets[i]);
    EXPECT_EQ(result.peak, row->peak);
    EXPECT_EQ(result.pools, row->pools);
}

/* A forest of the buffers of a problem. */
typedef struct wood {
    strata_problem_t p;
    strata_forest_t f;
    uint32_t item[GRAPH]; /* of buffers */
} wood_t;

static void plant(wood_t *w, const strata_plan_buffer_t *b, size_t count) {
    ASSERT_OK(strata_problem_make(&w->p, b, count, 0));
    ASSERT_OK(strata_forest_init(&w->f, &w->p, false));
    for (uint32_t i = 0; i < w->p.item_count; i++) {
        uint32_t buffer = w->p.items[i].buffer;
        w->item[buffer] = i;
        w->f.lower[i] = b[buffer].lower;
        w->f.upper[i] = b[buffer].upper;
    }
}

static void fell(wood_t *w) {
    strata_forest_destroy(&w->f);
    strata_problem_delete(&w->p);
}

/* A larger one where nothing lives meanwhile: the split grows, and what was there has room behind it, which is then used. No order
 * by size comes to this. */
TEST(plan_forest, a_split_grows_with_its_parts) {
    const strata_plan_buffer_t b[] = {B(0, 1, 64), B(1, 2, 100), B(0, 1, 36)};
    uint64_t o[3];
    OPENED(wood_t, w, fell, plant(&w, b, 3));
    uint32_t root = strata_forest_new_pool(&w.f, w.item[0]);
    EXPECT_FALSE(strata_forest_insert(&w.f, root, w.item[1], false));
    EXPECT_TRUE(strata_forest_insert(&w.f, root, w.item[1], true));
    EXPECT_EQ(w.f.splits[root].size, 100);
    EXPECT_TRUE(strata_forest_insert(&w.f, root, w.item[2], false));
    EXPECT_EQ(strata_forest_set_offsets(&w.f, root, 0, o), 100);
    EXPECT_EQ(o[w.item[0]], 0);
    EXPECT_EQ(o[w.item[1]], 0);
    EXPECT_EQ(o[w.item[2]], 64);
}

/* Room of a byte behind the second one, at the next multiple: nobody has it, so it is no part of the pool. */
TEST(plan_forest, room_at_the_end_is_given_up) {
    const strata_plan_buffer_t b[] = {B(0, 1, 101), B(1, 2, 100)};
    uint64_t o[2];
    OPENED(wood_t, w, fell, plant(&w, b, 2));
    uint32_t root = strata_forest_new_pool(&w.f, w.item[0]);
    EXPECT_TRUE(strata_forest_insert(&w.f, root, w.item[1], false));
    EXPECT_EQ(w.f.splits[root].size, 129);
    EXPECT_EQ(strata_forest_set_offsets(&w.f, root, 0, o), 101);
}

TEST(plan_tree, mended_is_never_worse_and_often_better) {
    plans_random_t random = {21};
    strata_plan_buffer_t b[60];
    uint64_t o[60];
    int better = 0;
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = "tree"};
    for (int round = 0; round < 100; round++) {
        plans_random_buffers(&random, &(plans_shape_t){.times = 40, .sizes = 5000}, b, 60);
        options.close_gaps = false;
        uint64_t peer = plans_make_with(&options, b, 60, o).peak;
        options.close_gaps = true;
        uint64_t close_gaps = plans_make_with(&options, b, 60, o).peak;
        EXPECT_LE(close_gaps, peer);
        better += close_gaps < peer;
    }
    EXPECT_GT(better, 10);
}

TEST(plan_tree, says_what_it_cannot_do) {
    strata_plan_buffer_t b = {.upper = 1, .size = 1, .flags = STRATA_PLAN_FIXED};
    uint64_t o;
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = "tree"};
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_plan_make(&options, &b, 1, &o, NULL), "tree does not support fixed offsets");
    static strata_plan_buffer_t many[STRATA_FOREST_ITEMS + 1];
    static uint64_t offsets[STRATA_FOREST_ITEMS + 1];
    for (size_t i = 0; i <= STRATA_FOREST_ITEMS; i++) many[i] = (strata_plan_buffer_t){.lower = i, .upper = i + 1, .size = 1};
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_plan_make(&options, many, STRATA_FOREST_ITEMS + 1, offsets, NULL),
                "tree supports at most 4096");
}

/* As deep as it can become: each behind all before it. */
TEST(plan_tree, goes_as_deep_as_there_are_buffers) {
    static strata_plan_buffer_t b[STRATA_FOREST_ITEMS];
    static uint64_t o[STRATA_FOREST_ITEMS];
    for (size_t i = 0; i < STRATA_FOREST_ITEMS; i++)
        b[i] = (strata_plan_buffer_t){.lower = i, .upper = 2 * STRATA_FOREST_ITEMS, .size = 64};
    EXPECT_EQ(plans_make("tree", b, STRATA_FOREST_ITEMS, o).peak, 64 * STRATA_FOREST_ITEMS);
}

/* Legality where a layer has several stacks below it: every way down is judged. */
#include "tests/harness/owned.h"
#include "tests/strategy/fakes.h"

typedef const strata_layer_type_t *list_t[8];

static const strata_origin_t said = {.source = STRATA_FROM_FILE, .file = "fake.yaml", .line = 90, .column = 7};
static const strata_layer_type_t split = {.struct_size = sizeof(strata_layer_type_t),
                                          .name = "split",
                                          .doc = "a fake",
                                          .role = STRATA_ROUTER,
                                          .scope = STRATA_SCOPE_NONE,
                                          .passes = ~0u};

static void fill(strata_strategy_t *strategy, strata_model_stack_t *stack, const strata_layer_type_t *const *types) {
    *stack = (strata_model_stack_t){.origin = said};
    while (types[stack->count]) stack->count++;
    stack->layers = strata_arena_alloc(strategy->memory, stack->count + 1, sizeof *stack->layers);
    ASSERT_TRUE(stack->layers);
    for (size_t i = 0; i < stack->count; i++)
        ASSERT_OK(strata_model_layer_init(strategy->memory, &stack->layers[i], types[i], &said));
}

/* `above`, then a router over the two branches. */
static strata_strategy_t *routed(const strata_layer_type_t *const *above, const strata_layer_type_t *const *left,
                                 const strata_layer_type_t *const *right) {
    strata_strategy_t *strategy = stack_of(STRATA_PLACE_GPU, above);
    strata_model_stack_t *stack = &strategy->stacks[STRATA_PLACE_GPU];
    strata_model_layer_t *top = &stack->layers[stack->count - 1];
    top->branch_count = 2;
    top->branches = strata_arena_alloc(strategy->memory, 2, sizeof *top->branches);
    fill(strategy, &top->branches[0], left);
    fill(strategy, &top->branches[1], right);
    return strategy;
}

static void expect_verdict(const strata_layer_type_t *const *above, const strata_layer_type_t *const *left,
                           const strata_layer_type_t *const *right, const char *what) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = routed(above, left, right);
    strata_plan_t plan;
    strata_status_t status = strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan);
    EXPECT_EQ(status, what ? STRATA_E_STRATEGY : STRATA_OK);
    if (what && status) EXPECT_CONTAINS(strata_last_error()->text, what);
}

TEST(branches, what_all_give_is_given) {
    expect_verdict((list_t){&needs_order, &split}, (list_t){&ordered_source}, (list_t){&cache, &source}, NULL);
    expect_verdict((list_t){&needs_order, &split}, (list_t){&ordered_source}, (list_t){&source},
                   "fake.yaml:10:5: \"needs_order\" needs stream_ordered below it, which \"split\" does not give");
    expect_verdict((list_t){&needs_order, &split}, (list_t){&source}, (list_t){&cache, &source}, "does not give");
}

TEST(branches, a_clash_on_one_way_is_a_clash) {
    expect_verdict((list_t){&locker, &split}, (list_t){&cache, &source}, (list_t){&waiter, &source},
                   "fake.yaml:10:5: \"locker\" holds a lock and is above \"waiter\"");
    expect_verdict((list_t){&device_count, &split}, (list_t){&source}, (list_t){&passes, &cache, &source},
                   "\"device_count\" is shared by all streams and is above the cache");
    /* Side by side they do not meet. */
    expect_verdict((list_t){&passes, &split}, (list_t){&locker, &source}, (list_t){&waiter, &source}, NULL);
}

TEST(branches, each_ends_in_a_source) {
    expect_verdict((list_t){&split}, (list_t){&source}, (list_t){&cache}, "fake.yaml:90:7: \"cache\" has nothing below it");
    expect_verdict((list_t){&split}, (list_t){&source, &cache}, (list_t){&source}, "\"source\" is a source");
    expect_verdict((list_t){&split}, (list_t){&source}, (list_t){NULL}, "stack 2 of \"split\" has no layers");
}

TEST(branches, decorator_stacks_are_counted_down_each_way) {
    expect_verdict((list_t){&passes, &passes, &passes, &split}, (list_t){&source}, (list_t){&passes, &passes, &passes, &source},
                   NULL);
    expect_verdict((list_t){&passes, &passes, &passes, &split}, (list_t){&source},
                   (list_t){&passes, &passes, &passes, &passes, &source}, "is layer 9 from the top");
    expect_verdict((list_t){&passes, &passes, &passes, &split}, (list_t){&source},
                   (list_t){&passes, &passes, &passes, &cache, &passes, &source}, NULL);
}

TEST(branches, more_than_eight_are_refused) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = routed((list_t){&split}, (list_t){&source}, (list_t){&source});
    strata_model_layer_t *top = &strategy->stacks[STRATA_PLACE_GPU].layers[0];
    top->branches = strata_arena_alloc(strategy->memory, 9, sizeof *top->branches);
    for (int i = 0; i < 9; i++) fill(strategy, &top->branches[i], (list_t){&source});
    strata_plan_t plan;
    top->branch_count = 8;
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
    EXPECT_EQ(plan.nodes[1].below_count, 8);
    top->branch_count = 9;
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
    EXPECT_STREQ(strata_last_error()->text, "fake.yaml:90:7: \"split\" has 9 stacks below it, and the maximum is 8; remove some");
}

TEST(branches, options_of_branches_end_in_their_number) {
    strata_option_row_t row = {.name = "up_to_1"};
    static const struct {
        const char *name;
        uint32_t branch;
    } rows[] = {{"up_to_1", 1}, {"up_to_8", 8},  {"up_to_9", 0},    {"up_to_0", 0},
                {"up_to", 0},   {"up_to_1x", 0}, {"chunk_size", 0}, {"a_01", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        row.name = rows[i].name;
        EXPECT_EQ(strata_option_branch(&row), rows[i].branch);
    }
    const strata_layer_type_t *binning = strata_layer_find("binning");
    EXPECT_STREQ(strata_branch_option(binning, "up_to", 3)->name, "up_to_3");
    EXPECT_EQ(strata_branch_option(binning, "up", 3), NULL);
    EXPECT_EQ(strata_branch_option(binning, "up_to", 8), NULL);
}

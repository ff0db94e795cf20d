/* `idle:` beside a stack, and `idle` in its list. */
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

#define SAYS "{after: 250ms, keep: 25%, keep_least: 3MiB}"

static strata_plan_t plan;

static const strata_idle_config_t *said_of(const strata_model_stack_t *stack, strata_place_kind_t place) {
    EXPECT_OK(strata_stack_plan(stack, place, &plan));
    return plan.idle;
}

static void expect_said(const strata_model_stack_t *stack, strata_place_kind_t place) {
    const strata_idle_config_t *says = said_of(stack, place);
    ASSERT_TRUE(says != NULL);
    EXPECT_EQ(says->after, 250 * 1000 * 1000);
    EXPECT_TRUE(says->keep == 0.25);
    EXPECT_EQ(says->keep_least, 3 << 20);
}

TEST(idle_key, is_said_beside_a_stack_or_in_its_list) {
    static const char *const texts[] = {"stack: [stream_safe, auto_growth, system]\nidle: " SAYS "\n",
                                        "idle: " SAYS "\nout_of_memory: {}\nstack: [stream_safe, auto_growth, system]\n",
                                        "stack: [stream_safe, idle: " SAYS ", auto_growth, system]\n",
                                        "extends: strata\nidle: " SAYS "\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(texts[i]);
        expect_said(&strategy->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU);
    }
    strata_strategy_t *silent CLOSED_BY(strategy_cleanup) = load_text("stack: [auto_growth, system]\n");
    EXPECT_TRUE(said_of(&silent->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU) == NULL);
}

TEST(idle_key, has_defaults) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text("extends: strata\nidle: {}\n");
    const strata_idle_config_t *says = said_of(&strategy->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU);
    ASSERT_TRUE(says != NULL);
    EXPECT_EQ(says->after, 1000 * 1000 * 1000);
    EXPECT_TRUE(says->keep == 0.1);
    EXPECT_EQ(says->keep_least, 0);
}

TEST(idle_key, is_said_wherever_a_stack_stands) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(
        "stack: [system]\n"
        "places: {pinned: {stack: [auto_growth, system], idle: " SAYS "}}\n"
        "devices: {gpu:1: {stack: [auto_growth, system], idle: " SAYS "}}\n"
        "pools: {p: {idle: " SAYS ", stack: [auto_growth, system]}}\n"
        "streams: {\"copy*\": {stack: [auto_growth, system], idle: " SAYS "}}\n"
        "graph: {stack: [auto_growth, system], idle: " SAYS "}\n"
        "without_virtual_memory: {stack: [auto_growth, system], idle: " SAYS "}\n");
    expect_said(&strategy->stacks[STRATA_PLACE_PINNED], STRATA_PLACE_PINNED);
    expect_said(&strategy->own[0].stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU);
    for (int kind = 0; kind < STRATA_NAMED_KINDS; kind++)
        expect_said(&strategy->named[kind].list[0].stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU);
    EXPECT_TRUE(said_of(&strategy->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU) == NULL);
}

TEST(idle_key, replaces_what_an_extended_text_says_and_has_a_path) {
    static const strata_origin_t origin = {.source = STRATA_FROM_COMMAND, .file = "--set"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text("extends: strata\nidle: " SAYS "\n");
    EXPECT_OK(strata_strategy_set(strategy, "idle.after", "2s", &origin));
    EXPECT_OK(strata_strategy_set(strategy, "idle.keep", "7.5%", &origin));
    const strata_idle_config_t *says = said_of(&strategy->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU);
    EXPECT_EQ(says->after, 2ull * 1000 * 1000 * 1000);
    EXPECT_TRUE(says->keep == 0.075);
}

TEST(idle_key, is_refused_where_it_stands) {
    expect_refused("idle: {after: 1s}\n", 1, 1, "no stack is beside it", "write stack: too");
    expect_refused("stack: [idle, auto_growth, system]\nidle: {}\n", 2, 1, "\"idle\" in line 1 already sets this", "remove one");
    expect_refused("stack: [idle, idle, auto_growth, system]\n", 1, 15, "repeats \"idle\" above it", "remove one");
    expect_refused("stack: [auto_growth, system]\nidle: 1s\n", 2, 1, "must be a mapping", "write idle: {after: 1s, keep: 10%}");
    expect_refused("stack: [auto_growth, system]\nidle: {afer: 1s}\n", 2, 8, "\"idle\" has no option \"afer\"", "write after");
    expect_refused("stack: [auto_growth, system]\nidle: {after: soon}\n", 2, 15, "\"soon\" is not a time", "write 0, 20us");
    expect_refused("stack: [auto_growth, system]\nidle: {after: 1ms}\n", 2, 15, "\"1ms\" is too small", "from 10ms");
    expect_refused("stack: [auto_growth, system]\nidle: {keep: 10MiB}\n", 2, 14, "\"10MiB\" is not a fraction", "0.8 or 80%");
    expect_refused("stack: [auto_growth, system]\nidle: {keep: 1100%}\n", 2, 14, "\"1100%\" is too large", "from 0 to 10");
    expect_refused("stack: [auto_growth, system]\nidle: {keep_least: 10%}\n", 2, 20, "unknown unit \"%\"", "write one of TiB");
    expect_refused("stack: [auto_growth, system]\nidle: {name: x}\n", 2, 8, "has no option \"name\"", "remove it");
    expect_refused("stack: [system]\nidle: {}\n", 2, 1, "no layer down to \"system\" keeps idle memory", "remove it");
    expect_refused("stack: [fallback: {stacks: [[idle, auto_growth, system], [system]]}]\n", 1, 30,
                   "applies to a whole stack, not to a branch of \"fallback\"", "beside the whole stack");
    expect_refused("stack: [binning: {routes: [{up_to: 1MiB, stack: [auto_growth, system], idle: {}}, {stack: [system]}]}]\n", 1,
                   72, "has no \"idle\"", "");
}

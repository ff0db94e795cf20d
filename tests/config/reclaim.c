/* `out_of_memory:` beside a stack, and `retry` in its list: two ways to say the same. */
#include <stdio.h>

#include "allocation/report/outcome.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

#define SAYS "{timeout: 7ms, wait_first: true, patience: true}"

static strata_plan_t plan;

static const strata_plan_t *plan_of(const strata_model_stack_t *stack, strata_place_kind_t place) {
    EXPECT_OK(strata_stack_plan(stack, place, &plan));
    return &plan;
}

static const strata_reclaim_t *retry_at(const strata_plan_t *built, uint32_t node) {
    return built->nodes[node].type == &strata_retry_type ? built->nodes[node].options : NULL;
}

/* The `retry` of a stack is its first layer. */
static void expect_said(const strata_plan_t *built, uint32_t node) {
    const strata_reclaim_t *says = retry_at(built, node);
    ASSERT_TRUE(says != NULL);
    EXPECT_EQ(says->timeout, 7 * 1000 * 1000);
    EXPECT_TRUE(says->wait_first && says->patience);
}

static void expect_said_at_alone(const strata_plan_t *built, uint32_t node) {
    expect_said(built, node);
    for (uint32_t n = 1; n <= built->count; n++) EXPECT_TRUE(n == node || !retry_at(built, n));
}

TEST(reclaim, is_said_beside_a_stack_or_in_its_list) {
    static const char *const texts[] = {"stack: [stream_safe, auto_growth, system]\nout_of_memory: " SAYS "\n",
                                        "out_of_memory: " SAYS "\nstack: [stream_safe, auto_growth, system]\n",
                                        "stack: [retry: " SAYS ", stream_safe, auto_growth, system]\n",
                                        "stack: [limit, fill, retry: " SAYS ", system]\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(texts[i]);
        expect_said_at_alone(plan_of(&strategy->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU), 1);
    }
}

TEST(reclaim, leaves_the_other_layers_of_a_list_in_their_order) {
    static const char *const names[] = {"retry", "limit", "fault", "fill", "stream_safe", "system"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text("stack: [limit, fault, fill, retry, system]\n");
    const strata_plan_t *built = plan_of(&strategy->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU);
    ASSERT_EQ(built->count, sizeof names / sizeof *names);
    for (size_t i = 0; i < built->count; i++) EXPECT_STREQ(built->nodes[i + 1].name, names[i]);
}

TEST(reclaim, is_said_wherever_a_stack_stands) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(
        "stack: [system]\n"
        "places: {pinned: {stack: [system], out_of_memory: " SAYS "}}\n"
        "devices: {gpu:1: {stack: [system], out_of_memory: " SAYS ", places: {managed: {out_of_memory: " SAYS
        ", stack: [system]}}}}\n"
        "pools: {p: {out_of_memory: " SAYS ", stack: [system]}}\n"
        "streams: {\"copy*\": {stack: [system], out_of_memory: " SAYS "}}\n"
        "graph: {stack: [buffered, system], out_of_memory: " SAYS "}\n"
        "without_virtual_memory: {stack: [system], out_of_memory: " SAYS "}\n");
    expect_said(plan_of(&strategy->stacks[STRATA_PLACE_PINNED], STRATA_PLACE_PINNED), 1);
    expect_said(plan_of(&strategy->own[0].stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU), 1);
    expect_said(plan_of(&strategy->own[0].stacks[STRATA_PLACE_MANAGED], STRATA_PLACE_MANAGED), 1);
    for (int kind = 0; kind < STRATA_NAMED_KINDS; kind++)
        expect_said(plan_of(&strategy->named[kind].list[0].stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU), 1);
    EXPECT_TRUE(retry_at(plan_of(&strategy->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU), 1) == NULL);
}

/* It does not leave its branch. */
TEST(reclaim, of_a_branch_is_the_branchs) {
    static const char *const texts[] = {"stack: [binning: {routes: [{up_to: 1MiB, stack: [system], out_of_memory: " SAYS
                                        "}, {stack: [system]}]}]\n",
                                        "stack: [fallback: {stacks: [{stack: [system], out_of_memory: " SAYS "}, [system]]}]\n",
                                        "stack: [fallback: {stacks: [[limit, retry: " SAYS ", system], [system]]}]\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(texts[i]);
        expect_said_at_alone(plan_of(&strategy->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU), 2);
    }
}

TEST(reclaim, replaces_what_an_extended_text_says) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text("extends: paddle\nout_of_memory: " SAYS "\n");
    expect_said(plan_of(&strategy->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU), 1);
    EXPECT_EQ(plan.count, 4);
    strata_strategy_t *whole CLOSED_BY(strategy_cleanup) = load_text("extends: paddle\nstack: [system]\n");
    EXPECT_TRUE(retry_at(plan_of(&whole->stacks[STRATA_PLACE_GPU], STRATA_PLACE_GPU), 1) == NULL);
}

TEST(reclaim, is_refused_where_it_stands) {
    expect_refused("out_of_memory: {timeout: 1s}\n", 1, 1, "no stack is beside it", "write stack: too");
    expect_refused("stack: [retry, system]\nout_of_memory: {}\n", 2, 1, "\"retry\" in line 1 already sets this", "remove one");
    expect_refused("stack: [system]\nout_of_memory: 1s\n", 2, 1, "must be a mapping", "write out_of_memory: {timeout: 100ms}");
    expect_refused("stack: [system]\nout_of_memory: {timout: 1s}\n", 2, 17, "\"out_of_memory\" has no option \"timout\"",
                   "write timeout");
    expect_refused("stack: [system]\nout_of_memory: {timeout: soon}\n", 2, 26, "\"soon\" is not a time", "write 0, 20us");
    expect_refused("stack: [system]\nout_of_memory: {name: x}\n", 2, 17, "has no option \"name\"", "remove it");
    expect_refused("stack: [system]\nout_of_memory: {depth: 3}\n", 2, 24, "out_of_memory.depth", "patience");
    expect_refused("places: {pinned: {stack: [system], outofmemory: {}}}\n", 1, 36, "a stack has no \"outofmemory\"",
                   "write out_of_memory");
    expect_refused("stack: [system]\npools: {p: {out_of_memory: {}}}\n", 2, 13, "no stack is beside it", "write stack: too");
    expect_refused("stack: [retry: {name: out_of_memory}, system]\n", 1, 23, "this is not a valid layer name", "write up to");
    expect_refused("stack: [buffered, fallback: {stacks: [{stack: [system], out_of_memory: {}}]}]\n", 1, 9,
                   "is above \"out_of_memory\", which may wait", "put \"out_of_memory\" above");
}

/* However it is written, and not what a branch says. */
TEST(reclaim, has_a_path) {
    static const strata_origin_t origin = {.source = STRATA_FROM_COMMAND, .file = "--set"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(
        "stack: [retry, fallback: {stacks: [[retry, system], [system]]}]\n"
        "places: {pinned: {stack: [system], out_of_memory: {}}, host: [system]}\n");
    EXPECT_OK(strata_strategy_set(strategy, "out_of_memory.timeout", "7ms", &origin));
    EXPECT_STREQ(value_of(strategy, "retry", "timeout"), "7ms");
    EXPECT_OK(strata_strategy_set(strategy, "pinned.out_of_memory.timeout", "8ms", &origin));
    EXPECT_OK(strata_strategy_set(strategy, "pinned.retry.wait_first", "true", &origin));
    EXPECT_EQ(retry_at(plan_of(&strategy->stacks[STRATA_PLACE_PINNED], STRATA_PLACE_PINNED), 1)->timeout, 8 * 1000 * 1000);
    EXPECT_FALSE(strata_strategy_has(strategy, "host.out_of_memory.timeout"));
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_strategy_set(strategy, "host.out_of_memory.timeout", "7ms", &origin));
    EXPECT_CONTAINS(strata_last_error()->text, "host.out_of_memory: its stack has no such setting");
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_strategy_set(strategy, "out_of_memory.timout", "7ms", &origin));
    EXPECT_CONTAINS(strata_last_error()->text, "write out_of_memory.timeout");
}

/* What a program asked for while it followed a plan is told when somebody looks (allocation/mechanism/past.h): nothing is learnt otherwise
 * for that. */
#include "allocation/layer/planned_state.h"
#include "allocation/stack/direct.h"
#include "tests/facade/planned.h"

enum { BLOCKS = 40, ROUNDS = 5 };

static size_t size_of(uint32_t i, uint64_t shape) { return (size_t)((i * (shape + 3)) % 17 + 1) * MIB / 4; }

/* Requests from `from` on are those of `shape`, those before it of shape 1. Each lives as long as its shape says. */
static void make_step(rig_t *rig, uint64_t shape, uint32_t from) {
    strata_block_t blocks[BLOCKS];
    uint32_t freed = 0;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        blocks[i] = rig_allocate(rig, NULL, size_of(i, i < from ? 1 : shape));
        for (uint32_t k = 0; k < i; k++)
            if (k >= freed) EXPECT_FALSE(rig_overlap(&blocks[i], &blocks[k]));
        if (i % (shape + 2) == 0) EXPECT_OK(strata_free(rig->s, blocks[freed++].ref));
    }
    while (freed < BLOCKS) EXPECT_OK(strata_free(rig->s, blocks[freed++].ref));
}

static void step_of(rig_t *rig, uint64_t shape, uint32_t from) {
    make_step(rig, shape, from);
    EXPECT_OK(strata_step(rig->s));
}

static void expect_followed(rig_t *rig, uint64_t shape, uint32_t from) {
    for (int i = 0; i < 3; i++) step_of(rig, shape, from);
    uint64_t hits = planned_figure(rig, "planned_hits"), steps = planned_figure(rig, "planned_steps");
    for (int i = 0; i < ROUNDS; i++) step_of(rig, shape, from);
    EXPECT_EQ(planned_figure(rig, "planned_hits"), hits + ROUNDS * BLOCKS);
    EXPECT_EQ(planned_figure(rig, "planned_steps"), steps + ROUNDS);
    EXPECT_OK(strata_validate(rig->s));
}

TEST_RIG(facade_planned_open, another_step_is_learnt_after_many, 0, "planned") {
    for (uint64_t shape = 1; shape <= 4; shape++) {
        for (int i = 0; i < 60; i++) step_of(rig, shape, 0);
        EXPECT_EQ(planned_figure(rig, "plans"), shape);
    }
    expect_followed(rig, 2, 0);
    EXPECT_EQ(planned_figure(rig, "plans"), 4);
}

/* More requests than the past knows. */
TEST_RIG(facade_planned_open, so_it_is_after_very_many, 0, "planned") {
    for (int i = 0; i < 2 * (1 << 17) / BLOCKS + 7; i++) step_of(rig, 1, 0);
    EXPECT_EQ(planned_figure(rig, "plans"), 1);
    EXPECT_OK(strata_validate(rig->s));
    expect_followed(rig, 3, 0);
    EXPECT_EQ(planned_figure(rig, "plans"), 2);
}

/* What was too old to be told is no whole number of steps: the rest is told from where it stood. */
TEST_RIG(facade_planned_open, a_step_of_two_is_learnt_at_once_after_very_many_of_one, 0, "planned") {
    for (int i = 0; i < 2 * (1 << 17) / BLOCKS + 7; i++) step_of(rig, 1, 0);
    for (int i = 0; i < 2; i++) {
        make_step(rig, 1, 0);
        step_of(rig, 1, 0);
    }
    EXPECT_EQ(planned_figure(rig, "plans"), 2);
    EXPECT_OK(strata_validate(rig->s));
}

/* Blocks that were made live at their places, and no request was: also those that the cache's index had linked. */
TEST_RIG(facade_planned_open, a_block_made_live_again_is_none_of_the_past, 0, "planned") {
    enum { MADE = 6 };
    strata_block_t blocks[2 * MADE];
    for (int i = 0; i < 4; i++) step_of(rig, 1, 0);
    for (int i = 0; i < 2 * MADE; i++) blocks[i] = rig_allocate(rig, NULL, MIB);
    for (int i = 0; i < 2 * MADE; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    strata_stack_t *stack = rig_stack(rig, NULL);
    const planned_t *planned = (const planned_t *)stack->cache;
    uint64_t live = planned->past.live;
    for (int i = 0; i < 2 * MADE; i += 2) {
        strata_stack_take(stack);
        strata_record_t *record = stack->cache->type->take_at(stack->cache, &blocks[i], MIB, stack);
        ASSERT_TRUE(record != NULL);
        strata_direct_serve(stack, stack, record);
        strata_unlock(&stack->lock);
        EXPECT_OK(strata_free(rig->s, strata_ref_of(record)));
        EXPECT_EQ(planned->past.live, live);
    }
    for (int i = 1; i < 2 * MADE; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

/* The step leaves its plan in the middle: what was open until then is part of the next one. */
TEST_RIG(facade_planned_open, a_step_that_leaves_its_plan_is_learnt_as_a_whole, 0, "planned") {
    for (int i = 0; i < 10; i++) step_of(rig, 1, 0);
    expect_followed(rig, 2, BLOCKS / 2);
    expect_followed(rig, 1, 0);
    expect_followed(rig, 2, BLOCKS / 2);
    EXPECT_EQ(planned_figure(rig, "plans"), 2);
}

/* What was open is told in the middle of a step, and again when the step leaves its plan later on. */
TEST_RIG(facade_planned_open, what_is_told_in_between_is_told_once, 0, "planned") {
    for (int i = 0; i < 10; i++) step_of(rig, 1, 0);
    for (int i = 0; i < 6; i++) {
        strata_block_t blocks[BLOCKS];
        for (uint32_t k = 0; k < BLOCKS; k++) {
            if (k == BLOCKS / 2) EXPECT_OK(strata_validate(rig->s));
            blocks[k] = rig_allocate(rig, NULL, size_of(k, k < 3 * BLOCKS / 4 ? 1 : 2));
        }
        for (uint32_t k = 0; k < BLOCKS; k++) EXPECT_OK(strata_free(rig->s, blocks[k].ref));
        EXPECT_OK(strata_step(rig->s));
    }
    uint64_t steps = planned_figure(rig, "planned_steps");
    expect_followed(rig, 2, 3 * BLOCKS / 4);
    EXPECT_GT(planned_figure(rig, "planned_steps"), steps);
    EXPECT_EQ(planned_figure(rig, "plans"), 2);
}

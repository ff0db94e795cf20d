/* Plans that another thread makes: the one that ends a step does not wait for them. */
#include <stdatomic.h>

#include "allocation/stack/planning.h"
#include "facade/open/life.h"
#include "facade/open/planner.h"
#include "tests/facade/ends.h"
#include "tests/facade/planned.h"

enum { ASKS = 40, MOST_STEPS = 20000 };

/* Real time, so that the facade has a thread that plans; the device is simulated all the same. */
static void open_in_real_time(rig_t *rig, const char *preset) {
    rig_open_devices(rig, rig_strategy(preset, NULL, 0), &(strata_sim_options_t){.devices = 1});
    rig->devices[0]->clock = strata_real_clock();
    EXPECT_OK(strata_facade_open_on(rig->strategy, rig->devices, 1, 0, &rig->s));
    rig->borrowed_strategy = false;
}

static void step_of(rig_t *rig, strata_stream_t stream, uint64_t shape, uint32_t asks) {
    strata_block_t blocks[2] = {{0}};
    for (uint32_t i = 0; i < asks; i++) {
        strata_block_t *block = &blocks[i % 2];
        if (block->ref) EXPECT_OK(strata_free(rig->s, block->ref));
        EXPECT_OK(strata_allocate(rig->s, rig->gpu, stream, (size_t)((i * (shape + 3)) % 17 + 1) * MIB / 2, block));
    }
    EXPECT_OK(strata_free(rig->s, blocks[0].ref));
    if (asks > 1) EXPECT_OK(strata_free(rig->s, blocks[1].ref));
}

/* ---- one thread ---- */

TEST_BY(facade_planned_apart, the_plan_comes_and_is_followed, open_in_real_time(rig, "planned")) {
    EXPECT_TRUE(strata_facade_of(rig->s)->planner.runs);
    EXPECT_OK(strata_step(rig->s));
    for (int step = 0; step < MOST_STEPS && planned_figure(rig, "planned_steps") < 3; step++) {
        step_of(rig, NULL, 1, ASKS);
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_EQ(planned_figure(rig, "plans"), 1);
    EXPECT_GE(planned_figure(rig, "planned_steps"), 3);
    uint64_t calls = planned_device_calls(rig), hits = planned_figure(rig, "planned_hits");
    step_of(rig, NULL, 1, ASKS);
    EXPECT_EQ(planned_figure(rig, "planned_hits"), hits + ASKS);
    EXPECT_EQ(planned_device_calls(rig), calls);
}

TEST_BY(facade_planned_apart, so_it_does_where_nobody_tells_steps, open_in_real_time(rig, "planned")) {
    for (int step = 0; step < MOST_STEPS && planned_figure(rig, "planned_steps") < 3; step++) step_of(rig, NULL, 1, ASKS);
    EXPECT_GE(planned_figure(rig, "plans"), 1);
}

/* A planner that never comes to it: whoever ends a step goes on without a plan, and asks no second time. Once it has come, the next step
 * is followed. */
TEST_RIG(facade_planned_apart, who_ends_a_step_makes_no_plan, 0, "planned") {
    strata_facade_t *facade = strata_facade_of(rig->s);
    strata_stack_t *stack;
    EXPECT_OK(strata_facade_stack(facade, rig->gpu, NULL, &stack));
    facade->planner.runs = true;
    for (int step = 0; step < 5; step++) {
        step_of(rig, NULL, 1, ASKS);
        EXPECT_OK(strata_step(rig->s));
        EXPECT_EQ(planned_figure(rig, "plans"), 0);
    }
    EXPECT_TRUE(facade->plans_wanted);
    strata_stack_make_plans(stack);
    strata_stack_make_plans(stack);
    EXPECT_EQ(planned_figure(rig, "plans"), 1);
    for (int step = 0; step < 3; step++) {
        step_of(rig, NULL, 1, ASKS);
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_EQ(planned_figure(rig, "planned_steps"), 2);
    facade->planner.runs = false;
}

/* The steps that were to be planned are forgotten by then. */
TEST_RIG(facade_planned_apart, a_planner_that_comes_too_late_makes_none, 0, "planned") {
    strata_facade_t *facade = strata_facade_of(rig->s);
    strata_stack_t *stack;
    EXPECT_OK(strata_facade_stack(facade, rig->gpu, NULL, &stack));
    facade->planner.runs = true;
    for (int step = 0; step < 2; step++) {
        step_of(rig, NULL, 1, ASKS);
        EXPECT_OK(strata_step(rig->s));
    }
    step_of(rig, NULL, 1, 140000);
    strata_stack_make_plans(stack);
    EXPECT_EQ(planned_figure(rig, "plans"), 0);
    EXPECT_OK(strata_validate(rig->s));
    facade->planner.runs = false;
}

/* Under a virtual clock, and without a layer that wants plans, there is no such thread. */
TEST(facade_planned_apart, no_thread_where_there_is_no_need) {
    RIG(rig, "planned", 0);
    EXPECT_FALSE(strata_facade_of(rig.s)->planner.runs);
    RIG_BY(other, open_in_real_time(&other, "strata"));
    EXPECT_FALSE(strata_facade_of(other.s)->planner.runs);
}

/* ---- ends ---- */

/* While a plan is being made, or about to be. */
TEST(facade_planned_apart, a_facade_closes_and_changes_at_any_moment) {
    for (uint32_t round = 0; round < 12; round++) {
        RIG_BY(rig, open_in_real_time(&rig, "planned"));
        for (uint32_t step = 0; step < 2 + round % 3; step++) {
            step_of(&rig, NULL, 1, 50 + round * 400);
            EXPECT_OK(strata_step(rig.s));
        }
        if (round % 3 == 1)
            EXPECT_OK(strata_change_strategy(rig.s, &(strata_open_options_t){.struct_size = sizeof(strata_open_options_t),
                                                                             .preset = "planned",
                                                                             .flags = STRATA_OPEN_IGNORE_ENVIRONMENT}));
        if (round % 3 == 1) EXPECT_TRUE(strata_facade_of(rig.s)->planner.runs);
        step_of(&rig, NULL, 1, ASKS);
    }
}

TEST_BY(facade_planned_apart, a_stream_is_forgotten_at_any_moment, open_in_real_time(rig, "planned")) {
    for (uint32_t round = 0; round < 12; round++) {
        strata_stream_t stream = rig_stream(rig);
        for (uint32_t step = 0; step < 3; step++) {
            step_of(rig, stream, 1, 50 + round * 200);
            EXPECT_OK(strata_step(rig->s));
        }
        rig_forget(rig, stream);
    }
    EXPECT_OK(strata_validate(rig->s));
}

/* A child has no such thread, and waits for none; the parent's goes on. */
TEST(facade_planned_apart, a_child_of_fork_waits_for_no_planner) {
    OPENED(rig_t, opened, rig_close_by_force, open_in_real_time(&opened, "planned"));
    rig_t *rig = &opened;
    for (uint32_t step = 0; step < 2; step++) {
        step_of(rig, NULL, 1, 4000);
        EXPECT_OK(strata_step(rig->s));
    }
    ends_t ends = {.s = rig->s, .place = rig->gpu, .stream = rig_stream(rig)};
    ends_fill(&ends);
    EXPECT_EQ(ends_in_child(ends_forked_calls, &ends), 0);
    for (int step = 0; step < MOST_STEPS && planned_figure(rig, "planned_steps") < 2; step++) {
        step_of(rig, NULL, 1, 4000);
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_GE(planned_figure(rig, "planned_steps"), 2);
}

/* ---- threads ---- */

typedef struct worker {
    rig_t *rig;
    strata_stream_t stream;
    uint64_t shape;
} worker_t;

static void *work(void *argument) {
    worker_t *worker = argument;
    for (uint64_t step = 0; step < 60; step++) {
        step_of(worker->rig, worker->stream, worker->shape + step / 15, 300);
        if (step % 3 == worker->shape % 3) EXPECT_OK(strata_step(worker->rig->s));
        if (step % 20 == 5) EXPECT_OK(strata_validate(worker->rig->s));
    }
    return NULL;
}

TEST_BY(facade_planned_apart, threads_go_on_while_plans_are_made, open_in_real_time(rig, "planned")) {
    worker_t workers[4];
    strata_stream_t streams[3] = {NULL, rig_stream(rig), rig_stream(rig)};
    for (uint64_t i = 0; i < 4; i++) workers[i] = (worker_t){.rig = rig, .stream = streams[i % 3], .shape = i};
    in_threads(work, workers, sizeof *workers, COUNT(workers));
    EXPECT_OK(strata_validate(rig->s));
}

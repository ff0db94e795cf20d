/* The planner `greedy`: near the bound, and never quadratic. */
#include <stdlib.h>
#include <sys/resource.h>

#include "planning/placement/fit.h"
#include "planning/placement/online.h"
#include "planning/placement/order.h"
#include "planning/planners/greedy.h"
#include "planning/planners/improve.h"
#include "platform/clock.h"
#include "platform/status.h"
#include "tests/planning/plans.h"

TEST(plan_greedy, a_million_buffers_take_seconds) {
    enum { COUNT = 1000000 };
    strata_plan_buffer_t *b = calloc(COUNT, sizeof *b);
    uint64_t *o = calloc(COUNT, sizeof *o);
    ASSERT_TRUE(b && o);
    plans_random_t random = {5};
    plans_training(&random, b, COUNT);
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = "greedy", .time_ns = UINT64_C(3000000000)};
    uint64_t began = plans_processor_ns();
    strata_plan_result_t result = plans_make_with(&options, b, COUNT, o);
    uint64_t took = plans_processor_ns() - began;
    EXPECT_LT((double)result.peak / (double)result.lower_bound, 1.06);
    if (!*STRATA_SANITIZERS) EXPECT_LT(took, UINT64_C(60000000000)); /* as pairs it would take hours */
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    if (!*STRATA_SANITIZERS) EXPECT_LT(used.ru_maxrss, 2 * 1024 * 1024);
    free(o);
    free(b);
}

/* All live at once: as many pairs as there can be. */
TEST(plan_greedy, pairs_are_not_looked_at_where_there_are_too_many) {
    enum { COUNT = 200000 };
    strata_plan_buffer_t *b = calloc(COUNT, sizeof *b);
    uint64_t *o = calloc(COUNT, sizeof *o);
    ASSERT_TRUE(b && o);
    for (uint64_t i = 0; i < COUNT; i++) b[i] = (strata_plan_buffer_t){.lower = i, .upper = 2 * COUNT - i, .size = 1 + i % 1000};
    b[0].alignment = 1;
    uint64_t began = plans_processor_ns();
    EXPECT_TRUE(plans_make("greedy", b, COUNT, o).proved); /* as a stack */
    b[0].flags = STRATA_PLAN_FIXED;
    b[1].fork = b[2].fork = 1;
    b[2].branch = 1;
    plans_make("greedy", b, COUNT, o);
    if (!*STRATA_SANITIZERS) EXPECT_LT(plans_processor_ns() - began, UINT64_C(60000000000));
    free(o);
    free(b);
}

/* Four buffers are live at once; the second and the last end, and the last buffer fits the gap exactly. */
TEST(plan_fit, a_gap_of_the_same_size_is_taken) {
    strata_plan_buffer_t b[] = {{.upper = 2, .size = 64},
                                {.upper = 1, .size = 32},
                                {.upper = 2, .size = 64},
                                {.lower = 1, .upper = 2, .size = 32},
                                {.lower = 1, .upper = 2, .size = 33}};
    strata_problem_t p;
    strata_fit_t fit;
    ASSERT_OK(strata_problem_make(&p, b, 5, 0));
    ASSERT_OK(strata_fit_init(&fit, &p));
    for (int gap = STRATA_GAP_LOWEST; gap <= STRATA_GAP_SMALLEST; gap++) {
        strata_fit_clear(&fit);
        for (uint32_t i = 0; i < 3; i++) strata_fit_place(&fit, i, (strata_gap_t)gap);
        EXPECT_EQ(fit.offsets[2], 96);
        strata_fit_place(&fit, 4, (strata_gap_t)gap);
        EXPECT_EQ(fit.offsets[4], 160);
        strata_fit_remove(&fit, 4);
        strata_fit_place(&fit, 3, (strata_gap_t)gap);
        EXPECT_EQ(fit.offsets[3], 64);
        EXPECT_EQ(fit.peak, 193);
    }
    strata_fit_destroy(&fit);
    strata_problem_delete(&p);
}

TEST(plan_greedy, local_search_makes_plans_better) {
    strata_plan_table_t table CLOSED_BY(plans_cleanup) = plans_instance("minimalloc-A");
    uint64_t *o = calloc(table.count, sizeof *o);
    strata_problem_t p;
    ASSERT_OK(strata_problem_make(&p, table.buffers, table.count, UINT64_C(10000000000)));
    strata_found_t found = {.offsets = o, .peak = UINT64_MAX, .bound = p.bound};
    EXPECT_OK(strata_greedy_start(&p, &found));
    uint64_t first = found.peak;
    EXPECT_OK(strata_improve(&p, &found, strata_real_now() + UINT64_C(1000000000)));
    EXPECT_LT(found.peak, first);
    EXPECT_EQ(strata_problem_peak(&p, o), found.peak);
    strata_problem_delete(&p);
    free(o);
}

/* Streams that never share: each needs what it needs alone, and the sum is near the bound whatever the number. */
TEST(plan_greedy, branches_apart_cost_their_sum) {
    enum { COUNT = 30000 };
    static strata_plan_buffer_t b[COUNT];
    static uint64_t o[COUNT];
    plans_random_t random = {41};
    plans_training(&random, b, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        b[i].fork = 1;
        b[i].branch = (uint32_t)(i % 5);
        b[i].alignment = i % 7 ? 256 : 4096;
    }
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = "greedy", .time_ns = 1000000};
    strata_plan_result_t result = plans_make_with(&options, b, COUNT, o);
    EXPECT_LT((double)result.peak / (double)result.lower_bound, 1.2);
}

/* ---- in program order ---- */

TEST(plan_online, serves_as_best_fit_does) {
    /* 30 and 10 go; 10 fits best where 10 was; 20 into what 30 left, and 10 more behind it. */
    strata_plan_buffer_t b[] = {{.lower = 0, .upper = 2, .size = 30}, {.lower = 0, .upper = 9, .size = 5},
                                {.lower = 0, .upper = 2, .size = 10}, {.lower = 1, .upper = 9, .size = 5},
                                {.lower = 3, .upper = 9, .size = 10}, {.lower = 4, .upper = 9, .size = 20},
                                {.lower = 5, .upper = 9, .size = 10}};
    uint64_t o[7], peak;
    strata_problem_t p;
    ASSERT_OK(strata_problem_make(&p, b, 7, 0));
    EXPECT_OK(strata_online_place(&p, false, o, &peak));
    EXPECT_EQ(peak, 50);
    EXPECT_EQ(o[4], 35);
    EXPECT_EQ(o[5], 0);
    EXPECT_EQ(o[6], 20);
    strata_problem_delete(&p);
}

TEST(plan_online, is_a_plan_in_both_directions) {
    plans_random_t random = {9};
    strata_plan_buffer_t b[200];
    uint64_t o[200], by_buffer[200], peak, checked;
    for (int round = 0; round < 200; round++) {
        plans_shape_t shape = {.times = 1 + plans_draw(&random, 300), .sizes = 1000, .alignments = round % 2 ? 40 : 0};
        plans_random_buffers(&random, &shape, b, 200);
        strata_problem_t p;
        ASSERT_OK(strata_problem_make(&p, b, 200, 0));
        for (int backwards = 0; backwards < 2; backwards++) {
            EXPECT_OK(strata_online_place(&p, backwards, o, &peak));
            for (uint32_t i = 0; i < p.item_count; i++) by_buffer[p.items[i].buffer] = o[i];
            EXPECT_OK(strata_plan_check(b, 200, by_buffer, &checked));
            EXPECT_LE(checked, peak);
        }
        strata_problem_delete(&p);
    }
}

TEST(plan_order, has_every_item_once_and_fixed_ones_first) {
    plans_random_t random = {13};
    strata_plan_buffer_t b[500];
    plans_shape_t shape = {.times = 100, .sizes = 1000, .fixed = 10};
    plans_random_buffers(&random, &shape, b, 500);
    strata_problem_t p;
    uint32_t order[500];
    ASSERT_OK(strata_problem_make(&p, b, 500, 0));
    for (int by = 0; by < STRATA_ORDERS; by++) {
        bool seen[500] = {false}, movable = false;
        EXPECT_OK(strata_order_make(&p, (strata_order_t)by, order));
        for (uint32_t i = 0; i < p.item_count; i++) {
            const strata_item_t *item = &p.items[order[i]], *before = &p.items[order[i ? i - 1 : 0]];
            EXPECT_FALSE(seen[order[i]]);
            seen[order[i]] = true;
            bool fixed = item->fixed != STRATA_ANYWHERE;
            EXPECT_FALSE(fixed && movable);
            if (by == STRATA_ORDER_SIZE && movable) EXPECT_LE(item->size, before->size);
            if (by == STRATA_ORDER_LENGTH && movable) EXPECT_LE(item->upper - item->lower, before->upper - before->lower);
            movable = movable || !fixed;
        }
    }
    strata_problem_delete(&p);
}

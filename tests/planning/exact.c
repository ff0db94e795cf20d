/* The planner `exact`: never beaten, always proved where it has time. */
#include <stdlib.h>

#include "platform/clock.h"
#include "platform/status.h"
#include "tests/planning/plans.h"

enum { MOST = 8 };

/* However slow the machine is. */
static strata_plan_options_t with_time(const char *planner) {
    return (strata_plan_options_t){
        .struct_size = sizeof(strata_plan_options_t), .planner = planner, .time_ns = UINT64_C(100000000000)};
}

static void expect_least(const plans_shape_t *shape, uint64_t seed, int rounds, size_t *above_bound) {
    plans_random_t random = {seed};
    strata_plan_options_t options = with_time("exact");
    strata_plan_buffer_t b[MOST];
    uint64_t o[MOST], bound;
    for (int round = 0; round < rounds; round++) {
        size_t count = 1 + plans_draw(&random, MOST);
        plans_random_buffers(&random, shape, b, count);
        strata_plan_result_t result = plans_make_with(&options, b, count, o);
        uint64_t least = plans_least_peak(b, count);
        EXPECT_EQ(result.peak, least);
        EXPECT_TRUE(result.proved);
        EXPECT_OK(strata_plan_lower_bound(b, count, &bound));
        *above_bound += least > bound;
    }
}

TEST(plan_exact, is_never_beaten_and_always_proves) {
    size_t above = 0;
    expect_least(&(plans_shape_t){.times = 6, .sizes = 6}, 1, 1500, &above);
    expect_least(&(plans_shape_t){.times = 12, .sizes = 50}, 2, 1500, &above);
}

TEST(plan_exact, obeys_alignments_at_the_least_peak) {
    size_t above = 0;
    expect_least(&(plans_shape_t){.times = 8, .sizes = 40, .alignments = 100}, 3, 1500, &above);
    expect_least(&(plans_shape_t){.times = 8, .sizes = 10, .alignments = 50}, 4, 1500, &above);
    EXPECT_GT(above, 0); /* some have no plan at the bound */
}

TEST(plan_exact, goes_round_what_is_fixed) {
    size_t above = 0;
    expect_least(&(plans_shape_t){.times = 8, .sizes = 20, .fixed = 25}, 5, 1500, &above);
    expect_least(&(plans_shape_t){.times = 8, .sizes = 20, .fixed = 30, .alignments = 40}, 6, 1500, &above);
}

/* 5 bytes live at the worst moment, and no plan has fewer than 6. */
TEST(plan_exact, proves_a_peak_above_the_bound) {
    strata_plan_buffer_t b[] = {{.lower = 6, .upper = 8, .size = 3}, {.lower = 0, .upper = 3, .size = 2},
                                {.lower = 2, .upper = 5, .size = 1}, {.lower = 0, .upper = 1, .size = 3},
                                {.lower = 4, .upper = 6, .size = 1}, {.lower = 5, .upper = 7, .size = 2},
                                {.lower = 1, .upper = 6, .size = 2}, {.lower = 3, .upper = 4, .size = 1}};
    uint64_t o[8], bound;
    strata_plan_result_t result = plans_make("exact", b, 8, o);
    EXPECT_OK(strata_plan_lower_bound(b, 8, &bound));
    EXPECT_EQ(bound, 5);
    EXPECT_EQ(result.peak, 6);
    EXPECT_EQ(result.peak, plans_least_peak(b, 8));
    EXPECT_TRUE(result.proved);
}

/* ---- the hard instances ---- */

typedef struct instance {
    const char *name;
    uint64_t least;
} instance_t;
static const instance_t instances[] = {{"minimalloc-A", 1048576}, {"minimalloc-C", 1039360}, {"minimalloc-E", 1048576},
                                       {"minimalloc-G", 1048576}, {"minimalloc-I", 1048576}, {"somas-resnet50", 1515472556},
                                       {"iopddl-G1", 3030937746}};

static void expect_solved(const char *planner, const instance_t *row, bool by_capacity) {
    strata_plan_table_t table CLOSED_BY(plans_cleanup) = plans_instance(row->name);
    uint64_t *o = calloc(table.count + 1, sizeof *o);
    strata_plan_options_t options = with_time(planner);
    options.capacity = by_capacity ? 1048576 : 0;
    uint64_t began = plans_processor_ns();
    strata_plan_result_t result = plans_make_with(&options, table.buffers, table.count, o);
    EXPECT_EQ(result.peak, row->least);
    EXPECT_TRUE(result.proved);
    if (!*STRATA_SANITIZERS) EXPECT_LT(plans_processor_ns() - began, UINT64_C(20000000000));
    free(o);
}

TEST_EACH(plan_exact, solves_what_is_hard, instance_t, instances) { expect_solved("exact", row, true); }
TEST_EACH(plan_auto, solves_what_is_hard, instance_t, instances) { expect_solved("auto", row, false); }

TEST(plan_auto, is_never_worse_than_greedy) {
    plans_random_t random = {11};
    static strata_plan_buffer_t b[300];
    uint64_t o[300];
    for (int round = 0; round < 12; round++) {
        size_t count = 100 + plans_draw(&random, 200);
        plans_shape_t shape = {.times = 200, .sizes = 100000, .forks = round % 3 ? 0 : 20, .fixed = round % 4 ? 0 : 5};
        plans_random_buffers(&random, &shape, b, count);
        strata_plan_options_t options = {.struct_size = sizeof options, .planner = "greedy", .time_ns = 40000000};
        uint64_t greedy = plans_make_with(&options, b, count, o).peak;
        options.planner = "auto";
        options.time_ns *= 3; /* a busy machine takes some of it */
        EXPECT_LE(plans_make_with(&options, b, count, o).peak, greedy);
    }
}

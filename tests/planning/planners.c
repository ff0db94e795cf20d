/* What holds for every planner, and for the bound. */
#include <stdlib.h>

#include "platform/clock.h"
#include "platform/host/host_memory.h"
#include "platform/status.h"
#include "tests/planning/plans.h"

typedef struct planner_row {
    const char *name;
} planner_row_t;
static const planner_row_t planners[] = {
#define PLANNER_ROW(name, what) {#name},
    STRATA_PLANNER_MAP(PLANNER_ROW)
#undef PLANNER_ROW
};

static bool peers(const char *planner) { return strcmp(planner, "reuse") == 0 || strcmp(planner, "tree") == 0; }

TEST_EACH(plan_every, planner_makes_plans, planner_row_t, planners) {
    plans_random_t random = {7};
    strata_plan_buffer_t b[40];
    uint64_t o[40];
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = row->name, .time_ns = 2000000};
    for (int round = 0; round < 300; round++) {
        size_t count = 1 + plans_draw(&random, 40);
        plans_shape_t shape = {.times = 1 + plans_draw(&random, 50),
                               .sizes = 1 + plans_draw(&random, 3000),
                               .alignments = round % 3 == 0 ? 50 : 0,
                               .forks = round % 4 == 0 ? 30 : 0,
                               .fixed = round % 5 == 0 && !peers(row->name) ? 10 : 0};
        plans_random_buffers(&random, &shape, b, count);
        options.close_gaps = round % 2;
        options.pools = (strata_plan_pools_t)(round % 4);
        for (size_t i = 0; i < count; i++)
            if (plans_draw(&random, 10) == 0) b[i].flags |= STRATA_PLAN_OUTPUT;
        plans_make_with(&options, b, count, o);
    }
}

TEST_EACH(plan_every, planner_takes_what_is_small, planner_row_t, planners) {
    uint64_t o[2] = {9, 9};
    strata_plan_result_t result = plans_make(row->name, NULL, 0, o);
    EXPECT_EQ(result.peak, 0);
    EXPECT_TRUE(result.proved);
    strata_plan_buffer_t b[] = {{.upper = 1, .size = 0}, {.upper = UINT64_MAX, .size = UINT64_C(1) << 48}};
    result = plans_make(row->name, b, 2, o);
    EXPECT_EQ(result.peak, UINT64_C(1) << 48);
    EXPECT_EQ(o[0], 0);
}

TEST_EACH(plan_every, planner_fails_cleanly_without_host_memory, planner_row_t, planners) {
    plans_random_t random = {3};
    strata_plan_buffer_t b[20];
    uint64_t o[20];
    plans_shape_t shape = {.times = 20, .sizes = 100, .forks = strcmp(row->name, "exact") ? 30 : 0};
    plans_random_buffers(&random, &shape, b, 20);
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = row->name, .time_ns = 1000000};
    strata_status_t status = STRATA_E_HOST_MEMORY;
    for (uint64_t k = 1; status != STRATA_OK && k < 500; k++) {
        strata_host_fail_at(k, 0);
        status = strata_plan_make(&options, b, 20, o, NULL);
        if (status != STRATA_OK) EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    }
    strata_host_fail_at(0, 0);
    EXPECT_OK(status);
}

TEST_EACH(plan_every, planner_is_fast_on_many_equal_buffers, planner_row_t, planners) {
    enum { COUNT = 3000 };
    static strata_plan_buffer_t b[COUNT];
    static uint64_t o[COUNT];
    for (size_t i = 0; i < COUNT; i++) b[i] = (strata_plan_buffer_t){.lower = i / 3, .upper = i / 3 + 2, .size = 512};
    uint64_t begin = strata_real_now();
    strata_plan_result_t result = plans_make(row->name, b, COUNT, o);
    EXPECT_EQ(result.peak, 6 * 512);
    EXPECT_LT(strata_real_now() - begin, UINT64_C(20000000000));
}

/* Many buffers are live at once, so one order, or one pool of a tree, would take seconds. Measures processor time, to ignore other work. */
TEST_EACH(plan_every, planner_keeps_its_time, planner_row_t, planners) {
    enum { COUNT = 20000, OF_A_TREE = 4096 };
    static strata_plan_buffer_t b[COUNT];
    static uint64_t o[COUNT];
    plans_random_t random = {13};
    uint64_t limit = UINT64_C(150000000);
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = row->name, .time_ns = limit};
    size_t count = strcmp(row->name, "tree") == 0 ? OF_A_TREE : COUNT;
    for (int forks = 0; forks < 2; forks++) {
        for (size_t i = 0; i < count; i++) {
            b[i] = (strata_plan_buffer_t){.lower = plans_draw(&random, 2 * count), .size = 1 + plans_draw(&random, 1 << 20)};
            b[i].upper = b[i].lower + 1 + plans_draw(&random, count);
            if (forks) b[i].fork = 1, b[i].branch = (uint32_t)(i % 4);
        }
        uint64_t began = plans_processor_ns();
        EXPECT_OK(strata_plan_make(&options, b, count, o, NULL));
        if (!*STRATA_SANITIZERS) EXPECT_LT(plans_processor_ns() - began, 2 * limit);
        EXPECT_OK(strata_plan_check(b, count, o, NULL));
    }
}

/* ---- options ---- */

TEST(plan_options, wrong_ones_are_refused) {
    strata_plan_buffer_t b = {.upper = 1, .size = 1};
    uint64_t o;
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = "exat"};
    EXPECT_SAYS(STRATA_E_INVALID, strata_plan_make(&options, &b, 1, &o, NULL), "there is no planner \"exat\"; write exact");
    options = (strata_plan_options_t){.planner = "exact"};
    EXPECT_SAYS(STRATA_E_INVALID, strata_plan_make(&options, &b, 1, &o, NULL), "struct_size");
    options = (strata_plan_options_t){.struct_size = sizeof options, .pools = (strata_plan_pools_t)9};
    EXPECT_SAYS(STRATA_E_INVALID, strata_plan_make(&options, &b, 1, &o, NULL), "pools is 9");
}

TEST(plan_options, those_of_other_versions_are_understood) {
    strata_plan_buffer_t b = {.upper = 1, .size = 1};
    uint64_t o = 5;
    struct {
        strata_plan_options_t known;
        uint64_t more;
    } newer = {.known = {.struct_size = sizeof newer}};
    EXPECT_OK(strata_plan_make(&newer.known, &b, 1, &o, NULL));
    newer.more = 1;
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_plan_make(&newer.known, &b, 1, &o, NULL), "newer than this library");
    strata_plan_options_t older = {.struct_size = offsetof(strata_plan_options_t, time_ns), .time_ns = 1, .planner = "greedy"};
    EXPECT_OK(strata_plan_make(&older, &b, 1, &o, NULL));
    strata_plan_result_t result = {.struct_size = offsetof(strata_plan_result_t, lower_bound), .lower_bound = 77};
    EXPECT_OK(strata_plan_make(NULL, &b, 1, &o, &result));
    EXPECT_EQ(result.peak, 1);
    EXPECT_EQ(result.lower_bound, 77);
}

TEST(plan_options, what_is_fixed_must_be_a_plan) {
    strata_plan_buffer_t b[] = {{.upper = 2, .size = 8, .flags = STRATA_PLAN_FIXED},
                                {.lower = 1, .upper = 3, .size = 8, .offset = 4, .flags = STRATA_PLAN_FIXED}};
    uint64_t o[2];
    EXPECT_SAYS(STRATA_E_INVALID, strata_plan_make(NULL, b, 2, o, NULL),
                "the fixed buffers are not a valid plan: buffers 0 and 1 share bytes");
    b[1].offset = 8;
    EXPECT_EQ(plans_make("auto", b, 2, o).peak, 16);
}

/* ---- the bound ---- */

TEST(plan_bound, is_the_most_that_lives_at_one_moment) {
    strata_plan_buffer_t b[] = {
        {.lower = 0, .upper = 4, .size = 100}, {.lower = 2, .upper = 6, .size = 50}, {.lower = 4, .upper = 8, .size = 120}};
    uint64_t bound = 0;
    EXPECT_OK(strata_plan_lower_bound(b, 3, &bound));
    EXPECT_EQ(bound, 170);
}

TEST(plan_bound, knows_that_alignment_leaves_holes) {
    /* Three of 100 at multiples of 64: 128 + 128 + 100. */
    strata_plan_buffer_t b[3];
    uint64_t bound = 0, o[3];
    for (int i = 0; i < 3; i++) b[i] = (strata_plan_buffer_t){.upper = 1, .size = 100, .alignment = 64};
    EXPECT_OK(strata_plan_lower_bound(b, 3, &bound));
    EXPECT_EQ(bound, 356);
    EXPECT_EQ(plans_make("exact", b, 3, o).peak, 356);
    b[2].size = 128; /* nothing is lost if it lies below */
    EXPECT_OK(strata_plan_lower_bound(b, 3, &bound));
    EXPECT_EQ(bound, 356);
}

TEST(plan_bound, adds_up_the_branches_of_a_fork) {
    strata_plan_buffer_t b[] = {{.lower = 0, .upper = 1, .size = 10, .fork = 3, .branch = 0},
                                {.lower = 1, .upper = 2, .size = 20, .fork = 3, .branch = 0},
                                {.lower = 5, .upper = 6, .size = 7, .fork = 3, .branch = 1},
                                {.lower = 9, .upper = 10, .size = 25}};
    uint64_t bound = 0, o[4];
    EXPECT_OK(strata_plan_lower_bound(b, 4, &bound));
    EXPECT_EQ(bound, 27);
    EXPECT_EQ(plans_make("auto", b, 4, o).peak, 27);
}

TEST(plan_bound, reaches_to_the_end_of_what_is_fixed) {
    strata_plan_buffer_t b[] = {{.upper = 1, .size = 10, .offset = 1000, .flags = STRATA_PLAN_FIXED}, {.upper = 1, .size = 5}};
    uint64_t bound = 0, o[2];
    EXPECT_OK(strata_plan_lower_bound(b, 2, &bound));
    EXPECT_EQ(bound, 1010);
    EXPECT_TRUE(plans_make("auto", b, 2, o).proved);
}

/* Parts of the planners by themselves: what they place, what they remember, and the host memory that they return. */
#include "planning/placement/branches.h"
#include "planning/placement/fit.h"
#include "planning/placement/online.h"
#include "planning/placement/order.h"
#include "planning/placement/skyline.h"
#include "planning/placement/stack.h"
#include "planning/planners/forest.h"
#include "planning/problem/owner_map.h"
#include "platform/host/host_memory.h"
#include "platform/status.h"
#include "tests/planning/plans.h"

/* ---- branches ---- */

/* Items that all live at once, in `forks` forks of one branch each. */
typedef struct crowd {
    const char *name;
    uint32_t items, forks;
} crowd_t;

static const crowd_t crowds[] = {{"one", 1, 0},       {"few", 3, 0},        {"many", 60, 0},
                                 {"one_fork", 60, 1}, {"two_forks", 60, 2}, {"three_forks", 60, 3}};

/* Items that all overlap need the sum of their sizes, and no byte more. */
TEST_EACH(plan_branches, each_item_is_placed_once, crowd_t, crowds) {
    strata_plan_buffer_t buffers[60];
    uint64_t offsets[60];
    strata_problem_t problem;
    for (uint32_t i = 0; i < row->items; i++)
        buffers[i] = (strata_plan_buffer_t){.upper = 1, .size = 64, .fork = row->forks ? 1 + i * row->forks / row->items : 0};
    ASSERT_OK(strata_problem_make(&problem, buffers, row->items, 0));
    EXPECT_OK(strata_branches_place(&problem, offsets));
    EXPECT_EQ(strata_problem_peak(&problem, offsets), row->items * UINT64_C(64));
    strata_problem_delete(&problem);
}

/* ---- dead ends ---- */

/* Notes of `count` sections each. A memo of few items is full after `notes` of them. */
typedef struct filling {
    const char *name;
    uint32_t count, notes;
} filling_t;

static const filling_t fillings[] = {{"by_entries", 1, 2049}, {"by_room", 64, 1024}, {"by_room_at_its_end", 65, 1008}};

TEST_EACH(plan_memo, a_full_memo_forgets_everything_and_remembers_what_comes_then, filling_t, fillings) {
    strata_memo_t memo;
    uint64_t room[65] = {0};
    ASSERT_OK(strata_memo_init(&memo, 1));
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t first = round * row->notes;
        for (uint32_t i = 0; i < row->notes; i++) {
            strata_memo_note(&memo, first + i, room, row->count);
            ASSERT_EQ(memo.used, i + 1);
            ASSERT_TRUE(memo.room_used <= memo.room_capacity);
            EXPECT_TRUE(strata_memo_has(&memo, first, room, row->count));
            EXPECT_TRUE(strata_memo_has(&memo, first + i, room, row->count));
            if (round > 0) EXPECT_FALSE(strata_memo_has(&memo, first - 1, room, row->count));
        }
    }
    strata_memo_destroy(&memo);
}

/* ---- host memory ---- */

/* Makes an object or a plan of a problem, and ends it. Returns the status of the making. */
typedef struct maker {
    const char *name;
    strata_status_t (*make)(const strata_problem_t *problem);
} maker_t;

static strata_status_t make_problem(const strata_problem_t *problem) {
    strata_problem_t made;
    strata_plan_buffer_t forked[3];
    for (size_t i = 0; i < problem->count; i++) {
        forked[i] = problem->buffers[i];
        forked[i].fork = 1 + (uint32_t)i % 2;
    }
    strata_status_t status = strata_problem_make(&made, forked, problem->count, 0);
    if (status == STRATA_OK) strata_problem_delete(&made);
    return status;
}

static strata_status_t make_sections(const strata_problem_t *problem) {
    const uint32_t rank[] = {2, 0, 1};
    strata_sections_t sections;
    strata_status_t status = strata_sections_make(&sections, problem);
    if (status != STRATA_OK) return status;
    status = strata_sections_order(&sections, problem->item_count, rank);
    strata_sections_delete(&sections);
    return status;
}

static strata_status_t make_memo(const strata_problem_t *problem) {
    strata_memo_t memo;
    strata_status_t status = strata_memo_init(&memo, problem->item_count);
    if (status == STRATA_OK) strata_memo_destroy(&memo);
    return status;
}

static strata_status_t make_fit(const strata_problem_t *problem) {
    strata_fit_t fit;
    strata_status_t status = strata_fit_init(&fit, problem);
    if (status == STRATA_OK) strata_fit_destroy(&fit);
    return status;
}

static strata_status_t make_skyline(const strata_problem_t *problem) {
    strata_skyline_t skyline;
    strata_status_t status = strata_skyline_init(&skyline, problem);
    if (status == STRATA_OK) strata_skyline_destroy(&skyline);
    return status;
}

static strata_status_t make_forest(const strata_problem_t *problem) {
    strata_forest_t forest;
    strata_status_t status = strata_forest_init(&forest, problem, false);
    if (status == STRATA_OK) strata_forest_destroy(&forest);
    return status;
}

static strata_status_t make_owner_map(const strata_problem_t *problem) {
    strata_owner_map_t map;
    uint64_t *edges = strata_host_new(2 * problem->count, sizeof *edges);
    if (!edges) return STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < 2 * problem->count; i++) edges[i] = 64 * i;
    strata_status_t status = strata_owner_map_init(&map, edges, 2 * problem->count);
    if (status == STRATA_OK) strata_owner_map_destroy(&map);
    return status;
}

static strata_status_t place_branches(const strata_problem_t *problem) {
    uint64_t offsets[3];
    return strata_branches_place(problem, offsets);
}

static strata_status_t place_online(const strata_problem_t *problem) {
    uint64_t offsets[3], peak;
    return strata_online_place(problem, false, offsets, &peak);
}

static strata_status_t place_stack(const strata_problem_t *problem) {
    uint64_t offsets[3];
    return strata_stack_place(problem, offsets);
}

static strata_status_t make_orders(const strata_problem_t *problem) {
    uint32_t order[3];
    strata_status_t status = STRATA_OK;
    for (int by = 0; by < STRATA_ORDERS && status == STRATA_OK; by++)
        status = strata_order_make(problem, (strata_order_t)by, order);
    return status;
}

static const maker_t makers[] = {
    {"problem", make_problem},      {"sections", make_sections},  {"memo", make_memo},           {"fit", make_fit},
    {"skyline", make_skyline},      {"forest", make_forest},      {"owner_map", make_owner_map}, {"place_branches", place_branches},
    {"place_online", place_online}, {"place_stack", place_stack}, {"orders", make_orders},
};

/* Each allocation fails in turn, and the last round makes the whole object. */
TEST_EACH(plan_memory, an_ended_or_failed_object_leaves_no_host_memory_in_use, maker_t, makers) {
    const strata_plan_buffer_t buffers[] = {
        {.upper = 2, .size = 64}, {.lower = 1, .upper = 3, .size = 64}, {.lower = 2, .upper = 4, .size = 128}};
    strata_problem_t problem;
    strata_status_t status = STRATA_E_HOST_MEMORY;
    ASSERT_OK(strata_problem_make(&problem, buffers, PLANS_COUNT(buffers), 0));
    uint64_t live = strata_host_live().allocations, fails = 0;
    while (status == STRATA_E_HOST_MEMORY) {
        strata_host_fail_at(++fails, 0);
        status = row->make(&problem);
        strata_host_fail_at(0, 0);
        EXPECT_EQ(strata_host_live().allocations, live);
    }
    EXPECT_OK(status);
    EXPECT_GT(fails, 1);
    strata_problem_delete(&problem);
}

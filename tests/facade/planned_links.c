/* Which places must be free before another one is: planned_links.c against all that lives. */
#include "allocation/layer/planned_state.h"
#include "platform/host/host_memory.h"
#include "tests/facade/planned_live.h"

enum { PLANS = 400, MOST_PLACES = 24, MOST_UNITS = 16, ROUNDS = 12 };

static planned_plan_t *drawn_plan(uint64_t seed) {
    planned_plan_t *plan = strata_host_new(1, sizeof *plan);
    plan->count = 1 + (uint32_t)(mixed(seed) % MOST_PLACES);
    plan->places = strata_planned_new_places(plan->count);
    for (uint32_t i = 0; i < plan->count; i++) {
        uint64_t drawn = mixed(seed * 100 + i), units = 1 + drawn % (drawn >> 20 & 1 ? MOST_UNITS : 3);
        bool placed = (drawn >> 40) % 8 != 0;
        plan->places[i].size = units * STRATA_PLANNED_ALIGNMENT;
        plan->places[i].offset = placed ? (drawn >> 8) % MOST_UNITS * STRATA_PLANNED_ALIGNMENT : STRATA_NOWHERE;
    }
    EXPECT_TRUE(strata_planned_link(plan));
    return plan;
}

static bool overlap(const planned_place_t *a, const planned_place_t *b) {
    return a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool is_free(const planned_plan_t *plan, uint32_t i) {
    for (uint32_t k = 0; k < plan->count; k++)
        if (plan->slots[k] && overlap(&plan->places[i], &plan->places[k])) return false;
    return true;
}

static bool is_clear(const planned_plan_t *plan, uint32_t i) {
    for (uint32_t link = plan->places[i].links; link < plan->places[i + 1].links; link++)
        if (plan->slots[plan->links[link]]) return false;
    return true;
}

static void free_some(planned_plan_t *plan, uint64_t seed, uint64_t part) {
    for (uint32_t k = 0; k < plan->count; k++)
        if (mixed(seed + k) % part == 0) plan->slots[k] = 0;
}

/* Every request waits until its place is free. */
static void go_round(planned_plan_t *plan, uint64_t seed) {
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->places[i].offset == STRATA_NOWHERE) {
            EXPECT_FALSE(is_clear(plan, i));
            continue;
        }
        free_some(plan, seed * 64 + i, 2 + seed % 30);
        for (uint64_t turn = 0; !is_free(plan, i); turn++) {
            EXPECT_FALSE(is_clear(plan, i));
            free_some(plan, seed * 977 + turn, 4);
        }
        EXPECT_TRUE(is_clear(plan, i));
        plan->slots[i] = 1;
    }
    for (uint32_t k = 0; k < plan->count; k++)
        if (plan->slots[k]) EXPECT_TRUE(plan->places[k].last);
}

TEST(facade_planned_links, a_place_is_clear_when_nothing_lives_there) {
    for (uint64_t seed = 1; seed <= PLANS && !strata_test_has_failed(); seed++) {
        planned_plan_t *plan = drawn_plan(seed);
        for (uint64_t round = 0; round < ROUNDS; round++) go_round(plan, seed * ROUNDS + round);
        strata_planned_delete(plan);
    }
}

/* As many links as places and edges, however the plan looks. */
TEST(facade_planned_links, links_are_few) {
    enum { COUNT_OF_PLACES = 20000 };
    planned_plan_t *plan = strata_host_new(1, sizeof *plan);
    plan->count = COUNT_OF_PLACES;
    plan->places = strata_planned_new_places(plan->count);
    for (uint32_t i = 0; i < plan->count; i++) {
        uint64_t drawn = mixed(i);
        plan->places[i].size = (1 + drawn % 1000) * STRATA_PLANNED_ALIGNMENT;
        plan->places[i].offset = (drawn >> 20) % 50000 * STRATA_PLANNED_ALIGNMENT;
    }
    EXPECT_TRUE(strata_planned_link(plan));
    EXPECT_LE(plan->places[plan->count].links, 4 * plan->count);
    strata_planned_delete(plan);
}

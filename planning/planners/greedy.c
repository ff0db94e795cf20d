#include "planning/planners/greedy.h"

#include "planning/placement/branches.h"
#include "planning/placement/fit.h"
#include "planning/placement/online.h"
#include "planning/placement/order.h"
#include "planning/placement/stack.h"
#include "platform/arithmetic.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"

/* Max pairs that an order may cost, some seconds of work. Above it, only placements without pairs are tried. */
#define PAIRS_MAX UINT64_C(200000000)
/* Pairs between two checks of the clock: less than a millisecond of work. */
enum { CHECK_EVERY = 1 << 16 };

static strata_status_t try_online(const strata_problem_t *p, strata_found_t *found, uint64_t *offsets) {
    uint64_t peak;
    for (int backwards = 0; backwards < 2 && !strata_found_is_optimal(found); backwards++) {
        if (backwards && strata_problem_time_is_up(p)) break;
        strata_status_t status = strata_online_place(p, backwards, offsets, &peak);
        if (status != STRATA_OK) return status;
        strata_found_update(p, found, offsets);
    }
    return STRATA_OK;
}

/* Returns false if it took too long, or cannot improve on the best plan. */
static bool place_all(strata_fit_t *fit, const uint32_t *order, strata_gap_t gap, const strata_found_t *found) {
    const strata_problem_t *p = fit->problem;
    uint64_t checked = fit->pairs;
    strata_fit_clear(fit);
    for (uint32_t i = 0; i < p->item_count; i++) {
        strata_fit_place(fit, order[i], gap);
        if (fit->peak >= found->peak && fit->peak - p->slack >= found->peak) return false;
        if (fit->pairs - checked < CHECK_EVERY || found->peak == UINT64_MAX) continue;
        if (strata_problem_time_is_up(p)) return false;
        checked = fit->pairs;
    }
    return true;
}

static strata_status_t try_orders(const strata_problem_t *p, strata_found_t *found, strata_fit_t *fit, uint32_t *order) {
    for (int by = 0; by < STRATA_ORDERS && !strata_found_is_optimal(found); by++) {
        if (found->peak != UINT64_MAX && strata_problem_time_is_up(p)) break;
        strata_status_t status = strata_order_make(p, (strata_order_t)by, order);
        if (status != STRATA_OK) return status;
        for (int gap = STRATA_GAP_LOWEST; gap <= STRATA_GAP_SMALLEST && !strata_found_is_optimal(found); gap++)
            if (place_all(fit, order, (strata_gap_t)gap, found)) strata_found_update(p, found, fit->offsets);
    }
    return STRATA_OK;
}

/* For problems with forks or fixed items: stacks all items, which always works, and tries separate branches. */
static strata_status_t try_separate(const strata_problem_t *p, strata_found_t *found, uint64_t *offsets) {
    strata_status_t status = strata_stack_place(p, offsets);
    if (status == STRATA_OK) strata_found_update(p, found, offsets);
    if (status != STRATA_OK || p->fixed) return status;
    status = strata_branches_place(p, offsets);
    if (status == STRATA_OK) strata_found_update(p, found, offsets);
    return status;
}

strata_status_t strata_greedy_start(const strata_problem_t *p, strata_found_t *found) {
    strata_fit_t fit;
    strata_status_t status = strata_fit_init(&fit, p);
    if (status != STRATA_OK) return status;
    uint32_t *order = strata_host_new((size_t)p->item_count + 1, sizeof *order);
    bool simple = !p->fixed && p->fork_count == 0;
    if (!order) status = STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK && simple) status = try_online(p, found, fit.offsets);
    if (status == STRATA_OK && !simple) status = try_separate(p, found, fit.offsets);
    if (status == STRATA_OK && strata_fit_pairs(&fit) <= PAIRS_MAX) status = try_orders(p, found, &fit, order);
    strata_host_delete(order);
    strata_fit_destroy(&fit);
    return status;
}

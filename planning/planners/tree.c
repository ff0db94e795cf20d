/* The planner `tree`: pools of items, each with its own allocation (forest.h). Outputs are first, the
 * smallest first. The others follow, the largest and longest-lived first. Each goes into the first pool
 * where it fits. The last pool may grow; otherwise the item gets a new pool. */
#include "planning/planners/forest.h"
#include "planning/planners/planners.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

typedef struct pool {
    uint32_t root;
    bool can_grow;
} pool_t;

typedef struct builder {
    const strata_problem_t *problem;
    strata_plan_pools_t mode;
    strata_forest_t forest;
    pool_t *pools;
    uint32_t pool_count;
} builder_t;

static bool is_output(const builder_t *g, uint32_t item) {
    return g->problem->buffers[g->problem->items[item].buffer].flags & STRATA_PLAN_OUTPUT;
}

/* Outputs live to the end. Items of a fork live as long as the fork. */
static void set_live_ranges(builder_t *g) {
    const strata_problem_t *p = g->problem;
    uint64_t end = 0;
    for (uint32_t i = 0; i < p->item_count; i++) end = strata_max(end, p->buffers[p->items[i].buffer].upper);
    for (uint32_t i = 0; i < p->item_count; i++) {
        const strata_plan_buffer_t *b = &p->buffers[p->items[i].buffer];
        g->forest.lower[i] = b->lower;
        g->forest.upper[i] = is_output(g, i) && end < UINT64_MAX ? end + 1 : b->upper;
    }
    for (uint32_t i = 0; i < p->item_count && p->fork_count; i++) {
        for (uint32_t k = 0; k < p->item_count && p->items[i].fork; k++) {
            if (p->items[k].fork != p->items[i].fork) continue;
            g->forest.lower[i] = strata_min(g->forest.lower[i], p->buffers[p->items[k].buffer].lower);
            g->forest.upper[i] = strata_max(g->forest.upper[i], p->buffers[p->items[k].buffer].upper);
        }
    }
}

static void add_pool(builder_t *g, uint32_t item, bool can_grow) {
    g->pools[g->pool_count++] = (pool_t){.root = strata_forest_new_pool(&g->forest, item), .can_grow = can_grow};
}

static void insert_output(builder_t *g, uint32_t item) {
    if (g->mode == STRATA_PLAN_POOLS_OUTPUTS && g->pool_count > 0) {
        pool_t *last = &g->pools[g->pool_count - 1];
        last->root = strata_forest_append(&g->forest, last->root, item);
        return;
    }
    add_pool(g, item, false);
}

/* If time runs out, the remaining buffers are appended at the end, because every call must return a plan. */
static void insert_other(builder_t *g, uint32_t item) {
    if (g->pool_count > 0 && strata_problem_time_is_up(g->problem)) {
        pool_t *last = &g->pools[g->pool_count - 1];
        last->root = strata_forest_append(&g->forest, last->root, item);
        return;
    }
    for (uint32_t i = 0; i < g->pool_count; i++) {
        pool_t *pool = &g->pools[i];
        bool grows = i + 1 == g->pool_count && pool->can_grow;
        if (strata_forest_insert(&g->forest, pool->root, item, grows)) return;
        if (!grows) continue;
        pool->root = strata_forest_append(&g->forest, pool->root, item);
        return;
    }
    add_pool(g, item, g->mode != STRATA_PLAN_POOLS_NONE);
}

/* Sorts by size, then the longest-lived first, then in program order. */
static void order_by_size(const builder_t *g, bool smallest_first, strata_keyed_t *keyed) {
    uint32_t count = g->problem->item_count;
    const strata_forest_t *f = &g->forest;
    for (uint32_t i = 0; i < count; i++) keyed[i] = (strata_keyed_t){~(f->upper[i] - f->lower[i]), i};
    strata_sort_keyed(keyed, keyed + count, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t size = strata_forest_size_of(f, keyed[i].value);
        keyed[i].key = smallest_first ? size : ~size;
    }
    strata_sort_keyed(keyed, keyed + count, count);
}

static void insert_all(builder_t *g, strata_keyed_t *keyed) {
    uint32_t count = g->problem->item_count;
    bool apart = g->mode != STRATA_PLAN_POOLS_COMBINED;
    order_by_size(g, true, keyed);
    for (uint32_t i = 0; apart && i < count && !g->forest.failed; i++)
        if (is_output(g, keyed[i].value)) insert_output(g, keyed[i].value);
    order_by_size(g, false, keyed);
    for (uint32_t i = 0; i < count && !g->forest.failed; i++)
        if (!apart || !is_output(g, keyed[i].value)) insert_other(g, keyed[i].value);
}

/* Places the pools side by side. */
static void finish(builder_t *g, uint64_t *offsets, strata_found_t *found) {
    uint64_t base = 0;
    for (uint32_t i = 0; i < g->pool_count; i++)
        base = strata_align_up(base + strata_forest_set_offsets(&g->forest, g->pools[i].root, base, offsets), g->forest.alignment);
    uint64_t before = found->peak;
    strata_found_update(g->problem, found, offsets);
    if (found->peak < before) found->pools = g->pool_count;
}

static strata_status_t build(builder_t *g, bool close_gaps, strata_found_t *found) {
    uint32_t count = g->problem->item_count;
    strata_status_t status = strata_forest_init(&g->forest, g->problem, close_gaps);
    if (status != STRATA_OK) return status;
    g->pools = strata_host_new(count, sizeof *g->pools);
    uint64_t *offsets = strata_host_new(count, sizeof *offsets);
    strata_keyed_t *keyed = strata_host_new(2 * (size_t)count, sizeof *keyed);
    status = g->pools && offsets && keyed ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) {
        set_live_ranges(g);
        insert_all(g, keyed);
        if (g->forest.failed) status = strata_last_error()->status;
        else finish(g, offsets, found);
    }
    strata_host_delete(keyed);
    strata_host_delete(offsets);
    strata_host_delete(g->pools);
    strata_forest_destroy(&g->forest);
    return status;
}

strata_status_t strata_planner_tree(const strata_planning_t *planning, strata_found_t *found) {
    const strata_problem_t *p = planning->problem;
    if (p->fixed) return strata_fail(STRATA_E_UNSUPPORTED, 0, "tree does not support fixed offsets; use greedy, exact or auto");
    if (p->item_count > STRATA_FOREST_ITEMS)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "tree supports at most %d buffers, but there are %u; use greedy or auto",
                           STRATA_FOREST_ITEMS, p->item_count);
    strata_status_t status = STRATA_OK;
    for (int close_gaps = 0; close_gaps <= planning->options->close_gaps && status == STRATA_OK; close_gaps++) {
        if (close_gaps && strata_problem_time_is_up(p)) break;
        builder_t builder = {.problem = p, .mode = planning->options->pools};
        status = build(&builder, close_gaps, found);
    }
    return status;
}

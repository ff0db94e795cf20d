/* Pools of graphs by number, as the program names them. */
#include "allocation/graphs/graphs.h"
#include "allocation/reclaim/over_limit.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "facade/figures/figures.h"
#include "facade/graphs/graphs.h"
#include "facade/registry/plans.h"
#include "platform/arguments.h"
#include "platform/place.h"

/* ---- numbers ---- */

static strata_status_t fresh_number(strata_facade_t *facade, uint64_t *pool) {
    uint32_t number = atomic_fetch_add(&facade->graph_pools, 1);
    if (number >= STRATA_POOL_GRAPH_BIT)
        return strata_fail(STRATA_E_LIMIT, 0, "a facade can create %d graph pools, the maximum", STRATA_POOL_GRAPH_BIT);
    *pool = strata_plans_pool(facade, STRATA_POOL_GRAPH_BIT | number);
    return STRATA_OK;
}

static strata_status_t no_such(const strata_facade_t *facade, uint64_t pool) {
    if (!strata_plans_is_graph_pool(facade, pool))
        return strata_fail(STRATA_E_INVALID, 0, "%#llx is not a graph pool of this facade; pass 0 for a new one",
                           (unsigned long long)pool);
    return strata_fail(STRATA_E_STALE, 0, "pool %#llx has ended, or belongs to another place", (unsigned long long)pool);
}

/* ---- begin ---- */

/* Returns the pool of a number, or a new pool for 0. Call it while building. */
static strata_status_t find_or_make(strata_facade_t *facade, strata_domain_t *domain, uint64_t *number,
                                    strata_graph_pool_t **pool) {
    if (*number != 0) {
        *pool = strata_plans_is_graph_pool(facade, *number) ? strata_graph_pool_find(domain, *number) : NULL;
        return *pool ? STRATA_OK : no_such(facade, *number);
    }
    const strata_plan_t *plan = strata_plans_of_graphs(facade, domain->place);
    strata_status_t status = strata_plan_serves_graphs(plan);
    if (status == STRATA_OK) status = fresh_number(facade, number);
    return status == STRATA_OK ? strata_graph_pool_make(domain, *number, plan, pool) : status;
}

/* Requests of captured streams in other places must be noticed too. */
static void update_place_paths(strata_facade_t *facade) {
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) strata_graphs_update_paths(domain);
}

/* If a capture is already active, it belongs to the pool from now on. */
static strata_status_t open_pool(strata_graph_pool_t *pool, uint64_t number, const strata_graph_window_t *window) {
    strata_status_t status = strata_graph_pool_open(pool, number, window);
    if (status != STRATA_OK || window->filter) return status;
    status = strata_graph_pool_watch(pool, window->stream);
    if (status == STRATA_OK) return status;
    const strata_error_t reason = *strata_last_error();
    strata_graph_pool_close(pool);
    (void)strata_graph_pool_release(pool);
    return strata_fail_again(&reason);
}

static strata_status_t begin(strata_t handle, strata_place_t place, const strata_graph_window_t *window, uint64_t *pool) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    if (strata_place_is_ownerless(strata_place_kind(place)))
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "pinned and host memory has no owner streams, and therefore no graph pools");
    strata_graph_window_t own = *window;
    own.stream = strata_facade_stream_key(domain, window->stream);
    own.thread = own.stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0;
    uint64_t number = *pool;
    strata_graph_pool_t *found;
    strata_facade_begin_building(facade);
    status = find_or_make(facade, domain, &number, &found);
    bool made = status == STRATA_OK && *pool == 0;
    if (status == STRATA_OK) status = open_pool(found, number, &own);
    if (made) (void)strata_graph_pool_release(found);
    update_place_paths(facade);
    strata_facade_end_building(facade);
    if (status == STRATA_OK) *pool = number;
    else strata_over_limit_sweep(domain);
    strata_log_flush();
    return status;
}

strata_status_t strata_graph_pool_begin(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t *pool) {
    STRATA_REFUSE_NULL(pool);
    return begin(facade, place, &(strata_graph_window_t){.stream = stream}, pool);
}

strata_status_t strata_graph_pool_begin_filtered(strata_t facade, strata_place_t place, strata_graph_filter_fn filter,
                                                 void *context, uint64_t *pool) {
    STRATA_REFUSE_NULL(filter);
    STRATA_REFUSE_NULL(pool);
    return begin(facade, place, &(strata_graph_window_t){.filter = filter, .context = context}, pool);
}

/* ---- steps on an existing pool ---- */

/* Only one thread builds at a time, as in begin(), so the pool cannot be replaced during the step. */
strata_status_t strata_facade_with_graph_pool(strata_t handle, strata_place_t place, uint64_t number, strata_graph_step_fn step,
                                              void *context) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_facade_begin_building(facade);
    strata_graph_pool_t *pool = strata_plans_is_graph_pool(facade, number) ? strata_graph_pool_find(domain, number) : NULL;
    status = pool ? step(pool, context) : no_such(facade, number);
    strata_facade_end_building(facade);
    strata_over_limit_sweep(domain);
    strata_log_flush();
    return status;
}

static strata_status_t end(strata_graph_pool_t *pool, void *context) {
    if (!pool->open) return strata_fail(STRATA_E_INVALID, 0, "the pool is not open; each end needs a begin");
    strata_status_t status = strata_graph_pool_refuse_capturing(pool);
    if (status != STRATA_OK) return status;
    strata_graph_pool_close(pool);
    update_place_paths(context);
    return STRATA_OK;
}

strata_status_t strata_graph_pool_end(strata_t facade, strata_place_t place, uint64_t pool) {
    return strata_facade_with_graph_pool(facade, place, pool, end, strata_facade_of(facade));
}

static strata_status_t remove_one(strata_graph_pool_t *pool, void *context) {
    (void)context;
    if (strata_graph_pool_release(pool)) return STRATA_OK;
    return strata_fail(STRATA_E_INVALID, 0, "this pool has no begin left to remove; each remove needs a begin");
}

strata_status_t strata_graph_pool_remove(strata_t facade, strata_place_t place, uint64_t pool) {
    return strata_facade_with_graph_pool(facade, place, pool, remove_one, NULL);
}

/* ---- reports ---- */

static strata_status_t describe(strata_graph_pool_t *pool, void *context) {
    strata_graph_pool_info_t *info = context;
    strata_graph_pool_state_t state;
    strata_statistics_t figures = {.struct_size = sizeof figures};
    strata_graph_pool_read(pool, &state);
    strata_facade_pool_figures(pool->group->domain, pool->group->pool, &figures);
    const strata_graph_pool_info_t now = {.pool = pool->group->pool,
                                          .begins = state.holds,
                                          .graphs = state.graphs,
                                          .begun = state.open,
                                          .outside_blocks = state.outside_blocks,
                                          .live_allocations = figures.live_allocations,
                                          .allocated_bytes = figures.allocated_bytes,
                                          .reserved_bytes = figures.reserved_bytes};
    strata_fill_result(info, &now, sizeof now);
    return STRATA_OK;
}

strata_status_t strata_graph_pool_describe(strata_t facade, strata_place_t place, uint64_t pool, strata_graph_pool_info_t *info) {
    STRATA_REFUSE_NULL(info);
    STRATA_REFUSE_RESULT(info);
    return strata_facade_with_graph_pool(facade, place, pool, describe, info);
}

strata_status_t strata_graph_pools(strata_t handle, strata_place_t place, uint64_t *pools, size_t capacity, size_t *count) {
    STRATA_REFUSE_NULL(count);
    STRATA_REFUSE_NULL_ARRAY(pools, capacity);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_over_limit_sweep(domain);
    *count = 0;
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL) {
        if (!group->graph || group->pool == STRATA_GRAPH_POOL_ENDED) continue;
        if (*count < capacity) pools[*count] = group->pool;
        ++*count;
    }
    return STRATA_OK;
}

static uint32_t graphs_in(strata_domain_t *domain) {
    uint32_t graphs = 0;
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL) {
        strata_graph_pool_state_t state = {0};
        if (group->graph) strata_graph_pool_read(group->graph, &state);
        graphs += state.graphs + state.open;
    }
    return graphs;
}

strata_status_t strata_facade_refuse_graphs(strata_facade_t *facade) {
    uint32_t index = 0, graphs = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) graphs += graphs_in(domain);
    if (graphs == 0) return STRATA_OK;
    return strata_fail(
        STRATA_E_BUSY, 0,
        "%u captured graphs or open graph pools use memory of this facade; destroy the graphs and end the pools first",
        (unsigned)graphs);
}

/* ---- routing of requests ---- */

static strata_status_t fail_elsewhere(void) {
    return strata_fail(
        STRATA_E_CAPTURE, 0,
        "the request names a pool, but its stream is being captured into a graph with another pool, so a launch could use "
        "reused memory; name no pool");
}

static strata_status_t fail_outside(void) {
    return strata_fail(STRATA_E_CAPTURE, 0,
                       "a graph pool serves only requests inside captures: a launch would overwrite the memory of other "
                       "requests");
}

strata_status_t strata_facade_route(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, uint64_t named_pool,
                                    uint64_t *pool) {
    strata_domain_t *domain;
    strata_graph_pool_t *found = NULL;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    bool asks = facade->flags & STRATA_OPEN_CHECK_CAPTURES;
    if (status == STRATA_OK && !strata_place_is_ownerless(strata_place_kind(place)) && (asks || strata_graphs_open(domain))) {
        strata_stream_t key = strata_facade_stream_key(domain, stream);
        status = strata_graphs_route(domain, key, key == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0, &found);
    }
    if (status != STRATA_OK) return status;
    if (!found) return strata_plans_is_graph_pool(facade, *pool) ? fail_outside() : STRATA_OK;
    if (named_pool != 0 && named_pool != found->group->pool) return fail_elsewhere();
    *pool = found->group->pool;
    return STRATA_OK;
}

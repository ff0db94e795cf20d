/* Creates, opens, closes, keeps and ends graph pools. */
#include "allocation/domain/layer.h"
#include "allocation/domain/paused.h"
#include "allocation/domain/stack_list.h"
#include "allocation/graphs/graphs.h"
#include "platform/host/host_memory.h"

#define POOL_NAME "graph"

/* ---- look-up ---- */

strata_graph_pool_t *strata_graph_pool_find(strata_domain_t *domain, uint64_t number) {
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL)
        if (group->graph && group->pool == number) return group->graph;
    return NULL;
}

/* Returns whether the pool has ended and the thread that ended it has finished. */
static bool has_ended(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    strata_lock(&domain->lock);
    bool ended = pool->group->pool == STRATA_GRAPH_POOL_ENDED && !pool->ending;
    strata_unlock(&domain->lock);
    return ended;
}

/* Returns a pool that has ended and has the layers of the plan. Its group, and the stack that all its
 * streams share, are reused. */
static strata_graph_pool_t *find_ended(strata_domain_t *domain, const strata_plan_t *plan) {
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL)
        if (group->graph && group->plan == plan && has_ended(group->graph)) return group->graph;
    return NULL;
}

/* The hold is set before the pool is visible to other threads. */
strata_status_t strata_graph_pool_make(strata_domain_t *domain, uint64_t number, const strata_plan_t *plan,
                                       strata_graph_pool_t **out) {
    strata_graph_pool_t *pool = find_ended(domain, plan);
    if (pool) {
        pool->holds = 1;
        strata_stack_list_renumber(domain, pool->group, number);
    } else {
        pool = strata_host_new(1, sizeof *pool);
        if (!pool) return STRATA_E_HOST_MEMORY;
        strata_status_t status = strata_domain_add_group(domain, number, POOL_NAME, plan, false, &pool->group);
        if (status != STRATA_OK) {
            strata_host_delete(pool);
            return status;
        }
        pool->holds = 1;
        atomic_store(&pool->group->graph, pool);
    }
    atomic_fetch_add(&domain->graph_pools, 1);
    atomic_fetch_add(&domain->captures->pools, 1);
    *out = pool;
    return STRATA_OK;
}

/* ---- open and closed ---- */

static void update_group_paths(strata_domain_t *domain, const strata_group_t *group) {
    STRATA_DOMAIN_EACH_OF(domain, group, stack) {
        strata_stack_lock(stack);
        if (stack->open && !stack->is_shared) strata_stack_close(stack, STRATA_CLOSED_BY_GRAPHS, strata_graphs_must_route(stack));
        strata_stack_unlock(stack);
    }
}

void strata_graph_pool_update_paths(strata_graph_pool_t *pool) { update_group_paths(pool->group->domain, pool->group); }

void strata_graphs_update_paths(strata_domain_t *domain) {
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL)
        if (!group->graph) update_group_paths(domain, group);
}

/* Only the pool's own layers meet streams that are being captured: the pool owns the outside blocks that
 * its graph uses. */
static void notify_layers(const strata_graph_pool_t *pool, bool begins) {
    STRATA_DOMAIN_EACH_OF(pool->group->domain, pool->group, stack) strata_stack_notify_capture(stack, pool->group->pool, begins);
}

/* Returns false if the pool has ended or is about to end. */
static bool list_open(strata_graph_pool_t *pool, uint64_t number, const strata_graph_window_t *window) {
    strata_domain_t *domain = pool->group->domain;
    strata_captures_t *captures = domain->captures;
    strata_lock(&domain->lock);
    bool there = pool->group->pool == number && !pool->ending;
    if (there) {
        pool->holds++;
        pool->open = true;
        atomic_store(&pool->ready, false);
        atomic_store(&pool->group->pinned, true);
        strata_lock(&captures->lock);
        pool->window = *window;
        pool->capture = 0;
        pool->next_open = captures->first;
        captures->first = pool;
        atomic_fetch_add(&captures->open, 1);
        strata_unlock(&captures->lock);
        strata_captures_count_open(true);
    }
    strata_unlock(&domain->lock);
    return there;
}

/* Blocks that were freed and borrowed inside captures wait for their borrowers. */
void strata_graph_pool_poll(strata_graph_pool_t *pool) {
    strata_pending_t pending = {.ready_at = UINT64_MAX};
    STRATA_DOMAIN_EACH_OF(pool->group->domain, pool->group, stack) strata_stack_poll(stack, &pending);
}

strata_status_t strata_graph_pool_open(strata_graph_pool_t *pool, uint64_t number, const strata_graph_window_t *window) {
    strata_domain_t *domain = pool->group->domain;
    if (pool->open) return strata_fail(STRATA_E_BUSY, 0, "this pool is already open; end it before the next begin");
    strata_status_t status = strata_group_refuse_paused(pool->group);
    if (status != STRATA_OK) return status;
    if (atomic_load(&domain->captures->open) == STRATA_OPEN_GRAPHS)
        return strata_fail(STRATA_E_LIMIT, 0, "%d graph pools are open, the maximum", STRATA_OPEN_GRAPHS);
    if (!list_open(pool, number, window))
        return strata_fail(STRATA_E_STALE, 0, "pool %#llx has ended, because nothing kept it", (unsigned long long)number);
    strata_captures_await_uncaptured();
    strata_graph_pool_poll(pool); /* completed frees serve this capture; nothing is polled inside it */
    notify_layers(pool, true);
    return STRATA_OK;
}

static void unlist_open(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    strata_captures_t *captures = domain->captures;
    strata_lock(&domain->lock);
    strata_lock(&captures->lock);
    strata_graph_pool_t **at = &captures->first;
    while (*at != pool) at = &(*at)->next_open;
    *at = pool->next_open;
    atomic_fetch_sub(&captures->open, 1);
    strata_unlock(&captures->lock);
    pool->open = false;
    atomic_store(&pool->ready, false);
    strata_unlock(&domain->lock);
    strata_captures_count_open(false);
}

void strata_graph_pool_close(strata_graph_pool_t *pool) {
    unlist_open(pool);
    notify_layers(pool, false);
    strata_graph_pool_update_paths(pool);
}

bool strata_graph_pool_release(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    strata_lock(&domain->lock);
    bool held = pool->holds > 0;
    pool->holds -= held;
    strata_unlock(&domain->lock);
    return held;
}

void strata_graphs_inherit(strata_stack_t *stack) {
    const strata_graph_pool_t *pool = stack->group->graph;
    strata_stack_lock(stack);
    if (!stack->is_shared) strata_stack_close(stack, STRATA_CLOSED_BY_GRAPHS, strata_graphs_must_route(stack));
    strata_stack_unlock(stack);
    if (pool && pool->open) strata_stack_notify_capture(stack, pool->group->pool, true);
}

/* ---- the end ---- */

bool strata_graph_pool_is_kept(const strata_graph_pool_t *pool) {
    bool used = pool->open || pool->holds > 0 || strata_graph_count_of(pool->count) > 0;
    return !pool->ending && (used || atomic_load(&pool->becoming_owner) > 0);
}

bool strata_graph_pool_hold(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    strata_lock(&domain->lock);
    bool kept = strata_graph_pool_is_kept(pool);
    pool->holds += kept;
    strata_unlock(&domain->lock);
    return kept;
}

/* Unpins and returns the next pool that nothing keeps, after the group `previous` or, with NULL, from the
 * start. NULL if there is none. Only the thread that gets the pool may end it. */
static strata_graph_pool_t *unpin_next(strata_domain_t *domain, const strata_group_t *previous) {
    strata_graph_pool_t *found = NULL;
    strata_lock(&domain->lock);
    for (strata_group_t *group = previous ? previous->next : &domain->ordinary; group && !found; group = group->next) {
        strata_graph_pool_t *pool = group->graph;
        if (!pool || group->pool == STRATA_GRAPH_POOL_ENDED || pool->ending || strata_graph_pool_is_kept(pool)) continue;
        pool->ending = true;
        atomic_store(&group->pinned, false);
        found = pool;
    }
    strata_unlock(&domain->lock);
    return found;
}

/* Makes the pool's group available for another pool. */
static void retire(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    strata_group_set_paused(pool->group, false);
    strata_domain_orphan_group(domain, pool->group);
    /* The counts of an ended pool stay in the metrics of the place. */
    strata_group_t *group = pool->group, *ordinary = &domain->ordinary;
    strata_lock(&domain->lock);
    strata_statistics_add(&ordinary->ended, &group->ended);
    group->ended = (strata_statistics_t){0};
    strata_unlock(&domain->lock);
    atomic_fetch_add(&ordinary->recoveries, atomic_exchange(&group->recoveries, 0));
    atomic_fetch_add(&ordinary->out_of_memory, atomic_exchange(&group->out_of_memory, 0));
    strata_stack_list_renumber(domain, pool->group, STRATA_GRAPH_POOL_ENDED);
    strata_lock(&domain->lock);
    strata_graph_count_t *count = pool->count;
    pool->count = NULL;
    strata_unlock(&domain->lock);
    strata_graph_count_drop(count);
    atomic_fetch_sub(&domain->graph_pools, 1);
    atomic_fetch_sub(&domain->captures->pools, 1);
}

static void sweep(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    strata_graph_pool_disown(pool);
    strata_graph_pool_poll(pool);
    (void)strata_domain_release_group(domain, pool->group);
    bool holds = false;
    STRATA_DOMAIN_EACH_OF(domain, pool->group, stack)
        if (!holds) holds = !strata_stack_is_empty(stack);
    if (!holds) retire(pool);
    strata_lock(&domain->lock);
    pool->ending = false;
    strata_unlock(&domain->lock);
}

/* Sweeps every place, because a pool in one place may own blocks of others. */
void strata_graphs_sweep(strata_domain_t *domain) {
    const strata_captures_t *captures = domain->captures;
    if (atomic_load(&captures->pools) == 0) return;
    const strata_error_t reason = *strata_last_error();
    for (uint32_t i = 0; i < captures->place_count; i++) {
        strata_domain_t *place = atomic_load(&captures->places[i]);
        if (!place || atomic_load(&place->graph_pools) == 0) continue;
        const strata_group_t *last = NULL;
        for (strata_graph_pool_t *pool; (pool = unpin_next(place, last)) != NULL; last = pool->group) sweep(pool);
    }
    (void)strata_fail_again(&reason);
}

void strata_graphs_end(strata_domain_t *domain) {
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL) {
        if (!group->graph) continue;
        if (group->graph->open) unlist_open(group->graph);
        strata_graph_pool_disown(group->graph);
        strata_graph_count_drop(group->graph->count);
        strata_host_delete(group->graph->outside);
        strata_host_delete(group->graph);
        group->graph = NULL;
    }
}

void strata_graph_pool_read(strata_graph_pool_t *pool, strata_graph_pool_state_t *state) {
    strata_domain_t *domain = pool->group->domain;
    strata_lock(&domain->lock);
    *state = (strata_graph_pool_state_t){.holds = pool->holds,
                                         .graphs = strata_graph_count_of(pool->count),
                                         .open = pool->open,
                                         .outside_blocks = pool->outside_count};
    strata_unlock(&domain->lock);
}

/* Named pools: their numbers, and the pool that serves the requests of a thread. */
#include "allocation/options/option.h"
#include "allocation/report/log.h"
#include "facade/registry/lookup.h"
#include "facade/registry/plans.h"
#include "platform/arguments.h"
#include "platform/text/nearest.h"

enum { POOL_SCOPES_MAX = 16 };

/* The pools that the calling thread has begun, the innermost last. Only the slow path reads them. A
 * thread's lookup cache is emptied when a pool begins and ends, and then holds the stacks of the current pool. */
typedef struct pool_scope {
    strata_t facade; /* may be closed by now; then it matches no facade */
    strata_place_t place;
    uint32_t pool; /* number of its name; 0 for the ordinary stacks */
} pool_scope_t;

static _Thread_local pool_scope_t pool_scopes[POOL_SCOPES_MAX];
static _Thread_local uint32_t pool_scope_count;

/* Returns the innermost begun pool of a place, or NULL. */
static pool_scope_t *innermost(strata_t facade, strata_place_t place) {
    for (uint32_t i = pool_scope_count; i-- > 0;)
        if (pool_scopes[i].facade == facade && pool_scopes[i].place == place) return &pool_scopes[i];
    return NULL;
}

static void remove_scope(pool_scope_t *one) {
    for (pool_scope_t *last = &pool_scopes[--pool_scope_count]; one < last; one++) *one = one[1];
}

static void remove_closed(void) {
    for (uint32_t i = pool_scope_count; i-- > 0;)
        if (!strata_facade_is_open(pool_scopes[i].facade)) remove_scope(&pool_scopes[i]);
}

static uint64_t current(const strata_facade_t *facade, strata_place_t place) {
    const pool_scope_t *one = innermost(facade->handle, place);
    return one && one->pool ? strata_plans_pool(facade, one->pool) : 0;
}

strata_status_t strata_facade_pool(strata_facade_t *facade, strata_place_t place, uint64_t named_pool, uint64_t *pool) {
    *pool = named_pool == STRATA_POOL_ORDINARY ? 0 : named_pool ? named_pool : current(facade, place);
    if (*pool == 0 || strata_plans_is_graph_pool(facade, *pool) || strata_plans_of_pool(facade, *pool)) return STRATA_OK;
    return strata_fail(STRATA_E_INVALID, 0, "%#llx is not a pool of this facade; get the number from strata_pool()",
                       (unsigned long long)*pool);
}

static const char *pool_word(size_t index, const void *context) {
    return ((const strata_model_names_t *)context)->list[index].name;
}

static strata_status_t fail_unknown(const strata_strategy_t *strategy, const char *name) {
    const strata_model_names_t *pools = &strategy->named[STRATA_NAMED_POOL];
    if (pools->count == 0)
        return strata_fail(STRATA_E_INVALID, 0, "strategy %s has no pools; write pools: {%.40s: {stack: [...]}}", strategy->name,
                           *name ? name : "weights");
    char pool[256];
    strata_nearest_or_all(name, pools->count, pool_word, pools, pool, sizeof pool);
    return strata_fail(STRATA_E_INVALID, 0, "strategy %s has no pool \"%.40s\"; write %s", strategy->name, name, pool);
}

strata_status_t strata_pool(strata_t handle, const char *name, uint64_t *pool) {
    STRATA_REFUSE_NULL(name);
    STRATA_REFUSE_NULL(pool);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    const strata_model_named_t *found = strata_strategy_named(facade->strategy, STRATA_NAMED_POOL, name);
    if (!found) return fail_unknown(facade->strategy, name);
    uint32_t number;
    strata_status_t status = strata_names_number(&facade->names, found->name, &number);
    if (status != STRATA_OK) return status;
    if (!strata_names_find(&facade->names, number))
        return strata_fail(STRATA_E_LIMIT, 0, "the facade has %d names, the maximum", STRATA_NAMES);
    *pool = strata_plans_pool(facade, number);
    return STRATA_OK;
}

strata_status_t strata_pool_begin(strata_t handle, strata_place_t place, uint64_t pool) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    uint64_t meant;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status == STRATA_OK && pool == 0)
        status = strata_fail(STRATA_E_INVALID, 0, "0 is not a pool; get the number from strata_pool()");
    if (status == STRATA_OK) status = strata_facade_pool(facade, place, pool, &meant);
    if (status == STRATA_OK && strata_plans_is_graph_pool(facade, meant))
        status = strata_fail(STRATA_E_INVALID, 0, "%#llx is a graph pool; use strata_graph_pool_begin()", (unsigned long long)pool);
    if (status != STRATA_OK) return status;
    remove_closed();
    if (pool_scope_count == POOL_SCOPES_MAX)
        return strata_fail(STRATA_E_LIMIT, 0, "the thread has begun %d pools without an end, the maximum", POOL_SCOPES_MAX);
    uint32_t number = (uint32_t)(meant & ((1u << STRATA_POOL_NAME_BITS) - 1));
    pool_scopes[pool_scope_count++] = (pool_scope_t){.facade = handle, .place = place, .pool = number};
    strata_lookup_forget_own(handle);
    return STRATA_OK;
}

strata_status_t strata_pool_end(strata_t handle, strata_place_t place) {
    if (!strata_facade_of(handle)) return strata_last_error()->status;
    pool_scope_t *one = innermost(handle, place);
    if (!one) return strata_fail(STRATA_E_INVALID, 0, "this thread has no open pool in this place; each end needs a begin");
    remove_scope(one);
    strata_lookup_forget_own(handle);
    return STRATA_OK;
}

strata_status_t strata_pool_current(strata_t handle, strata_place_t place, uint64_t *pool) {
    STRATA_REFUSE_NULL(pool);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    uint64_t now = current(facade, place);
    strata_domain_t *domain;
    strata_status_t status = now ? STRATA_OK : strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    *pool = now ? now : STRATA_POOL_ORDINARY;
    return STRATA_OK;
}

strata_status_t strata_pool_of(strata_t handle, strata_ref_t ref, uint64_t *pool) {
    STRATA_REFUSE_NULL(pool);
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    uint64_t of = call.stack->group->pool;
    (void)strata_call_unlock(&call);
    *pool = of ? of : STRATA_POOL_ORDINARY;
    return STRATA_OK;
}

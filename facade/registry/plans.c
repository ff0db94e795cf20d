#include "facade/registry/plans.h"

#include "allocation/domain/layer.h"
#include "allocation/graphs/graphs.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

/* Plans come in sets of STRATA_PLACE_KINDS: for all devices, each device of `own`, each pool, each
 * pattern of streams, graphs, and devices without virtual memory. A stack that is not written has no plan
 * (count 0). */
static size_t own_at(size_t own) { return (1 + own) * STRATA_PLACE_KINDS; }

static size_t named_at(const strata_strategy_t *strategy, strata_named_kind_t kind, size_t index) {
    size_t before = 0;
    for (strata_named_kind_t other = STRATA_NAMED_POOL; other < kind; other++) before += strategy->named[other].count;
    return own_at(strategy->own_count + before + index);
}

static strata_status_t make(strata_facade_t *facade, size_t at, const strata_model_stack_t *stacks) {
    strata_status_t status = STRATA_OK;
    for (strata_place_kind_t kind = STRATA_PLACE_GPU; kind < STRATA_PLACE_KINDS && status == STRATA_OK; kind++)
        if (stacks[kind].count > 0) status = strata_stack_plan(&stacks[kind], kind, &facade->plans[at + kind]);
    return status;
}

strata_status_t strata_plans_make(strata_facade_t *facade) {
    const strata_strategy_t *strategy = facade->strategy;
    size_t end = named_at(strategy, STRATA_NAMED_KINDS, 0);
    facade->plans = strata_host_new(end, sizeof(strata_plan_t));
    if (!facade->plans) return STRATA_E_HOST_MEMORY;
    strata_status_t status = make(facade, 0, strategy->stacks);
    for (size_t i = 0; i < strategy->own_count && status == STRATA_OK; i++)
        status = make(facade, own_at(i), strategy->own[i].stacks);
    for (strata_named_kind_t kind = STRATA_NAMED_POOL; kind < STRATA_NAMED_KINDS; kind++)
        for (size_t i = 0; i < strategy->named[kind].count && status == STRATA_OK; i++)
            status = make(facade, named_at(strategy, kind, i), strategy->named[kind].list[i].stacks);
    return status;
}

uint64_t strata_plans_idle_after(const strata_facade_t *facade) {
    uint64_t after = STRATA_NEVER;
    size_t end = named_at(facade->strategy, STRATA_NAMED_KINDS, 0);
    for (size_t i = 0; i < end; i++)
        if (facade->plans[i].idle) after = strata_min(after, facade->plans[i].idle->after);
    return after;
}

/* Returns the plan of the strategy's `without_virtual_memory` if the device has none, or NULL. */
static const strata_plan_t *without_virtual_memory(const strata_facade_t *facade, strata_place_t place) {
    const strata_strategy_t *strategy = facade->strategy;
    const strata_device_t *device = facade->devices[strata_place_device(place)];
    bool plain = device && !device->capabilities.virtual_memory && strategy->named[STRATA_NAMED_PLAIN].count > 0;
    const strata_plan_t *plan = plain ? &facade->plans[named_at(strategy, STRATA_NAMED_PLAIN, 0) + strata_place_kind(place)] : NULL;
    return plan && plan->count > 0 ? plan : NULL;
}

static bool needs_virtual_memory(const strata_plan_t *plan) {
    bool needs = false;
    for (uint32_t n = 1; n <= plan->count; n++) needs = needs || plan->nodes[n].type->gives & STRATA_TRAIT_HANDLE_SOURCE;
    return needs;
}

const strata_plan_t *strata_plans_of(const strata_facade_t *facade, strata_place_t place) {
    const strata_strategy_t *strategy = facade->strategy;
    strata_place_kind_t kind = strata_place_kind(place);
    for (size_t i = 0; i < strategy->own_count; i++) {
        const strata_plan_t *own = &facade->plans[own_at(i) + kind];
        if (strategy->own[i].number == strata_place_device(place) && own->count > 0) return own;
    }
    const strata_plan_t *without = without_virtual_memory(facade, place);
    return without ? without : &facade->plans[kind];
}

const strata_plan_t *strata_plans_of_graphs(const strata_facade_t *facade, strata_place_t place) {
    const strata_strategy_t *strategy = facade->strategy;
    if (strategy->named[STRATA_NAMED_GRAPH].count == 0) return strata_plans_of(facade, place);
    const strata_plan_t *plan = &facade->plans[named_at(strategy, STRATA_NAMED_GRAPH, 0) + strata_place_kind(place)];
    const strata_plan_t *without = without_virtual_memory(facade, place);
    if (without && needs_virtual_memory(plan)) return without;
    return plan->count > 0 ? plan : strata_plans_of(facade, place);
}

const strata_model_named_t *strata_plans_of_pool(strata_facade_t *facade, uint64_t pool) {
    uint64_t number = pool & ((1ull << STRATA_POOL_NAME_BITS) - 1);
    if (pool >> STRATA_POOL_NAME_BITS != facade->handle) return NULL;
    const char *name = strata_names_find(&facade->names, number);
    return name ? strata_strategy_named(facade->strategy, STRATA_NAMED_POOL, name) : NULL;
}

strata_status_t strata_plans_group(strata_facade_t *facade, strata_domain_t *domain, uint64_t pool, const char *stream,
                                   strata_group_t **group) {
    const strata_strategy_t *strategy = facade->strategy;
    if (strata_plans_is_graph_pool(facade, pool)) {
        const strata_graph_pool_t *graph = strata_graph_pool_find(domain, pool);
        *group = graph ? graph->group : NULL;
        return graph ? STRATA_OK : strata_fail(STRATA_E_STALE, 0, "pool %#llx of graphs has ended", (unsigned long long)pool);
    }
    strata_named_kind_t kind = pool ? STRATA_NAMED_POOL : STRATA_NAMED_STREAM;
    const strata_model_named_t *named = NULL;
    if (pool) named = strata_plans_of_pool(facade, pool);
    else if (stream) named = strata_strategy_pattern(strategy, stream);
    *group = &domain->ordinary;
    if (!named) return STRATA_OK;
    size_t index = (size_t)(named - strategy->named[kind].list);
    const strata_plan_t *plan = &facade->plans[named_at(strategy, kind, index) + strata_place_kind(domain->place)];
    /* Streams without their own layers in this place use the ordinary group. A pool has its own instances
     * of the place's layers. */
    if (plan->count == 0 && !pool) return STRATA_OK;
    if (plan->count == 0) plan = strata_plans_of(facade, domain->place);
    *group = strata_domain_group(domain, pool, named->name);
    return *group ? STRATA_OK : strata_domain_add_group(domain, pool, named->name, plan, pool && named->keep, group);
}

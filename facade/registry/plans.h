/* The plans of a facade, and the groups of stacks that are built from them. */
#ifndef STRATA_FACADE_PLANS_H
#define STRATA_FACADE_PLANS_H

#include "facade/registry/facade.h"

/* Plans every stack of the strategy: by place, for devices with their own stacks, for pools, patterns, and graphs. */
strata_status_t strata_plans_make(strata_facade_t *facade);
/* Returns the shortest `after` of all plans with `idle:`, in ns, or STRATA_NEVER if there is none. */
uint64_t strata_plans_idle_after(const strata_facade_t *facade);
/* Returns the plan of the ordinary stacks of a place. */
const strata_plan_t *strata_plans_of(const strata_facade_t *facade, strata_place_t place);
/* Returns the plan of the private pools of captured graphs in a place: `graph:` of the strategy, or else
 * the place's own plan. Use strata_plan_serves_graphs() to check it; a written `graph:` was checked when
 * it was loaded. */
const strata_plan_t *strata_plans_of_graphs(const strata_facade_t *facade, strata_place_t place);
/* Returns the group of a pool (0 means none) for a stream of that name (may be NULL). Creates it at its
 * first use. Call it while building. */
strata_status_t strata_plans_group(strata_facade_t *facade, strata_domain_t *domain, uint64_t pool, const char *stream,
                                   strata_group_t **group);

/* A pool's number consists of the facade's handle and the number of its name. It is valid under any
 * strategy that names the pool. */
enum { STRATA_POOL_NAME_BITS = 24 };
static inline uint64_t strata_plans_pool(const strata_facade_t *facade, uint32_t name) {
    return facade->handle << STRATA_POOL_NAME_BITS | name;
}
/* Numbers of pools of captured graphs have this bit; those of named pools do not. */
enum { STRATA_POOL_GRAPH_BIT = 1 << (STRATA_POOL_NAME_BITS - 1) };
static inline bool strata_plans_is_graph_pool(const strata_facade_t *facade, uint64_t pool) {
    return pool >> STRATA_POOL_NAME_BITS == facade->handle && (pool & STRATA_POOL_GRAPH_BIT) != 0;
}
/* Returns the strategy's entry for a pool number, or NULL if the facade has no such pool. */
const strata_model_named_t *strata_plans_of_pool(strata_facade_t *facade, uint64_t pool);

#endif

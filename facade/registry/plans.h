/* The plans of a facade, and the groups of stacks that are built from them. */
#ifndef STRATA_FACADE_PLANS_H
#define STRATA_FACADE_PLANS_H

#include "facade/registry/facade.h"

/* Of every stack that the strategy writes: by place, of each device with stacks of its own, of each pool, of each pattern, of graphs. */
strata_status_t strata_plans_make(strata_facade_t *facade);
/* The shortest `after` of all plans that say `idle:`, in ns; STRATA_NEVER: none does. */
uint64_t strata_plans_idle_after(const strata_facade_t *facade);
/* From which the ordinary stacks of a place are built. */
const strata_plan_t *strata_plans_of(const strata_facade_t *facade, strata_place_t place);
/* From which the private pools of captured graphs in a place are built: `graph:` of the strategy, else the place's own plan. Whether
 * it can serve them says strata_plan_serves_graphs(); a written `graph:` was asked when it was loaded. */
const strata_plan_t *strata_plans_of_graphs(const strata_facade_t *facade, strata_place_t place);
/* The group of a pool (0: none) for a stream of that name (NULL: it has none). Made at its first use, while building. */
strata_status_t strata_plans_group(strata_facade_t *facade, strata_domain_t *domain, uint64_t pool, const char *stream,
                                   strata_group_t **group);

/* The number of a pool: {the facade's handle, the number of its name}; valid under any strategy that names the pool. */
enum { STRATA_POOL_NAME_BITS = 24 };
static inline uint64_t strata_plans_pool(const strata_facade_t *facade, uint32_t name) {
    return facade->handle << STRATA_POOL_NAME_BITS | name;
}
/* Numbers of pools of captured graphs have this bit, those of named pools do not. */
enum { STRATA_POOL_GRAPH_BIT = 1 << (STRATA_POOL_NAME_BITS - 1) };
static inline bool strata_plans_is_graph_pool(const strata_facade_t *facade, uint64_t pool) {
    return pool >> STRATA_POOL_NAME_BITS == facade->handle && (pool & STRATA_POOL_GRAPH_BIT) != 0;
}
/* What the strategy says about the pool of a number; NULL: the facade has no such pool. */
const strata_model_named_t *strata_plans_of_pool(strata_facade_t *facade, uint64_t pool);

#endif

/* The plans of a facade, and the families of stacks that are made by them. */
#ifndef STRATA_FACADE_PLANS_H
#define STRATA_FACADE_PLANS_H

#include "facade/facade.h"

/* Of every stack that the strategy writes: by place, of each device with stacks of its own, of each pool, of each pattern. */
strata_status_t strata_plans_make(strata_facade_t *facade);
/* By which the ordinary stacks of a place are built. */
const strata_plan_t *strata_plans_of(const strata_facade_t *facade, strata_place_t place);
/* The family of a pool (0: of none) for a stream whose pattern is `pattern` (NULL: it has none); made at its first use, while
 * building. */
strata_status_t strata_plans_family(strata_facade_t *facade, strata_domain_t *domain, uint64_t pool,
                                    const strata_model_named_t *pattern, strata_family_t **family);

/* A pool's number, and back: 0 .. count - 1; -1: it is none of this facade's. */
uint64_t strata_plans_pool(const strata_facade_t *facade, size_t index);
int strata_plans_pool_index(const strata_facade_t *facade, uint64_t pool);

#endif

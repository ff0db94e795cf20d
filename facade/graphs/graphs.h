/* Routes the facade's requests to the pools of captured graphs. */
#ifndef STRATA_FACADE_GRAPHS_H
#define STRATA_FACADE_GRAPHS_H

#include "facade/registry/facade.h"

/* Sets *pool to the pool that serves a request while pools of graphs are begun in a place. `named_pool` is the
 * pool that the request names. Returns E_CAPTURE if that pool must not serve the request. */
strata_status_t strata_facade_route(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, uint64_t named_pool,
                                    uint64_t *pool);
/* Runs a step on an existing pool. No pool of the facade is created, begun or ended during the step.
 * Returns E_INVALID or E_STALE if there is no pool of that number. */
typedef strata_status_t (*strata_graph_step_fn)(strata_graph_pool_t *pool, void *context);
strata_status_t strata_facade_with_graph_pool(strata_t facade, strata_place_t place, uint64_t pool, strata_graph_step_fn step,
                                              void *context);
/* Returns E_BUSY if there are graphs that use memory of the facade at their next launch. */
strata_status_t strata_facade_refuse_graphs(strata_facade_t *facade);

#endif

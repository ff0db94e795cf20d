/* What captured graphs mean for the facade's requests. */
#ifndef STRATA_FACADE_GRAPHS_H
#define STRATA_FACADE_GRAPHS_H

#include "facade/registry/facade.h"

/* While pools of graphs are begun in a place: *pool becomes the one that a request goes to, if it goes to one; `said` is the pool
 * that the request names. E_CAPTURE: it may not be served where it would go. */
strata_status_t strata_facade_route(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, uint64_t said,
                                    uint64_t *pool);
/* A step with a pool that there is; no pool of the facade is made, begun or ended meanwhile. E_INVALID, E_STALE: there is none of
 * that number. */
typedef strata_status_t (*strata_graph_step_fn)(strata_graph_pool_t *pool, void *context);
strata_status_t strata_facade_with_graph_pool(strata_t facade, strata_place_t place, uint64_t pool, strata_graph_step_fn step,
                                              void *context);
/* E_BUSY: graphs exist that use memory of the facade at their next launch. */
strata_status_t strata_facade_refuse_graphs(strata_facade_t *facade);

#endif

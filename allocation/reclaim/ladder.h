/* Out of memory (docs/contracts.md §3): the recovery that a `retry` runs, or the core if none did. */
#ifndef STRATA_ALLOCATION_LADDER_H
#define STRATA_ALLOCATION_LADDER_H

#include "allocation/report/outcome.h"

/* A `retry` asks `first`, the layer below it, again: `first` has refused the request for memory. Runs the steps that the options allow,
 * with a try after each that gave something, until a try succeeds or fails otherwise, or nothing is left: then E_NO_MEMORY. Does nothing
 * if the request forbids it. No lock is held. */
strata_status_t strata_reclaim_for(strata_layer_t *first, const strata_reclaim_t *says, const strata_request_t *request,
                                   strata_record_t **record);
/* The same for the top of a stack, once and without waiting, as `retry: {timeout: 0}` above it. Does nothing if a `retry` has decided on
 * the request, or if a cache's own steps have left nothing to find. The request has an outcome. */
strata_status_t strata_reclaim_once(strata_layer_t *top, const strata_request_t *request, strata_record_t **record);

/* One try: search, then growth. E_NO_MEMORY: go on climbing. */
typedef strata_status_t (*strata_try_fn)(void *context, uint32_t extra_flags);

typedef struct strata_ladder {
    strata_stack_t *stack; /* that the request reached */
    size_t size;
    const strata_reclaim_t *says;
    strata_try_fn try_again;
    void *context;
    strata_climbed_t *given; /* set at the end; may be NULL */
} strata_ladder_t;

/* The steps themselves, with tries of the caller's. */
strata_status_t strata_ladder_climb(const strata_ladder_t *ladder);

#endif

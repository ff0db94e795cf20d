/* Patience: a cache without a fitting free block waits for freed memory that is pending on the GPU, instead
 * of growing (docs/virtual-memory.md). It waits only if growth would exceed what the program needed so far, and
 * if the wait costs the GPU nothing. For that its own stack must have `depth` blocks of that size pending,
 * so that the stream has work during the wait. With fewer blocks pending it waits only within a small
 * budget of time. */
#ifndef STRATA_ALLOCATION_PATIENCE_H
#define STRATA_ALLOCATION_PATIENCE_H

#include "allocation/domain/domain.h"
#include "allocation/reclaim/waiting.h"

/* The state of one request in one cache; initialized to zero. */
typedef struct strata_patience {
    strata_waiting_t waiting; /* its domain is NULL before the first wait */
    uint64_t waited_at; /* when the last wait gave memory, or 0 */
    uint64_t left_bytes; /* bytes still pending after that */
    bool timed_out; /* the last wait reached its timeout */
} strata_patience_t;

/* The growth that a cache plans for a request. `idle` of these bytes it already has, in pieces that it can
 * combine. */
typedef struct strata_growth_asked {
    uint64_t bytes, idle;
} strata_growth_asked_t;

/* Called before a cache of stream scope grows. If its stack is patient, waits within the timeout while
 * pending frees could serve the request. Returns true if memory was freed and the cache must search again,
 * false if it must grow. The lock of the cache's stack is held; it may be released in between, and is held
 * on return. */
bool strata_patience_waited(strata_patience_t *patience, const strata_layer_t *cache, const strata_request_t *request,
                            const strata_growth_asked_t *growth);

#endif

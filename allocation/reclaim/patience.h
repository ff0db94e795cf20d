/* Patience: a cache without a fitting free block waits for memory that is freed already and only waits for the GPU, instead of
 * growing (docs/patience.md). It waits only if that costs the GPU nothing: its own stack has `depth` blocks of that size on the
 * way, so the stream has work ahead of it meanwhile, and growth would exceed what the program needed so far. */
#ifndef STRATA_ALLOCATION_PATIENCE_H
#define STRATA_ALLOCATION_PATIENCE_H

#include "allocation/domain/domain.h"
#include "allocation/reclaim/waiting.h"

/* For one request, while it is in one cache; begins as zero. */
typedef struct strata_patience {
    strata_waiting_t waiting; /* its domain is NULL until it has begun */
    uint64_t waited_at; /* when the last wait gave something; 0: it has not */
    uint64_t left_bytes; /* on the way after that */
} strata_patience_t;

/* What a cache is about to grow by for a request; `idle` of these bytes it has already, in pieces that it can put together. */
typedef struct strata_growth_asked {
    uint64_t bytes, idle;
} strata_growth_asked_t;

/* A cache of stream scope is about to grow. If its stack is patient, this waits while frees are pending that could serve, within
 * the timeout. True: something was freed, look again; false: grow. The lock of the cache's stack is held; it may be opened, and is
 * held again. */
bool strata_patience_waited(strata_patience_t *patience, const strata_layer_t *cache, const strata_request_t *request,
                            const strata_growth_asked_t *growth);

#endif

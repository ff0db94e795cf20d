/* Finds the live blocks that are cheapest to free for a run of free memory. */
#ifndef STRATA_FACADE_VICTIMS_H
#define STRATA_FACADE_VICTIMS_H

#include "allocation/call/blocks.h"

/* Returns true if a block's memory may be part of a run. The stack's lock is held. */
typedef bool (*strata_may_serve_fn)(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block,
                                    const void *context);

typedef struct strata_victims {
    uint64_t size; /* of the run */
    strata_ref_t *refs;
    size_t capacity;
    strata_may_serve_fn may_serve;
    const void *context;
    size_t count; /* result: the number of live blocks, of which the first `capacity` are stored in `refs`, and their bytes */
    uint64_t bytes;
} strata_victims_t;

/* Visits every block of the place, with one stack's lock at a time. Returns false if no chunk can free that much. */
bool strata_victims_find(strata_domain_t *domain, strata_victims_t *victims);

#endif

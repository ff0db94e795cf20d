/* The live blocks that cost least to free for a run of free memory. */
#ifndef STRATA_FACADE_VICTIMS_H
#define STRATA_FACADE_VICTIMS_H

#include "allocation/call/blocks.h"

/* Whether a block's memory may be part of a run. The stack's lock is held. */
typedef bool (*strata_may_serve_fn)(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block,
                                    const void *context);

typedef struct strata_victims {
    uint64_t size; /* of the run */
    strata_ref_t *refs;
    size_t capacity;
    strata_may_serve_fn may_serve;
    const void *context;
    size_t count; /* found: the number of live blocks, of which the first `capacity` are named, and their bytes */
    uint64_t bytes;
} strata_victims_t;

/* Looks at every block of the place, one stack's lock at a time. False: no chunk has so much that could be freed. */
bool strata_victims_find(strata_domain_t *domain, strata_victims_t *victims);

#endif

/* The cache that strata/layer.h offers to authors (strata_chunked_*). It splits chunks into blocks, coalesces
 * free neighbors, and uses the author's index of free blocks. */
#ifndef STRATA_ALLOCATION_CACHE_CHUNKED_H
#define STRATA_ALLOCATION_CACHE_CHUNKED_H

#include "allocation/cache/chunks.h"

typedef struct chunked {
    union {
        strata_layer_t base;
        strata_chunks_t chunks;
    };
    const strata_chunked_policy_t *policy;
    uint64_t used_bytes; /* bytes of all blocks that are not in the index */
} chunked_t;

_Static_assert(sizeof(chunked_t) <= sizeof(strata_chunked_t), "an author's state has room for it");

#endif

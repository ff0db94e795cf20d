/* One suite over all caches that cut chunks into blocks (allocation/cache). */
#ifndef STRATA_TESTS_CHUNKED_CHUNKED_H
#define STRATA_TESTS_CHUNKED_CHUNKED_H

#include "allocation/cache/chunks.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/planted.h"

#define KIB ((size_t)1024)

/* A cache over `system`, one stack for all streams: a request of 256 KiB is cut out of a chunk. */
typedef struct cache {
    const char *name; /* of the layer, and of the test */
    const char *options; /* what stands in the braces after it */
    bool aligns; /* serves any alignment */
} cache_t;

static const cache_t caches[] = {
    {"auto_growth", "chunk_size: 1MiB", false},
    {"bfc", "allow_growth: true", true},
    {"caching", "", false},
    {"naive_best_fit", "streams: ignored, initial: 8MiB, reallocate: 4MiB", false},
    {"segregated_fit", "chunk_size: 1MiB", false}, /* examples/segregated_fit.c: a cache from outside */
};

void cache_open(const cache_t *cache, rig_t *rig);
/* The cache in the stack that serves the default stream: its state begins with its chunks. */
strata_chunks_t *cache_of(const cache_t *cache, rig_t *rig);

static inline strata_record_t *cache_block(const strata_chunks_t *chunks, strata_ref_t ref) {
    return strata_slab_record(&chunks->base.stack->slab, strata_ref_slot(ref));
}

#endif

/* What auto_growth.c and its check share: the chunks and the state of an instance. */
#ifndef STRATA_ALLOCATION_LAYER_AUTO_GROWTH_H
#define STRATA_ALLOCATION_LAYER_AUTO_GROWTH_H

#include "allocation/layer.h"
#include "allocation/mechanism/bins.h"
#include "allocation/mechanism/tree.h"

enum { STRATA_AUTO_GROWTH_CHUNKS = 1 << 20 }; /* of one instance */

typedef struct chunk {
    strata_record_t *below; /* the record of the layer below */
    uint64_t base, size;
    uint32_t first;         /* slot of the block at the base */
    uint32_t next, prev;    /* chunks of the layer, in order of making */
    uint32_t unused;
} chunk_t;

typedef struct auto_growth {
    strata_layer_t base;
    uint64_t unit;       /* alignment */
    uint64_t used_bytes; /* of the chunks, what is not in the index */
    bool by_address;
    bool gives_idle_back; /* free_idle_chunk */
    bool growing;         /* a thread is asking below with the lock open; others that miss wait for it */
    uint32_t waiting;
    strata_bins_t bins;
    strata_condition_t grown;
    strata_tree_t tree;
    strata_nodes_t chunks;
    uint32_t first_chunk, last_chunk;
    uint32_t chunk_count;
    uint64_t chunk_bytes; /* of this cache; the stack's figures are of all its caches */
} auto_growth_t;

static inline strata_slab_t *slab_of(auto_growth_t *self) {
    return &self->base.stack->slab;
}

static inline chunk_t *chunk_at(auto_growth_t *self, uint32_t number) {
    return strata_node(&self->chunks, number);
}

/* Bytes of the chunks that are in no block in use. */
static inline uint64_t strata_auto_growth_idle(const auto_growth_t *self) { return self->chunk_bytes - self->used_bytes; }
/* Every chunk is filled by its blocks, the sums and the index are right. E_CORRUPT. Under the lock. */
strata_status_t strata_auto_growth_validate(strata_layer_t *base);

#endif

/* The block that was freed last. Programs give a block back and ask for as much again. So it stays apart: in no index, and not merged with
 * its neighbours, until the next request or free of its cache. Is that a request of its size, it is served as it is. Whatever needs to
 * know all that is free joins it first. While it is apart its bytes count as used. Under the lock of the cache's stack. */
#ifndef STRATA_ALLOCATION_CACHE_APART_H
#define STRATA_ALLOCATION_CACHE_APART_H

#include "allocation/cache/chunks.h"

/* `stack`: that of the cache, wherever it is named here: who calls has it already.
 * The block; the record of no block: there is none. */
static inline strata_record_t *strata_chunks_apart(const strata_chunks_t *self, const strata_stack_t *stack) {
    return strata_slab_record(&stack->slab, self->apart);
}

/* It is served to a request of `slack` bytes less than it has. Its route is still to be set. */
static inline void strata_chunks_serve_apart(strata_chunks_t *self, strata_stack_t *stack, strata_record_t *block, uint64_t slack) {
    self->apart = 0;
    stack->figures.cache_hits++;
    block->attention = 0;
    block->slack = (uint32_t)slack;
    block->borrows = 0;
    block->state = STRATA_RECORD_LIVE;
}

/* Blocks may stand apart, or none; none does yet. */
static inline void strata_chunks_keep_apart(strata_chunks_t *self, bool keep) {
    self->apart_until = keep ? STRATA_GENERATION_LAST : 0;
}

/* The block of a slot does from now on. */
static inline void strata_chunks_set_apart(strata_chunks_t *self, strata_record_t *block, uint32_t slot) {
    block->slack = 0;
    block->state = STRATA_RECORD_FREE;
    self->apart = slot;
}

#endif

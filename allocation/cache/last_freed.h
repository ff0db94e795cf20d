/* The last-freed block. Programs often free a block and then request one of that size. So the last-freed block
 * is in no index and is not coalesced until the next request or free of its cache. A request of its size takes
 * it as it is. A function that needs all free blocks flushes it first. Until then its bytes count as used.
 * Guarded by the lock of the cache's stack. */
#ifndef STRATA_ALLOCATION_CACHE_LAST_FREED_H
#define STRATA_ALLOCATION_CACHE_LAST_FREED_H

#include "allocation/cache/chunks.h"

/* Returns the last-freed block, or the sentinel if there is none. Each `stack` in this file is the stack of the
 * cache, which the caller has loaded already. */
static inline strata_record_t *strata_chunks_last_freed(const strata_chunks_t *self, const strata_stack_t *stack) {
    return strata_slab_record(&stack->slab, self->last_freed);
}

/* Serves the last-freed block to a request of `slack` bytes less than its size. The caller sets its route. */
static inline void strata_chunks_serve_last_freed(strata_chunks_t *self, strata_stack_t *stack, strata_record_t *block,
                                                  uint64_t slack) {
    self->last_freed = 0;
    stack->figures.cache_hits++;
    block->attention = 0;
    block->slack = (uint32_t)slack;
    block->borrows = 0;
    block->state = STRATA_RECORD_LIVE;
}

/* Turns the last-freed block on or off. There must be none now. */
static inline void strata_chunks_enable_last_freed(strata_chunks_t *self, bool keep) {
    self->last_freed_until = keep ? STRATA_GENERATION_LAST : 0;
}

/* Makes the block of a slot the last-freed block. */
static inline void strata_chunks_set_last_freed(strata_chunks_t *self, strata_record_t *block, uint32_t slot) {
    block->slack = 0;
    block->state = STRATA_RECORD_FREE;
    self->last_freed = slot;
}

#endif

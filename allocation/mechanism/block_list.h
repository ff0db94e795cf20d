/* The blocks of a chunk, as a list in address order through `prev` and `next` of their records, 0 at the ends.
 * The blocks fill the chunk. No two free blocks are adjacent, unless the layer keeps some from coalescing.
 *
 * A block that is split keeps its slot and the low end. A block that absorbs its neighbor keeps the lower slot.
 * So the first slot of a chunk changes only by a move. The caller keeps the indexes. Guarded by the stack's
 * lock. */
#ifndef STRATA_ALLOCATION_MECHANISM_BLOCK_LIST_H
#define STRATA_ALLOCATION_MECHANISM_BLOCK_LIST_H

#include "allocation/tables/slab.h"

/* Makes the first block of a chunk, which covers all of it, in state FREE. Returns its slot, or 0 if the slab
 * is full. */
uint32_t strata_block_list_begin(strata_slab_t *slab, uint32_t chunk, uint64_t ptr, uint64_t size);
/* Splits a block after `size` bytes. The rest becomes a block in state FREE. Returns the slot of the rest, or 0
 * if the slab is full. */
static inline uint32_t strata_block_list_split(strata_slab_t *slab, uint32_t slot, uint64_t size) {
    uint32_t after = strata_slab_acquire(slab);
    if (__builtin_expect(after == 0, 0)) return 0;
    strata_record_t *block = strata_slab_record(slab, slot), *rest = strata_slab_record(slab, after);
    uint32_t next = block->next;
    /* The fields of a reused slot are undefined. These are all that a free block needs, besides the words of
     * the index. */
    rest->ptr = block->ptr + size;
    rest->size = block->size - size;
    rest->free_word = 0;
    rest->prev = slot;
    rest->next = next;
    rest->chunk = block->chunk;
    rest->state = STRATA_RECORD_FREE;
    rest->pool = 0;
    rest->mark_high = rest->mark_low = 0;
    strata_slab_record(slab, next)->prev = after; /* the sentinel's `prev` is never read */
    block->next = after;
    block->size = size;
    return after;
}
/* Makes `low` absorb the block after it, and returns that block's slot to the slab. */
static inline void strata_block_list_absorb(strata_slab_t *slab, uint32_t low) {
    strata_record_t *block = strata_slab_record(slab, low);
    uint32_t gone = block->next;
    const strata_record_t *high = strata_slab_record(slab, gone);
    block->size += high->size;
    block->next = high->next;
    strata_slab_record(slab, high->next)->prev = low;
    strata_slab_release(slab, gone);
}

/* Hooks of an owner of blocks for coalescing free neighbors. The caller passes a static const struct, so that
 * the compiler inlines all of it. `low` is the slot of the block with the lower addresses, which absorbs the
 * other one. */
typedef struct strata_coalesce {
    void (*remove)(void *owner, uint32_t slot); /* removes a free block from its index */
    /* Changes the size of a free block in its index. If it is NULL, `remove` is called instead, and the result
     * is in no index. */
    void (*resize)(void *owner, uint32_t slot, uint64_t size);
    bool (*may_merge)(void *owner, uint32_t low, uint32_t high); /* if it is NULL, free neighbors always join */
    void (*on_merge)(void *owner, uint32_t low, uint32_t high); /* merges what the owner keeps of both blocks; may be NULL */
} strata_coalesce_t;

/* Coalesces a block that is in no index with its free neighbors. Returns the slot of the result. The result is
 * in no index, unless there is a `resize` and the result has another slot. The sentinel in slot 0 is never
 * free, so missing neighbors need no check. */
static inline __attribute__((always_inline)) uint32_t strata_block_list_coalesce(strata_slab_t *slab, uint32_t slot, void *owner,
                                                                                 const strata_coalesce_t *with) {
    strata_record_t *block = strata_slab_record(slab, slot);
    uint32_t low = block->prev, high = block->next;
    strata_record_t *prev = strata_slab_record(slab, low);
    /* Both neighbors may be cache misses, so they are loaded together. */
    if (with->resize && strata_slab_is_idle(slab, low)) __builtin_prefetch(prev, 1);
    if (strata_slab_is_idle(slab, high) && (!with->may_merge || with->may_merge(owner, slot, high))) {
        with->remove(owner, high);
        if (with->on_merge) with->on_merge(owner, slot, high);
        strata_block_list_absorb(slab, slot);
    }
    if (!strata_slab_is_idle(slab, low) || (with->may_merge && !with->may_merge(owner, low, slot))) return slot;
    if (!with->resize) {
        with->remove(owner, low);
        if (with->on_merge) with->on_merge(owner, low, slot);
        strata_block_list_absorb(slab, low);
        return low;
    }
    if (with->on_merge) with->on_merge(owner, low, slot);
    high = block->next;
    with->resize(owner, low, prev->size + block->size);
    prev->next = high;
    strata_slab_record(slab, high)->prev = low;
    strata_slab_release(slab, slot);
    return low;
}

/* Moves a block to another slot, because the generations of its own are exhausted. Returns the new slot, or 0,
 * with nothing changed, if the slab is full. */
uint32_t strata_block_list_move(strata_slab_t *slab, uint32_t slot);

typedef struct strata_block_list_tally {
    uint64_t free_bytes;
    uint32_t free_blocks;
    bool may_be_adjacent; /* free blocks may be adjacent, because the layer keeps some from coalescing */
    uint32_t bounds[2]; /* slots of the zero-byte records before the first block and after the last one, or 0 */
} strata_block_list_tally_t;

/* Checks the links in both directions, addresses, sizes, states and chunk numbers. Adds the free blocks to
 * *tally. Fails with E_CORRUPT and a text that begins with `layer`. */
strata_status_t strata_block_list_validate(const char *layer, const strata_slab_t *slab, uint32_t first, uint32_t chunk,
                                           uint64_t ptr, uint64_t size, strata_block_list_tally_t *tally);

#endif

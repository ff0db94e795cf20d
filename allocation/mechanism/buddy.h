/* Best fit by the rules of PaddlePaddle's buddy allocator. A block holds a request and a header, rounded up
 * together. It takes the low end of the smallest free block, the lowest address among equals. The rest stays
 * free unless it is no larger than a header, in which case the block keeps it. A freed block coalesces with its
 * free neighbors, the one after it first.
 *
 * A free block carries a mark of its last user (marks.h), and coalescing merges the marks. Guarded by the
 * stack's lock. */
#ifndef STRATA_ALLOCATION_MECHANISM_BUDDY_H
#define STRATA_ALLOCATION_MECHANISM_BUDDY_H

#include "allocation/mechanism/block_list.h"
#include "allocation/mechanism/marks.h"
#include "allocation/mechanism/tree.h"

typedef struct strata_buddy {
    strata_tree_t idle;
    uint64_t unit; /* sizes are multiples of this power of two, except that of the rest at the end of a chunk */
    uint64_t header;
} strata_buddy_t;

void strata_buddy_init(strata_buddy_t *buddy, uint64_t unit, uint64_t header);
/* Computes the size of the block that serves a request. Returns false if it exceeds 64 bits. */
bool strata_buddy_round(const strata_buddy_t *buddy, uint64_t size, uint64_t *rounded);
/* Adds the free block of a new chunk, or removes a free block. After a removal the caller returns the slot to
 * the slab. */
static inline void strata_buddy_add(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot) {
    strata_tree_insert(&buddy->idle, slab, slot);
}
static inline void strata_buddy_remove(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot) {
    strata_tree_remove(&buddy->idle, slab, slot);
}
/* Returns the free block that serves a rounded size, or 0 if none fits. */
uint32_t strata_buddy_find(const strata_buddy_t *buddy, const strata_slab_t *slab, uint64_t rounded);
/* Takes `rounded` bytes of a free block, or all of it. The caller sets its state. Returns false, with nothing
 * changed, if the slab is full. */
bool strata_buddy_allocate(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t rounded);
/* Frees a block that carries its mark. Marks up to `waited` are void. Returns the slot of the free block that
 * contains it. If that block is the first of its chunk, the caller makes its slot the first of the chunk.
 *
 * Returns 0 if the slot's generations are exhausted and the slab is full. The block is then in state DEFERRED
 * and stays unused. */
uint32_t strata_buddy_free(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t waited);

/* Checks the tree against the free blocks that strata_block_list_validate() counted. Fails with E_CORRUPT and a
 * text that begins with `layer`. */
strata_status_t strata_buddy_validate(const char *layer, const strata_buddy_t *buddy, const strata_slab_t *slab,
                                      const strata_block_list_tally_t *tally);

#endif

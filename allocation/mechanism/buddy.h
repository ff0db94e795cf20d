/* Best fit as PaddlePaddle's buddy allocator has it. Each block holds a request and a header of so many bytes, rounded up together;
 * it takes the low end of the smallest free block, the lowest among equals, and what is left stays free unless it is no larger
 * than a header. A freed block takes its free neighbours, the one after it first.
 *
 * A free block carries the mark of who used it last (marks.h); where two merge theirs merge. Guarded by the stack's lock. */
#ifndef STRATA_ALLOCATION_MECHANISM_BUDDY_H
#define STRATA_ALLOCATION_MECHANISM_BUDDY_H

#include "allocation/mechanism/marks.h"
#include "allocation/mechanism/pieces.h"
#include "allocation/mechanism/tree.h"

typedef struct strata_buddy {
    strata_tree_t idle;
    uint64_t unit; /* sizes are multiples of this power of two, but for what is left at the end of a chunk */
    uint64_t header;
} strata_buddy_t;

void strata_buddy_init(strata_buddy_t *buddy, uint64_t unit, uint64_t header);
/* The size of the block that serves a request. False: it is too large to be told. */
bool strata_buddy_round(const strata_buddy_t *buddy, uint64_t size, uint64_t *rounded);
/* A free block comes: a chunk; and one goes, whose slot is the caller's to give back. */
static inline void strata_buddy_add(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot) {
    strata_tree_insert(&buddy->idle, slab, slot);
}
static inline void strata_buddy_remove(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot) {
    strata_tree_remove(&buddy->idle, slab, slot);
}
/* The free block that serves a rounded size; 0: none. */
uint32_t strata_buddy_find(const strata_buddy_t *buddy, const strata_slab_t *slab, uint64_t rounded);
/* Takes `rounded` bytes of a free block, or all of it; its state is the caller's to set. False: the slab is full, nothing
 * changed. */
bool strata_buddy_take(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t rounded);
/* A block comes back with its mark; marks up to `waited` are void. The slot of the free block that has it now: where that is the
 * first of its chunk, the chunk begins there. 0: its slot is used up and there is no other; it stays out of use, as DEFERRED. */
uint32_t strata_buddy_give(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t waited);

/* The tree against the free blocks that strata_pieces_validate() counted. E_CORRUPT, beginning with `layer`. */
strata_status_t strata_buddy_validate(const char *layer, const strata_buddy_t *buddy, const strata_slab_t *slab,
                                      const strata_pieces_tally_t *tally);

#endif

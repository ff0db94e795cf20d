/* Best fit in exact (size, address) order. The free blocks of a slab are in classes by size, 32 per octave, and
 * each class is a balanced search tree. The shape depends only on the blocks, so it is deterministic.
 *
 * With many blocks a single tree would be some twenty records deep, each a cache miss and an unpredictable
 * branch. A class has few. The tree uses bin_prev and bin_next of free records as links, and sets and clears
 * the slab's idle bit of each block. A zeroed struct is an empty tree. The tree touches no memory but records. */
#ifndef STRATA_ALLOCATION_MECHANISM_TREE_H
#define STRATA_ALLOCATION_MECHANISM_TREE_H

#include "allocation/tables/slab.h"

enum {
    STRATA_TREE_SUB_BITS = 5,
    STRATA_TREE_SHIFT = 8 + STRATA_TREE_SUB_BITS, /* below 2^13 bytes a class is 256 bytes wide */
    STRATA_TREE_CLASSES = 32 << STRATA_TREE_SUB_BITS, /* the last class also has all larger sizes */
    STRATA_TREE_WORDS = STRATA_TREE_CLASSES / 64
};

typedef struct strata_tree {
    uint32_t count;
    uint32_t only; /* slot of the only block, which then is in no class; 0 if the blocks are in their classes */
    uint64_t bytes; /* sum of the sizes */
    uint64_t filled; /* bit w is set if words[w] is not 0 */
    uint64_t words[STRATA_TREE_WORDS]; /* bit c of words[w] is set if roots[64 w + c] is not 0 */
    uint32_t roots[STRATA_TREE_CLASSES]; /* slots, or 0 if the class is empty */
} strata_tree_t;

static inline uint32_t strata_tree_class(uint64_t size) {
    uint32_t top = 63u ^ (uint32_t)__builtin_clzll(size | 1ull << STRATA_TREE_SHIFT);
    uint64_t class = ((uint64_t)(top - STRATA_TREE_SHIFT) << STRATA_TREE_SUB_BITS) + (size >> (top - STRATA_TREE_SUB_BITS));
    return class < STRATA_TREE_CLASSES ? (uint32_t) class : STRATA_TREE_CLASSES - 1;
}

void strata_tree_insert(strata_tree_t *tree, strata_slab_t *slab, uint32_t slot);
/* The block's ptr and size must be unchanged since it was inserted. */
void strata_tree_remove(strata_tree_t *tree, strata_slab_t *slab, uint32_t slot);

/* Inserts or removes a block, with a fast path for a tree of one block. Programs that free and request in turn
 * mostly have one. */
static inline void strata_tree_quick_insert(strata_tree_t *tree, strata_slab_t *slab, uint32_t slot) {
    if (tree->count != 0) {
        strata_tree_insert(tree, slab, slot);
        return;
    }
    const strata_record_t *record = &slab->records[slot];
    strata_slab_note_idle(slab, slot);
    tree->only = slot;
    tree->count = 1;
    tree->bytes = record->size;
}
static inline void strata_tree_quick_remove(strata_tree_t *tree, strata_slab_t *slab, uint32_t slot) {
    if (tree->only != slot) {
        strata_tree_remove(tree, slab, slot);
        return;
    }
    strata_slab_note_used(slab, slot);
    tree->only = 0;
    tree->count = 0;
    tree->bytes = 0;
}

/* Returns the smallest block of at least `size` bytes, the lowest address among equals, or 0 if none fits. */
uint32_t strata_tree_find(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size);
/* Works as strata_tree_find(), with a fast path for a tree of one block. */
static inline uint32_t strata_tree_quick_find(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size) {
    if (tree->only == 0) return strata_tree_find(tree, slab, size);
    return slab->records[tree->only].size >= size ? tree->only : 0;
}
/* Returns the block after or before (size, ptr) in the order of the tree, or 0 if there is none. No block needs
 * to have that key. */
uint32_t strata_tree_after(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size, uint64_t ptr);
uint32_t strata_tree_before(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size, uint64_t ptr);
/* Returns the largest size in the tree, or 0 if it is empty. */
uint64_t strata_tree_largest(const strata_tree_t *tree, const strata_slab_t *slab);
/* Checks order, priorities, links, states, count and sum. Fails with E_CORRUPT. */
strata_status_t strata_tree_validate(const strata_tree_t *tree, const strata_slab_t *slab);

#endif

/* Best fit in exact (size, address) order: the free blocks of a slab as a balanced search tree. Deterministic: its shape is a
 * function of the blocks in it. Uses bin_prev and bin_next of free records as links. Touches no memory but records. */
#ifndef STRATA_ALLOCATION_MECHANISM_TREE_H
#define STRATA_ALLOCATION_MECHANISM_TREE_H

#include "allocation/mechanism/slab.h"

typedef struct strata_tree {
    uint32_t root;  /* slot, 0: empty */
    uint32_t count;
    uint64_t bytes; /* sum of the sizes */
} strata_tree_t;

void strata_tree_insert(strata_tree_t *tree, strata_slab_t *slab, uint32_t slot);
/* The block's ptr and size must be what they were when it was inserted. */
void strata_tree_remove(strata_tree_t *tree, strata_slab_t *slab, uint32_t slot);
/* The smallest block of at least `size` bytes, the lowest address among equals; 0: none. */
uint32_t strata_tree_find(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size);
/* The block behind (size, ptr) in the order of the tree, and the one before it, whether one stands there or not; 0: none. */
uint32_t strata_tree_after(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size, uint64_t ptr);
uint32_t strata_tree_before(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size, uint64_t ptr);
/* The largest size in the tree, 0 if empty. */
uint64_t strata_tree_largest(const strata_tree_t *tree, const strata_slab_t *slab);
/* Order, balance rule, links, states, count and sum. E_CORRUPT. */
strata_status_t strata_tree_validate(const strata_tree_t *tree, const strata_slab_t *slab);

#endif

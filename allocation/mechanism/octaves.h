/* Best fit in bins: bin b has the free blocks of 256 << b bytes up to twice that, the last one all larger ones; a bin is a
 * tree by (size, address). So the first block that fits, bin after bin, is the smallest one, the lowest among equals. A bit a
 * bin says whether it has any. Uses bin_prev and bin_next of free records as links. Guarded by the owner. */
#ifndef STRATA_ALLOCATION_MECHANISM_OCTAVES_H
#define STRATA_ALLOCATION_MECHANISM_OCTAVES_H

#include "allocation/mechanism/tree.h"

enum { STRATA_OCTAVES = 21, STRATA_OCTAVES_SHIFT = 8 };

typedef struct strata_octaves {
    strata_tree_t bins[STRATA_OCTAVES];
    uint32_t filled; /* bit b: bin b has blocks */
} strata_octaves_t;

/* The bin of a size; what is below 256 bytes belongs to the first. */
static inline uint32_t strata_octaves_bin(uint64_t size) {
    uint64_t units = size >> STRATA_OCTAVES_SHIFT | 1;
    uint32_t bin = 63u - (uint32_t)__builtin_clzll(units);
    return bin < STRATA_OCTAVES ? bin : STRATA_OCTAVES - 1;
}

void strata_octaves_insert(strata_octaves_t *octaves, strata_slab_t *slab, uint32_t slot);
/* The block's ptr and size must be what they were when it was inserted. */
void strata_octaves_remove(strata_octaves_t *octaves, strata_slab_t *slab, uint32_t slot);
/* The smallest block of at least `size` bytes, the lowest address among equals; 0: none. */
uint32_t strata_octaves_find(const strata_octaves_t *octaves, const strata_slab_t *slab, uint64_t size);
/* The block behind (size, ptr) in order of size and address, whether one stands there or not; 0: none. */
uint32_t strata_octaves_after(const strata_octaves_t *octaves, const strata_slab_t *slab, uint64_t size, uint64_t ptr);
/* The largest size, 0 if there is none. */
uint64_t strata_octaves_largest(const strata_octaves_t *octaves, const strata_slab_t *slab);
/* Every bin's tree, that each block lies in its bin, and the bits. E_CORRUPT. */
strata_status_t strata_octaves_validate(const strata_octaves_t *octaves, const strata_slab_t *slab);

#endif

#include "allocation/mechanism/octaves.h"

#include "platform/status.h"

void strata_octaves_insert(strata_octaves_t *octaves, strata_slab_t *slab, uint32_t slot) {
    uint32_t bin = strata_octaves_bin(strata_slab_record(slab, slot)->size);
    strata_tree_insert(&octaves->bins[bin], slab, slot);
    octaves->filled |= 1u << bin;
}

void strata_octaves_remove(strata_octaves_t *octaves, strata_slab_t *slab, uint32_t slot) {
    uint32_t bin = strata_octaves_bin(strata_slab_record(slab, slot)->size);
    strata_tree_remove(&octaves->bins[bin], slab, slot);
    if (octaves->bins[bin].count == 0) octaves->filled &= ~(1u << bin);
}

/* The first block of the bins above one; 0: none. */
static uint32_t first_above(const strata_octaves_t *octaves, const strata_slab_t *slab, uint32_t bin) {
    uint32_t above = octaves->filled & ~((2u << bin) - 1);
    return above ? strata_tree_find(&octaves->bins[__builtin_ctz(above)], slab, 0) : 0;
}

uint32_t strata_octaves_find(const strata_octaves_t *octaves, const strata_slab_t *slab, uint64_t size) {
    uint32_t bin = strata_octaves_bin(size);
    uint32_t slot = strata_tree_find(&octaves->bins[bin], slab, size);
    return slot ? slot : first_above(octaves, slab, bin);
}

uint32_t strata_octaves_after(const strata_octaves_t *octaves, const strata_slab_t *slab, uint64_t size, uint64_t ptr) {
    uint32_t bin = strata_octaves_bin(size);
    uint32_t slot = strata_tree_after(&octaves->bins[bin], slab, size, ptr);
    return slot ? slot : first_above(octaves, slab, bin);
}

uint64_t strata_octaves_largest(const strata_octaves_t *octaves, const strata_slab_t *slab) {
    if (octaves->filled == 0) return 0;
    return strata_tree_largest(&octaves->bins[31 - __builtin_clz(octaves->filled)], slab);
}

static strata_status_t corrupt(const char *what, uint32_t bin) {
    return strata_fail(STRATA_E_CORRUPT, 0, "bins by octave: %s (bin %u)", what, bin);
}

strata_status_t strata_octaves_validate(const strata_octaves_t *octaves, const strata_slab_t *slab) {
    if (octaves->filled >> STRATA_OCTAVES != 0) return corrupt("a bit of a bin that there is not", STRATA_OCTAVES);
    for (uint32_t bin = 0; bin < STRATA_OCTAVES; bin++) {
        const strata_tree_t *tree = &octaves->bins[bin];
        strata_status_t status = strata_tree_validate(tree, slab);
        if (status != STRATA_OK) return status;
        if ((octaves->filled >> bin & 1) != (tree->count > 0)) return corrupt("its bit is wrong", bin);
        uint32_t first = strata_tree_find(tree, slab, 0);
        if (first && strata_octaves_bin(strata_slab_record(slab, first)->size) != bin)
            return corrupt("its first block is another's", bin);
        if (first && strata_octaves_bin(strata_tree_largest(tree, slab)) != bin)
            return corrupt("its last block is another's", bin);
    }
    return STRATA_OK;
}

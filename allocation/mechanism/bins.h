/* Good fit, fast: log-linear bins, 128 per octave, in units of 2^unit_shift bytes; exact for sizes below 256 units. The own bin
 * is searched for the best of its first 16 blocks, then the next bin that has any (reference: measured to fragment as little
 * as best fit). Last-in first-out within a bin. Uses bin_prev and bin_next of free records. */
#ifndef STRATA_ALLOCATION_MECHANISM_BINS_H
#define STRATA_ALLOCATION_MECHANISM_BINS_H

#include "allocation/mechanism/slab.h"

enum {
    STRATA_BINS_SUB_BITS = 7,
    STRATA_BINS_OCTAVES = 25, /* above the 256 exact units: blocks up to 2^33 units */
    STRATA_BINS = (STRATA_BINS_OCTAVES + 2) << STRATA_BINS_SUB_BITS,
    STRATA_BINS_WORDS = STRATA_BINS / 64,
    STRATA_BINS_SCAN = 16
};

typedef struct strata_bins {
    uint64_t summary;                  /* bit w: words[w] is not 0 */
    uint64_t words[STRATA_BINS_WORDS]; /* bit b of word w: heads[64 w + b] is not 0 */
    uint32_t heads[STRATA_BINS];
    uint32_t unit_shift;
    uint32_t count;
    uint64_t bytes;
} strata_bins_t;

void strata_bins_init(strata_bins_t *bins, uint32_t unit_shift);
/* Sizes are multiples of the unit. The three are on the hot path. */
void strata_bins_insert(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot);
void strata_bins_remove(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot);
uint32_t strata_bins_find(const strata_bins_t *bins, const strata_slab_t *slab, uint64_t size);
/* A block in the index has changed its size from `old_size`: moved to its bin, or left where it is. */
void strata_bins_resized(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot, uint64_t old_size);
uint64_t strata_bins_largest(const strata_bins_t *bins, const strata_slab_t *slab);
/* Bitmaps against heads, links both ways, bins against sizes, states, count and sum. E_CORRUPT. */
strata_status_t strata_bins_validate(const strata_bins_t *bins, const strata_slab_t *slab);

#endif

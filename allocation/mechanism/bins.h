/* Good fit, fast: log-linear bins, 128 per octave, in units of 2^unit_shift bytes; exact for sizes below 256 units. The own bin
 * is searched for the best of its first 16 blocks, then the next bin that has any (reference: measured to fragment as little
 * as best fit). Last-in first-out within a bin. Uses bin_prev and bin_next of free records; the links of the sentinel are
 * written and never read, which saves a branch. Guarded by the stack's lock. */
#ifndef STRATA_ALLOCATION_MECHANISM_BINS_H
#define STRATA_ALLOCATION_MECHANISM_BINS_H

#include "allocation/mechanism/slab.h"

enum {
    STRATA_BINS_SUB_BITS = 7,
    STRATA_BINS_OCTAVES = 25, /* above the 256 exact units: blocks up to 2^33 units; larger ones stand in the last bin */
    STRATA_BINS = (STRATA_BINS_OCTAVES + 2) << STRATA_BINS_SUB_BITS,
    STRATA_BINS_EXACT = 2 << STRATA_BINS_SUB_BITS, /* bins of one size each */
    STRATA_BINS_WORDS = STRATA_BINS / 64,
    STRATA_BINS_SCAN = 16 /* records that a search touches at most */
};

typedef struct strata_bins {
    uint64_t summary; /* bit w: words[w] is not 0 */
    uint64_t bytes;
    uint32_t count;
    uint32_t unit_shift;
    uint64_t words[STRATA_BINS_WORDS]; /* bit b of word w: heads[64 w + b] is not 0 */
    uint32_t heads[STRATA_BINS];
} strata_bins_t;

void strata_bins_init(strata_bins_t *bins, uint32_t unit_shift);
/* As strata_bins_find(), but no fitting block of the own bin is missed: for the rare way, before memory is said to be out. */
uint32_t strata_bins_find_any(const strata_bins_t *bins, const strata_slab_t *slab, uint64_t size);
/* The largest size in the bins, 0 if empty. Reads every block of the last bin that has any. */
uint64_t strata_bins_largest(const strata_bins_t *bins, const strata_slab_t *slab);
/* Bitmaps against heads, links both ways, bins against sizes, states, count and sum. E_CORRUPT. */
strata_status_t strata_bins_validate(const strata_bins_t *bins, const strata_slab_t *slab);

static inline uint32_t strata_bins_of(const strata_bins_t *bins, uint64_t size) {
    uint64_t units = size >> bins->unit_shift;
    uint32_t octave = (63u ^ (uint32_t)__builtin_clzll(units | (1u << STRATA_BINS_SUB_BITS))) - STRATA_BINS_SUB_BITS;
    uint64_t bin = ((uint64_t)octave << STRATA_BINS_SUB_BITS) + (units >> octave);
    return bin < STRATA_BINS ? (uint32_t)bin : STRATA_BINS - 1;
}

/* The first bin from `bin` on that has a block; STRATA_BINS: none. */
static inline uint32_t strata_bins_next(const strata_bins_t *bins, uint32_t bin) {
    if (bin >= STRATA_BINS) return STRATA_BINS;
    uint32_t word = bin / 64;
    uint64_t bits = bins->words[word] & (UINT64_MAX << (bin % 64));
    if (bits == 0) {
        uint64_t words = bins->summary & (UINT64_MAX << (word + 1)); /* there are fewer than 63 words */
        if (words == 0) return STRATA_BINS;
        word = (uint32_t)__builtin_ctzll(words);
        bits = bins->words[word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

static inline void strata_bins_insert_at(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot, uint32_t bin) {
    strata_record_t *record = &slab->records[slot];
    uint32_t head = bins->heads[bin];
    record->bin_prev = 0;
    record->bin_next = head;
    slab->records[head].bin_prev = slot;
    bins->heads[bin] = slot;
    bins->words[bin / 64] |= 1ull << (bin % 64);
    bins->summary |= 1ull << (bin / 64);
    bins->count++;
    bins->bytes += record->size;
}

/* `size` is what the record's size was when the block came into `bin`. */
static inline void strata_bins_remove_at(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot, uint32_t bin, uint64_t size) {
    strata_record_t *record = &slab->records[slot];
    uint32_t previous = record->bin_prev, next = record->bin_next;
    slab->records[next].bin_prev = previous;
    if (previous) {
        slab->records[previous].bin_next = next;
    } else {
        bins->heads[bin] = next;
        if (next == 0) {
            uint64_t bits = bins->words[bin / 64] & ~(1ull << (bin % 64));
            bins->words[bin / 64] = bits;
            if (bits == 0) bins->summary &= ~(1ull << (bin / 64));
        }
    }
    bins->count--;
    bins->bytes -= size;
}

/* The block's size is a multiple of the unit, its state FREE. */
static inline void strata_bins_insert(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot) {
    strata_bins_insert_at(bins, slab, slot, strata_bins_of(bins, slab->records[slot].size));
}

/* The block's size must be what it was when it was inserted. */
static inline void strata_bins_remove(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot) {
    uint64_t size = slab->records[slot].size;
    strata_bins_remove_at(bins, slab, slot, strata_bins_of(bins, size), size);
}

/* A block in the index has changed its size from `old_size`: moved to its bin, or left where it is. */
static inline void strata_bins_resized(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot, uint64_t old_size) {
    uint64_t size = slab->records[slot].size;
    uint32_t from = strata_bins_of(bins, old_size), to = strata_bins_of(bins, size);
    if (from == to) {
        bins->bytes += size - old_size;
        return;
    }
    strata_bins_remove_at(bins, slab, slot, from, old_size);
    strata_bins_insert_at(bins, slab, slot, to);
}

/* The best of the first *scan blocks from `slot` on, the first among equals; 0: none of them fits. */
static inline uint32_t strata_bins_best(const strata_slab_t *slab, uint32_t slot, uint64_t size, uint32_t *scan) {
    uint32_t best = 0;
    uint64_t best_size = UINT64_MAX;
    for (; slot && *scan; --*scan) {
        const strata_record_t *record = &slab->records[slot];
        uint64_t its = record->size;
        if (its == size) return slot;
        if (its > size && its < best_size) {
            best = slot;
            best_size = its;
        }
        slot = record->bin_next;
    }
    return best;
}

/* A block of at least `size` bytes, 0: none was found. It stays in the index. `size` is a multiple of the unit. */
static inline uint32_t strata_bins_find(const strata_bins_t *bins, const strata_slab_t *slab, uint64_t size) {
    uint32_t bin = strata_bins_of(bins, size), scan = STRATA_BINS_SCAN;
    if (bin >= STRATA_BINS_EXACT) {
        uint32_t slot = strata_bins_best(slab, bins->heads[bin], size, &scan);
        if (slot) return slot;
        bin++;
    }
    bin = strata_bins_next(bins, bin);
    if (bin == STRATA_BINS) return 0;
    uint32_t head = bins->heads[bin];
    if (bin < STRATA_BINS_EXACT || scan == 0) return head; /* every block of a later bin fits */
    return strata_bins_best(slab, head, size, &scan);
}

#endif

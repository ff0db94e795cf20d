/* A fast index of free blocks by good fit. The bins are log-linear, 128 per octave, in units of 2^unit_shift
 * bytes, and exact for sizes below 256 units. Each bin is a last-in first-out list.
 *
 * A search takes the better of the first two blocks of the request's own bin. If neither fits, it takes one of
 * the next bin that has any. This was measured to fragment as little as best fit does. A scan of sixteen
 * fragmented no less, and waited for more records.
 *
 * The index uses bin_prev and bin_next of free records, and sets and clears the slab's idle bit of each block.
 * The links of the sentinel are written but never read, which saves a branch. Guarded by the stack's lock.
 *
 * The block that was inserted last is loose: it counts as the first of its bin, but is not linked until the
 * next insert. Programs take that block again more often than any other, since it is the rest of a chunk that
 * is split and coalesced. Then no list is touched. A search finds the block that it would find if the loose
 * block were linked. */
#ifndef STRATA_ALLOCATION_MECHANISM_BINS_H
#define STRATA_ALLOCATION_MECHANISM_BINS_H

#include "allocation/tables/slab.h"

enum {
    STRATA_BINS_SUB_BITS = 7,
    STRATA_BINS_OCTAVES = 25, /* above the 256 exact units: blocks up to 2^33 units; larger ones are in the last bin */
    STRATA_BINS = (STRATA_BINS_OCTAVES + 2) << STRATA_BINS_SUB_BITS,
    STRATA_BINS_EXACT = 2 << STRATA_BINS_SUB_BITS, /* bins of one size each */
    STRATA_BINS_WORDS = STRATA_BINS / 64,
    STRATA_BINS_SCAN = 2, /* records that a search reads before it takes the first of the next bin */
    /* bin_prev of a bin's first block is this flag plus the bin. No slot has this bit. */
    STRATA_BINS_FIRST = 1 << STRATA_REF_SLOT_BITS
};

typedef struct strata_bins {
    uint64_t summary; /* bit w is set if words[w] is not 0 */
    uint32_t loose; /* the block that was inserted last, or 0 if it was removed since */
    uint32_t loose_bin; /* its bin, or STRATA_BINS if no block is loose */
    uint64_t least; /* sizes below this have octave 0: 2^(unit_shift + STRATA_BINS_SUB_BITS) */
    uint32_t offset; /* makes the bin of 0 bytes 0 */
    uint32_t unit_shift;
    uint64_t words[STRATA_BINS_WORDS]; /* bit b of words[w] is set if heads[64 w + b] is not 0 */
    uint32_t heads[STRATA_BINS];
} strata_bins_t;

void strata_bins_init(strata_bins_t *bins, uint32_t unit_shift);
/* Works as strata_bins_find(), but finds any fitting block of the request's own bin. This is the slow path,
 * before the cache reports that it is out of memory. */
uint32_t strata_bins_find_any(strata_bins_t *bins, strata_slab_t *slab, uint64_t size);
/* Returns the largest size in the bins, or 0 if they are empty. Reads every block of the last bin that has any. */
uint64_t strata_bins_largest(const strata_bins_t *bins, const strata_slab_t *slab);
/* Checks the bitmaps, the links in both directions, and each block's bin, size and state. The caller passes the
 * count and the sum of the sizes that it expects. Fails with E_CORRUPT. */
strata_status_t strata_bins_validate(const strata_bins_t *bins, const strata_slab_t *slab, uint32_t count, uint64_t bytes);

static inline uint32_t strata_bins_of(const strata_bins_t *bins, uint64_t size) {
    uint32_t top = 63u ^ (uint32_t)__builtin_clzll(size | bins->least);
    uint64_t bin = ((uint64_t)top << STRATA_BINS_SUB_BITS) + (size >> (top - STRATA_BINS_SUB_BITS)) - bins->offset;
    return bin < STRATA_BINS ? (uint32_t)bin : STRATA_BINS - 1;
}

/* Returns the first bin from `bin` on that has a block, or STRATA_BINS if there is none. */
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

/* Puts a block at the head of its bin's list. */
static inline void strata_bins_link(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot, uint32_t bin) {
    strata_record_t *record = &slab->records[slot];
    uint32_t head = bins->heads[bin];
    record->bin_prev = STRATA_BINS_FIRST | bin;
    record->bin_next = head;
    slab->records[head].bin_prev = slot;
    bins->heads[bin] = slot;
    bins->words[bin / 64] |= 1ull << (bin % 64);
    bins->summary |= 1ull << (bin / 64);
}

static inline void strata_bins_unlink(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot) {
    const strata_record_t *record = &slab->records[slot];
    uint32_t previous = record->bin_prev, next = record->bin_next;
    slab->records[next].bin_prev = previous;
    if (!(previous & STRATA_BINS_FIRST)) {
        slab->records[previous].bin_next = next;
        return;
    }
    uint32_t bin = previous & (STRATA_BINS_FIRST - 1);
    bins->heads[bin] = next;
    if (next) return;
    uint64_t bits = bins->words[bin / 64] & ~(1ull << (bin % 64));
    bins->words[bin / 64] = bits;
    if (bits == 0) bins->summary &= ~(1ull << (bin / 64));
}

/* Links the loose block, if there is one. */
static inline void strata_bins_link_loose(strata_bins_t *bins, strata_slab_t *slab) {
    if (bins->loose) strata_bins_link(bins, slab, bins->loose, bins->loose_bin);
    bins->loose = 0;
    bins->loose_bin = STRATA_BINS;
}

static inline void strata_bins_insert_at(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot, uint32_t bin) {
    strata_record_t *record = &slab->records[slot];
    if (bins->loose) strata_bins_link(bins, slab, bins->loose, bins->loose_bin);
    record->bin_prev = record->bin_next = 0;
    strata_slab_note_idle(slab, slot);
    bins->loose = slot;
    bins->loose_bin = bin;
}

/* Inserts a block. Its size must be a multiple of the unit, and its state FREE. */
static inline void strata_bins_insert(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot) {
    strata_bins_insert_at(bins, slab, slot, strata_bins_of(bins, slab->records[slot].size));
}

static inline void strata_bins_remove(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot) {
    strata_slab_note_used(slab, slot);
    if (slot != bins->loose) {
        strata_bins_unlink(bins, slab, slot);
        return;
    }
    bins->loose = 0;
    bins->loose_bin = STRATA_BINS;
}

/* Returns true if both sizes belong in one bin. It may return false for two sizes of the last bin, which has no
 * upper end. */
static inline bool strata_bins_share(const strata_bins_t *bins, uint64_t size, uint64_t other) {
    uint32_t shift = (63u ^ (uint32_t)__builtin_clzll(size | bins->least)) - STRATA_BINS_SUB_BITS;
    return size >> shift == other >> shift;
}

/* Sets the size of a block in the index, and moves it to another bin if the new size belongs there. */
static inline void strata_bins_resize(strata_bins_t *bins, strata_slab_t *slab, uint32_t slot, uint64_t size) {
    strata_record_t *record = &slab->records[slot];
    uint64_t old_size = record->size;
    record->size = size;
    if (strata_bins_share(bins, size, old_size)) return;
    uint32_t bin = strata_bins_of(bins, size);
    if (slot == bins->loose) {
        bins->loose_bin = bin;
    } else if (bin < STRATA_BINS - 1 || strata_bins_of(bins, old_size) < STRATA_BINS - 1) {
        strata_bins_unlink(bins, slab, slot);
        strata_bins_insert_at(bins, slab, slot, bin);
    }
}

/* Returns the best fit among the first *scan blocks from `slot` on, the first among equals, or 0 if none fits. */
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

/* Returns a block of at least `size` bytes, or 0 if none was found. The block stays in the index. `size` must
 * be a multiple of the unit. */
static inline uint32_t strata_bins_find(strata_bins_t *bins, strata_slab_t *slab, uint64_t size) {
    uint32_t bin = strata_bins_of(bins, size), scan = STRATA_BINS_SCAN;
    if (bin >= STRATA_BINS_EXACT) {
        if (bins->loose_bin == bin) {
            if (slab->records[bins->loose].size == size) return bins->loose;
            strata_bins_link_loose(bins, slab);
        }
        uint32_t slot = strata_bins_best(slab, bins->heads[bin], size, &scan);
        if (slot) return slot;
        bin++;
    }
    uint32_t next = strata_bins_next(bins, bin);
    if (bins->loose_bin >= bin && bins->loose_bin <= next) {
        if (bins->loose_bin < next || next < STRATA_BINS_EXACT || next == STRATA_BINS) return bins->loose;
        strata_bins_link_loose(bins, slab);
    }
    if (next == STRATA_BINS) return 0;
    uint32_t head = bins->heads[next];
    if (next < STRATA_BINS_EXACT || scan == 0) return head; /* every block of a later bin fits */
    return strata_bins_best(slab, head, size, &scan);
}

#endif

#include "allocation/mechanism/bins.h"

#include <string.h>

#include "platform/status.h"

_Static_assert(STRATA_BINS_WORDS < 63, "one summary word, and a shift by one word more than there are");
_Static_assert(STRATA_BINS % 64 == 0, "whole words");

void strata_bins_init(strata_bins_t *bins, uint32_t unit_shift) {
    memset(bins, 0, sizeof *bins);
    bins->unit_shift = unit_shift;
    bins->least = 1ull << (unit_shift + STRATA_BINS_SUB_BITS);
    bins->offset = (unit_shift + STRATA_BINS_SUB_BITS) << STRATA_BINS_SUB_BITS;
    bins->loose_bin = STRATA_BINS;
}

uint32_t strata_bins_find_any(strata_bins_t *bins, strata_slab_t *slab, uint64_t size) {
    uint32_t scan = UINT32_MAX;
    strata_bins_link_loose(bins, slab);
    uint32_t slot = strata_bins_best(slab, bins->heads[strata_bins_of(bins, size)], size, &scan);
    return slot ? slot : strata_bins_find(bins, slab, size);
}

uint64_t strata_bins_largest(const strata_bins_t *bins, const strata_slab_t *slab) {
    uint64_t largest = bins->loose ? slab->records[bins->loose].size : 0;
    if (bins->summary == 0) return largest;
    uint32_t word = 63u ^ (uint32_t)__builtin_clzll(bins->summary);
    uint32_t last = word * 64 + (63u ^ (uint32_t)__builtin_clzll(bins->words[word]));
    for (uint32_t slot = bins->heads[last]; slot; slot = slab->records[slot].bin_next) {
        if (slab->records[slot].size > largest) largest = slab->records[slot].size;
    }
    return largest;
}

typedef struct bins_census {
    uint32_t count;
    uint64_t bytes;
} bins_census_t;

static strata_status_t count_block(const strata_bins_t *bins, const strata_slab_t *slab, uint32_t slot, uint32_t previous,
                                   uint32_t bin) {
    if (slot >= slab->used) return strata_fail(STRATA_E_CORRUPT, 0, "bin %u has a link to slot %u, which is invalid", bin, slot);
    const strata_record_t *record = &slab->records[slot];
    if (record->state != STRATA_RECORD_FREE)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u is in bin %u in state %u", slot, bin, record->state);
    if (!strata_slab_is_idle(slab, slot))
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u is in bin %u, but its bit is clear", slot, bin);
    if (record->bin_prev != previous)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u in bin %u follows slot %u, not %u", slot, bin, record->bin_prev, previous);
    if (record->size == 0 || record->size % (1ull << bins->unit_shift) != 0)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u in bin %u has %llu bytes, not a multiple of the unit", slot, bin,
                           (unsigned long long)record->size);
    if (strata_bins_of(bins, record->size) != bin)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u of %llu bytes is in bin %u, not %u", slot,
                           (unsigned long long)record->size, bin, strata_bins_of(bins, record->size));
    return STRATA_OK;
}

/* The limit `most` also ends the walk of a list that is circular by mistake. */
static strata_status_t count_bin(const strata_bins_t *bins, const strata_slab_t *slab, uint32_t bin, uint32_t most,
                                 bins_census_t *census) {
    uint32_t previous = STRATA_BINS_FIRST | bin;
    for (uint32_t slot = bins->heads[bin]; slot; slot = slab->records[slot].bin_next) {
        strata_status_t status = count_block(bins, slab, slot, previous, bin);
        if (status != STRATA_OK) return status;
        if (slot == bins->loose) return strata_fail(STRATA_E_CORRUPT, 0, "the loose slot %u is linked in bin %u", slot, bin);
        if (++census->count > most)
            return strata_fail(STRATA_E_CORRUPT, 0, "the bins have more blocks than the %u that exist", most);
        census->bytes += slab->records[slot].size;
        previous = slot;
    }
    return STRATA_OK;
}

static strata_status_t count_loose(const strata_bins_t *bins, const strata_slab_t *slab, bins_census_t *census) {
    if ((bins->loose == 0) != (bins->loose_bin == STRATA_BINS))
        return strata_fail(STRATA_E_CORRUPT, 0, "the loose slot %u is in bin %u", bins->loose, bins->loose_bin);
    if (bins->loose == 0) return STRATA_OK;
    strata_status_t status = count_block(bins, slab, bins->loose, 0, bins->loose_bin);
    if (status != STRATA_OK) return status;
    if (slab->records[bins->loose].bin_next) return strata_fail(STRATA_E_CORRUPT, 0, "the loose slot %u has a link", bins->loose);
    census->count = 1;
    census->bytes = slab->records[bins->loose].size;
    return STRATA_OK;
}

/* Checks that exactly the bins with a block have their bit set. */
static strata_status_t validate_bits(const strata_bins_t *bins) {
    for (uint32_t bin = 0; bin < STRATA_BINS; bin++) {
        bool marked = (bins->words[bin / 64] >> (bin % 64)) & 1;
        if (marked != (bins->heads[bin] != 0))
            return strata_fail(STRATA_E_CORRUPT, 0, "bin %u begins with slot %u, but its bit is %d", bin, bins->heads[bin], marked);
    }
    for (uint32_t word = 0; word < 64; word++) {
        bool marked = (bins->summary >> word) & 1;
        if (marked != (word < STRATA_BINS_WORDS && bins->words[word] != 0))
            return strata_fail(STRATA_E_CORRUPT, 0, "the summary bit of word %u is %d", word, marked);
    }
    return STRATA_OK;
}

strata_status_t strata_bins_validate(const strata_bins_t *bins, const strata_slab_t *slab, uint32_t count, uint64_t bytes) {
    bins_census_t census = {0, 0};
    strata_status_t status = validate_bits(bins);
    if (status == STRATA_OK) status = count_loose(bins, slab, &census);
    for (uint32_t bin = 0; bin < STRATA_BINS && status == STRATA_OK; bin++) status = count_bin(bins, slab, bin, count, &census);
    if (status != STRATA_OK) return status;
    if (census.count != count || census.bytes != bytes)
        return strata_fail(STRATA_E_CORRUPT, 0, "the bins have %u blocks of %llu bytes, but %u of %llu exist", census.count,
                           (unsigned long long)census.bytes, count, (unsigned long long)bytes);
    return STRATA_OK;
}

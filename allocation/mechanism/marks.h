/* The mark of a free block: a count of 48 bits that dates the free, and a stream. The stream is a node number,
 * or 0 for several or unknown streams. The record's mark_high and mark_low hold the mark. Guarded by the
 * stack's lock. */
#ifndef STRATA_ALLOCATION_MECHANISM_MARKS_H
#define STRATA_ALLOCATION_MECHANISM_MARKS_H

#include "strata/layer.h"

static inline void strata_mark(strata_record_t *block, uint64_t count, uint32_t stream) {
    block->mark_high = stream << 16 | (uint32_t)(count >> 32 & 0xffff);
    block->mark_low = (uint32_t)count;
}
static inline uint64_t strata_mark_count(const strata_record_t *block) {
    return (uint64_t)(block->mark_high & 0xffff) << 32 | block->mark_low;
}
static inline uint32_t strata_mark_stream(const strata_record_t *block) { return block->mark_high >> 16; }

/* Merges the mark of `other` into that of `into`, which absorbs it. Marks up to `waited` are void, because the
 * host has waited for those uses. */
static inline void strata_mark_merge(strata_record_t *into, const strata_record_t *other, uint64_t waited) {
    uint64_t own = strata_mark_count(into), its = strata_mark_count(other);
    if (its <= waited) return;
    bool same = own <= waited || strata_mark_stream(into) == strata_mark_stream(other);
    strata_mark(into, own > its ? own : its, same ? strata_mark_stream(other) : 0);
}

#endif

/* Finds the free pieces of handles, and chooses those that make a block together. */
#include <stdlib.h>

#include "allocation/cache/policies/virtual/auto_growth_vmm_state.h"
#include "platform/arithmetic.h"

static strata_slab_t *slab(const auto_growth_vmm_t *self) { return strata_growth_vmm_slab(self); }

/* ---- free blocks ---- */

typedef bool (*block_fn)(auto_growth_vmm_t *self, uint32_t slot, void *context);

/* Visits the free blocks that are at least as large as the smallest handle. Returns false if `block` has stopped that. */
static bool each_block(auto_growth_vmm_t *self, vmm_kind_t pool, block_fn block, void *context) {
    strata_bins_t *bins = strata_growth_vmm_bins(self, pool);
    strata_auto_growth_flush_last_freed(&self->growth);
    strata_bins_link_loose(bins, slab(self));
    uint32_t bin = strata_bins_next(bins, strata_bins_of(bins, self->granularity));
    for (; bin < STRATA_BINS; bin = strata_bins_next(bins, bin + 1))
        for (uint32_t slot = bins->heads[bin]; slot; slot = strata_slab_record(slab(self), slot)->bin_next)
            if (!block(self, slot, context)) return false;
    return true;
}

/* ---- idle parts ---- */

typedef struct idle {
    vmm_idle_fn fn;
    void *context;
} idle_t;

static bool each_in_block(auto_growth_vmm_t *self, uint32_t slot, void *context) {
    const idle_t *idle = context;
    const strata_record_t *block = strata_slab_record(slab(self), slot);
    uint64_t end = block->ptr + block->size;
    for (uint32_t part = strata_runs_part_from(&self->runs, block->ptr); part; part = strata_runs_next_part(&self->runs, part)) {
        const strata_run_part_t *p = strata_run_part_at(&self->runs, part);
        if (p->at >= end || p->size > end - p->at) return true;
        if (!idle->fn(self, part, slot, idle->context)) return false;
    }
    return true;
}

void strata_growth_vmm_each_idle(auto_growth_vmm_t *self, vmm_idle_fn fn, void *context) {
    idle_t idle = {fn, context};
    if (each_block(self, STRATA_VMM_LARGE, each_in_block, &idle)) (void)each_block(self, STRATA_VMM_SMALL, each_in_block, &idle);
}

/* ---- pieces ---- */

/* Records the pieces in a free block. Pieces smaller than the smallest handle are skipped, because the device
 * takes time for each piece. So are handles that must not move because code outside relies on them. */
static bool note_block(auto_growth_vmm_t *self, uint32_t slot, void *context) {
    const strata_record_t *block = strata_slab_record(slab(self), slot);
    uint64_t begin = block->ptr, end = begin + block->size;
    (void)context;
    for (uint32_t part = strata_runs_find_part(&self->runs, begin); part; part = strata_runs_next_part(&self->runs, part)) {
        vmm_part_t *p = strata_growth_vmm_part(self, part);
        uint64_t low = p->run.at, high = low + p->run.size;
        if (low >= end) return true;
        if (!strata_vmm_may_move(self->vmm, p->run.chunk.below)) continue;
        if (p->survey != self->survey) p->head = p->tail = 0;
        p->survey = self->survey;
        if (begin <= low) {
            p->head = strata_min(high, end) - low;
            p->head_block = slot;
        }
        if (end >= high) {
            p->tail = high - strata_max(low, begin);
            p->tail_block = slot;
        }
        bool whole = begin <= low && end >= high, large = (begin <= low ? p->head : p->tail) >= self->granularity;
        vmm_piece_kind_t kind = whole ? STRATA_VMM_WHOLE : begin <= low ? STRATA_VMM_LOW_END : STRATA_VMM_HIGH_END;
        vmm_candidates_t *all = &self->candidates;
        if (!large || (begin > low && end < high)) continue;
        all->items[all->count++] = (vmm_candidate_t){part, kind, begin <= low ? p->head : p->tail};
        if (all->count == STRATA_VMM_CANDIDATES) return false;
    }
    return true;
}

void strata_growth_vmm_survey(auto_growth_vmm_t *self) {
    self->survey++;
    self->candidates.count = self->candidates.chosen = 0;
    if (each_block(self, STRATA_VMM_LARGE, note_block, NULL)) (void)each_block(self, STRATA_VMM_SMALL, note_block, NULL);
}

/* ---- choosing ---- */

static int larger_first(const void *a, const void *b) {
    const vmm_candidate_t *x = a, *y = b;
    return x->size != y->size ? (x->size < y->size) - (x->size > y->size) : (x->part > y->part) - (x->part < y->part);
}

/* A block has at most one high end, which it begins with, and one low end, which it ends with. Each part is in
 * it only once. */
static bool may_join(const vmm_candidates_t *all, const vmm_candidate_t *item) {
    for (uint32_t i = 0; i < all->chosen; i++) {
        bool same_end = item->kind != STRATA_VMM_WHOLE && all->items[i].kind == item->kind;
        if (same_end || all->items[i].part == item->part) return false;
    }
    return true;
}

static int by_kind(const void *a, const void *b) {
    const vmm_candidate_t *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return larger_first(a, b);
}

uint64_t strata_growth_vmm_choose(auto_growth_vmm_t *self, uint64_t size) {
    vmm_candidates_t *all = &self->candidates;
    uint64_t missing = size;
    qsort(all->items, all->count, sizeof *all->items, larger_first);
    while (missing > 0 && all->chosen < STRATA_VMM_PIECES) {
        /* The smallest candidate that is enough, or else the largest. Those after `chosen` are sorted. */
        uint32_t item = all->count;
        for (uint32_t i = all->chosen; i < all->count; i++) {
            if (all->items[i].size < missing && item < all->count) break;
            if (may_join(all, &all->items[i])) item = i;
            if (all->items[i].size < missing && item < all->count) break;
        }
        if (item == all->count) break;
        missing -= strata_min(missing, all->items[item].size);
        /* It moves behind the chosen ones, and the others stay in order. */
        vmm_candidate_t taken = all->items[item];
        for (uint32_t i = item; i > all->chosen; i--) all->items[i] = all->items[i - 1];
        all->items[all->chosen++] = taken;
    }
    qsort(all->items, all->chosen, sizeof *all->items, by_kind);
    return missing;
}

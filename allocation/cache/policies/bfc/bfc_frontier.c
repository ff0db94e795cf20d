/* Frees of bfc with a count. The program has a counter (strata_next_count). A freed block gets the next count,
 * stays separate, and enters a queue. The program calls strata_set_safe_frontier() when all work from before a
 * count is over. Then the blocks freed before it coalesce, and any stream may use them. A request may name the
 * count up to which it may use freed memory. */
#include "allocation/cache/policies/bfc/bfc_state.h"
#include "platform/arithmetic.h"

static uint32_t coalesce_again(bfc_t *self, uint32_t slot, bool all) {
    strata_bfc_unindex(self, slot);
    slot = strata_bfc_coalesce(self, slot, all);
    strata_bfc_index(self, slot);
    return slot;
}

/* The queue is in the order of the counts, unless a forced merge changed it. */
void strata_bfc_merge_safe(bfc_t *self) {
    self->frontier_moved = false;
    for (uint32_t node = self->first_stamp, next; node; node = next) {
        const bfc_stamp_t *stamp = bfc_stamp_at(self, node);
        next = stamp->next;
        if (stamp->count >= self->frontier) {
            if (!self->jumbled) return;
            continue;
        }
        uint32_t slot = stamp->slot;
        strata_bfc_unstamp(self, bfc_block(self, slot));
        strata_mark(bfc_block(self, slot), 0, 0);
        (void)coalesce_again(self, slot, false);
    }
    if (self->stamp_count == 0) self->jumbled = false;
}

bool strata_bfc_merge_by_force(bfc_t *self, uint64_t size) {
    self->forced_merges++;
    self->jumbled = true;
    self->cursor = self->first_stamp;
    while (self->cursor) {
        const bfc_stamp_t *stamp = bfc_stamp_at(self, self->cursor);
        self->cursor = stamp->next;
        if (bfc_block(self, coalesce_again(self, stamp->slot, true))->size < size) continue;
        self->cursor = 0;
        return true;
    }
    return false;
}

void strata_bfc_merge_at(bfc_t *self, const strata_extent_t *place) {
    if (self->stamp_count == 0) return;
    const strata_record_t *found = strata_chunks_find(&self->base, place->ptr);
    for (uint32_t slot = found ? strata_slab_slot(bfc_slab(self), found) : 0; slot;) {
        strata_record_t *block = bfc_block(self, slot);
        if (!bfc_is_free(self, slot) || block->ptr >= place->ptr + place->size) return;
        strata_bfc_unstamp(self, block);
        slot = bfc_block(self, coalesce_again(self, slot, false))->next;
    }
}

bool strata_bfc_set_frontier(bfc_t *self, uint64_t count) {
    if (!bfc_options_of(self)->timestamps) return false;
    if (count <= self->frontier) return true;
    self->frontier = count;
    self->frontier_moved = self->stamp_count > 0;
    return true;
}

uint32_t strata_bfc_unavailable(strata_layer_t *base, const strata_record_t *block, uint64_t size, strata_stream_t *stream) {
    const bfc_t *self = (const bfc_t *)base;
    (void)size, (void)stream;
    bool counted = block->state == STRATA_RECORD_FREE && bfc_freed_at(self, block) >= strata_max(self->frontier, 1);
    /* without a capture, a part of a region would not go back either */
    bool is_whole_region = block->prev == 0 && block->next == 0;
    return (counted ? STRATA_UNAVAILABLE_COUNTED : 0u) | (self->captures > 0 && is_whole_region ? STRATA_UNAVAILABLE_CAPTURED : 0u);
}

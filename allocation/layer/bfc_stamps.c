/* Frees of bfc that carry a count. The program has a counter (strata_next_count); a freed block gets the next count, keeps to
 * itself, and stands in a queue. When the program says that all work from before a count is over (strata_set_safe_frontier),
 * the blocks freed before it become anybody's and merge. A request may say up to which count it may have memory. */
#include "allocation/layer/bfc.h"
#include "platform/arithmetic.h"

static void link_behind(bfc_t *self, uint32_t node, uint32_t before) {
    bfc_stamp_t *stamp = bfc_stamp_at(self, node);
    stamp->prev = before;
    stamp->next = before ? bfc_stamp_at(self, before)->next : self->first_stamp;
    if (before) bfc_stamp_at(self, before)->next = node;
    else self->first_stamp = node;
    if (stamp->next) bfc_stamp_at(self, stamp->next)->prev = node;
    else self->last_stamp = node;
    self->stamp_count++;
}

static bool add(bfc_t *self, strata_record_t *block, uint64_t count, uint32_t before) {
    uint32_t node = strata_nodes_take(&self->stamps);
    if (node == 0) return false;
    *bfc_stamp_at(self, node) = (bfc_stamp_t){.count = count, .slot = strata_slab_slot(bfc_slab(self), block)};
    link_behind(self, node, before);
    block->free_word = node;
    return true;
}

bool strata_bfc_stamp(bfc_t *self, strata_record_t *block) {
    uint64_t count = atomic_fetch_add(&self->base.domain->count, 1) + 1;
    if (!add(self, block, count, self->last_stamp)) return false;
    if (count < self->frontier) self->frontier_moved = true;
    return true;
}

bool strata_bfc_stamp_rest(bfc_t *self, const strata_record_t *block, strata_record_t *rest) {
    uint32_t node = bfc_stamp_of(block);
    return node == 0 || add(self, rest, bfc_stamp_at(self, node)->count, node);
}

void strata_bfc_unstamp(bfc_t *self, strata_record_t *block) {
    uint32_t node = bfc_stamp_of(block);
    if (node == 0) return;
    const bfc_stamp_t *stamp = bfc_stamp_at(self, node);
    if (self->cursor == node) self->cursor = stamp->next;
    if (stamp->prev) bfc_stamp_at(self, stamp->prev)->next = stamp->next;
    else self->first_stamp = stamp->next;
    if (stamp->next) bfc_stamp_at(self, stamp->next)->prev = stamp->prev;
    else self->last_stamp = stamp->prev;
    strata_nodes_give(&self->stamps, node);
    self->stamp_count--;
    block->free_word = 0;
}

void strata_bfc_merge_stamps(bfc_t *self, strata_record_t *into, strata_record_t *other) {
    uint64_t its = bfc_freed_at(self, other);
    if (bfc_stamp_of(into) == 0 && its != 0) {
        into->free_word = bfc_stamp_of(other);
        bfc_stamp_at(self, bfc_stamp_of(into))->slot = strata_slab_slot(bfc_slab(self), into);
        other->free_word = 0;
        return;
    }
    if (its > bfc_freed_at(self, into)) bfc_stamp_at(self, bfc_stamp_of(into))->count = its;
    strata_bfc_unstamp(self, other);
}

static uint32_t coalesce_again(bfc_t *self, uint32_t slot, bool all) {
    strata_bfc_unindex(self, slot);
    slot = strata_bfc_coalesce(self, slot, all);
    strata_bfc_index(self, slot);
    return slot;
}

/* The queue is in the order of the counts, but for what was merged by force. */
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

bool strata_bfc_set_frontier(strata_layer_t *base, uint64_t count) {
    bfc_t *self = (bfc_t *)base;
    if (!bfc_options_of(self)->timestamps) return false;
    if (count <= self->frontier) return true;
    self->frontier = count;
    self->frontier_moved = self->stamp_count > 0;
    return true;
}

/* ---- check ---- */

static strata_status_t corrupt(const char *what) { return strata_fail(STRATA_E_CORRUPT, 0, "bfc: %s", what); }

strata_status_t strata_bfc_validate_stamps(const bfc_t *self) {
    uint32_t count = 0, last = 0;
    uint64_t latest = 0;
    for (uint32_t node = self->first_stamp; node; node = bfc_stamp_at(self, node)->next) {
        if (node >= self->stamps.used || ++count > self->stamp_count) return corrupt("the queue of counts is broken");
        const bfc_stamp_t *stamp = bfc_stamp_at(self, node);
        if (stamp->prev != last) return corrupt("the queue of counts has a wrong link back");
        if (stamp->count == 0 || stamp->count > atomic_load(&self->base.domain->count))
            return corrupt("a block was freed at a count that never was");
        if (!self->jumbled && stamp->count < latest) return corrupt("the queue of counts is out of order");
        if (stamp->slot >= bfc_slab(self)->used || !bfc_is_free(self, stamp->slot) ||
            bfc_stamp_of(bfc_block(self, stamp->slot)) != node)
            return corrupt("a count is of a block that does not have it");
        latest = stamp->count;
        last = node;
    }
    if (count != self->stamp_count) return corrupt("the number of counts is wrong");
    if (last != self->last_stamp) return corrupt("the end of the queue of counts is wrong");
    return strata_nodes_validate(&self->stamps);
}

uint32_t strata_bfc_reach(strata_layer_t *base, const strata_record_t *block, uint64_t size, strata_stream_t *stream) {
    const bfc_t *self = (const bfc_t *)base;
    (void)size, (void)stream;
    bool counted = block->state == STRATA_RECORD_FREE && bfc_freed_at(self, block) >= strata_max(self->frontier, 1);
    bool is_whole_region = block->prev == 0 && block->next == 0; /* a part of one would not go back without a capture either */
    return (counted ? STRATA_REACH_COUNTED : 0u) | (self->captures > 0 && is_whole_region ? STRATA_REACH_CAPTURED : 0u);
}

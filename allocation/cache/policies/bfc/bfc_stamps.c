/* The counts of bfc's frees. A freed block gets the next count of the program's counter and enters a queue
 * (bfc_frontier.c). */
#include "allocation/cache/policies/bfc/bfc_state.h"

static bool add(bfc_t *self, strata_record_t *block, uint64_t count, uint32_t before) {
    uint32_t node = strata_nodes_acquire(&self->stamps);
    if (node == 0) return false;
    bfc_stamp_t *stamp = bfc_stamp_at(self, node);
    *stamp = (bfc_stamp_t){.count = count, .slot = strata_slab_slot(bfc_slab(self), block), .prev = before};
    stamp->next = before ? bfc_stamp_at(self, before)->next : self->first_stamp;
    if (before) bfc_stamp_at(self, before)->next = node;
    else self->first_stamp = node;
    if (stamp->next) bfc_stamp_at(self, stamp->next)->prev = node;
    else self->last_stamp = node;
    self->stamp_count++;
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
    strata_nodes_release(&self->stamps, node);
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
            return corrupt("a block was freed at an unknown count");
        if (!self->jumbled && stamp->count < latest) return corrupt("the queue of counts is out of order");
        if (stamp->slot >= bfc_slab(self)->used || !bfc_is_free(self, stamp->slot) ||
            bfc_stamp_of(bfc_block(self, stamp->slot)) != node)
            return corrupt("a count refers to a block that does not have it");
        latest = stamp->count;
        last = node;
    }
    if (count != self->stamp_count) return corrupt("the number of counts is wrong");
    if (last != self->last_stamp) return corrupt("the end of the queue of counts is wrong");
    return strata_nodes_validate(&self->stamps);
}

/* The chunks of naive_best_fit and thread_local: how one comes into the pool, leaves it again, and is looked through. */
#include "allocation/layer/naive_best_fit.h"

static void list(naive_t *self, uint32_t node) {
    naive_chunk_t *chunk = naive_chunk_at(self, node);
    chunk->next = 0;
    chunk->prev = self->last_chunk;
    if (self->last_chunk) naive_chunk_at(self, self->last_chunk)->next = node;
    else self->first_chunk = node;
    self->last_chunk = node;
}

static void unlist(naive_t *self, uint32_t node) {
    const naive_chunk_t *chunk = naive_chunk_at(self, node);
    if (chunk->prev) naive_chunk_at(self, chunk->prev)->next = chunk->next;
    else self->first_chunk = chunk->next;
    if (chunk->next) naive_chunk_at(self, chunk->next)->prev = chunk->prev;
    else self->last_chunk = chunk->prev;
}

/* `by` is 1 or -1: a chunk has come, or goes. */
static void count(naive_t *self, const naive_chunk_t *chunk, int by) {
    strata_statistics_t *f = &self->base.stack->figures;
    uint64_t one = (uint64_t)(int64_t)by;
    *(chunk->huge ? &self->huge_bytes : &self->chunk_bytes) += one * chunk->size;
    self->chunk_count += (uint32_t)by;
    f->chunks += one;
    f->reserved_bytes += one * strata_record_reserved(chunk->below);
    if (f->reserved_bytes > f->peak_reserved_bytes) f->peak_reserved_bytes = f->reserved_bytes;
}

uint32_t strata_naive_publish(naive_t *self, strata_record_t *below, bool huge) {
    strata_slab_t *slab = naive_slab(self);
    uint32_t node = strata_nodes_take(&self->chunks), slot = 0;
    if (node && huge) slot = strata_pieces_begin(slab, node, below->ptr, below->size);
    else if (node) slot = strata_buddy_begin(&self->buddy, slab, node, below->ptr, below->size);
    if (slot == 0) {
        if (node) strata_nodes_give(&self->chunks, node);
        strata_fail(STRATA_E_LIMIT, 0, "%s holds %u chunks or %u blocks, its most", self->base.type->name, self->chunks.capacity,
                    slab->capacity);
        return 0;
    }
    *naive_chunk_at(self,
                    node) = (naive_chunk_t){.below = below, .base = below->ptr, .size = below->size, .first = slot, .huge = huge};
    list(self, node);
    count(self, naive_chunk_at(self, node), 1);
    self->base.stack->figures.growths++;
    self->huge_blocks += huge;
    return slot;
}

/* Whether somebody may still be using what an idle chunk holds, and the layer below does not wait for that itself. A huge chunk is
 * never asked: it goes back in the order of its one user, and whoever borrowed it was waited for before its free. */
static bool must_wait(const naive_t *self, const naive_chunk_t *chunk) {
    return self->ordered_below && strata_buddy_mark(naive_block(self, chunk->first)) > self->buddy.clean;
}

/* Takes a chunk out of the pool by its one block; its node and its record are the caller's to give back. */
static void detach(naive_t *self, uint32_t node) {
    const naive_chunk_t *chunk = naive_chunk_at(self, node);
    if (chunk->huge) strata_slab_give(naive_slab(self), chunk->first);
    else strata_buddy_end(&self->buddy, naive_slab(self), chunk->first);
    unlist(self, node);
    count(self, chunk, -1);
}

/* The end of detached chunks, chained by `next`; the bytes. */
static uint64_t give_back_detached(naive_t *self, uint32_t first, strata_call_t *call) {
    uint64_t bytes = 0;
    if (first == 0) return 0;
    strata_opened_t opened = strata_call_unlock(call);
    for (uint32_t node = first; node; node = naive_chunk_at(self, node)->next) {
        bytes += naive_chunk_at(self, node)->size;
        strata_chunk_free(naive_chunk_at(self, node)->below);
    }
    strata_call_lock(call, opened);
    while (first) {
        uint32_t node = first;
        first = naive_chunk_at(self, node)->next;
        strata_nodes_give(&self->chunks, node);
    }
    return bytes;
}

uint64_t strata_naive_give_back(naive_t *self, uint32_t node, strata_call_t *call) {
    detach(self, node);
    naive_chunk_at(self, node)->next = 0;
    return give_back_detached(self, node, call);
}

/* The first idle chunk at or behind `node`; 0: none. A huge one never is. */
static uint32_t next_idle(const naive_t *self, uint32_t node) {
    while (node && (naive_chunk_at(self, node)->huge || !naive_chunk_is_idle(self, naive_chunk_at(self, node))))
        node = naive_chunk_at(self, node)->next;
    return node;
}

/* Likewise, of those that nobody can be using. */
static uint32_t next_to_go(const naive_t *self, uint32_t node) {
    while ((node = next_idle(self, node)) != 0 && must_wait(self, naive_chunk_at(self, node)))
        node = naive_chunk_at(self, node)->next;
    return node;
}

/* Before idle chunks go back. Where the wait fails those that somebody may be using stay. */
static void wait_if_need_be(naive_t *self, strata_call_t *call) {
    for (uint32_t node = next_idle(self, self->first_chunk); node; node = next_idle(self, naive_chunk_at(self, node)->next)) {
        if (!must_wait(self, naive_chunk_at(self, node))) continue;
        (void)strata_naive_wait(self, call);
        return;
    }
}

uint64_t strata_naive_release(strata_layer_t *base, strata_call_t *call) {
    naive_t *self = (naive_t *)base;
    uint32_t first = 0, *end = &first;
    wait_if_need_be(self, call);
    for (uint32_t node = next_to_go(self, self->first_chunk), next; node; node = next) {
        naive_chunk_t *chunk = naive_chunk_at(self, node);
        next = next_to_go(self, chunk->next);
        detach(self, node);
        *end = node;
        end = &chunk->next;
        chunk->next = 0;
    }
    return give_back_detached(self, first, call);
}

/* The largest chunk that may go, the oldest among equals; 0: none. */
static uint32_t largest_to_go(const naive_t *self) {
    uint32_t largest = 0;
    for (uint32_t node = next_to_go(self, self->first_chunk); node; node = next_to_go(self, naive_chunk_at(self, node)->next))
        if (!largest || naive_chunk_at(self, node)->size > naive_chunk_at(self, largest)->size) largest = node;
    return largest;
}

uint64_t strata_naive_trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    naive_t *self = (naive_t *)base;
    uint64_t released = 0;
    if (naive_idle(self) > keep) wait_if_need_be(self, call);
    for (uint32_t node; naive_idle(self) > keep && (node = largest_to_go(self)) != 0;)
        released += strata_naive_give_back(self, node, call);
    return released;
}

void strata_naive_drop_chunks(naive_t *self) {
    while (self->first_chunk) {
        uint32_t node = self->first_chunk;
        strata_record_t *below = naive_chunk_at(self, node)->below;
        unlist(self, node);
        count(self, naive_chunk_at(self, node), -1);
        strata_chunk_free(below);
    }
}

/* ---- looking ---- */

const strata_record_t *strata_naive_chunk_of(strata_layer_t *base, const strata_record_t *block) {
    return naive_chunk_at((const naive_t *)base, block->chunk)->below;
}

void strata_naive_walk(strata_layer_t *base, strata_walk_fn block, void *context) {
    const naive_t *self = (const naive_t *)base;
    for (uint32_t node = self->first_chunk; node; node = naive_chunk_at(self, node)->next)
        for (uint32_t slot = naive_chunk_at(self, node)->first; slot; slot = naive_block(self, slot)->next)
            block(naive_block(self, slot), context);
}

const strata_record_t *strata_naive_find(strata_layer_t *base, uint64_t address) {
    const naive_t *self = (const naive_t *)base;
    uint32_t node = self->first_chunk;
    while (node && address - naive_chunk_at(self, node)->base >= naive_chunk_at(self, node)->size)
        node = naive_chunk_at(self, node)->next;
    if (!node) return NULL;
    const strata_record_t *block = naive_block(self, naive_chunk_at(self, node)->first);
    while (address - block->ptr >= block->size) block = naive_block(self, block->next);
    return block;
}

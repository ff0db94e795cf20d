/* The chunks of auto_growth: how one comes into the layer, leaves it again, and is looked through. */
#include "allocation/layer/auto_growth.h"

#include "platform/arithmetic.h"

static void list_chunk(auto_growth_t *self, uint32_t number) {
    chunk_t *chunk = chunk_at(self, number);
    chunk->prev = self->last_chunk;
    chunk->next = 0;
    if (self->last_chunk) chunk_at(self, self->last_chunk)->next = number;
    else self->first_chunk = number;
    self->last_chunk = number;
}

/* A chunk that a cache further down cut from one of its own is counted there. */
static uint64_t reserved_by(const chunk_t *chunk) { return strata_record_reserved(chunk->below); }

bool strata_auto_growth_publish(auto_growth_t *self, strata_record_t *below, uint32_t pool) {
    strata_slab_t *slab = slab_of(self);
    uint32_t number = strata_nodes_take(&self->chunks), slot = number ? strata_slab_take(slab) : 0;
    if (slot == 0) {
        if (number) strata_nodes_give(&self->chunks, number);
        strata_fail(STRATA_E_LIMIT, 0, "a stack holds %u chunks or %u blocks, its most", self->chunks.capacity, slab->capacity);
        return false;
    }
    /* Blocks are cut from the end: it has to lie as they shall. */
    uint64_t size = strata_round_down(below->size, self->unit);
    *chunk_at(self, number) = (chunk_t){.below = below, .base = below->ptr, .size = size, .first = slot, .pool = pool};
    list_chunk(self, number);
    strata_record_t *block = strata_slab_record(slab, slot);
    *block = (strata_record_t){.ptr = below->ptr,
                               .size = size,
                               .generation = block->generation,
                               .home = slab->home,
                               .stack = slab->home,
                               .chunk = number,
                               .pool = (uint8_t)pool,
                               .state = STRATA_RECORD_FREE};
    strata_auto_growth_insert(self, slot, self->by_address, pool);
    strata_statistics_t *f = &self->base.stack->figures;
    f->growths++;
    f->chunks++;
    self->chunk_count++;
    self->chunk_bytes += size;
    f->reserved_bytes += reserved_by(chunk_at(self, number));
    if (f->reserved_bytes > f->peak_reserved_bytes) f->peak_reserved_bytes = f->reserved_bytes;
    return true;
}

/* ---- leaving ---- */

/* Takes a chunk out of the layer. Its record and its number are the caller's to give back, the one once the lock is open. */
static void unlist_chunk(auto_growth_t *self, uint32_t number) {
    chunk_t *chunk = chunk_at(self, number);
    if (chunk->prev) chunk_at(self, chunk->prev)->next = chunk->next;
    else self->first_chunk = chunk->next;
    if (chunk->next) chunk_at(self, chunk->next)->prev = chunk->prev;
    else self->last_chunk = chunk->prev;
    strata_statistics_t *f = &self->base.stack->figures;
    f->chunks--;
    f->reserved_bytes -= reserved_by(chunk);
    self->chunk_count--;
    self->chunk_bytes -= chunk->size;
}

/* An idle chunk leaves with its one block. */
static void detach_idle(auto_growth_t *self, uint32_t number) {
    const chunk_t *chunk = chunk_at(self, number);
    strata_auto_growth_remove(self, chunk->first, self->by_address, chunk->pool);
    strata_slab_give(slab_of(self), chunk->first);
    unlist_chunk(self, number);
}

/* The end of detached chunks, chained by `next`. The device frees are made with the locks open; the bytes. */
static uint64_t give_back_detached(auto_growth_t *self, uint32_t first, strata_call_t *call) {
    uint64_t bytes = 0;
    if (first == 0) return 0;
    strata_opened_t opened = strata_call_unlock(call);
    for (uint32_t number = first; number; number = chunk_at(self, number)->next) {
        bytes += chunk_at(self, number)->size;
        strata_chunk_free(chunk_at(self, number)->below);
    }
    strata_call_lock(call, opened);
    while (first) {
        uint32_t number = first;
        first = chunk_at(self, number)->next;
        strata_nodes_give(&self->chunks, number);
    }
    return bytes;
}

uint64_t strata_auto_growth_give_back(auto_growth_t *self, uint32_t number, strata_call_t *call) {
    detach_idle(self, number);
    chunk_at(self, number)->next = 0;
    return give_back_detached(self, number, call);
}

uint64_t strata_auto_growth_release(strata_layer_t *base, strata_call_t *call) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint32_t first = 0, *end = &first;
    for (uint32_t number = self->first_chunk, next; number; number = next) {
        chunk_t *chunk = chunk_at(self, number);
        next = chunk->next;
        if (!strata_auto_growth_chunk_is_idle(self, chunk)) continue;
        detach_idle(self, number);
        *end = number;
        end = &chunk->next;
        chunk->next = 0;
    }
    return give_back_detached(self, first, call);
}

/* The largest idle chunk, the oldest among equals; 0: none. */
static uint32_t largest_idle(auto_growth_t *self) {
    uint32_t largest = 0;
    for (uint32_t number = self->first_chunk; number; number = chunk_at(self, number)->next) {
        const chunk_t *chunk = chunk_at(self, number);
        if (strata_auto_growth_chunk_is_idle(self, chunk) && (!largest || chunk->size > chunk_at(self, largest)->size))
            largest = number;
    }
    return largest;
}

uint64_t strata_auto_growth_trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint64_t released = 0;
    for (uint32_t number; strata_auto_growth_idle(self) > keep && (number = largest_idle(self)) != 0;)
        released += strata_auto_growth_give_back(self, number, call);
    return released;
}

void strata_auto_growth_drop_chunks(auto_growth_t *self) {
    while (self->first_chunk) {
        strata_record_t *below = chunk_at(self, self->first_chunk)->below;
        unlist_chunk(self, self->first_chunk);
        strata_chunk_free(below);
    }
}

/* ---- looking ---- */

const strata_record_t *strata_auto_growth_chunk_of(strata_layer_t *base, const strata_record_t *block) {
    return chunk_at((auto_growth_t *)base, block->chunk)->below;
}

void strata_auto_growth_walk(strata_layer_t *base, strata_walk_fn block, void *context) {
    auto_growth_t *self = (auto_growth_t *)base;
    for (uint32_t number = self->first_chunk; number; number = chunk_at(self, number)->next)
        for (uint32_t slot = chunk_at(self, number)->first; slot; slot = strata_slab_record(slab_of(self), slot)->next)
            block(strata_slab_record(slab_of(self), slot), context);
}

const strata_record_t *strata_auto_growth_find(strata_layer_t *base, uint64_t address) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint32_t number = self->first_chunk;
    while (number && address - chunk_at(self, number)->base >= chunk_at(self, number)->size) number = chunk_at(self, number)->next;
    if (!number) return NULL;
    const strata_record_t *block = strata_slab_record(slab_of(self), chunk_at(self, number)->first);
    while (address - block->ptr >= block->size) block = strata_slab_record(slab_of(self), block->next);
    return block;
}

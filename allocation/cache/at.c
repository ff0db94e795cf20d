/* Memory at a given address: finds the free block that contains it, and splits off the requested part. */
#include "allocation/cache/chunks.h"

static strata_slab_t *slab_of(const strata_chunks_t *self) { return &self->base.stack->slab; }

/* ---- finding ---- */

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* Without `sole`, another cache may have blocks in the slab. This chunk may be part of that cache's chunk, so
 * the number and the address of such a block could match by accident. */
static bool is_of_chunk(const strata_chunks_t *self, uint32_t number, uint32_t slot) {
    const strata_record_t *block = strata_slab_record(slab_of(self), slot);
    const strata_chunk_t *chunk = strata_chunk_at(self, number);
    bool used = slot != 0 && self->sole && block->state != STRATA_RECORD_UNUSED;
    uint32_t own = self->one_number ? self->one_number : number;
    return used && block->chunk == own && block->ptr - chunk->base < chunk->size;
}

/* Returns the known block of the chunk nearest to the place. The candidates are place->slot, the block that was
 * carved or inserted last, and the first block. */
static uint32_t begin_near(const strata_chunks_t *self, uint32_t number, const strata_extent_t *place) {
    const uint32_t known[] = {place->slot, self->known};
    uint32_t best = strata_chunk_at(self, number)->first;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!is_of_chunk(self, number, known[i])) continue;
        uint64_t ptr = strata_slab_record(slab_of(self), known[i])->ptr, least = strata_slab_record(slab_of(self), best)->ptr;
        if (distance(ptr, place->ptr) < distance(least, place->ptr)) best = known[i];
    }
    return best;
}

uint32_t strata_chunks_free_at(strata_chunks_t *self, const strata_extent_t *place) {
    const strata_order_key_t key = {place->ptr, UINT64_MAX, 0};
    uint32_t number = strata_order_before(&self->by_address, &key);
    const strata_chunk_t *chunk = strata_chunk_at(self, number);
    if (number == 0 || place->ptr - chunk->base >= chunk->size) return 0;
    uint32_t slot = begin_near(self, number, place);
    const strata_record_t *block = strata_slab_record(slab_of(self), slot);
    while (block->ptr > place->ptr) block = strata_slab_record(slab_of(self), slot = block->prev);
    while (place->ptr - block->ptr >= block->size) block = strata_slab_record(slab_of(self), slot = block->next);
    bool whole = place->size <= block->size - (place->ptr - block->ptr);
    return whole && strata_slab_is_idle(slab_of(self), slot) ? slot : 0;
}

/* ---- carving ---- */

/* Splits a block after `size` bytes; neither part is in the index. Returns the slot of the rest, or 0 if none
 * is left. */
static uint32_t split(strata_chunks_t *self, uint32_t slot, uint64_t size) {
    uint32_t after = strata_block_list_split(slab_of(self), slot, size);
    if (after == 0) return 0;
    if (self->policy->on_split(&self->base, strata_slab_record(slab_of(self), slot), strata_slab_record(slab_of(self), after))) {
        strata_chunks_note_last(self, after);
        return after;
    }
    strata_block_list_absorb(slab_of(self), slot);
    return 0;
}

uint32_t strata_chunks_carve(strata_chunks_t *self, uint32_t slot, const strata_extent_t *place) {
    const strata_record_t *block = strata_slab_record(slab_of(self), slot);
    uint64_t low = place->ptr - block->ptr, high = block->size - low - place->size;
    if ((low || high) && !self->policy->on_split) return 0;
    self->policy->index_remove(&self->base, slot);
    uint32_t own = low ? split(self, slot, low) : slot;
    uint32_t rest = own && high ? split(self, own, place->size) : own;
    if (rest == 0) {
        if (own && low) {
            strata_record_t *after = strata_slab_record(slab_of(self), block->next);
            if (self->policy->on_absorb) self->policy->on_absorb(&self->base, after);
            strata_block_list_absorb(slab_of(self), slot);
            strata_chunks_note_last(self, slot);
        }
        self->policy->index_insert(&self->base, slot);
        return 0;
    }
    if (own != slot) self->policy->index_insert(&self->base, slot);
    if (rest != own) self->policy->index_insert(&self->base, rest);
    self->known = own;
    return own;
}

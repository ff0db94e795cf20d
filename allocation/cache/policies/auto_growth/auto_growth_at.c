/* Serves requests at a given address. */
#include "allocation/cache/policies/auto_growth/auto_growth_state.h"

static uint32_t pool_of(const auto_growth_t *self, uint32_t slot) {
    return strata_slab_record(&self->base.stack->slab, slot)->pool;
}

/* ---- the chunk policy ---- */

/* An idle chunk is one block. */
static void unindex_chunk(strata_layer_t *base, const strata_chunk_t *chunk) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_auto_growth_remove(self, chunk->first, self->by_address, pool_of(self, chunk->first));
}

static void index_remove(strata_layer_t *base, uint32_t slot) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_auto_growth_remove(self, slot, self->by_address, pool_of(self, slot));
}

static void index_insert(strata_layer_t *base, uint32_t slot) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_auto_growth_insert(self, slot, self->by_address, pool_of(self, slot));
}

static bool on_split(strata_layer_t *base, const strata_record_t *block, strata_record_t *rest) {
    (void)base;
    rest->pool = block->pool;
    return true;
}

const strata_chunk_policy_t strata_auto_growth_policy = {
    .unindex_chunk = unindex_chunk, .index_remove = index_remove, .index_insert = index_insert, .on_split = on_split};

/* ---- serving ---- */

/* Returns true if requests of that size may use a block of the pool. With physical handles the caller chose the
 * address, so any pool will do. */
static bool may_have(const auto_growth_t *self, uint32_t pool, uint64_t rounded) {
    uint32_t own = strata_auto_growth_pool_for(self, rounded);
    return pool == own || (own == 0 && self->spills) || self->splits_low;
}

strata_record_t *strata_auto_growth_serve_extent(auto_growth_t *self, const strata_extent_t *place, uint64_t rounded,
                                                 uint64_t size) {
    strata_auto_growth_flush_last_freed(self);
    uint32_t slot = place->size == rounded ? strata_chunks_free_at(&self->chunks, place) : 0;
    if (slot == 0 || !may_have(self, pool_of(self, slot), rounded)) return NULL;
    uint32_t pool = pool_of(self, slot), own = strata_chunks_carve(&self->chunks, slot, place);
    if (own == 0) return NULL;
    strata_record_t *block = strata_slab_record(slab_of(self), own);
    strata_block_hand_out(block, size);
    block->pool = (uint8_t)pool;
    self->used_bytes += place->size;
    return block;
}

strata_record_t *strata_auto_growth_serve_at(strata_layer_t *base, const strata_block_t *at, size_t requested,
                                             const strata_stack_t *stack) {
    const strata_extent_t place = strata_extent_of(at);
    strata_record_t *block = strata_auto_growth_serve_extent((auto_growth_t *)base, &place, place.size, requested);
    if (!block) return NULL;
    block->stack = stack->number;
    base->stack->figures.cache_hits++;
    return block;
}

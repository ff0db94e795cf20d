/* The whole-structure check of auto_growth: the executable form of what its file says holds. */
#include "allocation/layer/auto_growth.h"

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "auto_growth: %s (slot %u)", what, slot);
}

typedef struct tally {
    uint64_t chunk_bytes, reserved_bytes;
    uint32_t chunks;
    struct {
        uint64_t bytes;
        uint32_t blocks;
    } free[STRATA_AUTO_GROWTH_POOLS];
} tally_t;

static strata_status_t validate_block(const chunk_t *chunk, uint32_t number, const strata_record_t *block, uint32_t slot,
                                      uint64_t at) {
    if (block->ptr != at) return corrupt("a block does not begin where the one before it ends", slot);
    if (block->chunk != number) return corrupt("a block names another chunk", slot);
    if (block->pool != chunk->pool) return corrupt("a block names another pool than its chunk", slot);
    if (block->size == 0 || block->size > chunk->base + chunk->size - at) return corrupt("a block's size is wrong", slot);
    if (block->state == STRATA_RECORD_UNUSED) return corrupt("an unused slot is linked", slot);
    return STRATA_OK;
}

/* The blocks of a chunk lie one behind the other from its base to its end, no two free ones side by side. */
static strata_status_t validate_blocks(auto_growth_t *self, uint32_t number, tally_t *tally) {
    strata_slab_t *slab = slab_of(self);
    const chunk_t *chunk = chunk_at(self, number);
    uint64_t at = chunk->base;
    uint32_t previous = 0;
    bool was_free = false;
    for (uint32_t slot = chunk->first; slot; slot = strata_slab_record(slab, slot)->next) {
        if (slot >= slab->used) return corrupt("a link leads out of the slab", previous);
        const strata_record_t *block = strata_slab_record(slab, slot);
        if (block->prev != previous) return corrupt("a block's link back is wrong", slot);
        strata_status_t status = validate_block(chunk, number, block, slot, at);
        if (status != STRATA_OK) return status;
        bool is_free = block->state == STRATA_RECORD_FREE;
        if (is_free != strata_slab_is_idle(slab, slot)) return corrupt("a block's bit and its state differ", slot);
        if (is_free && was_free) return corrupt("two free blocks were not merged", slot);
        tally->free[chunk->pool].bytes += is_free ? block->size : 0;
        tally->free[chunk->pool].blocks += is_free;
        at += block->size;
        was_free = is_free;
        previous = slot;
    }
    return at == chunk->base + chunk->size ? STRATA_OK : corrupt("the blocks do not fill their chunk", previous);
}

static strata_status_t validate_chunks(auto_growth_t *self, tally_t *tally) {
    uint32_t previous = 0;
    for (uint32_t number = self->first_chunk; number; number = chunk_at(self, number)->next) {
        const chunk_t *chunk = chunk_at(self, number);
        if (tally->chunks >= STRATA_AUTO_GROWTH_CHUNKS) return corrupt("the list of chunks is a circle", 0);
        if (chunk->prev != previous) return corrupt("a chunk's link back is wrong", chunk->first);
        if (chunk->pool >= strata_auto_growth_pools(self)) return corrupt("a chunk names a pool that is none", chunk->first);
        strata_status_t status = validate_blocks(self, number, tally);
        if (status != STRATA_OK) return status;
        tally->chunk_bytes += chunk->size;
        tally->reserved_bytes += strata_record_reserved(chunk->below);
        tally->chunks++;
        previous = number;
    }
    return previous == self->last_chunk ? STRATA_OK : corrupt("the list of chunks ends elsewhere", 0);
}

/* What the hot path asks instead of the options, against the options. */
static strata_status_t validate_rules(const auto_growth_t *self) {
    const auto_growth_options_t *o = strata_auto_growth_options(self);
    bool divided = o->small_pool_size > 0 || o->split_pools;
    bool warming_up = self->steps < o->warm_up_steps;
    if (divided != strata_auto_growth_is_divided(self) || self->spills != o->split_pools)
        return corrupt("the chunks are not divided as the options say", 0);
    if (self->warming_up != warming_up) return corrupt("the warm-up is not where the steps are", 0);
    if (self->road != strata_auto_growth_road(self)) return corrupt("a hit takes the wrong road", 0);
    return STRATA_OK;
}

static strata_status_t validate_pool(auto_growth_t *self, uint32_t number, uint32_t blocks, uint64_t bytes) {
    auto_growth_pool_t *pool = &self->pools[number];
    if (!self->by_address) return strata_bins_validate(&pool->bins, slab_of(self), blocks, bytes);
    if (blocks != pool->tree.count || bytes != pool->tree.bytes) return corrupt("the sum of a tree is wrong", 0);
    return strata_tree_validate(&pool->tree, slab_of(self));
}

strata_status_t strata_auto_growth_validate(strata_layer_t *base) {
    auto_growth_t *self = (auto_growth_t *)base;
    tally_t tally = {0};
    strata_status_t status = validate_rules(self);
    if (status == STRATA_OK) status = validate_chunks(self, &tally);
    if (status != STRATA_OK) return status;
    const strata_statistics_t *f = &base->stack->figures;
    bool less = f->chunks < tally.chunks || f->reserved_bytes < tally.reserved_bytes;
    if (less || tally.chunks != self->chunk_count || tally.chunk_bytes != self->chunk_bytes)
        return corrupt("the sum of chunks is wrong", 0);
    uint64_t free_bytes = 0;
    for (uint32_t pool = 0; pool < strata_auto_growth_pools(self); pool++) {
        free_bytes += tally.free[pool].bytes;
        status = validate_pool(self, pool, tally.free[pool].blocks, tally.free[pool].bytes);
        if (status != STRATA_OK) return status;
    }
    return free_bytes == strata_auto_growth_idle(self) ? STRATA_OK : corrupt("the sum of free blocks is wrong", 0);
}

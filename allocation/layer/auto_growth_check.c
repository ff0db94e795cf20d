/* The whole-structure check of auto_growth: the executable form of what its file says holds. */
#include "allocation/layer/auto_growth.h"

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "auto_growth: %s (slot %u)", what, slot);
}

typedef struct tally {
    uint64_t free_bytes, chunk_bytes, reserved_bytes;
    uint32_t free_blocks, chunks;
} tally_t;

/* The blocks of a chunk lie one behind the other from its base to its end, no two free ones side by side. */
static strata_status_t validate_chunk(auto_growth_t *self, uint32_t number, tally_t *tally) {
    strata_slab_t *slab = slab_of(self);
    const chunk_t *chunk = chunk_at(self, number);
    uint64_t at = chunk->base;
    uint32_t previous = 0;
    bool was_free = false;
    for (uint32_t slot = chunk->first; slot; slot = strata_slab_record(slab, slot)->next) {
        if (slot >= slab->used) return corrupt("a link leads out of the slab", previous);
        const strata_record_t *block = strata_slab_record(slab, slot);
        if (block->ptr != at) return corrupt("a block does not begin where the one before it ends", slot);
        if (block->prev != previous) return corrupt("a block's link back is wrong", slot);
        if (block->chunk != number) return corrupt("a block names another chunk", slot);
        if (block->size == 0 || block->size > chunk->base + chunk->size - at) return corrupt("a block's size is wrong", slot);
        if (block->state == STRATA_RECORD_UNUSED) return corrupt("an unused slot is linked", slot);
        bool is_free = block->state == STRATA_RECORD_FREE;
        if (is_free && was_free) return corrupt("two free blocks were not merged", slot);
        tally->free_bytes += is_free ? block->size : 0;
        tally->free_blocks += is_free;
        at += block->size;
        was_free = is_free;
        previous = slot;
    }
    if (at != chunk->base + chunk->size) return corrupt("the blocks do not fill their chunk", previous);
    tally->chunk_bytes += chunk->size;
    tally->reserved_bytes += strata_record_reserved(chunk->below);
    tally->chunks++;
    return STRATA_OK;
}

strata_status_t strata_auto_growth_validate(strata_layer_t *base) {
    auto_growth_t *self = (auto_growth_t *)base;
    tally_t tally = {0};
    for (uint32_t number = self->first_chunk; number; number = chunk_at(self, number)->next) {
        if (tally.chunks >= STRATA_AUTO_GROWTH_CHUNKS) return corrupt("the list of chunks is a circle", 0);
        strata_status_t status = validate_chunk(self, number, &tally);
        if (status != STRATA_OK) return status;
    }
    const strata_statistics_t *f = &base->stack->figures;
    bool less = f->chunks < tally.chunks || f->reserved_bytes < tally.reserved_bytes;
    if (less || tally.chunks != self->chunk_count || tally.chunk_bytes != self->chunk_bytes)
        return corrupt("the sum of chunks is wrong", 0);
    if (tally.free_bytes != strata_auto_growth_idle(self)) return corrupt("the sum of free blocks is wrong", 0);
    if (!self->by_address) return strata_bins_validate(&self->bins, slab_of(self), tally.free_blocks, tally.free_bytes);
    if (tally.free_blocks != self->tree.count || tally.free_bytes != self->tree.bytes)
        return corrupt("the sum of the tree is wrong", 0);
    return strata_tree_validate(&self->tree, slab_of(self));
}

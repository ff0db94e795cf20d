/* The whole-structure check of auto_growth: the executable form of what its file says holds. */
#include "allocation/layer/auto_growth.h"
#include "allocation/mechanism/pieces.h"

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "auto_growth: %s (slot %u)", what, slot);
}

typedef struct tally {
    strata_pieces_tally_t pieces;
    uint64_t chunk_bytes, reserved_bytes;
    uint32_t chunks;
} tally_t;

/* The blocks of a chunk lie one behind the other from its base to its end, no two free ones side by side. */
static strata_status_t validate_chunk(auto_growth_t *self, uint32_t number, tally_t *tally) {
    const chunk_t *chunk = chunk_at(self, number);
    strata_status_t status = strata_pieces_validate("auto_growth", slab_of(self), chunk->first, number, chunk->base, chunk->size,
                                                    &tally->pieces);
    if (status != STRATA_OK) return status;
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
    if (tally.pieces.free_bytes != strata_auto_growth_idle(self)) return corrupt("the sum of free blocks is wrong", 0);
    if (!self->by_address) return strata_bins_validate(&self->bins, slab_of(self), tally.pieces.free_blocks, tally.pieces.free_bytes);
    if (tally.pieces.free_blocks != self->tree.count || tally.pieces.free_bytes != self->tree.bytes)
        return corrupt("the sum of the tree is wrong", 0);
    return strata_tree_validate(&self->tree, slab_of(self));
}

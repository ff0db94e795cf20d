/* The whole-structure check of bfc: the executable form of what its files say holds. */
#include "allocation/layer/bfc.h"

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "bfc: %s (slot %u)", what, slot);
}

typedef struct tally {
    strata_pieces_tally_t pieces;
    uint64_t region_bytes, reserved_bytes;
    uint32_t regions, chunks, stamps;
} tally_t;

/* A free block lies in the order of its bin: it can be found there. */
static bool is_indexed(const bfc_t *self, const strata_record_t *block) {
    uint32_t slot = strata_tree_after(&self->idle, bfc_slab(self), block->size, block->ptr - 1);
    return slot == strata_slab_slot(bfc_slab(self), block);
}

/* Of two free blocks side by side one was freed at a count that the frontier had not passed. */
static bool should_have_merged(const bfc_t *self, const strata_record_t *block) {
    bool both = block->state == STRATA_RECORD_FREE && bfc_is_free(self, block->next);
    return both && bfc_stamp_of(block) == 0 && bfc_stamp_of(bfc_block(self, block->next)) == 0;
}

static strata_status_t validate_blocks(const bfc_t *self, const bfc_region_t *region, tally_t *tally) {
    uint32_t live = 0;
    for (uint32_t slot = region->first; slot; slot = bfc_block(self, slot)->next) {
        const strata_record_t *block = bfc_block(self, slot);
        live += block->state != STRATA_RECORD_FREE;
        if (block->state != STRATA_RECORD_FREE) continue;
        if (!is_indexed(self, block)) return corrupt("a free block is in no bin", slot);
        if (should_have_merged(self, block)) return corrupt("two free blocks were not merged", slot);
        if (strata_mark_count(block) > self->frees) return corrupt("a block was freed after all frees", slot);
        tally->stamps += bfc_stamp_of(block) != 0;
    }
    return live == region->live ? STRATA_OK : corrupt("a region counts its live blocks wrongly", region->first);
}

/* The chunks of a region follow one another and fill it. */
static strata_status_t validate_parts(const bfc_t *self, const bfc_region_t *region, tally_t *tally) {
    uint64_t at = region->base;
    uint32_t count = 0;
    for (uint32_t node = region->parts; node; node = bfc_part_at(self, node)->next) {
        if (node >= self->parts.used || ++count > region->part_count)
            return corrupt("the list of a region's chunks is broken", region->first);
        const strata_record_t *below = bfc_part_at(self, node)->below;
        if (below->ptr != at) return corrupt("a chunk does not begin where the one before it ends", region->first);
        at += below->size;
        tally->reserved_bytes += strata_record_reserved(below);
    }
    tally->chunks += count;
    if (count != region->part_count || at != region->base + region->size)
        return corrupt("the chunks do not fill their region", region->first);
    return STRATA_OK;
}

static strata_status_t validate_region(const bfc_t *self, uint32_t node, tally_t *tally) {
    const bfc_region_t *region = bfc_region_at(self, node);
    const bfc_region_t *next = region->next ? bfc_region_at(self, region->next) : NULL;
    if (next && (region->next >= self->regions.used || next->prev != node || next->base < region->base + region->size))
        return corrupt("the regions are out of order", region->first);
    strata_status_t status = validate_parts(self, region, tally);
    if (status == STRATA_OK)
        status = strata_pieces_validate("bfc", bfc_slab(self), region->first, node, region->base, region->size, &tally->pieces);
    if (status == STRATA_OK) status = validate_blocks(self, region, tally);
    tally->region_bytes += region->size;
    tally->regions++;
    return status;
}

static strata_status_t validate_sums(bfc_t *self, const tally_t *tally) {
    const strata_statistics_t *f = &self->base.stack->figures;
    if (tally->regions != self->region_count || tally->region_bytes != self->reserved || f->chunks < tally->chunks ||
        f->reserved_bytes < tally->reserved_bytes)
        return corrupt("the sum of regions is wrong", 0);
    if (tally->pieces.free_bytes != bfc_idle(self)) return corrupt("the sum of free blocks is wrong", 0);
    if (tally->pieces.free_blocks != self->idle.count || tally->pieces.free_bytes != self->idle.bytes)
        return corrupt("the bins do not have the free blocks", 0);
    return tally->stamps == self->stamp_count ? STRATA_OK : corrupt("the number of counts is wrong", 0);
}

strata_status_t strata_bfc_validate(strata_layer_t *base) {
    bfc_t *self = (bfc_t *)base;
    tally_t tally = {.pieces = {.apart = true}};
    for (uint32_t node = self->first_region; node; node = bfc_region_at(self, node)->next) {
        if (node >= self->regions.used || tally.regions >= self->region_count) return corrupt("the list of regions is broken", 0);
        strata_status_t status = validate_region(self, node, &tally);
        if (status != STRATA_OK) return status;
    }
    strata_status_t status = validate_sums(self, &tally);
    if (status == STRATA_OK) status = strata_tree_validate(&self->idle, bfc_slab(self));
    if (status == STRATA_OK) status = strata_bfc_validate_stamps(self);
    if (status == STRATA_OK) status = strata_users_validate(&self->users);
    return status == STRATA_OK ? strata_nodes_validate(&self->parts) : status;
}

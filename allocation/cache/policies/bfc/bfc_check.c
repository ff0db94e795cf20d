/* Validates the whole structure of bfc, by the rules that its files state. */
#include "allocation/cache/policies/bfc/bfc_state.h"

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "bfc: %s (slot %u)", what, slot);
}

/* Returns true if a free block can be found in the tree. */
static bool is_indexed(const bfc_t *self, const strata_record_t *block) {
    uint32_t slot = strata_tree_after(&self->idle, bfc_slab(self), block->size, block->ptr - 1);
    return slot == strata_slab_slot(bfc_slab(self), block);
}

/* Returns true if two adjacent free blocks have no stamp. At least one needs a count that the frontier has not
 * passed. */
static bool should_have_merged(const bfc_t *self, const strata_record_t *block) {
    bool both = block->state == STRATA_RECORD_FREE && bfc_is_free(self, block->next);
    return both && bfc_stamp_of(block) == 0 && bfc_stamp_of(bfc_block(self, block->next)) == 0;
}

static strata_status_t validate_region(const bfc_t *self, uint32_t number, uint32_t *stamps) {
    uint32_t live = 0;
    STRATA_EACH_BLOCK(&self->chunks, number, slot) {
        const strata_record_t *block = bfc_block(self, slot);
        live += block->state != STRATA_RECORD_FREE;
        if (block->state != STRATA_RECORD_FREE) continue;
        if (!is_indexed(self, block)) return corrupt("a free block is in no bin", slot);
        if (should_have_merged(self, block)) return corrupt("two free blocks were not merged", slot);
        if (strata_mark_count(block) > self->last.frees) return corrupt("a block's free number exceeds the count of frees", slot);
        *stamps += bfc_stamp_of(block) != 0;
    }
    return live == bfc_region_at(self, number)->live ? STRATA_OK : corrupt("a region's count of live blocks is wrong", 0);
}

static strata_status_t validate_regions(const bfc_t *self, const strata_block_list_tally_t *pieces) {
    uint32_t stamps = 0;
    STRATA_EACH_CHUNK(&self->chunks, number) {
        strata_status_t status = validate_region(self, number, &stamps);
        if (status != STRATA_OK) return status;
    }
    if (pieces->free_bytes != bfc_idle(self)) return corrupt("the sum of free blocks is wrong", 0);
    if (pieces->free_blocks != self->idle.count || pieces->free_bytes != self->idle.bytes)
        return corrupt("the bins do not match the free blocks", 0);
    return stamps == self->stamp_count ? STRATA_OK : corrupt("the number of counts is wrong", 0);
}

strata_status_t strata_bfc_validate(strata_layer_t *base) {
    bfc_t *self = (bfc_t *)base;
    strata_block_list_tally_t pieces = {.may_be_adjacent = true};
    strata_status_t status = strata_chunks_validate(&self->chunks, &pieces);
    if (status == STRATA_OK) status = validate_regions(self, &pieces);
    if (status == STRATA_OK) status = strata_tree_validate(&self->idle, bfc_slab(self));
    if (status == STRATA_OK) status = strata_bfc_validate_stamps(self);
    return status == STRATA_OK ? strata_last_users_validate(&self->last) : status;
}

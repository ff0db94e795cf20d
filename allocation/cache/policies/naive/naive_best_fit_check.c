/* Validates the whole structure of naive_best_fit and thread_local, by the rules that their files state. */
#include "allocation/cache/policies/naive/naive_best_fit_state.h"

static strata_status_t corrupt(const naive_t *self, const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "%s: %s (slot %u)", self->base.type->name, what, slot);
}

/* Checks that a huge block is a chunk of its own, larger than the pool's blocks, and never free. */
static strata_status_t validate_blocks(const naive_t *self) {
    uint64_t huge_bytes = 0;
    STRATA_EACH_CHUNK(&self->chunks, number)
        STRATA_EACH_BLOCK(&self->chunks, number, slot) {
            const strata_record_t *block = naive_block(self, slot);
            if (block->state == STRATA_RECORD_FREE && strata_mark_count(block) > self->last.frees)
                return corrupt(self, "a free block has an unknown mark", slot);
            if (block->pool != STRATA_NAIVE_HUGE) continue;
            if (block->size != strata_chunk_at(&self->chunks, number)->size || block->state == STRATA_RECORD_FREE)
                return corrupt(self, "a huge chunk is not one block in use", slot);
            if (block->size <= self->max_block) return corrupt(self, "a huge block is small enough for the pool", slot);
            huge_bytes += block->size;
        }
    return huge_bytes == self->huge_bytes ? STRATA_OK : corrupt(self, "the sum of huge blocks is wrong", 0);
}

strata_status_t strata_naive_validate(strata_layer_t *base) {
    naive_t *self = (naive_t *)base;
    strata_block_list_tally_t pieces = {0};
    strata_status_t status = strata_chunks_validate(&self->chunks, &pieces);
    if (status == STRATA_OK) status = validate_blocks(self);
    if (status == STRATA_OK) status = strata_buddy_validate(base->type->name, &self->buddy, naive_slab(self), &pieces);
    return status == STRATA_OK && !self->one_user ? strata_last_users_validate(&self->last) : status;
}

/* The whole-structure check of naive_best_fit and thread_local: the executable form of what their files say holds. */
#include "allocation/layer/naive_best_fit.h"

static strata_status_t corrupt(const naive_t *self, const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "%s: %s (slot %u)", self->base.type->name, what, slot);
}

typedef struct tally {
    strata_pieces_tally_t pieces;
    uint64_t chunk_bytes, huge_bytes, reserved_bytes;
    uint32_t chunks;
} tally_t;

static strata_status_t validate_chunk(const naive_t *self, uint32_t node, tally_t *tally) {
    const naive_chunk_t *chunk = naive_chunk_at(self, node);
    strata_pieces_tally_t before = tally->pieces;
    strata_status_t status = strata_pieces_validate(self->base.type->name, naive_slab(self), chunk->first, node, chunk->base,
                                                    chunk->size, &tally->pieces);
    if (status != STRATA_OK) return status;
    const strata_record_t *block = naive_block(self, chunk->first);
    if (chunk->huge && (block->next || tally->pieces.free_blocks != before.free_blocks))
        return corrupt(self, "a huge chunk is not one block in use", chunk->first);
    if (chunk->huge && block->size <= self->max_block) return corrupt(self, "a huge block is one of the pool's", chunk->first);
    *(chunk->huge ? &tally->huge_bytes : &tally->chunk_bytes) += chunk->size;
    tally->reserved_bytes += strata_record_reserved(chunk->below);
    tally->chunks++;
    return STRATA_OK;
}

static strata_status_t validate_chunks(const naive_t *self, tally_t *tally) {
    uint32_t previous = 0;
    for (uint32_t node = self->first_chunk; node; node = naive_chunk_at(self, node)->next) {
        if (node >= self->chunks.used || tally->chunks >= self->chunk_count || naive_chunk_at(self, node)->prev != previous)
            return corrupt(self, "the list of chunks is broken", 0);
        strata_status_t status = validate_chunk(self, node, tally);
        if (status != STRATA_OK) return status;
        previous = node;
    }
    return previous == self->last_chunk ? STRATA_OK : corrupt(self, "the list of chunks ends elsewhere", 0);
}

strata_status_t strata_naive_validate(strata_layer_t *base) {
    const naive_t *self = (const naive_t *)base;
    tally_t tally = {0};
    strata_status_t status = validate_chunks(self, &tally);
    if (status != STRATA_OK) return status;
    const strata_statistics_t *f = &base->stack->figures;
    if (tally.chunks != self->chunk_count || tally.chunk_bytes != self->chunk_bytes || tally.huge_bytes != self->huge_bytes ||
        f->chunks < tally.chunks || f->reserved_bytes < tally.reserved_bytes)
        return corrupt(self, "the sum of chunks is wrong", 0);
    status = strata_buddy_validate(base->type->name, &self->buddy, naive_slab(self), &tally.pieces);
    return status == STRATA_OK ? strata_naive_validate_users(self) : status;
}

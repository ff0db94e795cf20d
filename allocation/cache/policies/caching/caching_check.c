/* Validates the whole structure of caching, by the rules that its files state. */
#include "allocation/cache/policies/caching/caching_state.h"

#include <string.h>

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "caching: %s (slot %u)", what, slot);
}

/* Returns true if a free block can be found in its bank's tree. */
static bool is_indexed(const caching_t *self, const caching_segment_t *segment, const strata_record_t *block) {
    const strata_tree_t *tree = &caching_bank_at(self, segment->bank)->idle[segment->kind];
    uint32_t slot = strata_tree_after(tree, caching_slab(self), block->size, block->ptr - 1);
    return slot == strata_slab_slot(caching_slab(self), block);
}

static strata_status_t validate_segment(const caching_t *self, uint32_t node) {
    const caching_segment_t *segment = caching_segment_at(self, node);
    if (segment->bank == 0 || segment->bank >= self->banks.used || segment->kind >= STRATA_CACHING_KINDS)
        return corrupt("a segment belongs to no bank", segment->chunk.first);
    STRATA_EACH_BLOCK(&self->chunks, node, slot) {
        const strata_record_t *block = caching_block(self, slot);
        if (block->size == 0) continue; /* an end of a run */
        bool lost = block->state == STRATA_RECORD_FREE && !is_indexed(self, segment, block);
        if (lost) return corrupt("a free block is in no bank", slot);
        if (block->pool != caching_code(segment->bank, segment->kind)) return corrupt("a block names the wrong bank", slot);
    }
    return STRATA_OK;
}

typedef struct bank_tally {
    uint64_t bytes;
    uint32_t blocks, segments, orphaned;
} bank_tally_t;

static strata_status_t validate_bank(const caching_t *self, uint32_t node, bank_tally_t *tally) {
    const caching_bank_t *bank = caching_bank_at(self, node);
    strata_status_t status = STRATA_OK;
    for (uint32_t kind = 0; kind < STRATA_CACHING_KINDS && status == STRATA_OK; kind++) {
        status = strata_tree_validate(&bank->idle[kind], caching_slab(self));
        tally->blocks += bank->idle[kind].count;
        tally->bytes += bank->idle[kind].bytes;
    }
    if (bank->stream > 0 && bank->stream >= self->uses.users.nodes.used) return corrupt("a bank belongs to an unknown stream", 0);
    const strata_order_key_t key = strata_caching_bank_key(self, bank->stream);
    if (memcmp(&bank->link.key, &key, sizeof key) != 0) return corrupt("a bank's position does not match its stream", 0);
    tally->segments += bank->segments;
    if (bank->orphaned != (bank->stream && caching_stream_at(self, bank->stream)->state != STRATA_USER_NAMED))
        return corrupt("a bank's destroyed flag does not match its stream", 0);
    tally->orphaned += bank->orphaned;
    return status;
}

static strata_status_t validate_banks(const caching_t *self, const strata_block_list_tally_t *blocks) {
    bank_tally_t tally = {0};
    strata_status_t status = strata_order_validate(&self->bank_order);
    for (uint32_t node = caching_first_bank(self); node && status == STRATA_OK; node = caching_next_bank(self, node))
        status = validate_bank(self, node, &tally);
    if (status != STRATA_OK) return status;
    if (tally.blocks != blocks->free_blocks || tally.bytes != blocks->free_bytes)
        return corrupt("the banks do not match the free blocks", 0);
    uint32_t count = self->vmm ? self->runs.parts.count + self->ranges.used - 1 - self->ranges.unused : self->chunks.count;
    if (tally.segments != count) return corrupt("the banks do not match the segments", 0);
    uint32_t gone = 0;
    for (uint32_t node = self->first_orphan; node && gone <= tally.orphaned; node = caching_bank_at(self, node)->next_orphan_bank)
        gone++;
    return tally.orphaned == gone ? STRATA_OK : corrupt("the list of banks of destroyed streams is wrong", 0);
}

strata_status_t strata_caching_validate(strata_layer_t *base) {
    caching_t *self = (caching_t *)base;
    strata_block_list_tally_t pieces = {0};
    strata_status_t status = strata_chunks_validate(&self->chunks, &pieces);
    if (status == STRATA_OK && self->vmm) status = strata_caching_validate_ranges(self);
    STRATA_EACH_CHUNK(&self->chunks, node)
        if (status == STRATA_OK) status = validate_segment(self, node);
    if (status != STRATA_OK) return status;
    if (pieces.free_bytes != caching_idle(self)) return corrupt("the sum of free blocks is wrong", 0);
    status = validate_banks(self, &pieces);
    if (status != STRATA_OK) return status;
    return caching_ignores_streams(self) ? strata_last_users_validate(&self->last) : strata_uses_validate(&self->uses, "caching");
}

/* ---- statistics ---- */

/* Computes PyTorch's small_pool and large_pool statistics, segment by segment, when they are read. */
void strata_caching_figures(caching_t *self) {
    uint64_t idle[STRATA_CACHING_KINDS] = {0}, whole[STRATA_CACHING_KINDS] = {0};
    for (int kind = 0; kind < STRATA_CACHING_KINDS; kind++) {
        self->of_kind[kind] = 0;
        for (uint32_t node = caching_first_bank(self); node; node = caching_next_bank(self, node))
            idle[kind] += caching_bank_at(self, node)->idle[kind].bytes;
    }
    STRATA_EACH_CHUNK(&self->chunks, node) {
        const caching_segment_t *segment = caching_segment_at(self, node);
        self->of_kind[segment->kind] += segment->chunk.size;
        if (strata_chunk_is_idle(&self->chunks.base, &segment->chunk)) whole[segment->kind] += segment->chunk.size;
    }
    for (int kind = 0; kind < STRATA_CACHING_KINDS; kind++) {
        self->active[kind] = self->of_kind[kind] - idle[kind];
        /* The peer counts no block of an expandable segment as split. */
        self->split[kind] = self->vmm ? 0 : idle[kind] - whole[kind];
    }
}

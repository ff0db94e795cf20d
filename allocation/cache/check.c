/* Validates all chunks of a cache. */
#include "allocation/cache/chunks.h"
#include "platform/arithmetic.h"

typedef struct tally {
    uint64_t bytes, reserved_bytes;
    uint32_t chunks, parts;
} tally_t;

static strata_status_t corrupt(const strata_chunks_t *self, const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "%s: %s (slot %u)", self->base.type->name, what, slot);
}

/* Checks that joined parts are adjacent and fill the chunk. */
static strata_status_t validate_parts(const strata_chunks_t *self, uint32_t number, tally_t *tally) {
    const strata_chunk_t *chunk = strata_chunk_at(self, number);
    uint64_t at = chunk->base;
    for (uint32_t part = number, last = 0; part; last = part, part = strata_chunk_at(self, part)->part) {
        if (part >= self->nodes.used || ++tally->parts >= self->nodes.used || (last == chunk->last_part && last))
            return corrupt(self, "the list of a chunk's parts is broken", chunk->first);
        const strata_record_t *below = strata_chunk_at(self, part)->below;
        if (below->ptr != at) return corrupt(self, "a part of a chunk does not begin where the one before it ends", chunk->first);
        at += strata_round_down(below->size, self->unit);
        tally->reserved_bytes += strata_record_reserved(below);
    }
    return at == chunk->base + chunk->size ? STRATA_OK : corrupt(self, "a chunk's size is not the sum of its parts", chunk->first);
}

static strata_status_t validate_chunk(const strata_chunks_t *self, uint32_t number, tally_t *tally,
                                      strata_block_list_tally_t *pieces) {
    const strata_chunk_t *chunk = strata_chunk_at(self, number);
    if (chunk->by_address.key.first != chunk->base || chunk->by_address.key.second != number)
        return corrupt(self, "a chunk is not at its address", chunk->first);
    const strata_record_t *last = strata_slab_record(&self->base.stack->slab, chunk->last);
    if (self->joins && (last->chunk != number || last->next)) return corrupt(self, "a chunk's last block is wrong", chunk->last);
    tally->bytes += chunk->size;
    tally->chunks++;
    strata_status_t status = validate_parts(self, number, tally);
    if (status != STRATA_OK) return status;
    bool bounded = self->one_number != 0;
    uint32_t first = bounded ? strata_slab_record(&self->base.stack->slab, chunk->first)->next : chunk->first;
    pieces->bounds[0] = bounded ? chunk->first : 0;
    pieces->bounds[1] = bounded ? chunk->last : 0;
    return strata_block_list_validate(self->base.type->name, &self->base.stack->slab, first, bounded ? self->one_number : number,
                                      chunk->base, chunk->size, pieces);
}

static strata_status_t validate_list(const strata_chunks_t *self, tally_t *tally, strata_block_list_tally_t *pieces) {
    uint32_t previous = 0;
    STRATA_EACH_CHUNK(self, number) {
        const strata_chunk_t *chunk = strata_chunk_at(self, number);
        if (number >= self->nodes.used || tally->chunks >= self->count || chunk->prev != previous)
            return corrupt(self, "the list of chunks is broken", 0);
        if (self->sorted && previous && chunk->base < strata_chunk_at(self, previous)->base)
            return corrupt(self, "the chunks are out of order", chunk->first);
        strata_status_t status = validate_chunk(self, number, tally, pieces);
        if (status != STRATA_OK) return status;
        previous = number;
    }
    return previous == self->last ? STRATA_OK : corrupt(self, "the end of the list of chunks is wrong", 0);
}

strata_status_t strata_chunks_validate(const strata_chunks_t *self, strata_block_list_tally_t *pieces) {
    const strata_statistics_t *f = &self->base.stack->figures;
    tally_t tally = {0};
    strata_status_t status = validate_list(self, &tally, pieces);
    if (status != STRATA_OK) return status;
    if (tally.chunks != self->count || tally.bytes != self->bytes || self->held < self->bytes || f->chunks < tally.parts ||
        f->reserved_bytes < tally.reserved_bytes || self->by_address.count != self->count)
        return corrupt(self, "the sum of chunks is wrong", 0);
    status = strata_order_validate(&self->by_address);
    if (status == STRATA_OK) status = strata_nodes_validate(&self->nodes);
    return status == STRATA_OK ? strata_repeats_validate(&self->repeats) : status;
}

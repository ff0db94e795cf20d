/* What live blocks keep from going back. */
#include "allocation/chunks/chunks.h"
#include "platform/arithmetic.h"

typedef struct pinning {
    const strata_chunks_t *chunks;
    strata_extent_t beside;
    uint32_t part; /* of the chunk: all before it end below the block that comes next; 0: there is none */
    bool counted; /* the part is */
    uint64_t bytes;
} pinning_t;

static uint64_t in_common(const strata_extent_t *a, uint64_t from, uint64_t to) {
    uint64_t low = strata_max(a->ptr, from), high = strata_min(a->ptr + a->size, to);
    return low < high ? high - low : 0;
}

/* Parts and blocks of a chunk both come in the order of addresses, and the part that a block ends in may have the next one too. */
static void pin(pinning_t *p, const strata_record_t *block) {
    uint64_t end = block->ptr + block->size;
    while (p->part) {
        const strata_chunk_t *chunk = strata_chunk_at(p->chunks, p->part);
        const strata_record_t *below = chunk->below;
        if (below->ptr >= end) return;
        if (below->ptr + below->size > block->ptr && !p->counted) {
            p->bytes += below->size - in_common(&p->beside, below->ptr, below->ptr + below->size);
            p->counted = true;
        }
        if (below->ptr + below->size >= end) return;
        p->part = chunk->part;
        p->counted = false;
    }
}

uint64_t strata_chunks_pinned(const strata_chunks_t *self, const strata_extent_t *beside) {
    pinning_t p = {.chunks = self, .beside = *beside};
    STRATA_EACH_CHUNK(self, number) {
        p.part = number;
        p.counted = false;
        STRATA_EACH_BLOCK(self, number, slot) {
            const strata_record_t *block = strata_slab_record(&self->base.stack->slab, slot);
            bool live = block->size > 0 && block->state != STRATA_RECORD_FREE;
            if (live && !in_common(beside, block->ptr, block->ptr + 1)) pin(&p, block);
        }
    }
    return p.bytes;
}

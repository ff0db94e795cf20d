/* What validate finds of any cache's blocks and chunks. */
#include "tests/chunked/chunked.h"

typedef struct planted {
    rig_t rig;
    strata_chunks_t *chunks;
    strata_block_t kept[3];
    strata_record_t *block, *idle; /* live, with a live block on either side or a free one; free between two live ones */
} planted_t;

static void begin(const cache_t *cache, planted_t *p) {
    cache_open(cache, &p->rig);
    p->kept[0] = rig_allocate(&p->rig, NULL, 256 * KIB);
    strata_block_t gone = rig_allocate(&p->rig, NULL, 256 * KIB);
    p->kept[1] = rig_allocate(&p->rig, NULL, 256 * KIB);
    p->kept[2] = rig_allocate(&p->rig, NULL, 20 * MIB);
    p->chunks = cache_of(cache, &p->rig);
    p->block = cache_block(p->chunks, p->kept[1].ref);
    p->idle = cache_block(p->chunks, gone.ref);
    EXPECT_OK(strata_free(p->rig.s, gone.ref));
}

static void end(planted_t *p) {
    EXPECT_OK(strata_validate(p->rig.s));
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(p->rig.s, p->kept[i].ref));
    rig_close(&p->rig);
}

#define PLANT(place, value, what) EXPECT_PLANTED(strata_validate(p.rig.s), place, value, what)

TEST_EACH(chunked, planted_faults_of_blocks_are_found, cache_t, caches) {
    planted_t p;
    begin(row, &p);
    PLANT(p.block->ptr, p.block->ptr + 256, "does not begin where the one before it ends");
    PLANT(p.block->ptr, p.block->ptr - 256, "does not begin where the one before it ends");
    PLANT(p.block->size, p.block->size - 256, "");
    PLANT(p.block->size, p.block->size + 256, "");
    PLANT(p.block->size, 0, "size is wrong");
    PLANT(p.block->size, GIB, "size is wrong");
    PLANT(p.block->prev, UINT32_MAX, "link back is wrong");
    PLANT(p.block->next, 1u << 23, "a link leads out of the slab");
    PLANT(p.block->chunk, p.block->chunk + 1, "names the wrong chunk");
    PLANT(p.block->state, STRATA_RECORD_FREE, "a block's bit and its state differ");
    PLANT(p.block->state, STRATA_RECORD_UNUSED, "");
    PLANT(p.idle->state, STRATA_RECORD_LIVE, "is marked idle");
    PLANT(p.idle->size, p.idle->size - 256, "");
    PLANT(p.idle->next, 1u << 23, "a link leads out of the slab");
    PLANT(p.chunks->base.stack->slab.idle[0], 0, "a block's bit and its state differ");
    end(&p);
}

TEST_EACH(chunked, planted_faults_of_chunks_are_found, cache_t, caches) {
    planted_t p;
    begin(row, &p);
    strata_chunks_t *chunks = p.chunks;
    strata_chunk_t *first = strata_chunk_at(chunks, chunks->first), *second = strata_chunk_at(chunks, first->next);
    ASSERT_NE(first->next, 0);
    PLANT(chunks->first, 0, "");
    PLANT(chunks->first, chunks->nodes.used, "the list of chunks is broken");
    PLANT(chunks->last, 0, "the end of the list of chunks is wrong");
    PLANT(chunks->count, chunks->count + 1, "the sum of chunks is wrong");
    PLANT(chunks->count, 1, "the list of chunks is broken");
    PLANT(chunks->bytes, chunks->bytes + MIB, "the sum of chunks is wrong");
    PLANT(chunks->held, chunks->bytes - 1, "the sum of chunks is wrong");
    PLANT(chunks->by_address.count, 9, "the sum of chunks is wrong");
    PLANT(chunks->nodes.unused, chunks->nodes.used, "the nodes count");
    PLANT(chunks->base.stack->figures.reserved_bytes, 256, "the sum of chunks is wrong");
    PLANT(chunks->base.stack->figures.chunks, 0, "the sum of chunks is wrong");
    PLANT(second->prev, 0, "the list of chunks is broken");
    PLANT(first->size, first->size + 256, "a chunk's size is not the sum of its parts");
    PLANT(first->base, first->base - 256, "a chunk is not at its address");
    PLANT(first->part, chunks->nodes.used, "the list of a chunk's parts is broken");
    end(&p);
}

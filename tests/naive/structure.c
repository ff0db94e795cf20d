/* What validate finds of naive_best_fit, and what happens where its tables end. */
#include "tests/naive/naive.h"

typedef struct planted {
    rig_t rig;
    naive_t *self;
    strata_block_t kept[4];
    strata_record_t *block, *idle, *huge;
} planted_t;

static strata_record_t *record_of(planted_t *p, strata_ref_t ref) { return naive_block(p->self, strata_ref_slot(ref)); }

static void begin(planted_t *p) {
    naive_open(&p->rig, "naive_best_fit", "streams: ignored, initial: 8MiB, reallocate: 4MiB", 0);
    strata_stream_t one = rig_stream(&p->rig), two = rig_stream(&p->rig);
    p->self = naive_of(&p->rig, one);
    p->kept[0] = rig_allocate(&p->rig, one, MIB);
    strata_block_t gone = rig_allocate(&p->rig, one, MIB);
    p->kept[1] = rig_allocate(&p->rig, two, MIB);
    p->kept[2] = rig_allocate(&p->rig, two, 6 * MIB);
    p->kept[3] = rig_allocate(&p->rig, two, 9 * MIB);
    p->idle = record_of(p, gone.ref);
    p->block = record_of(p, p->kept[1].ref);
    p->huge = record_of(p, p->kept[3].ref);
    EXPECT_OK(strata_free(p->rig.s, gone.ref));
    EXPECT_OK(strata_validate(p->rig.s));
}

static void end(planted_t *p) {
    EXPECT_OK(strata_validate(p->rig.s));
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(p->rig.s, p->kept[i].ref));
    rig_close(&p->rig);
}

static void expect_corrupt(planted_t *p, const char *text) {
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_validate(p->rig.s));
    EXPECT_CONTAINS(strata_last_error()->text, text);
}

/* Changes a word, expects the fault to be told, and puts the word back. */
#define PLANT(word, value, text)                                                                                                   \
    do {                                                                                                                           \
        __typeof__(word) was_ = (word);                                                                                            \
        (word) = (__typeof__(word))(value);                                                                                        \
        expect_corrupt(&p, text);                                                                                                  \
        (word) = was_;                                                                                                             \
        EXPECT_OK(strata_validate(p.rig.s));                                                                                       \
    } while (0)

TEST(naive_structure, planted_faults_of_blocks_are_found) {
    planted_t p;
    begin(&p);
    PLANT(p.block->ptr, p.block->ptr + 256, "does not begin where the one before it ends");
    PLANT(p.block->size, p.block->size - 256, "does not begin where the one before it ends");
    PLANT(p.block->prev, 0, "link back is wrong");
    PLANT(p.block->chunk, p.block->chunk + 1, "names another chunk");
    PLANT(p.block->state, STRATA_RECORD_FREE, "a block's bit and its state differ");
    PLANT(p.idle->state, STRATA_RECORD_LIVE, "is noted as idle");
    PLANT(p.idle->borrows, 100, "a mark that was never made");
    PLANT(p.block->bin_prev, 0, "the streams do not hold the live blocks");
    PLANT(p.huge->state, STRATA_RECORD_FREE, "a block's bit and its state differ");
    end(&p);
}

TEST(naive_structure, planted_faults_of_chunks_and_sums_are_found) {
    planted_t p;
    begin(&p);
    naive_t *self = p.self;
    strata_chunk_t *chunk = strata_chunk_at(&self->chunks, p.block->chunk), *huge = strata_chunk_at(&self->chunks, p.huge->chunk);
    PLANT(self->chunks.bytes, self->chunks.bytes + MIB, "the sum of chunks is wrong");
    PLANT(self->chunks.held, self->chunks.bytes - 1, "the sum of chunks is wrong");
    PLANT(self->huge_bytes, self->huge_bytes + MIB, "the sum of huge blocks is wrong");
    PLANT(self->chunks.count, self->chunks.count + 1, "the sum of chunks is wrong");
    PLANT(self->chunks.count, self->chunks.count - 1, "the list of chunks is broken");
    PLANT(self->chunks.last, 0, "the list of chunks ends elsewhere");
    PLANT(chunk->prev, huge->prev, "the list of chunks is broken");
    PLANT(p.block->pool, STRATA_NAIVE_HUGE, "a huge chunk is not one block in use");
    PLANT(chunk->size, chunk->size + 256, "a chunk is not as large as its parts");
    PLANT(chunk->base, chunk->base - 256, "a chunk does not stand at its address");
    PLANT(self->max_block, 64 * MIB, "a huge block is one of the pool's");
    PLANT(self->buddy.idle.count, self->buddy.idle.count + 1, "the index does not have the free blocks");
    PLANT(self->buddy.clean, self->buddy.last + 1, "the order of marks is wrong");
    PLANT(self->base.stack->figures.reserved_bytes, MIB, "the sum of chunks is wrong");
    strata_user_t *user = naive_user_at(self, p.block->bin_prev);
    PLANT(user->holds, user->holds + 1, "the streams do not hold the live blocks");
    PLANT(user->count, self->buddy.last + 1, "a stream has a mark that was never made");
    end(&p);
}

/* A full slab: the request fails with the reason, nothing has changed, and a chunk that came for it goes back. */
TEST(naive_structure, a_full_slab_is_told) {
    rig_t rig;
    strata_block_t b = {.ref = 3};
    naive_open(&rig, "naive_best_fit", "streams: ignored, initial: 8MiB", 0);
    strata_block_t kept = rig_allocate(&rig, NULL, MIB);
    strata_slab_t *slab = naive_slab(naive_of(&rig, NULL));
    uint32_t capacity = slab->capacity;
    slab->capacity = slab->used;
    EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, MIB, &b));
    EXPECT_CONTAINS(strata_last_error()->text, "blocks, its most");
    EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, 9 * MIB, &b));
    EXPECT_CONTAINS(strata_last_error()->text, "blocks, its most");
    EXPECT_EQ(b.ref, 3);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
    slab->capacity = capacity;
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, kept.ref));
    rig_close(&rig);
}

/* A chunk that finds no place in the table goes back. */
TEST(naive_structure, a_full_table_of_chunks_is_told) {
    rig_t rig;
    strata_block_t b = {.ref = 3};
    naive_open(&rig, "naive_best_fit", "streams: ignored, initial: 8MiB", 0);
    strata_block_t kept = rig_allocate(&rig, NULL, MIB);
    strata_nodes_t *chunks = &naive_of(&rig, NULL)->chunks.nodes;
    uint32_t capacity = chunks->capacity;
    chunks->capacity = chunks->used;
    EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, 9 * MIB, &b));
    EXPECT_CONTAINS(strata_last_error()->text, "chunks or");
    EXPECT_EQ(b.ref, 3);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
    chunks->capacity = capacity;
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, kept.ref));
    rig_close(&rig);
}

TEST(naive_structure, a_full_table_of_streams_is_told) {
    rig_t rig;
    strata_block_t b = {.ref = 3};
    naive_open(&rig, "naive_best_fit", "streams: ignored, initial: 8MiB", 0);
    strata_block_t kept = rig_allocate(&rig, NULL, MIB);
    strata_nodes_t *users = &naive_of(&rig, NULL)->users.nodes;
    uint32_t capacity = users->capacity;
    users->capacity = users->used;
    strata_stream_t other = rig_stream(&rig);
    EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, other, MIB, &b));
    EXPECT_EQ(b.ref, 3);
    users->capacity = capacity;
    b = rig_allocate(&rig, other, MIB);
    EXPECT_OK(strata_free(rig.s, kept.ref));
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
}

#include "allocation/mechanism/buddy.h"

#include "tests/mechanism/mechanism.h"

enum { UNIT = 256, HEADER = 64, CHUNK = 5, BASE = 1 << 20, SIZE = 64 * UNIT };

typedef struct fixture {
    strata_slab_t slab;
    strata_buddy_t buddy;
    uint32_t first;
    uint64_t waited; /* marks up to this are void */
} fixture_t;

static void begin(fixture_t *f, uint64_t header, uint64_t size, uint32_t slots) {
    *f = (fixture_t){.first = 0};
    EXPECT_OK(strata_slab_init(&f->slab, 1, 0, slots));
    strata_buddy_init(&f->buddy, UNIT, header);
    f->first = strata_block_list_begin(&f->slab, CHUNK, BASE, size);
    strata_buddy_add(&f->buddy, &f->slab, f->first);
}

static strata_status_t validate(const fixture_t *f, uint64_t size) {
    strata_block_list_tally_t tally = {0};
    strata_status_t status = strata_block_list_validate("test", &f->slab, f->first, CHUNK, BASE, size, &tally);
    return status == STRATA_OK ? strata_buddy_validate("test", &f->buddy, &f->slab, &tally) : status;
}

/* Serves a size as a layer would; its slot, 0: nothing fits or no slot is left. */
static uint32_t serve(fixture_t *f, uint64_t size) {
    uint64_t rounded;
    EXPECT_TRUE(strata_buddy_round(&f->buddy, size, &rounded));
    uint32_t slot = strata_buddy_find(&f->buddy, &f->slab, rounded);
    if (slot == 0 || !strata_buddy_allocate(&f->buddy, &f->slab, slot, rounded)) return 0;
    strata_slab_record(&f->slab, slot)->state = STRATA_RECORD_LIVE;
    return slot;
}

static void give_of(fixture_t *f, uint32_t slot, uint64_t count, uint32_t stream) {
    strata_mark(strata_slab_record(&f->slab, slot), count, stream);
    uint32_t merged = strata_buddy_free(&f->buddy, &f->slab, slot, f->waited);
    if (merged && strata_slab_record(&f->slab, merged)->prev == 0) f->first = merged;
}

static void give(fixture_t *f, uint32_t slot) { give_of(f, slot, 0, 0); }

static uint64_t offset_of(const fixture_t *f, uint32_t slot) { return strata_slab_record(&f->slab, slot)->ptr - BASE; }

static void end(fixture_t *f) { strata_slab_destroy(&f->slab); }

#define TEST_BUDDY(name, size, slots) TEST_WITH(buddy, name, fixture_t, f, end, begin(f, HEADER, size, slots))

TEST_BUDDY(a_request_and_its_header_are_rounded_together, SIZE, 10) {
    uint64_t rounded;
    static const uint64_t rows[][2] = {{1, 256}, {192, 256}, {193, 512}, {256, 512}, {10240, 10496}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_TRUE(strata_buddy_round(&f->buddy, rows[i][0], &rounded));
        EXPECT_EQ(rounded, rows[i][1]);
    }
    EXPECT_FALSE(strata_buddy_round(&f->buddy, UINT64_MAX - 10, &rounded));
    EXPECT_FALSE(strata_buddy_round(&f->buddy, UINT64_MAX - HEADER - 10, &rounded));
}

TEST_BUDDY(a_request_takes_the_low_end_of_the_smallest, SIZE, 20) {
    uint32_t a = serve(f, 192), b = serve(f, 1000), c = serve(f, 192), d = serve(f, 3000), e = serve(f, 192);
    EXPECT_EQ(offset_of(f, a), 0);
    EXPECT_EQ(offset_of(f, b), 256);
    EXPECT_EQ(offset_of(f, c), 256 + 1280);
    EXPECT_EQ(offset_of(f, d), 512 + 1280);
    EXPECT_EQ(offset_of(f, e), 512 + 1280 + 3072);
    give(f, b);
    give(f, d);
    EXPECT_OK(validate(f, SIZE));
    uint32_t low = serve(f, 700), rest = serve(f, 2000);
    EXPECT_EQ(offset_of(f, low), 256);
    EXPECT_EQ(offset_of(f, rest), 512 + 1280);
    EXPECT_EQ(strata_buddy_find(&f->buddy, &f->slab, SIZE), 0);
    EXPECT_OK(validate(f, SIZE));
}

TEST(buddy, what_is_no_larger_than_a_header_is_not_cut_off) {
    for (uint64_t rest = 63; rest <= 65; rest++) {
        fixture_t f;
        begin(&f, HEADER, 2 * UNIT + rest, 10);
        uint32_t slot = serve(&f, 400);
        EXPECT_EQ(strata_slab_record(&f.slab, slot)->size, rest > HEADER ? 2 * UNIT : 2 * UNIT + rest);
        EXPECT_EQ(f.buddy.idle.bytes, rest > HEADER ? rest : 0);
        EXPECT_OK(validate(&f, 2 * UNIT + rest));
        strata_slab_destroy(&f.slab);
    }
    fixture_t f;
    begin(&f, 0, 2 * UNIT + 1, 10);
    EXPECT_EQ(strata_slab_record(&f.slab, serve(&f, 2 * UNIT))->size, 2 * UNIT);
    EXPECT_EQ(f.buddy.idle.bytes, 1);
    strata_slab_destroy(&f.slab);
}

TEST_BUDDY(blocks_merge_with_both_neighbours, SIZE, 20) {
    uint32_t a = serve(f, 192), b = serve(f, 192), c = serve(f, 192), d = serve(f, 192);
    give(f, a);
    give(f, c);
    EXPECT_EQ(f->buddy.idle.count, 3);
    give(f, b);
    EXPECT_EQ(f->buddy.idle.count, 2);
    EXPECT_EQ(strata_slab_record(&f->slab, a)->size, 768);
    give(f, d);
    EXPECT_EQ(f->buddy.idle.count, 1);
    EXPECT_EQ(strata_slab_record(&f->slab, f->first)->size, SIZE);
    EXPECT_OK(validate(f, SIZE));
    strata_buddy_remove(&f->buddy, &f->slab, f->first);
    strata_slab_release(&f->slab, f->first);
    EXPECT_EQ(f->buddy.idle.bytes, 0);
    EXPECT_EQ(f->slab.unused + 1, f->slab.used);
}

static void expect_mark(const fixture_t *f, uint32_t slot, uint64_t count, uint32_t stream) {
    const strata_record_t *block = strata_slab_record(&f->slab, slot);
    EXPECT_EQ(strata_mark_count(block), count);
    EXPECT_EQ(strata_mark_stream(block), stream);
}

TEST_BUDDY(free_blocks_tell_who_used_them_last, SIZE, 20) {
    uint32_t a = serve(f, 192), b = serve(f, 192), c = serve(f, 192), d = serve(f, 192);
    give_of(f, a, 1, 7);
    expect_mark(f, a, 1, 7);
    give_of(f, b, 2, 7);
    expect_mark(f, a, 2, 7);
    give_of(f, c, 3, 8);
    expect_mark(f, a, 3, 0);
    /* With what nobody used: the mark of the other. What is cut off keeps it. */
    give(f, d);
    expect_mark(f, f->first, 3, 0);
    uint32_t cut = serve(f, 192);
    expect_mark(f, strata_slab_record(&f->slab, cut)->next, 3, 0);
    /* All are waited for; what came back meanwhile is not. */
    f->waited = 3;
    give_of(f, cut, 4, 8);
    expect_mark(f, f->first, 4, 8);
    /* The neighbour behind merges its own. */
    uint32_t low = serve(f, 192), high = serve(f, 192);
    EXPECT_NE(serve(f, 192), 0);
    give_of(f, high, 5, 7);
    give_of(f, low, 6, 8);
    expect_mark(f, low, 6, 0);
    EXPECT_OK(validate(f, SIZE));
}

TEST_BUDDY(a_full_slab_changes_nothing, SIZE, 3) {
    uint32_t a = serve(f, 192);
    EXPECT_NE(a, 0);
    EXPECT_EQ(serve(f, 192), 0);
    EXPECT_OK(validate(f, SIZE));
    /* A used-up slot, and no other: the block stays out of use. */
    EXPECT_NE(serve(f, SIZE - UNIT - HEADER), 0);
    f->slab.records[a].generation = STRATA_GENERATION_LAST;
    EXPECT_EQ(strata_buddy_free(&f->buddy, &f->slab, a, 0), 0);
    EXPECT_EQ(f->slab.records[a].state, STRATA_RECORD_DEFERRED);
    EXPECT_EQ(f->slab.records[a].size, UNIT);
    EXPECT_EQ(f->buddy.idle.count, 0);
    EXPECT_OK(validate(f, SIZE));
}

TEST_BUDDY(a_used_up_slot_is_left, SIZE, 20) {
    uint32_t a = serve(f, 192);
    f->slab.records[a].generation = STRATA_GENERATION_LAST;
    give(f, a);
    EXPECT_NE(f->first, a);
    EXPECT_EQ(f->slab.retired, 1);
    EXPECT_EQ(f->slab.records[f->first].size, SIZE);
    EXPECT_OK(validate(f, SIZE));
}

TEST_BUDDY(validate_finds_planted_faults, SIZE, 20) {
    uint32_t a = serve(f, 192);
    (void)serve(f, 192);
    give(f, a);
    EXPECT_CAUGHT(validate(f, SIZE), f->buddy.idle.bytes, f->buddy.idle.bytes + 1);
    EXPECT_CAUGHT(validate(f, SIZE), f->buddy.idle.count, f->buddy.idle.count + 1);
    EXPECT_CAUGHT(validate(f, SIZE), f->slab.records[a].state, STRATA_RECORD_LIVE);
}

/* ---- against a model: a list of blocks in address order ---- */

enum { MODEL_BLOCKS = 400, MODEL_SIZE = 4096 * UNIT + 100 };

typedef struct model_block {
    uint64_t at, size;
    uint32_t slot; /* 0: free */
} model_block_t;

typedef struct model {
    model_block_t blocks[MODEL_BLOCKS];
    uint32_t count;
} model_t;

static void insert(model_t *m, uint32_t at, model_block_t block) {
    for (uint32_t i = m->count++; i > at; i--) m->blocks[i] = m->blocks[i - 1];
    m->blocks[at] = block;
}

static void take_out(model_t *m, uint32_t at) {
    m->count--;
    for (uint32_t i = at; i < m->count; i++) m->blocks[i] = m->blocks[i + 1];
}

/* Where the model serves `rounded` bytes; UINT64_MAX: nowhere. */
static uint64_t model_serve(model_t *m, uint64_t rounded, uint32_t slot) {
    uint32_t best = MODEL_BLOCKS;
    for (uint32_t i = 0; i < m->count; i++)
        if (!m->blocks[i].slot && m->blocks[i].size >= rounded &&
            (best == MODEL_BLOCKS || m->blocks[i].size < m->blocks[best].size))
            best = i;
    if (best == MODEL_BLOCKS) return UINT64_MAX;
    model_block_t *block = &m->blocks[best];
    uint64_t rest = block->size - rounded, at = block->at;
    block->slot = slot;
    if (rest <= HEADER) return at;
    block->size = rounded;
    insert(m, best + 1, (model_block_t){.at = at + rounded, .size = rest});
    return at;
}

static void model_give(model_t *m, uint32_t slot) {
    uint32_t i = 0;
    while (m->blocks[i].slot != slot) i++;
    m->blocks[i].slot = 0;
    if (i + 1 < m->count && !m->blocks[i + 1].slot) {
        m->blocks[i].size += m->blocks[i + 1].size;
        take_out(m, i + 1);
    }
    if (i > 0 && !m->blocks[i - 1].slot) {
        m->blocks[i - 1].size += m->blocks[i].size;
        take_out(m, i);
    }
}

TEST_BUDDY(serves_as_the_model_does, MODEL_SIZE, 1000) {
    model_t model = {.count = 1, .blocks = {{.size = MODEL_SIZE}}};
    uint32_t live[100], count = 0;
    uint64_t random = 77;
    for (int i = 0; i < 20000; i++) {
        if (count < 100 && random_below(&random, 100) < 53) {
            uint64_t size = 1 + random_below(&random, random_below(&random, 10) ? 4000 : 100000), rounded;
            EXPECT_TRUE(strata_buddy_round(&f->buddy, size, &rounded));
            uint32_t slot = serve(f, size);
            uint64_t at = model_serve(&model, rounded, slot ? slot : UINT32_MAX);
            ASSERT_EQ(slot ? offset_of(f, slot) : UINT64_MAX, at);
            if (slot) live[count++] = slot;
        } else if (count > 0) {
            uint32_t which = (uint32_t)random_below(&random, count);
            give(f, live[which]);
            model_give(&model, live[which]);
            live[which] = live[--count];
        }
        if (i % 97 == 0) ASSERT_OK(validate(f, MODEL_SIZE));
    }
}

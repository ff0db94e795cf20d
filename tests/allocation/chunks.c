/* What every cache does with the chunks that it cuts: finding, giving back, and what comes from below. */
#include "allocation/cache/chunks.h"

#include "tests/allocation/bench.h"

enum { MANY = 2000, LOOKS = 40 };

/* A chunk for each block. */
static strata_chunks_t *open_exact(bench_t *bench) {
    bench_open_cache(bench, 0, (const char *const[]){"chunk_size=0", NULL});
    return (strata_chunks_t *)bench->stack->cache;
}

TEST(chunks, an_address_is_found_among_many_by_a_few_looks) {
    static strata_record_t *blocks[MANY];
    bench_t bench;
    strata_chunks_t *chunks = open_exact(&bench);
    for (uint32_t i = 0; i < MANY; i++) blocks[i] = bench_allocate(&bench, 4096 + 256 * (i % 7));
    EXPECT_EQ(chunks->count, MANY);
    EXPECT_LE(chunks->by_address.examined, 2 * LOOKS * MANY);
    chunks->by_address.examined = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        EXPECT_TRUE(strata_chunks_find(&chunks->base, blocks[i]->ptr) == blocks[i]);
        EXPECT_TRUE(strata_chunks_find(&chunks->base, blocks[i]->ptr + blocks[i]->size - 1) == blocks[i]);
    }
    EXPECT_LE(chunks->by_address.examined, 2 * LOOKS * MANY);
    EXPECT_TRUE(strata_chunks_find(&chunks->base, 0) == NULL);
    EXPECT_TRUE(strata_chunks_find(&chunks->base, UINT64_MAX) == NULL);
    for (uint32_t i = 0; i < MANY; i++) bench_free(&bench, blocks[i]);
    bench_close(&bench);
}

static uint64_t trim(bench_t *bench, uint64_t keep) {
    strata_layer_t *layer = bench->stack->cache;
    strata_call_t call = {.stack = bench->stack};
    bool entered = strata_call_enter(&call, layer);
    uint64_t bytes = strata_chunks_trim(layer, keep, &call);
    strata_call_exit(&call, layer, entered);
    return bytes;
}

/* The sizes of the chunks that are there, in order of making. */
static void expect_chunks(const strata_chunks_t *chunks, const uint64_t *mib, uint32_t count) {
    uint32_t at = 0;
    EXPECT_EQ(chunks->count, count);
    STRATA_EACH_CHUNK(chunks, number) {
        if (at < count) EXPECT_EQ(strata_chunk_at(chunks, number)->size, mib[at] * MIB);
        at++;
    }
}

/* Of those that nothing lives in. */
TEST(chunks, a_trim_takes_the_largest_first_and_of_equals_the_oldest) {
    static const uint64_t sizes[] = {3, 5, 1, 5, 2, 9, 4, 5, 8};
    enum { BLOCKS = sizeof sizes / sizeof *sizes, LIVE = 5 };
    strata_record_t *blocks[BLOCKS];
    bench_t bench;
    strata_chunks_t *chunks = open_exact(&bench);
    for (uint32_t i = 0; i < BLOCKS; i++) blocks[i] = bench_allocate(&bench, sizes[i] * MIB);
    for (uint32_t i = 0; i < BLOCKS; i++)
        if (i != LIVE) bench_free(&bench, blocks[i]);
    EXPECT_EQ(trim(&bench, 33 * MIB), 0);
    EXPECT_EQ(trim(&bench, 24 * MIB), 13 * MIB);
    expect_chunks(chunks, (const uint64_t[]){3, 1, 5, 2, 9, 4, 5}, 7);
    EXPECT_EQ(trim(&bench, 14 * MIB), 10 * MIB);
    expect_chunks(chunks, (const uint64_t[]){3, 1, 2, 9, 4}, 5);
    EXPECT_OK(strata_stack_validate(bench.stack));
    EXPECT_EQ(trim(&bench, 0), 10 * MIB);
    expect_chunks(chunks, (const uint64_t[]){9}, 1);
    bench_free(&bench, blocks[LIVE]);
    bench_close(&bench);
}

/* The chunk goes back, and its number with it. */
TEST(chunks, a_chunk_that_finds_no_slot_leaves_nothing) {
    bench_t bench;
    strata_chunks_t *chunks = open_exact(&bench);
    strata_record_t *kept = bench_allocate(&bench, MIB), *none;
    strata_slab_t *slab = &bench.stack->slab;
    uint32_t capacity = slab->capacity;
    uint64_t held = bench_held(&bench);
    slab->capacity = slab->used;
    EXPECT_EQ(slab->unused, 0);
    EXPECT_SAYS(STRATA_E_LIMIT, bench_try(&bench, 4 * MIB, &none), "auto_growth has");
    EXPECT_EQ(chunks->nodes.used, 1 + chunks->nodes.unused + chunks->count);
    EXPECT_EQ(chunks->held, MIB);
    EXPECT_EQ(bench_held(&bench), held);
    slab->capacity = capacity;
    bench_free(&bench, kept);
    bench_close(&bench);
}

TEST(chunks, validate_finds_a_list_that_is_out_of_order) {
    bench_t bench;
    strata_chunks_t *chunks = open_exact(&bench);
    strata_record_t *a = bench_allocate(&bench, MIB), *b = bench_allocate(&bench, MIB);
    ASSERT_TRUE(a->ptr < b->ptr);
    strata_chunk_t *second = strata_chunk_at(chunks, b->chunk);
    chunks->sorted = true;
    EXPECT_OK(strata_stack_validate(bench.stack));
    second->base = a->ptr - 256;
    EXPECT_SAYS(STRATA_E_CORRUPT, strata_stack_validate(bench.stack), "the chunks are out of order");
    second->base = b->ptr;
    EXPECT_OK(strata_stack_validate(bench.stack));
    bench_free(&bench, a);
    bench_free(&bench, b);
    bench_close(&bench);
}

/* A decorator may have filled it on the stream of the request. */
TEST(chunks, memory_comes_in_order_where_any_layer_below_gives_it_so) {
    const strata_layer_type_t plain = {.role = STRATA_SOURCE},
                              ordered = {.role = STRATA_SOURCE, .gives = STRATA_TRAIT_STREAM_ORDERED};
    const strata_layer_type_t chooses = {.role = STRATA_ROUTER}, decorates = {.role = STRATA_DECORATOR};
    strata_layer_t source = {.type = &plain}, pool = {.type = &ordered};
    strata_layer_t *sources[] = {&source, &source, &pool};
    strata_layer_t of_sources = {.type = &chooses, .below = sources, .below_count = 2};
    strata_layer_t of_all = {.type = &chooses, .below = sources, .below_count = 3};
    strata_layer_t filled = {.type = &decorates, .below = sources, .below_count = 1};
    EXPECT_FALSE(strata_chunks_are_stream_ordered(&source));
    EXPECT_FALSE(strata_chunks_are_stream_ordered(&of_sources));
    EXPECT_TRUE(strata_chunks_are_stream_ordered(&pool));
    EXPECT_TRUE(strata_chunks_are_stream_ordered(&of_all));
    EXPECT_TRUE(strata_chunks_are_stream_ordered(&filled));
}

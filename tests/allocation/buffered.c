/* buffered: the peer's own tests, which block is reused, what goes back, and what validate finds. */
#include "tests/allocation/bench.h"

static void open_with(bench_t *bench, uint64_t capacity, const char *const *options) {
    bench_begin(bench);
    const strata_layer_type_t *types[] = {strata_layer_find("buffered"), &test_source_type, NULL};
    bench_straight(bench, types, options);
    bench_open(bench, capacity);
}

/* Paddle's buffered_allocator_test, lazy_free. */
TEST(buffered, lazy_free) {
    OPENED(bench_t, bench, bench_close, open_with(&bench, 0, NULL));
    uint64_t asked = test_source_calls();
    strata_record_t *x = bench_allocate(&bench, 1025);
    EXPECT_EQ(test_source_calls() - asked, 1);
    EXPECT_EQ(test_source_live(), 1);
    bench_free(&bench, x);
    x = bench_allocate(&bench, 900);
    EXPECT_EQ(test_source_calls() - asked, 1);
    EXPECT_EQ(x->size, 1025);
    EXPECT_EQ(strata_record_requested(x), 900);
    strata_record_t *y = bench_allocate(&bench, 2048);
    EXPECT_EQ(test_source_calls() - asked, 2);
    EXPECT_EQ(test_source_live(), 2);
    bench_free(&bench, x);
    bench_free(&bench, y);
    EXPECT_EQ(test_source_live(), 2);
    EXPECT_EQ(strata_stack_release(bench.stack), 1025 + 2048);
    EXPECT_EQ(test_source_live(), 0);
}

/* Paddle's garbage_collection, in MiB, since a device has granules of 2 MiB. */
TEST(buffered, garbage_collection) {
    OPENED(bench_t, bench, bench_close, open_with(&bench, 2048 * MIB, NULL));
    strata_record_t *x = bench_allocate(&bench, 1600 * MIB), *y = bench_allocate(&bench, 400 * MIB);
    bench_free(&bench, x);
    bench_free(&bench, y);
    x = bench_allocate(&bench, 1600 * MIB);
    EXPECT_EQ(x->size, 1600 * MIB);
    bench_free(&bench, x);
}

/* The largest goes first, and no more than is asked for. */
TEST(buffered, out_of_memory_gives_the_largest_back_until_enough_is_free) {
    OPENED(bench_t, bench, bench_close, open_with(&bench, 100 * MIB, NULL));
    static const uint64_t sizes[] = {10, 30, 20, 40};
    strata_record_t *blocks[4], *record = NULL;
    for (int i = 0; i < 4; i++) blocks[i] = bench_allocate(&bench, sizes[i] * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, bench_try(&bench, 90 * MIB, &record));
    for (int i = 0; i < 4; i++) bench_free(&bench, blocks[i]);
    record = bench_allocate(&bench, 62 * MIB);
    EXPECT_EQ(test_source_live(), 3);
    EXPECT_EQ(bench_held(&bench), 92 * MIB);
    EXPECT_OK(strata_stack_validate(bench.stack));
    /* What is kept still serves. */
    uint64_t asked = test_source_calls();
    blocks[0] = bench_allocate(&bench, 10 * MIB);
    blocks[2] = bench_allocate(&bench, 20 * MIB);
    EXPECT_EQ(test_source_calls(), asked);
    bench_free(&bench, blocks[0]);
    bench_free(&bench, blocks[2]);
    bench_free(&bench, record);
}

/* Frees blocks of these sizes and asks for `size`: the size of the block that serves. */
static uint64_t served_by(const char *reuse_below, const uint64_t *sizes, size_t count, uint64_t size) {
    bench_t bench;
    open_with(&bench, 0, (const char *const[]){reuse_below, NULL});
    strata_record_t *blocks[8];
    for (size_t i = 0; i < count; i++) blocks[i] = bench_allocate(&bench, sizes[i]);
    for (size_t i = 0; i < count; i++) bench_free(&bench, blocks[i]);
    strata_record_t *record = bench_allocate(&bench, size);
    uint64_t served = record->size;
    EXPECT_OK(strata_stack_validate(bench.stack));
    EXPECT_EQ(bench.stack->figures.chunks, count + (test_source_live() > count));
    bench_free(&bench, record);
    bench_close(&bench);
    return served;
}

TEST(buffered, reuses_the_smallest_that_fits_and_is_near) {
    static const uint64_t sizes[] = {8192, 4096, 16384, 5000};
    EXPECT_EQ(served_by("reuse_below=2", sizes, 4, 4096), 4096);
    EXPECT_EQ(served_by("reuse_below=2", sizes, 4, 4097), 5000);
    EXPECT_EQ(served_by("reuse_below=2", sizes, 4, 5001), 8192);
    EXPECT_EQ(served_by("reuse_below=2", sizes, 4, 2049), 4096);
    EXPECT_EQ(served_by("reuse_below=2", sizes, 4, 2048), 2048);
    EXPECT_EQ(served_by("reuse_below=2", sizes, 4, 8193), 16384);
    EXPECT_EQ(served_by("reuse_below=2", sizes, 4, 16385), 16385);
    EXPECT_EQ(served_by("reuse_below=1.5", sizes, 4, 5500), 8192);
    EXPECT_EQ(served_by("reuse_below=1.5", sizes, 4, 5461), 5461);
    EXPECT_EQ(served_by("reuse_below=10", sizes, 4, 500), 4096);
}

TEST(buffered, of_exactly_the_size_alone) {
    static const uint64_t sizes[] = {8192, 4096};
    EXPECT_EQ(served_by("reuse_below=1", sizes, 2, 4096), 4096);
    EXPECT_EQ(served_by("reuse_below=1", sizes, 2, 4095), 4095);
    EXPECT_EQ(served_by("reuse_below=1", sizes, 2, 8191), 8191);
}

static strata_status_t serve(bench_t *bench, size_t size, size_t alignment, uint32_t flags, strata_record_t **record) {
    strata_request_t serve = {.size = size, .alignment = alignment, .flags = flags};
    return strata_stack_serve(bench->stack, &serve, record);
}

TEST(buffered, a_kept_block_serves_the_alignments_that_it_has) {
    OPENED(bench_t, bench, bench_close, open_with(&bench, 0, NULL));
    strata_record_t *kept = bench_allocate(&bench, MIB), *other = NULL;
    uint64_t has = kept->ptr & -kept->ptr, asked = test_source_calls();
    bench_free(&bench, kept);
    EXPECT_OK(serve(&bench, MIB, 2 * has, 0, &other));
    EXPECT_EQ(test_source_calls() - asked, 1);
    EXPECT_OK(serve(&bench, MIB, has, 0, &kept));
    EXPECT_EQ(test_source_calls() - asked, 1);
    bench_free(&bench, kept);
    bench_free(&bench, other);
}

/* Such a request costs nothing that is kept. */
TEST(buffered, a_request_without_growth_leaves_what_is_kept) {
    OPENED(bench_t, bench, bench_close, open_with(&bench, 0, NULL));
    strata_record_t *record = NULL;
    bench_free(&bench, bench_allocate(&bench, 8192));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, serve(&bench, MIB, 256, STRATA_NO_GROW, &record));
    EXPECT_EQ(test_source_live(), 1);
    EXPECT_OK(serve(&bench, 8000, 256, STRATA_NO_GROW, &record));
    bench_free(&bench, record);
}

TEST(buffered, trims_the_largest_first) {
    OPENED(bench_t, bench, bench_close, open_with(&bench, 0, NULL));
    strata_record_t *blocks[4];
    for (uint64_t i = 0; i < 4; i++) blocks[i] = bench_allocate(&bench, (i + 1) * MIB);
    for (int i = 0; i < 4; i++) bench_free(&bench, blocks[i]);
    strata_layer_t *layer = bench.stack->top;
    strata_call_t call = {.stack = bench.stack};
    bool entered = strata_call_enter(&call, layer);
    EXPECT_EQ(layer->type->trim(layer, 10 * MIB, &call), 0);
    EXPECT_EQ(layer->type->trim(layer, 7 * MIB, &call), 4 * MIB);
    EXPECT_EQ(layer->type->idle_bytes(layer), 6 * MIB);
    EXPECT_EQ(layer->type->trim(layer, 0, &call), 6 * MIB);
    strata_call_exit(&call, layer, entered);
    EXPECT_EQ(test_source_live(), 0);
}

TEST(buffered, a_slot_without_generations_left_is_not_kept) {
    OPENED(bench_t, bench, bench_close, open_with(&bench, 0, NULL));
    strata_record_t *record = bench_allocate(&bench, 4096);
    record->generation = STRATA_GENERATION_LAST - 1;
    bench_free(&bench, record);
    EXPECT_EQ(test_source_live(), 0);
    EXPECT_EQ(bench.stack->slab.retired, 1);
    EXPECT_OK(strata_stack_validate(bench.stack));
}

/* 500 steps against the rule written plainly. */
TEST(buffered, serves_as_a_naive_model_does) {
    OPENED(bench_t, bench, bench_close, open_with(&bench, 0, NULL));
    strata_record_t *live[32] = {NULL};
    uint64_t kept[512], random = 5;
    size_t kept_count = 0;
    for (int step = 0; step < 2000; step++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        strata_record_t **record = &live[random >> 59];
        if (*record) {
            kept[kept_count++] = (*record)->size;
            bench_free(&bench, *record);
            *record = NULL;
            continue;
        }
        uint64_t size = 256 + (random >> 40) % 8192, best = SIZE_MAX;
        for (size_t i = 0; i < kept_count; i++)
            if (kept[i] >= size && (best == SIZE_MAX || kept[i] < kept[best])) best = i;
        bool reused = best != SIZE_MAX && (kept[best] == size || kept[best] < 2 * size);
        *record = bench_allocate(&bench, size);
        EXPECT_EQ((*record)->size, reused ? kept[best] : size);
        if (reused) kept[best] = kept[--kept_count];
        if (step % 100 == 0) EXPECT_OK(strata_stack_validate(bench.stack));
    }
    for (int i = 0; i < 32; i++)
        if (live[i]) bench_free(&bench, live[i]);
}

#define EXPECT_FOUND(field, wrong)                                                                                                 \
    do {                                                                                                                           \
        __typeof__(field) kept_ = (field);                                                                                         \
        (field) = (__typeof__(field))(wrong);                                                                                      \
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_stack_validate(bench.stack));                                                       \
        (field) = kept_;                                                                                                           \
        EXPECT_OK(strata_stack_validate(bench.stack));                                                                             \
    } while (0)

TEST(buffered, validate_finds_planted_faults) {
    OPENED(bench_t, bench, bench_close, open_with(&bench, 0, NULL));
    strata_record_t *live = bench_allocate(&bench, 4096), *kept = bench_allocate(&bench, 8192);
    bench_free(&bench, kept);
    EXPECT_FOUND(live->ptr, live->ptr + 256);
    EXPECT_FOUND(live->size, live->size + 1);
    EXPECT_FOUND(kept->size, 4096);
    EXPECT_FOUND(live->chunk, kept->chunk);
    EXPECT_FOUND(live->state, STRATA_RECORD_FREE);
    EXPECT_FOUND(kept->state, STRATA_RECORD_LIVE);
    EXPECT_FOUND(live->state, STRATA_RECORD_UNUSED);
    EXPECT_FOUND(bench.stack->figures.chunks, 1);
    EXPECT_FOUND(bench.stack->figures.reserved_bytes, 4096);
    bench_free(&bench, live);
}

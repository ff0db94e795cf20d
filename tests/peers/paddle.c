/* Tests of Paddle's other allocators, rewritten from their descriptions. docs/peers.md has all, those in other folders
 * too. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/allocation/bench.h"
#include "tests/decorators/decorators.h"

/* auto_growth_best_fit_allocator_facade_test::allocator: retry 500 ms; CPU 1024 B are 1024; GPU 1024 B and 2 GiB, pinned 1 MiB: at
 * least what was asked. */
TEST(peers_paddle, facade_test_allocator) {
    static const char *const set[] = {"retry.timeout=500ms"};
    RIG_BY(rig, rig_open(&rig, "paddle", set, 1, 0, 1));
    const struct {
        strata_place_t place;
        size_t size;
        bool exact;
    } rows[] = {{strata_host(), 1024, true}, {rig.gpu, 1024, false}, {rig.gpu, 2 * GIB, false}, {strata_pinned(), MIB, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_block_t b = {0};
        EXPECT_OK(strata_allocate(rig.s, rows[i].place, NULL, rows[i].size, &b));
        EXPECT_NE(b.ptr, NULL);
        EXPECT_GE(b.size, rows[i].size);
        if (rows[i].exact) EXPECT_EQ(b.size, rows[i].size);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

/* ---- best fit ---- */

enum { UNIT = 256 };
#define STUB (4 * GIB)

typedef struct free_blocks {
    uint64_t top;
    uint32_t free, others;
} free_blocks_t;

static void count_free(const strata_snapshot_row_t *row, void *context) {
    free_blocks_t *blocks = context;
    blocks->top = (uintptr_t)row->block.ptr + row->block.size;
    blocks->free += row->state == 0;
    blocks->others += row->state != 0;
}

/* How far the block ends below the top of the chunk, in units. */
static uint64_t offset_of(const free_blocks_t *blocks, strata_block_t b) {
    return (blocks->top - (uintptr_t)b.ptr - b.size) / UNIT;
}

/* best_fit_allocator_test, over one block of 4 GiB: 80, 60, 90; free 60; 30; free; 60; free the first two; 140: offsets 0; 80; 80; 0;
 * all freed: one free chunk. Strata has no allocator for tests alone: its best fit is auto_growth's index over one chunk. There a
 * request takes the high end of a free block, so offsets count from the top; and the unit is 256 bytes, its alignment. */
TEST(peers_paddle, best_fit_allocator_test) {
    static const char *const orders[] = {"address", "any"};
    for (int i = 0; i < 2; i++) {
        char stack[128];
        free_blocks_t blocks = {0};
        snprintf(stack, sizeof stack, "[{auto_growth: {chunk_size: 4GiB, order: %s}}, system]", orders[i]);
        DECORATED(rig, stack, 0);
        strata_block_t first = rig_allocate(&rig, NULL, 80 * UNIT);
        EXPECT_OK(strata_snapshot(rig.s, rig.gpu, count_free, &blocks));
        EXPECT_EQ(offset_of(&blocks, first), 0);
        strata_block_t second = rig_allocate(&rig, NULL, 60 * UNIT), third = rig_allocate(&rig, NULL, 90 * UNIT);
        EXPECT_OK(strata_free(rig.s, second.ref));
        strata_block_t hole = rig_allocate(&rig, NULL, 30 * UNIT);
        EXPECT_EQ(offset_of(&blocks, hole), 80);
        EXPECT_OK(strata_free(rig.s, hole.ref));
        second = rig_allocate(&rig, NULL, 60 * UNIT);
        EXPECT_EQ(offset_of(&blocks, second), 80);
        RIG_FREE(&rig, first, second);
        first = rig_allocate(&rig, NULL, 140 * UNIT);
        EXPECT_EQ(offset_of(&blocks, first), 0);
        RIG_FREE(&rig, first, third);
        blocks = (free_blocks_t){0};
        EXPECT_OK(strata_snapshot(rig.s, rig.gpu, count_free, &blocks));
        EXPECT_EQ(blocks.free, 1);
        EXPECT_EQ(blocks.others, 0);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, STUB);
    }
}

/* ---- retry ---- */

typedef struct candidate {
    pthread_t thread;
    pthread_barrier_t *start;
    rig_t *rig;
    void *ptr;
    strata_status_t status;
} racer_t;

static void *contend(void *context) {
    racer_t *c = context;
    strata_block_t b;
    /* Known to the library before the others wait. */
    if (strata_allocate(c->rig->s, c->rig->gpu, NULL, 0, &b) == STRATA_OK) (void)strata_free(c->rig->s, b.ref);
    (void)pthread_barrier_wait(c->start);
    c->status = strata_allocate(c->rig->s, c->rig->gpu, NULL, MIB - 1, &b);
    if (c->status != STRATA_OK) return NULL;
    c->ptr = b.ptr;
    (void)usleep(10 * 1000);
    c->status = strata_free(c->rig->s, b.ref);
    return NULL;
}

/* retry_allocator_test::RetryAllocator: four threads, 1 MiB in all, each holds 1 MiB - 1 for a while: all succeed, at one address. The
 * peer's timeout of 180 ms for 40 ms each is too near for a busy machine; nothing but a lost wake-up lasts 10 s here. */
TEST(peers_paddle, retry_allocator) {
    racer_t candidates[4];
    pthread_barrier_t start;
    DECORATED(rig, "[{retry: {timeout: 10s}}, {auto_growth: {chunk_size: 1MiB}}, {limit: {bytes: 1MiB}}, system]", 0);
    ASSERT_EQ(pthread_barrier_init(&start, NULL, 4), 0);
    for (int i = 0; i < 4; i++) {
        candidates[i] = (racer_t){.start = &start, .rig = &rig};
        ASSERT_EQ(pthread_create(&candidates[i].thread, NULL, contend, &candidates[i]), 0);
    }
    for (int i = 0; i < 4; i++) ASSERT_EQ(pthread_join(candidates[i].thread, NULL), 0);
    for (int i = 0; i < 4; i++) {
        EXPECT_OK(candidates[i].status);
        EXPECT_EQ((uintptr_t)candidates[i].ptr, (uintptr_t)candidates[0].ptr);
    }
    ASSERT_EQ(pthread_barrier_destroy(&start), 0);
    EXPECT_EQ(rig_figures(&rig).peak_reserved_bytes, MIB);
}

typedef struct offload {
    uint32_t asked;
    strata_place_t place;
    size_t size;
} offload_t;

static uint64_t give_256(void *context, strata_place_t place, size_t size) {
    offload_t *offload = context;
    *offload = (offload_t){offload->asked + 1, place, size};
    test_source_fail(0, false, STRATA_OK);
    return 256;
}

/* retry::OffloadRetryDoesNotCompactNonVMM: the source fails; the callback hears of the place and of 256 bytes, gives 256, and the
 * next try succeeds. The peer tries three times, once before it asks though nothing has changed; Strata tries again only where a
 * rung gave bytes: twice. Nothing is remapped, since no layer can. */
TEST(peers_paddle, offload_retry_does_not_compact_non_vmm) {
    offload_t offload = {0};
    const strata_layer_type_t *types[] = {strata_layer_find("retry"), &test_source_type, NULL};
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    bench_straight(&bench, types, NULL);
    bench_open(&bench, 0);
    bench.domain->free_memory = give_256;
    bench.domain->free_memory_context = &offload;
    uint64_t tries = test_source_calls();
    test_source_fail(1, true, STRATA_E_NO_MEMORY);
    strata_record_t *record = bench_allocate(&bench, 256);
    EXPECT_EQ(test_source_calls() - tries, 2);
    EXPECT_EQ(offload.asked, 1);
    EXPECT_EQ(offload.place, strata_gpu(0));
    EXPECT_EQ(offload.size, 256);
    bench_free(&bench, record);
}

/* ---- base pointer ---- */

static uint64_t draw(uint64_t *random) {
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return *random >> 33;
}

static void expect_base(rig_t *rig, strata_block_t b, size_t at) {
    strata_block_t found = {0};
    EXPECT_OK(strata_base_pointer(rig->s, (char *)b.ptr + at, &found));
    EXPECT_EQ((uintptr_t)found.ptr, (uintptr_t)b.ptr);
    EXPECT_EQ(found.ref, b.ref);
}

static void in_groups(rig_t *rig, uint32_t group) {
    uint64_t random = group;
    strata_block_t blocks[100];
    size_t sizes[100];
    for (uint32_t first = 0; first < 100; first += group) {
        for (uint32_t i = first; i < first + group; i++) {
            sizes[i] = 1 + (size_t)(draw(&random) % MIB);
            blocks[i] = rig_allocate(rig, NULL, sizes[i]);
        }
        for (uint32_t i = first; i < first + group; i++) {
            expect_base(rig, blocks[i], 0);
            expect_base(rig, blocks[i], sizes[i] - 1);
        }
        for (uint32_t i = first; i < first + group; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    }
}

/* get_base_ptr_test: 100 random sizes singly, in tens, all live; and 0 bytes. The peer gives where the chunk begins that the system
 * gave; Strata gives the block, and tells the chunk by its snapshot: of an address, whose it is matters. */
TEST(peers_paddle, get_base_ptr) {
    static const char *const presets[] = {"paddle", "strata"};
    for (int i = 0; i < 2; i++) {
        strata_block_t found;
        RIG(rig, presets[i], 0);
        in_groups(&rig, 1);
        in_groups(&rig, 10);
        in_groups(&rig, 100);
        strata_block_t nothing = rig_allocate(&rig, NULL, 0);
        EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_base_pointer(rig.s, nothing.ptr, &found));
        EXPECT_OK(strata_free(rig.s, nothing.ref));
    }
}

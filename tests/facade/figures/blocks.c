/* What can be asked of blocks: where an address lies, what stands beside a block, all of them at once, what to give up. */
#include <pthread.h>
#include <stdlib.h>

#include "platform/clock.h"
#include "platform/host/host_memory.h"
#include "tests/facade/support/fixture.h"

#define PRESETS "strata", "paddle", "system"
static const char *const presets[] = {PRESETS};
enum { MANY = 1000 * 1000 };

/* ---- base pointer ---- */

TEST_RIG(facade_blocks, the_base_of_an_interior_pointer, 0, PRESETS) {
    strata_stream_t other = rig_stream(rig);
    strata_block_t blocks[60], found;
    for (int k = 0; k < 60; k++) blocks[k] = rig_allocate(rig, k % 2 ? other : NULL, (size_t)(k + 1) * 70000);
    for (int k = 0; k < 60; k++)
        for (size_t at = 0; at < blocks[k].size; at += blocks[k].size - 1) {
            EXPECT_OK(strata_base_pointer(rig->s, (char *)blocks[k].ptr + at, &found));
            EXPECT_EQ(found.ref, blocks[k].ref);
            EXPECT_EQ(found.ptr, blocks[k].ptr);
            EXPECT_EQ(found.size, blocks[k].size);
        }
    EXPECT_OK(strata_free(rig->s, blocks[7].ref));
    found.ref = 5;
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_base_pointer(rig->s, (char *)blocks[7].ptr + 9, &found));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_base_pointer(rig->s, NULL, &found));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_base_pointer(rig->s, rig, &found));
    EXPECT_EQ(found.ref, 5);
}

/* ---- trim ---- */

TEST_RIG(facade_blocks, trim_gives_the_largest_idle_chunks_back, 0, "strata-malloc") {
    size_t sizes[] = {30 * MIB, 60 * MIB, 40 * MIB, 50 * MIB};
    strata_block_t blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = rig_allocate(rig, NULL, sizes[i]);
    for (int i = 1; i < 4; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_EQ(rig_trim(rig, 150 * MIB), 0);
    EXPECT_EQ(rig_trim(rig, 149 * MIB), 60 * MIB);
    EXPECT_EQ(rig_cached(rig), 90 * MIB);
    EXPECT_EQ(rig_trim(rig, 40 * MIB), 50 * MIB);
    EXPECT_OK(strata_trim(rig->s, rig->gpu, 0, NULL));
    EXPECT_EQ(rig_cached(rig), 0);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 30 * MIB);
}

/* What is kept is counted over all streams; a chunk that is used in part stays. */
TEST_RIG(facade_blocks, trim_counts_every_stream_of_the_place, 0, "strata-malloc") {
    strata_stream_t other = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, NULL, 40 * MIB), b = rig_allocate(rig, other, 32 * MIB);
    (void)rig_allocate(rig, other, 1 * MIB);
    RIG_FREE(rig, a, b);
    uint64_t idle = rig_cached(rig);
    EXPECT_EQ(idle, (40 + 32 + 19) * MIB);
    EXPECT_EQ(rig_trim(rig, 51 * MIB), 40 * MIB);
    EXPECT_EQ(rig_trim(rig, 1 * MIB), 32 * MIB);
    EXPECT_EQ(rig_cached(rig), 19 * MIB);
}

/* ---- snapshot ---- */

typedef struct seen {
    rig_t *rig;
    uintptr_t end; /* of the row before */
    size_t rows, live, free, deferred;
    uint64_t bytes, requested, chunk;
    strata_stream_t streams[2];
    bool in_order, inside;
} seen_t;

static void see(const strata_snapshot_row_t *row, void *context) {
    seen_t *seen = context;
    seen->in_order = seen->in_order && (uintptr_t)row->block.ptr >= seen->end;
    seen->inside = seen->inside && row->chunk <= (uintptr_t)row->block.ptr;
    seen->end = (uintptr_t)row->block.ptr + row->block.size;
    seen->rows++;
    seen->live += row->state == 1;
    seen->free += row->state == 0;
    seen->deferred += row->state == 2;
    seen->bytes += row->block.size;
    seen->requested += row->requested;
    if ((row->state == 1) != (row->block.ref != 0)) seen->inside = false;
    if (row->state == 1 && seen->rows < 3) seen->streams[seen->rows - 1] = row->stream;
}

/* Any function may be called from a row. */
static void see_and_ask(const strata_snapshot_row_t *row, void *context) {
    seen_t *seen = context;
    see(row, context);
    strata_block_t block;
    if (row->state == 1) EXPECT_OK(strata_base_pointer(seen->rig->s, row->block.ptr, &block));
    if (row->state == 1) EXPECT_EQ(block.ref, row->block.ref);
}

TEST_RIG_WAYS(facade_blocks, a_snapshot_shows_every_block_once_and_in_order, i, COUNT(presets), 0, presets[i]) {
    strata_stream_t other = rig_stream(rig);
    strata_block_t blocks[100];
    uint64_t requested = 0;
    for (int k = 0; k < 100; k++) blocks[k] = rig_allocate(rig, k % 3 ? other : NULL, (size_t)(k + 1) * 30000);
    for (int k = 0; k < 100; k += 2) EXPECT_OK(strata_free(rig->s, blocks[k].ref));
    for (int k = 1; k < 100; k += 2) requested += (size_t)(k + 1) * 30000;
    uint64_t calls = strata_sim_calls(rig->devices[0]);
    seen_t seen = {.rig = rig, .in_order = true, .inside = true};
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, see_and_ask, &seen));
    EXPECT_EQ(strata_sim_calls(rig->devices[0]), calls);
    EXPECT_TRUE(seen.in_order && seen.inside);
    EXPECT_EQ(seen.live, 50);
    EXPECT_EQ(seen.requested, requested);
    EXPECT_EQ(seen.bytes, rig_figures(rig).reserved_bytes);
    EXPECT_EQ(seen.free > 0, i < 2);
}

static void count_in_order(const strata_snapshot_row_t *row, void *context) {
    uintptr_t *end = context;
    EXPECT_GE((uintptr_t)row->block.ptr, end[0]);
    end[0] = (uintptr_t)row->block.ptr + row->block.size;
    end[1]++;
}

/* What a decorator holds of a chunk is shown by records of its own, between the chunk's other blocks. */
TEST_RIG(facade_blocks, a_snapshot_is_in_order_where_a_decorator_holds_some_of_a_chunk, 0,
         "stack: [guard: {quarantine: 0}, auto_growth: {chunk_size: 1MiB}, system]") {
    strata_block_t blocks[9];
    uintptr_t end[2] = {0};
    for (int i = 0; i < 9; i++) blocks[i] = rig_allocate(rig, NULL, 10000);
    for (int i = 0; i < 9; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, count_in_order, end));
    EXPECT_EQ(end[1], 9);
}

TEST_RIG(facade_blocks, a_snapshot_shows_whose_block_waits, 0, "strata") {
    strata_stream_t stream = rig_stream(rig), busy = rig_stream(rig);
    (void)rig_allocate(rig, stream, 20 * MIB);
    strata_block_t b = rig_allocate(rig, stream, 20 * MIB);
    rig_work(rig, busy, 1000 * 1000, b.ref);
    EXPECT_OK(strata_record_stream(rig->s, b.ref, busy));
    EXPECT_OK(strata_free(rig->s, b.ref));
    seen_t seen = {.rig = rig, .in_order = true, .inside = true};
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, see, &seen));
    EXPECT_EQ(seen.rows, 2);
    EXPECT_EQ(seen.deferred, 1);
    EXPECT_TRUE(seen.streams[0] == stream || seen.streams[1] == stream);
}

TEST_RIG(facade_blocks, a_snapshot_without_host_memory_tells_nothing, 0, "strata") {
    (void)rig_allocate(rig, NULL, 1000);
    for (uint64_t k = 1; k <= 2; k++) {
        seen_t seen = {.rig = rig};
        strata_host_fail_at(k, 0);
        EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_snapshot(rig->s, rig->gpu, see, &seen));
        strata_host_fail_at(0, 0);
        EXPECT_EQ(seen.rows, 0);
    }
}

/* How long it takes lab/bench/snapshot measures. */
TEST_RIG(facade_blocks, a_million_blocks_are_shown, 0, "strata") {
    strata_ref_t *refs = calloc(MANY, sizeof *refs);
    ASSERT_TRUE(refs);
    for (size_t i = 0; i < MANY; i++) refs[i] = rig_allocate(rig, NULL, 256).ref;
    for (size_t i = 0; i < MANY; i += 2) EXPECT_OK(strata_free(rig->s, refs[i]));
    seen_t seen = {.rig = rig, .in_order = true, .inside = true};
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, see, &seen));
    EXPECT_EQ(seen.live, MANY / 2);
    EXPECT_GE(seen.free, MANY / 2 - 100); /* but for few, whose neighbours were never served */
    EXPECT_TRUE(seen.in_order && seen.inside);
    EXPECT_EQ(seen.bytes, rig_figures(rig).reserved_bytes);
    for (size_t i = 1; i < MANY; i += 2) EXPECT_OK(strata_free(rig->s, refs[i]));
    free(refs);
}

/* ---- eviction ---- */

static strata_neighbours_t neighbours_of(rig_t *rig, strata_ref_t ref) {
    strata_neighbours_t n = {.struct_size = sizeof n};
    EXPECT_OK(strata_neighbours(rig->s, ref, &n));
    return n;
}

/* A chunk of 20 MiB in pieces of 2 MiB: the first of `blocks` lies lowest. */
static void fill_chunk(rig_t *rig, strata_stream_t stream, strata_block_t blocks[10]) {
    for (int i = 9; i >= 0; i--) blocks[i] = rig_allocate(rig, stream, 2 * MIB);
    for (int i = 0; i < 9; i++) EXPECT_EQ((char *)blocks[i].ptr + 2 * MIB, (char *)blocks[i + 1].ptr);
}

static void free_all(rig_t *rig, const strata_block_t *blocks, const char *live) {
    for (int i = 0; live[i]; i++)
        if (live[i] == 'x') EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

TEST(facade_blocks, neighbours_say_what_is_free_beside_a_block) {
    rig_t rig;
    rig_open(&rig, "strata-malloc", NULL, 0, 0, 1);
    strata_block_t blocks[10];
    fill_chunk(&rig, NULL, blocks);
    strata_neighbours_t n = neighbours_of(&rig, blocks[0].ref);
    EXPECT_EQ(n.free_before + n.free_after, 0);
    EXPECT_EQ(n.run, 2 * MIB);
    free_all(&rig, blocks, "..xx.x....");
    n = neighbours_of(&rig, blocks[4].ref);
    EXPECT_EQ(n.free_before, 4 * MIB);
    EXPECT_EQ(n.free_after, 2 * MIB);
    EXPECT_EQ(n.run, 8 * MIB);
    n = neighbours_of(&rig, blocks[1].ref);
    EXPECT_EQ(n.free_before, 0);
    EXPECT_EQ(n.free_after, 4 * MIB);
    EXPECT_STATUS(STRATA_E_STALE, strata_neighbours(rig.s, blocks[2].ref, &n));
    strata_neighbours_t old = {.struct_size = 7, .run = 5};
    EXPECT_STATUS(STRATA_E_INVALID, strata_neighbours(rig.s, blocks[1].ref, &old));
    old.struct_size = sizeof old.struct_size;
    EXPECT_OK(strata_neighbours(rig.s, blocks[1].ref, &old));
    EXPECT_EQ(old.run, 5);
    free_all(&rig, blocks, "xx..x.xxxx");
    rig_close(&rig);
    rig_open(&rig, "system", NULL, 0, 0, 1);
    strata_block_t alone = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(neighbours_of(&rig, alone.ref).run, alone.size);
    EXPECT_OK(strata_free(rig.s, alone.ref));
    rig_close(&rig);
}

static size_t victims_for(rig_t *rig, size_t size, strata_ref_t victims[8]) {
    size_t count = 99;
    EXPECT_OK(strata_best_victims(rig->s, rig->gpu, size, victims, 8, &count));
    return count;
}

TEST_RIG(facade_blocks, the_cheapest_victims_are_named, 0, "strata-malloc") {
    strata_block_t blocks[10];
    strata_ref_t victims[8];
    fill_chunk(rig, rig_stream(rig), blocks);
    free_all(rig, blocks, "...x.xx...");
    EXPECT_EQ(victims_for(rig, 4 * MIB, victims), 0);
    /* 3 .. 6 are 8 MiB for the price of one. */
    EXPECT_EQ(victims_for(rig, 5 * MIB, victims), 1);
    EXPECT_TRUE(victims[0] == blocks[4].ref || victims[0] == blocks[7].ref);
    EXPECT_EQ(victims_for(rig, 8 * MIB, victims), 1);
    EXPECT_EQ(victims[0], blocks[4].ref);
    EXPECT_EQ(victims_for(rig, 12 * MIB, victims), 3);
    EXPECT_EQ(victims_for(rig, 20 * MIB, victims), 7);
    size_t count = 5;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_best_victims(rig->s, rig->gpu, 20 * MIB + 1, victims, 8, &count));
    EXPECT_STATUS(STRATA_E_INVALID, strata_best_victims(rig->s, rig->gpu, 0, victims, 8, &count));
    EXPECT_EQ(count, 5);
    victims[1] = 42;
    EXPECT_OK(strata_best_victims(rig->s, rig->gpu, 12 * MIB, victims, 1, &count));
    EXPECT_EQ(count, 3);
    EXPECT_EQ(victims[1], 42);
    /* What is named is freed, and the run is there. */
    EXPECT_EQ(victims_for(rig, 8 * MIB, victims), 1);
    EXPECT_OK(strata_free(rig->s, victims[0]));
    EXPECT_EQ(victims_for(rig, 8 * MIB, victims), 0);
    free_all(rig, blocks, "xxx....xxx");
}

/* A block that others still use is in nobody's power: no run goes over it. */
TEST_RIG(facade_blocks, victims_lie_on_one_side_of_a_block_that_waits, 0, "strata-malloc") {
    strata_stream_t other = rig_stream(rig);
    (void)rig_allocate(rig, NULL, 6 * MIB);
    strata_block_t waits = rig_allocate(rig, NULL, 6 * MIB);
    (void)rig_allocate(rig, NULL, 6 * MIB);
    strata_ref_t victims[3] = {0};
    size_t count = 0;
    EXPECT_OK(strata_best_victims(rig->s, rig->gpu, 13 * MIB, victims, 3, &count));
    EXPECT_EQ(count, 2);
    rig_borrow(rig, waits.ref, other, 1000 * 1000);
    EXPECT_OK(strata_free(rig->s, waits.ref));
    /* 2 MiB are free in front of one block, and nothing after the other. */
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_best_victims(rig->s, rig->gpu, 9 * MIB, victims, 3, &count));
    EXPECT_OK(strata_best_victims(rig->s, rig->gpu, 8 * MIB, victims, 3, &count));
    EXPECT_EQ(count, 1);
}

/* ---- while others are at work ---- */

enum { WORKERS = 3, ROUNDS = 60 };

typedef struct worker {
    rig_t *rig;
    strata_stream_t stream;
    pthread_t thread;
    strata_block_t kept; /* live all the time */
    _Atomic bool *stop;
} worker_t;

static void *work(void *argument) {
    worker_t *w = argument;
    strata_block_t blocks[8];
    for (uint64_t round = 0; !atomic_load(w->stop); round++) {
        strata_allocate_options_t o = {.struct_size = sizeof o, .size = 1000 + round % 50 * 1000, .tag = round % 2 ? "odd" : NULL};
        for (int i = 0; i < 8; i++) EXPECT_OK(strata_allocate_with(w->rig->s, w->rig->gpu, w->stream, &o, &blocks[i]));
        EXPECT_OK(strata_retain(w->rig->s, blocks[3].ref));
        EXPECT_OK(strata_annotate(w->rig->s, round % 3 ? "operator" : NULL));
        for (int i = 0; i < 8; i++) EXPECT_OK(strata_free(w->rig->s, blocks[i].ref));
        EXPECT_OK(strata_free(w->rig->s, blocks[3].ref));
    }
    return NULL;
}

static void ask_everything(rig_t *rig, const strata_block_t *kept) {
    seen_t seen = {.rig = rig, .in_order = true, .inside = true};
    strata_block_t found = {.ref = 0};
    strata_neighbours_t n = {.struct_size = sizeof n};
    strata_ref_t victims[4];
    size_t count;
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, see, &seen));
    EXPECT_TRUE(seen.in_order && seen.inside);
    EXPECT_GE(seen.live, WORKERS);
    EXPECT_OK(strata_base_pointer(rig->s, (char *)kept->ptr + 7, &found));
    EXPECT_EQ(found.ref, kept->ref);
    EXPECT_OK(strata_neighbours(rig->s, kept->ref, &n));
    EXPECT_OK(strata_best_victims(rig->s, rig->gpu, 1000, victims, 4, &count));
    EXPECT_OK(strata_trim(rig->s, rig->gpu, 4 * MIB, NULL));
    EXPECT_OK(strata_step(rig->s));
}

TEST_RIG(facade_blocks, every_question_is_answered_while_others_work, 0, PRESETS) {
    _Atomic bool stop = false;
    worker_t workers[WORKERS];
    for (int k = 0; k < WORKERS; k++) {
        workers[k] = (worker_t){.rig = rig, .stream = rig_stream(rig), .stop = &stop};
        workers[k].kept = rig_allocate(rig, workers[k].stream, 5000);
    }
    for (int k = 0; k < WORKERS; k++) ASSERT_EQ(pthread_create(&workers[k].thread, NULL, work, &workers[k]), 0);
    for (int round = 0; round < ROUNDS; round++) ask_everything(rig, &workers[round % WORKERS].kept);
    atomic_store(&stop, true);
    for (int k = 0; k < WORKERS; k++) pthread_join(workers[k].thread, NULL);
}

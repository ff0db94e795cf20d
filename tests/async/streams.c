/* Many streams and threads over one pool, and what keeps the bytes that wait to be freed in bounds. */
#include <pthread.h>

#include "allocation/layers/sources/cuda_malloc_async_state.h"
#include "tests/async/async.h"

enum { STREAMS = 64, THREADS = 8, BLOCK = 512 * 1024, LONG = 1000 * 1000 };

/* ---- the peer's MultiStream and MultiThread ---- */

typedef struct ring {
    rig_t *rig;
    strata_stream_t streams[STREAMS];
    strata_block_t blocks[STREAMS];
    const uint8_t *bytes[STREAMS];
} ring_t;

/* Each block is written 1 by its owner and 2 by the neighbour's stream, which has borrowed it; the owner frees it at once. */
static void use_and_free(ring_t *ring, uint32_t from, uint32_t count) {
    rig_t *rig = ring->rig;
    for (uint32_t i = from; i < from + count; i++) {
        strata_stream_t neighbour = ring->streams[(i + 1) % STREAMS];
        strata_address_t address = (uintptr_t)ring->blocks[i].ptr;
        EXPECT_OK(strata_device_fill(rig->devices[0], address, 1, BLOCK, ring->streams[i]));
        EXPECT_OK(strata_record_stream(rig->s, ring->blocks[i].ref, neighbour));
        EXPECT_OK(strata_device_fill(rig->devices[0], address, 2, BLOCK, neighbour));
        rig_work(rig, neighbour, LONG, ring->blocks[i].ref);
        EXPECT_OK(strata_free(rig->s, ring->blocks[i].ref));
    }
}

static bool overlap(strata_block_t a, strata_block_t b) {
    uintptr_t at = (uintptr_t)a.ptr, bt = (uintptr_t)b.ptr;
    return at < bt + b.size && bt < at + a.size;
}

/* While the borrowers are at work nobody else gets what they use. */
static void expect_untouched(ring_t *ring) {
    for (uint32_t i = 0; i < STREAMS; i++) {
        strata_block_t next = rig_allocate(ring->rig, ring->streams[i], BLOCK);
        for (uint32_t j = 0; j < STREAMS; j++) EXPECT_FALSE(overlap(next, ring->blocks[j]));
        EXPECT_OK(strata_device_fill(ring->rig->devices[0], (uintptr_t)next.ptr, 3, BLOCK, ring->streams[i]));
        EXPECT_OK(strata_free(ring->rig->s, next.ref));
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        const uint8_t *bytes = ring->bytes[i];
        EXPECT_TRUE(bytes[0] == 2 && bytes[BLOCK / 2] == 2 && bytes[BLOCK - 1] == 2);
    }
}

static void begin_ring(ring_t *ring, rig_t *rig) {
    async_open(rig, NULL, 0, 0, true);
    ring->rig = rig;
    for (uint32_t i = 0; i < STREAMS; i++) ring->streams[i] = rig_stream(rig);
    for (uint32_t i = 0; i < STREAMS; i++) {
        ring->blocks[i] = rig_allocate(rig, ring->streams[i], BLOCK);
        ring->bytes[i] = strata_device_host_view(rig->devices[0], (uintptr_t)ring->blocks[i].ptr, BLOCK);
        ASSERT_TRUE(ring->bytes[i]);
    }
}

static void end_ring(ring_t *ring) {
    rig_t *rig = ring->rig;
    EXPECT_EQ(rig_figures(rig).borrows, STREAMS);
    EXPECT_OK(strata_validate(rig->s));
    rig_advance(rig, 1000ull * LONG);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(async_used(rig), 0);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
    rig_close(rig);
}

TEST(async_streams, multi_stream) {
    static ring_t ring;
    rig_t rig;
    begin_ring(&ring, &rig);
    use_and_free(&ring, 0, STREAMS);
    EXPECT_EQ(rig_figures(&rig).deferred_frees, STREAMS);
    expect_untouched(&ring);
    end_ring(&ring);
}

typedef struct share {
    ring_t *ring;
    uint32_t from;
} share_t;

static void *use_share(void *context) {
    share_t *share = context;
    use_and_free(share->ring, share->from, STREAMS / THREADS);
    return NULL;
}

TEST(async_streams, multi_thread) {
    static ring_t ring;
    rig_t rig;
    pthread_t threads[THREADS];
    share_t shares[THREADS];
    begin_ring(&ring, &rig);
    for (uint32_t i = 0; i < THREADS; i++) {
        shares[i] = (share_t){&ring, i * STREAMS / THREADS};
        ASSERT_EQ(pthread_create(&threads[i], NULL, use_share, &shares[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    EXPECT_EQ(rig_figures(&rig).deferred_frees, STREAMS);
    expect_untouched(&ring);
    end_ring(&ring);
}

/* ---- throttling ---- */

enum { ROUNDS = 200 };
#define CAPACITY (4 * GIB)
#define STEP     (32 * MIB)

typedef struct flood {
    rig_t *rig;
    strata_stream_t owner, borrower;
} flood_t;

/* Frees borrowed blocks ten times as fast as the device ends them. */
static void *pour(void *context) {
    flood_t *flood = context;
    for (int i = 0; i < ROUNDS && !strata_test_has_failed(); i++) {
        strata_block_t a = rig_allocate(flood->rig, flood->owner, STEP);
        rig_borrow(flood->rig, a.ref, flood->borrower, 10 * LONG);
        EXPECT_OK(strata_free(flood->rig->s, a.ref));
        rig_advance(flood->rig, LONG);
    }
    return NULL;
}

/* The most that the device gave; *total is its whole memory. */
static uint64_t peak_of_flood(const char *const *set, size_t count, uint32_t threads, uint64_t *total) {
    rig_t rig;
    uint64_t free_bytes;
    flood_t floods[4];
    pthread_t pouring[4];
    async_open(&rig, set, count, CAPACITY, false);
    EXPECT_OK(strata_device_mem_info(rig.devices[0], &free_bytes, total));
    for (uint32_t i = 0; i < threads; i++) floods[i] = (flood_t){&rig, rig_stream(&rig), rig_stream(&rig)};
    for (uint32_t i = 1; i < threads; i++) EXPECT_EQ(pthread_create(&pouring[i], NULL, pour, &floods[i]), 0);
    (void)pour(&floods[0]);
    for (uint32_t i = 1; i < threads; i++) EXPECT_EQ(pthread_join(pouring[i], NULL), 0);
    uint64_t peak = async_peak_used(&rig);
    EXPECT_OK(strata_device_synchronise(rig.devices[0]));
    rig_close(&rig);
    return peak;
}

TEST(async_throttle, pending_bytes_stay_below_the_ratio) {
    static const char *const half[] = {"cuda_malloc_async.throttle=0.5"};
    static const char *const by_host[] = {"cuda_malloc_async.throttle=0.5", "cuda_malloc_async.reuse_follow_events=false"};
    uint64_t total;
    EXPECT_LE(peak_of_flood(half, 1, 1, &total), total / 2);
    EXPECT_LE(peak_of_flood(by_host, 2, 1, &total), total / 2);
    EXPECT_LE(peak_of_flood(NULL, 0, 1, &total), total / 10 * 8);
}

/* A wait for frees of before would break the program's capture: the host waits instead. */
TEST(async_throttle, a_captured_stream_waits_for_nothing_outside) {
    static const char *const little[] = {"cuda_malloc_async.throttle=0.01"};
    RIG_BY(rig, async_open(&rig, little, 1, CAPACITY, false));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig), captured = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 2 * STEP), b;
    rig_borrow(&rig, a.ref, borrower, 10 * LONG);
    EXPECT_OK(strata_free(rig.s, a.ref));
    rig_begin_capture(&rig, captured);
    if (strata_allocate(rig.s, rig.gpu, captured, STEP, &b) == STRATA_OK) EXPECT_OK(strata_free(rig.s, b.ref));
    rig_end_capture(&rig, captured);
    EXPECT_OK(strata_device_synchronise(rig.devices[0]));
}

TEST(async_throttle, also_with_more_threads) {
    static const char *const half[] = {"cuda_malloc_async.throttle=0.5"};
    uint64_t total;
    for (uint32_t threads = 2; threads <= 4; threads += 2) {
        EXPECT_LE(peak_of_flood(half, 1, threads, &total), total / 2);
        EXPECT_LE(peak_of_flood(NULL, 0, threads, &total), total / 10 * 8);
    }
}

/* What the tests above would see of a layer that does not throttle. */
TEST(async_throttle, without_it_the_device_fills_up) {
    static const char *const whole[] = {"cuda_malloc_async.throttle=1"};
    uint64_t total;
    EXPECT_GT(peak_of_flood(whole, 1, 1, &total), total / 10 * 8);
}

/* What is freed and pending counts once: the peer, which counts it twice, would throttle at half as much. */
TEST(async_throttle, pending_bytes_count_once) {
    static const char *const half[] = {"cuda_malloc_async.throttle=0.5"};
    RIG_BY(rig, async_open(&rig, half, 1, CAPACITY, false));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    uint64_t free_bytes, total, waits;
    ASSERT_OK(strata_device_mem_info(rig.devices[0], &free_bytes, &total));
    strata_block_t a = rig_allocate(&rig, owner, total / 4);
    rig_borrow(&rig, a.ref, borrower, 100 * LONG);
    EXPECT_OK(strata_free(rig.s, a.ref));
    waits = rig_calls(&rig, STRATA_CALL_stream_wait);
    strata_block_t below = rig_allocate(&rig, owner, total / 5);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_stream_wait), waits);
    strata_block_t above = rig_allocate(&rig, owner, total / 5);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_stream_wait), waits + 1);
    RIG_FREE(&rig, below, above);
}

/* A stream waits once for what is pending; another one in its place, under its very handle, has not waited. */
TEST(async_throttle, a_recycled_handle_waits_anew) {
    static const char *const half[] = {"cuda_malloc_async.throttle=0.5"};
    RIG_BY(rig, async_open(&rig, half, 1, CAPACITY, false));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig), gone = rig_stream(&rig), again = NULL;
    uint64_t free_bytes, total;
    ASSERT_OK(strata_device_mem_info(rig.devices[0], &free_bytes, &total));
    strata_block_t a = rig_allocate(&rig, owner, total / 4);
    rig_borrow(&rig, a.ref, borrower, 100 * LONG);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t below = rig_allocate(&rig, owner, total / 5);
    for (uint64_t round = 0; round < 2; round++) {
        uint64_t waits = rig_calls(&rig, STRATA_CALL_stream_wait);
        for (int i = 0; i < 2; i++) EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, round ? again : gone, total / 5).ref));
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_stream_wait), waits + 1);
        if (round > 0) break;
        EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
        EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, gone));
        for (int i = 0; i < 4 && again != gone; i++) again = rig_stream(&rig);
        ASSERT_EQ(again, gone);
    }
    EXPECT_OK(strata_free(rig.s, below.ref));
}

/* ---- threads that exit ---- */

static void *use_and_leave(void *context) {
    rig_t *rig = context;
    strata_block_t b = rig_allocate(rig, STRATA_STREAM_PER_THREAD, BLOCK);
    rig_work(rig, STRATA_STREAM_PER_THREAD, LONG, b.ref);
    EXPECT_OK(strata_free(rig->s, b.ref));
    return NULL;
}

static const strata_nodes_t *users_of(rig_t *rig) {
    const strata_group_t *group = &rig_domain(rig)->ordinary;
    return &((const async_layer_t *)group->shared[group->plan->count])->uses.users.nodes;
}

/* Each has an entry of the layer's table, which does not grow with the threads that there ever were. */
TEST(async_streams, threads_that_exited_leave_no_entries_after) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        ASSERT_EQ(pthread_create(&thread, NULL, use_and_leave, &rig), 0);
        pthread_join(thread, NULL);
    }
    EXPECT_EQ(users_of(&rig)->used, 2);
    EXPECT_OK(strata_validate(rig.s));
}

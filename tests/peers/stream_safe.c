/* Paddle's stream_safe_cuda_alloc_test (SS), rewritten from its description, under the preset that reproduces it and under the
 * default; and what it asks of the async allocator too (MA), which tests/async does not ask. */
#include <pthread.h>

#include "tests/facade/support/fixture.h"

enum { STREAMS = 64, THREADS = 8, BLOCK = 512 * 1024, LONG = 1000 * 1000 };

static const char *const cached[] = {"paddle", "strata"};
static const char *const all[] = {"paddle", "strata", "cuda_malloc_async"};

static void open_with(rig_t *rig, const char *preset, uint64_t capacity, bool contents) {
    strata_sim_options_t options = {.capacity = capacity, .contents = contents};
    rig_open_on(rig, rig_strategy(preset, NULL, 0), &options, 0);
    rig->borrowed_strategy = false;
}

static void expect_nothing_held(rig_t *rig) {
    strata_sim_figures_t figures;
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    strata_sim_figures(rig->devices[0], &figures);
    EXPECT_EQ(figures.used_bytes, 0);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
}

/* SS::AllocInterface: 256 B, freed, and 256 B again naming the default stream: the same address; after a release nothing is held. */
TEST(peers_stream_safe, alloc_interface) {
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, open_with(&rig, cached[i], 0, false));
        strata_block_t a = rig_allocate(&rig, NULL, 256);
        EXPECT_GE(a.size, 256);
        EXPECT_OK(strata_free(rig.s, a.ref));
        strata_block_t b = rig_allocate(&rig, STRATA_STREAM_LEGACY, 256);
        EXPECT_EQ((uintptr_t)b.ptr, (uintptr_t)a.ptr);
        EXPECT_OK(strata_free(rig.s, b.ref));
        expect_nothing_held(&rig);
    }
}

/* SS::GetAllocator, MA::GetAllocator: naming the default stream is naming none: one allocator. Here a stack. */
TEST(peers_stream_safe, get_allocator) {
    for (int i = 0; i < 3; i++) {
        bool same = false;
        RIG_BY(rig, open_with(&rig, all[i], 0, false));
        strata_stream_t other = rig_stream(&rig);
        EXPECT_OK(strata_same_stream(rig.s, rig.gpu, NULL, STRATA_STREAM_LEGACY, &same));
        EXPECT_TRUE(same);
        EXPECT_EQ((uintptr_t)rig_stack(&rig, NULL), (uintptr_t)rig_stack(&rig, STRATA_STREAM_LEGACY));
        EXPECT_OK(strata_same_stream(rig.s, rig.gpu, NULL, other, &same));
        EXPECT_FALSE(same);
    }
}

/* SS::ZeroSize: no address, and borrowing it works. */
TEST(peers_stream_safe, zero_size) {
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, open_with(&rig, cached[i], 0, false));
        strata_block_t a = rig_allocate(&rig, NULL, 0);
        EXPECT_TRUE(a.ptr == NULL && a.size == 0);
        EXPECT_OK(strata_record_stream(rig.s, a.ref, rig_stream(&rig)));
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 0);
    }
}

/* SS::GetStream: the owner, the default stream or a new one; a borrower does not become it. */
TEST(peers_stream_safe, get_stream) {
    for (int i = 0; i < 3; i++) {
        RIG_BY(rig, open_with(&rig, all[i], 0, false));
        strata_stream_t streams[2] = {NULL, rig_stream(&rig)}, owner;
        for (int k = 0; k < 2; k++) {
            strata_block_t a = rig_allocate(&rig, streams[k], 256);
            EXPECT_OK(strata_record_stream(rig.s, a.ref, streams[1 - k]));
            EXPECT_OK(strata_stream_of(rig.s, a.ref, &owner));
            EXPECT_EQ((uintptr_t)owner, (uintptr_t)streams[k]);
            EXPECT_OK(strata_free(rig.s, a.ref));
        }
    }
}

/* SS::RetryTest: three quarters of what is usable on one stream, freed but cached; the same on another stream succeeds. */
TEST(peers_stream_safe, retry_test) {
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, open_with(&rig, cached[i], 64 * MIB, false));
        strata_block_t a = rig_allocate(&rig, rig_stream(&rig), 48 * MIB);
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 48 * MIB);
        strata_block_t b = rig_allocate(&rig, rig_stream(&rig), 48 * MIB);
        /* The default has already collected it, as memory at rest. */
        EXPECT_EQ(rig_figures(&rig).recoveries, strcmp(cached[i], "strata") != 0);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

/* ---- SS::MultiStream and SS::MultiThread ---- */

typedef struct ring {
    rig_t rig;
    strata_stream_t streams[STREAMS];
    strata_block_t blocks[STREAMS];
    const uint8_t *bytes[STREAMS];
} ring_t;

typedef struct share {
    ring_t *ring;
    uint32_t from, count;
} share_t;

/* Each block is written 1 by its owner and 2 by the neighbour's stream, which borrows it after its work: `event: use` covers what
 * was submitted before. The owner frees it at once. */
static void *use_and_free(void *context) {
    share_t *share = context;
    ring_t *ring = share->ring;
    rig_t *rig = &ring->rig;
    for (uint32_t i = share->from; i < share->from + share->count; i++) {
        strata_stream_t neighbour = ring->streams[(i + 1) % STREAMS];
        strata_address_t address = (uintptr_t)ring->blocks[i].ptr;
        EXPECT_OK(strata_device_fill(rig->devices[0], address, 1, BLOCK, ring->streams[i]));
        EXPECT_OK(strata_device_fill(rig->devices[0], address, 2, BLOCK, neighbour));
        rig_work(rig, neighbour, 100ull * LONG, ring->blocks[i].ref);
        EXPECT_OK(strata_record_stream(rig->s, ring->blocks[i].ref, neighbour));
        EXPECT_OK(strata_free(rig->s, ring->blocks[i].ref));
    }
    return NULL;
}

static void begin_ring(ring_t *ring, const char *preset) {
    rig_t *rig = &ring->rig;
    open_with(rig, preset, 0, true);
    for (uint32_t i = 0; i < STREAMS; i++) ring->streams[i] = rig_stream(rig);
    for (uint32_t i = 0; i < STREAMS; i++) {
        ring->blocks[i] = rig_allocate(rig, ring->streams[i], BLOCK);
        ring->bytes[i] = strata_device_host_view(rig->devices[0], (uintptr_t)ring->blocks[i].ptr, BLOCK);
        ASSERT_TRUE(ring->bytes[i]);
    }
}

/* The owners ask for as much again: what the borrowers still use stays as they wrote it. */
static void expect_untouched(ring_t *ring) {
    rig_t *rig = &ring->rig;
    EXPECT_EQ(rig_figures(rig).deferred_frees, STREAMS);
    for (uint32_t i = 0; i < STREAMS; i++) {
        strata_block_t next = rig_allocate(rig, ring->streams[i], BLOCK);
        EXPECT_NE((uintptr_t)next.ptr, (uintptr_t)ring->blocks[i].ptr);
        EXPECT_OK(strata_device_fill(rig->devices[0], (uintptr_t)next.ptr, 3, BLOCK, ring->streams[i]));
        EXPECT_OK(strata_free(rig->s, next.ref));
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        const uint8_t *bytes = ring->bytes[i];
        EXPECT_TRUE(bytes[0] == 2 && bytes[BLOCK / 2] == 2 && bytes[BLOCK - 1] == 2);
    }
}

static void end_ring(ring_t *ring) {
    rig_t *rig = &ring->rig;
    rig_advance(rig, 10000ull * LONG);
    for (uint32_t i = 0; i < STREAMS; i++) {
        strata_block_t again = rig_allocate(rig, ring->streams[i], BLOCK);
        EXPECT_OK(strata_free(rig->s, again.ref));
    }
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
    expect_nothing_held(rig);
    rig_close(rig);
}

TEST(peers_stream_safe, multi_stream) {
    static ring_t ring;
    for (int i = 0; i < 2; i++) {
        begin_ring(&ring, cached[i]);
        (void)use_and_free(&(share_t){&ring, 0, STREAMS});
        expect_untouched(&ring);
        end_ring(&ring);
    }
}

TEST(peers_stream_safe, multi_thread) {
    static ring_t ring;
    for (int i = 0; i < 2; i++) {
        pthread_t threads[THREADS];
        share_t shares[THREADS];
        begin_ring(&ring, cached[i]);
        for (uint32_t t = 0; t < THREADS; t++) {
            shares[t] = (share_t){&ring, t * STREAMS / THREADS, STREAMS / THREADS};
            ASSERT_EQ(pthread_create(&threads[t], NULL, use_and_free, &shares[t]), 0);
        }
        for (uint32_t t = 0; t < THREADS; t++) ASSERT_EQ(pthread_join(threads[t], NULL), 0);
        expect_untouched(&ring);
        end_ring(&ring);
    }
}

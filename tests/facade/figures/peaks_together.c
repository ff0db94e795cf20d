/* The peaks of a place: the most that lived at one moment over all its streams, not the sum of what each had at its own. */
#include <pthread.h>

#include "tests/facade/support/fixture.h"

enum { STREAMS = 8, BLOCKS = 40, ROUNDS = 20000, PART = 128 };

/* What a program has, by its own count. */
typedef struct model {
    rig_t *rig;
    strata_stream_t streams[STREAMS];
    uint32_t count;
    strata_block_t blocks[BLOCKS];
    uint64_t asked[BLOCKS];
    uint64_t requested, allocated, most_requested, most_allocated;
} model_t;

static uint64_t random_below(uint64_t *state, uint64_t bound) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % bound;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void take(model_t *m, uint32_t i, strata_stream_t stream, uint64_t size) {
    m->blocks[i] = rig_allocate(m->rig, stream, size);
    m->asked[i] = size;
    m->requested += size;
    m->allocated += m->blocks[i].size;
    m->most_requested = larger(m->most_requested, m->requested);
    m->most_allocated = larger(m->most_allocated, m->allocated);
}

static void drop(model_t *m, uint32_t i) {
    EXPECT_OK(strata_free(m->rig->s, m->blocks[i].ref));
    m->requested -= m->asked[i];
    m->allocated -= m->blocks[i].size;
    m->asked[i] = 0;
}

static void toggle(model_t *m, uint64_t *random) {
    uint32_t i = (uint32_t)random_below(random, BLOCKS);
    strata_stream_t stream = m->streams[random_below(random, m->count)];
    if (m->asked[i]) drop(m, i);
    else take(m, i, stream, (4096ull << random_below(random, 10)) + random_below(random, 4096) + 1);
}

static void drop_all(model_t *m) {
    for (uint32_t i = 0; i < BLOCKS; i++)
        if (m->asked[i]) drop(m, i);
}

static void begin_anew(model_t *m) {
    EXPECT_OK(strata_reset_peaks(m->rig->s, m->rig->gpu));
    m->most_requested = m->requested;
    m->most_allocated = m->allocated;
}

/* What is told was there, and next to nothing more. */
static void expect_within(const model_t *m, uint64_t part) {
    strata_statistics_t f = rig_figures(m->rig);
    EXPECT_LE(f.peak_allocated_bytes, m->most_allocated);
    EXPECT_GE(f.peak_allocated_bytes, m->most_allocated - m->most_allocated / part);
    EXPECT_LE(f.peak_requested_bytes, m->most_requested);
    EXPECT_GE(f.peak_requested_bytes, m->most_requested - m->most_requested / part);
    EXPECT_LE(f.peak_allocated_bytes, f.peak_reserved_bytes);
    EXPECT_GE(f.peak_allocated_bytes, f.allocated_bytes);
}

static void expect_random(rig_t *rig, uint32_t streams, uint64_t part) {
    model_t m = {.rig = rig, .count = streams};
    for (uint32_t i = 1; i < streams; i++) m.streams[i] = rig_stream(rig);
    for (uint64_t seed = 1; seed <= 5 && !strata_test_has_failed(); seed++) {
        uint64_t random = seed;
        for (int i = 0; i < ROUNDS && !strata_test_has_failed(); i++) {
            toggle(&m, &random);
            if (i % 500 == 0) expect_within(&m, part);
        }
        if (seed % 2) drop_all(&m);
        begin_anew(&m);
        expect_within(&m, part);
    }
    drop_all(&m);
}

#define PEAKS_STACKS                                                                                                               \
    "strata", "strategy: p\nstack: [stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n", "pytorch", "thread_local"

TEST_RIG(facade_peaks_together, one_stream_is_exact, 0, PEAKS_STACKS) { expect_random(rig, 1, UINT64_MAX); }

TEST_RIG(facade_peaks_together, of_several_streams_no_more_than_a_part_is_missed, 0, PEAKS_STACKS) {
    expect_random(rig, STREAMS, PART);
}

/* What one stream had before another is not added. */
TEST_RIG(facade_peaks_together, streams_that_take_turns_are_not_added_up, 0, PEAKS_STACKS) {
    strata_stream_t other = rig_stream(rig);
    strata_block_t block = {0};
    for (int turn = 0; turn < 6; turn++) {
        block = rig_allocate(rig, turn % 2 ? other : NULL, (turn % 2 ? 48 : 32) * MIB);
        EXPECT_OK(strata_free(rig->s, block.ref));
    }
    strata_statistics_t f = rig_figures(rig);
    EXPECT_EQ(f.peak_requested_bytes, 48 * MIB);
    EXPECT_EQ(f.peak_allocated_bytes, block.size);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, other));
    EXPECT_EQ(rig_figures(rig).peak_allocated_bytes, block.size);
}

/* The ended stream was the only one that had served a request, so no sum over several streams had noted its peak. */
TEST_RIG(facade_peaks_together, the_peak_of_an_ended_stream_counts, 0, "strata", "pytorch") {
    strata_stream_t other = rig_stream(rig);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, other, 48 * MIB).ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, other));
    (void)rig_release(rig);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, MIB).ref));
    EXPECT_EQ(rig_figures(rig).peak_requested_bytes, 48 * MIB);
}

/* Each of both streams alone has reached nearly the peak of the place before. */
TEST_RIG(facade_peaks_together, two_streams_cannot_both_reach_the_peak_unseen, 0, PEAKS_STACKS) {
    strata_stream_t other = rig_stream(rig);
    for (int turn = 0; turn < 4; turn++) EXPECT_OK(strata_free(rig->s, rig_allocate(rig, turn % 2 ? other : NULL, 48 * MIB).ref));
    strata_block_t one = rig_allocate(rig, NULL, 40 * MIB), two = rig_allocate(rig, other, 40 * MIB);
    RIG_FREE(rig, one, two);
    EXPECT_GE(rig_figures(rig).peak_requested_bytes, 80 * MIB - 80 * MIB / PART);
}

/* Of more streams than a look has time for an upper bound is told. */
TEST_RIG(facade_peaks_together, of_very_many_streams_no_more_than_was_reserved, 0, "strata", "pytorch") {
    enum { MANY = 100 };
    for (int i = 0; i < MANY && !strata_test_has_failed(); i++) {
        strata_stream_t stream = rig_stream(rig);
        for (int n = 0; n < 3; n++) EXPECT_OK(strata_free(rig->s, rig_allocate(rig, stream, MIB).ref));
        EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    }
    strata_statistics_t f = rig_figures(rig);
    EXPECT_GE(f.peak_allocated_bytes, MIB);
    EXPECT_LE(f.peak_allocated_bytes, f.peak_reserved_bytes);
}

/* Each stream's own peak stays exact, whoever came first. */
TEST_RIG(facade_peaks_together, each_of_very_many_streams_knows_its_own, 0, "strata", "pytorch") {
    enum { MANY = 80 };
    strata_stream_t streams[MANY];
    for (uint64_t i = 0; i < MANY; i++) {
        streams[i] = rig_stream(rig);
        strata_block_t one = rig_allocate(rig, streams[i], MIB), two = rig_allocate(rig, streams[i], (i + 1) * MIB);
        RIG_FREE(rig, one, two);
        EXPECT_OK(strata_free(rig->s, rig_allocate(rig, streams[i], MIB).ref));
    }
    for (uint64_t i = 0; i < MANY; i++) {
        strata_statistics_t f = {.struct_size = sizeof f};
        EXPECT_OK(strata_statistics(rig->s, rig->gpu, streams[i], &f));
        EXPECT_EQ(f.peak_requested_bytes, (i + 2) * MIB);
    }
}

/* ---- threads ---- */

enum { THREADS = 4, HELD = 32, TURNS = 50 };

typedef struct worker {
    rig_t *rig;
    strata_stream_t stream;
    pthread_barrier_t *all;
} worker_t;

/* All hold everything at one moment; before and after it they come and go. */
static void *work(void *argument) {
    worker_t *worker = argument;
    strata_block_t blocks[HELD];
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < HELD; i++) blocks[i] = rig_allocate(worker->rig, worker->stream, MIB);
        if (turn == TURNS / 2) (void)pthread_barrier_wait(worker->all);
        for (int i = 0; i < HELD; i++) EXPECT_OK(strata_free(worker->rig->s, blocks[i].ref));
    }
    return NULL;
}

TEST_RIG(facade_peaks_together, of_threads_too, 0, PEAKS_STACKS) {
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    pthread_barrier_t all;
    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.rig = rig, .stream = i ? rig_stream(rig) : NULL, .all = &all};
        ASSERT_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all);
    strata_statistics_t f = rig_figures(rig);
    uint64_t most = THREADS * HELD * MIB;
    EXPECT_LE(f.peak_requested_bytes, most);
    EXPECT_GE(f.peak_requested_bytes, most - most / PART);
    EXPECT_LE(f.peak_allocated_bytes, f.peak_reserved_bytes);
}

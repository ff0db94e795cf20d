/* A cache that all streams share has a direct way of its own: under its lock alone, past the stack's. */
#include <pthread.h>

#include "tests/facade/support/interleaving.h"

enum { SIZE = 64 << 10, ROUNDS = 1500 };

#define PRESETS "pytorch", "tensorflow"
static const char *const presets[] = {PRESETS};

static void nothing(void *context) { (void)context; }

/* How often a pair takes the lock of the stream's stack: never on the direct way. */
static bool takes_the_stacks_lock(rig_t *rig, strata_stream_t stream, bool by_pointer) {
    before_lock_t before;
    before_lock_begin(&before, &rig_stack(rig, stream)->lock, 1, nothing, NULL);
    strata_block_t block = rig_allocate(rig, stream, SIZE);
    EXPECT_OK(by_pointer ? strata_free_pointer(rig->s, block.ptr) : strata_free(rig->s, block.ref));
    return before_lock_end(&before);
}

TEST(shared_hits, a_pair_takes_the_lock_of_the_cache_alone) {
    for (size_t i = 0; i < 2; i++)
        for (int by_pointer = 0; by_pointer < 2; by_pointer++) {
            RIG(rig, presets[i], 0);
            strata_stream_t streams[] = {rig_stream(&rig), rig_stream(&rig)};
            for (int k = 0; k < 2; k++) {
                strata_block_t first = rig_allocate(&rig, streams[k], SIZE);
                EXPECT_OK(strata_free_pointer(rig.s, first.ptr));
                strata_stack_t *stack = rig_stack(&rig, streams[k]);
                EXPECT_TRUE(stack->home != stack);
                uint64_t hits = rig_figures(&rig).cache_hits, frees = stack->figures.frees;
                EXPECT_FALSE(takes_the_stacks_lock(&rig, streams[k], by_pointer != 0));
                EXPECT_EQ(rig_figures(&rig).cache_hits, hits + 1);
                EXPECT_EQ(stack->figures.frees, frees + 1);
                EXPECT_EQ(stack->figures.allocated_bytes, 0);
            }
        }
}

/* Layers that go by the stack's own lock are not passed by. */
TEST_RIG(shared_hits, a_guarded_layer_above_is_asked, 0, "strategy: guarded\nstack: [stream_safe, caching, system]\n") {
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, stream, SIZE).ref));
    strata_stack_t *stack = rig_stack(rig, stream);
    EXPECT_TRUE(stack->home == stack);
    EXPECT_TRUE(takes_the_stacks_lock(rig, stream, false));
}

/* What is borrowed or watched goes the long way. */
TEST_RIG(shared_hits, borrows_and_bounds_are_respected, 0, "pytorch") {
    strata_stream_t stream = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t block = rig_free_deferred(rig, stream, borrower, SIZE, 1000 * 1000);
    EXPECT_GT(rig_figures(rig).deferred_bytes, 0);
    strata_block_t next = rig_allocate(rig, stream, SIZE);
    EXPECT_NE(next.ptr, block.ptr);
    EXPECT_OK(strata_free(rig->s, next.ref));
    rig_advance(rig, 2 * 1000 * 1000);
    strata_block_t again = rig_allocate(rig, stream, SIZE);
    EXPECT_EQ(again.ptr, block.ptr); /* what has passed is put back first */
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 1));
    EXPECT_TRUE(takes_the_stacks_lock(rig, stream, false));
    EXPECT_OK(strata_free(rig->s, again.ref));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
}

/* A second owner is noted in the record: the free of the first goes the long way. */
TEST_RIG(shared_hits, a_second_owner_counts, 0, "tensorflow") {
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_retain(rig->s, block.ref));
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, block.ref));
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
}

/* The bank of a forgotten stream ends; its number is another's soon. */
TEST_RIG(shared_hits, a_hint_finds_no_bank_that_has_ended, 0, "pytorch") {
    for (int i = 0; i < 6; i++) {
        strata_stream_t stream = NULL;
        EXPECT_OK(strata_stream_create(rig->s, rig->gpu, 0, &stream));
        for (int k = 0; k < 3; k++) {
            strata_block_t block = rig_allocate(rig, stream, SIZE);
            expect_owner(rig, block, stream);
            EXPECT_OK(strata_free(rig->s, block.ref));
        }
        EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
        EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, stream));
        EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
        EXPECT_OK(strata_validate(rig->s));
    }
}

/* ---- threads ---- */

typedef struct worker {
    rig_t *rig;
    strata_stream_t stream, other;
    int number;
} worker_t;

/* By the direct way and the long one at once: borrows, figures, releases, frees by pointer. */
static void *work(void *context) {
    worker_t *w = context;
    strata_t s = w->rig->s;
    strata_statistics_t figures = {.struct_size = sizeof figures};
    for (int i = 0; i < ROUNDS; i++) {
        strata_block_t block = rig_allocate(w->rig, w->stream, i % 5 ? SIZE : 3 * MIB);
        if (i % 11 == 0) EXPECT_OK(strata_record_stream(s, block.ref, w->other));
        if (i % 13 == 0) EXPECT_OK(strata_statistics(s, w->rig->gpu, w->other, &figures));
        if (i % 101 == w->number) EXPECT_OK(strata_release(s, w->rig->gpu, NULL));
        EXPECT_OK(i % 3 ? strata_free(s, block.ref) : strata_free_pointer(s, block.ptr));
        EXPECT_EQ(strata_free(s, block.ref), STRATA_E_STALE);
    }
    return NULL;
}

TEST_RIG(shared_hits, streams_of_many_threads_come_to_one_cache_at_once, 0, PRESETS) {
    worker_t workers[3];
    pthread_t threads[3];
    strata_stream_t streams[] = {rig_stream(rig), rig_stream(rig), rig_stream(rig)};
    for (int k = 0; k < 3; k++) {
        workers[k] = (worker_t){.rig = rig, .stream = streams[k], .other = streams[(k + 1) % 3], .number = k};
        ASSERT_EQ(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
    }
    for (int k = 0; k < 3; k++) ASSERT_EQ(pthread_join(threads[k], NULL), 0);
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
    EXPECT_EQ(rig_figures(rig).frees, 3 * ROUNDS);
}

typedef struct twice {
    rig_t *rig;
    strata_ref_t ref;
    strata_status_t status;
    pthread_barrier_t *start;
} twice_t;

static void *free_once(void *context) {
    twice_t *t = context;
    pthread_barrier_wait(t->start);
    t->status = strata_free(t->rig->s, t->ref);
    return NULL;
}

/* One block, two frees. */
TEST_RIG(shared_hits, of_two_frees_at_once_one_is_stale, 0, "pytorch") {
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 200; i++) {
        strata_block_t block = rig_allocate(rig, NULL, SIZE);
        twice_t twice[2];
        pthread_t threads[2];
        for (int k = 0; k < 2; k++) {
            twice[k] = (twice_t){.rig = rig, .ref = block.ref, .start = &start};
            ASSERT_EQ(pthread_create(&threads[k], NULL, free_once, &twice[k]), 0);
        }
        for (int k = 0; k < 2; k++) ASSERT_EQ(pthread_join(threads[k], NULL), 0);
        EXPECT_EQ((twice[0].status == STRATA_OK) + (twice[1].status == STRATA_OK), 1);
        EXPECT_EQ((twice[0].status == STRATA_E_STALE) + (twice[1].status == STRATA_E_STALE), 1);
    }
    pthread_barrier_destroy(&start);
    EXPECT_EQ(rig_figures(rig).frees, 200);
}

/* That is how a layer that many streams share knows whose request it has. */
TEST_RIG(shared_hits, a_stack_tells_whose_requests_it_passes_on, 0, PRESETS) {
    strata_stream_t streams[] = {NULL, rig_stream(rig), rig_stream(rig)};
    for (size_t i = 0; i < COUNT(streams); i++)
        EXPECT_EQ((uintptr_t)strata_stack_stream(rig_stack(rig, streams[i])), (uintptr_t)streams[i]);
}

/* A limit below what is live: what is freed goes back until the place is under it, and nothing is served from what goes. */
#include <stdio.h>

#include "tests/facade/support/interleaving.h"

enum { BLOCKS = 8 };

static const char *const stacks[] = {
    "auto_growth: {chunk_size: 8MiB}, system",
    "retry, stream_safe, auto_growth: {chunk_size: 8MiB}, system",
    "caching, system",
    "bfc, system",
    "naive_best_fit: {initial: 8MiB}, system",
    "thread_local: {initial: 8MiB}, system",
    "buffered, system",
    "cuda_malloc_async",
    "system",
    "stat, trace, auto_growth: {chunk_size: 8MiB}, limit, system",
};

static uint64_t reserved_of(rig_t *rig) { return rig_figures(rig).reserved_bytes; }

/* Blocks of 8 MiB; the limit falls to half of what they hold. */
static void falls_to_the_limit(const char *layers) {
    strata_block_t blocks[BLOCKS], none = {.ref = 5};
    RIG_STACK(rig, layers, 0);
    for (int i = 0; i < BLOCKS; i++) blocks[i] = rig_allocate(&rig, NULL, 8 * MIB - 512);
    uint64_t limit = reserved_of(&rig) / 2;
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, limit));
    for (int i = 0; i < BLOCKS; i++) {
        EXPECT_OK(strata_free(rig.s, blocks[i].ref));
        uint64_t reserved = reserved_of(&rig);
        if (reserved <= limit) continue;
        EXPECT_EQ(rig_release(&rig), 0);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, reserved));
        EXPECT_LE(reserved_of(&rig), reserved);
    }
    EXPECT_LE(reserved_of(&rig), limit);
    /* Under it the caches keep again what they get. */
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, STRATA_UNLIMITED));
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 8 * MIB - 512).ref));
    EXPECT_FALSE(atomic_load(&rig_domain(&rig)->over_limit));
    EXPECT_EQ(rig_stack(&rig, NULL)->attention_free & STRATA_ATTENTION_LIMIT, 0);
    if (rig_stack(&rig, NULL)->hit) EXPECT_EQ(rig_stack(&rig, NULL)->attention_allocate & STRATA_ATTENTION_CORE, 0);
    EXPECT_EQ(none.ref, 5);
}

TEST(facade_above, every_cache_falls_to_the_limit_as_its_blocks_are_freed) {
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks && !strata_test_has_failed(); i++) falls_to_the_limit(stacks[i]);
}

static const char one_each[] =
    "strategy: above\nstack: [retry: {timeout: 0}, stream_safe, auto_growth: {chunk_size: 8MiB}, system]\n";

/* A chunk with a live block in it cannot go, and what is free beside the block is nobody's growth. */
TEST_RIG(facade_above, free_parts_of_live_chunks_are_served_and_whole_chunks_are_not, 0, one_each) {
    strata_block_t whole = rig_allocate(rig, NULL, 8 * MIB), a = rig_allocate(rig, NULL, 4 * MIB),
                   b = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_EQ(reserved_of(rig), 16 * MIB);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 4 * MIB));
    EXPECT_OK(strata_free(rig->s, b.ref));
    b = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_OK(strata_free(rig->s, whole.ref));
    EXPECT_EQ(reserved_of(rig), 8 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 8 * MIB));
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_EQ(reserved_of(rig), 8 * MIB);
    EXPECT_OK(strata_free(rig->s, b.ref));
    EXPECT_EQ(reserved_of(rig), 0);
}

/* A free that waits for another stream goes back once that is over, before anybody is served from it. */
TEST_RIG(facade_above, what_was_deferred_goes_back_when_it_is_over, 0, one_each) {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t lent = rig_allocate(rig, NULL, 8 * MIB), kept = rig_allocate(rig, NULL, 8 * MIB);
    rig_work(rig, stream, 1000 * 1000, lent.ref);
    EXPECT_OK(strata_record_stream(rig->s, lent.ref, stream));
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 8 * MIB));
    EXPECT_OK(strata_free(rig->s, lent.ref));
    EXPECT_EQ(reserved_of(rig), 16 * MIB);
    EXPECT_OK(strata_stream_synchronize(rig->s, rig->gpu, stream));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 8 * MIB));
    EXPECT_EQ(reserved_of(rig), 8 * MIB);
    EXPECT_OK(strata_free(rig->s, kept.ref));
    /* No longer above: it is kept. */
    EXPECT_EQ(reserved_of(rig), 8 * MIB);
}

/* A stack that is made while the place is above is watched too. */
TEST_RIG(facade_above, a_new_stream_and_another_pool_keep_to_it, 0, one_each) {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t first = rig_allocate(rig, NULL, 8 * MIB);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 0));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, stream, 100));
    EXPECT_NE(rig_stack(rig, stream)->attention_free & STRATA_ATTENTION_LIMIT, 0);
    EXPECT_OK(strata_free(rig->s, first.ref));
    EXPECT_EQ(reserved_of(rig), 0);
    EXPECT_EQ(rig_stack(rig, stream)->attention_free & STRATA_ATTENTION_LIMIT, 0);
    EXPECT_EQ(rig_stack(rig, stream)->attention_allocate & STRATA_ATTENTION_CORE, 0);
}

/* ---- a free in the middle of strata_set_limit ---- */

typedef struct quick_free {
    rig_t *rig;
    strata_ref_t ref;
} quick_free_t;

static void free_it(void *context) {
    const quick_free_t *what = context;
    EXPECT_OK(strata_free(what->rig->s, what->ref));
}

/* In front of the n-th time that the call takes the lock of the block's own stack, or of another's. False: it takes it less often. */
static bool is_freed_while_the_limit_falls(uint32_t n, bool other) {
    before_lock_t before;
    RIG(rig, one_each, 0);
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t block = rig_allocate(&rig, NULL, 8 * MIB);
    (void)rig_allocate(&rig, stream, 100);
    quick_free_t what = {&rig, block.ref};
    const strata_stack_t *own = rig_stack(&rig, NULL);
    before_lock_begin(&before, &rig_stack(&rig, other ? stream : NULL)->lock, n, free_it, &what);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 8 * MIB));
    bool freed = before_lock_end(&before);
    if (!freed) EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_EQ(reserved_of(&rig), 8 * MIB);
    EXPECT_FALSE(atomic_load(&rig_domain(&rig)->over_limit));
    EXPECT_EQ((own->attention_free | rig_stack(&rig, stream)->attention_free) & STRATA_ATTENTION_LIMIT, 0);
    EXPECT_EQ((own->attention_allocate | rig_stack(&rig, stream)->attention_allocate) & STRATA_ATTENTION_CORE, 0);
    return freed;
}

TEST(facade_above, what_is_freed_while_the_limit_falls_goes_back_and_leaves_no_watch) {
    for (int other = 0; other < 2; other++) {
        uint32_t n = 1;
        while (is_freed_while_the_limit_falls(n, other != 0) && !strata_test_has_failed()) n++;
        EXPECT_GT(n, 2);
        if (strata_test_has_failed()) FAIL_TEST("in front of lock %u of the %s stack", n, other ? "other" : "own");
    }
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 300 };

typedef struct worker {
    pthread_t thread;
    rig_t *rig;
    strata_stream_t stream;
} worker_t;

static void *work(void *argument) {
    worker_t *worker = argument;
    for (int i = 0; i < ROUNDS; i++) {
        strata_block_t a, b;
        bool has_a = strata_allocate(worker->rig->s, worker->rig->gpu, worker->stream, 3 * MIB, &a) == STRATA_OK;
        bool has_b = strata_allocate(worker->rig->s, worker->rig->gpu, worker->stream, 7 * MIB, &b) == STRATA_OK;
        if (has_a) EXPECT_OK(strata_free(worker->rig->s, a.ref));
        if (has_b) EXPECT_OK(strata_free(worker->rig->s, b.ref));
    }
    return NULL;
}

TEST_RIG(facade_above, limits_that_come_and_go_among_threads_leave_no_watch_after, 0, one_each) {
    worker_t workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.rig = rig, .stream = rig_stream(rig)};
        ASSERT_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++)
        EXPECT_OK(strata_set_limit(rig->s, rig->gpu, i % 3 ? (uint64_t)(i % 5) * 8 * MIB : STRATA_UNLIMITED));
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 8 * MIB));
    EXPECT_LE(reserved_of(rig), 8 * MIB);
    EXPECT_FALSE(atomic_load(&rig_domain(rig)->over_limit));
    for (int i = 0; i < THREADS; i++) EXPECT_EQ(rig_stack(rig, workers[i].stream)->attention_free & STRATA_ATTENTION_LIMIT, 0);
}

/* A pool keeps its idle bytes, so the limit is met with idle bytes of the others. */
TEST_RIG(facade_above, a_pool_keeps_its_own_and_the_rest_goes_by_the_chunk, 0,
         "stack: [auto_growth: {chunk_size: 8MiB}, system]\npools: {p: {keep: true}}\n") {
    strata_allocate_options_t kept = {.struct_size = sizeof kept, .size = 8 * MIB};
    strata_block_t blocks[5];
    EXPECT_OK(strata_pool(rig->s, "p", &kept.pool));
    for (int i = 0; i < 5; i++) blocks[i] = i < 2 ? rig_allocate_with(rig, NULL, &kept) : rig_allocate(rig, NULL, 8 * MIB);
    rig_free(rig, blocks, 5);
    for (uint64_t limit = 40 * MIB; limit >= 16 * MIB; limit -= 8 * MIB) {
        EXPECT_OK(strata_set_limit(rig->s, rig->gpu, limit));
        EXPECT_EQ(reserved_of(rig), limit);
    }
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 8 * MIB));
    EXPECT_EQ(reserved_of(rig), 16 * MIB); /* of the pool */
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, STRATA_UNLIMITED));
}

/* Whole stacks under the checker: those that are safe, and those that are not. */
#include <pthread.h>

#include "tests/checker/mutant_safe.h"
#include "tests/checker/told.h"

#define STACK(layer)                                                                                                               \
    "strategy: mutant\nstack:\n  - " layer "\n  - auto_growth: {chunk_size: 2MiB}\n  - system\n"                                   \
    "places:\n  pinned:\n    - " layer "\n    - auto_growth: {chunk_size: 2MiB}\n    - system: {memory: pinned}\n"

#define WITHOUT                                                                                                                    \
    "strategy: without\nstack:\n  - auto_growth: {chunk_size: 2MiB}\n  - system\n"                                                 \
    "places:\n  pinned:\n    - auto_growth: {chunk_size: 2MiB}\n    - system: {memory: pinned}\n"

#define A (checked.streams[0])
#define B (checked.streams[1])
#define C (checked.streams[2])

static const struct {
    const char *strategy;
    uint64_t first, last; /* seeds */
} safe[] = {
    {"strata", 1, 4},
    {"system", 1, 4},
    {"cuda_malloc_async", 1, 4},
    {STACK("stream_safe"), 1, 4},
    /* One cache for all streams: over memory that a free waits for, and over memory in a stream's order. */
    {"tensorflow", 1, 3},
    {"strategy: a\nstack: [bfc: {initial_region: 64KiB, max_region: 1MiB, memory_limit: 64MiB}, system]\n", 1, 3},
    {"strategy: b\nstack: [bfc: {initial_region: 64KiB, max_region: 1MiB}, cuda_malloc_async]\n", 1, 3},
    {"strategy: c\nstack: [bfc: {timestamps: true, memory_debug: true, memory_limit: 64MiB}, system]\n"
     "places:\n  pinned: [bfc, system]\n",
     1, 3},
    {"strategy: d\nstack: [retry: {timeout: 1ms}, bfc: {reclaim: ladder}, cuda_malloc_async]\n", 1, 3},
    /* Layers that fill memory by themselves, in free blocks and beside live ones, and routes by size. */
    {"strategy: a\nstack: [retry, stream_safe, scrub, auto_growth: {chunk_size: 2MiB}, system]\n", 3, 3},
    {"strategy: b\nstack: [retry, guard: {report: false}, stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n", 3, 3},
    {"strategy: c\nstack: [retry, stream_safe, guard: {report: false, synchronise: false}, auto_growth, system]\n", 3, 3},
    {"strategy: d\nstack: [retry, stream_safe, fill, auto_growth: {chunk_size: 2MiB}, system]\n", 3, 3},
    {"strategy: e\nstack: [retry, fill, cuda_malloc_async]\n", 3, 3},
    {"strategy: g\nstack: [retry, stream_safe, aligned: {alignment: 4096}, auto_growth: {chunk_size: 2MiB}, system]\n", 3, 3},
    {"strategy: f\nstack: [retry, stream_safe, binning: {routes: [{up_to: 512KiB, stack: [buffered, auto_growth, system]}, "
     "{stack: [auto_growth: {chunk_size: 4MiB}, system]}]}]\n",
     3, 3},
};

TEST(checked_stacks, these_are_safe) {
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        for (uint64_t seed = safe[i].first; seed <= safe[i].last; seed++) {
            checked_t checked;
            checked_open(&checked, safe[i].strategy);
            checked_program(&checked, seed, 1500, true);
            if (checked_close(&checked, true) > 0) FAIL_TEST("%s, seed %llu", safe[i].strategy, (unsigned long long)seed);
        }
}

/* The program answers for the frontier that it sets, and for what a request says: a lie is found. */
TEST(checked_stacks, a_frontier_is_safe_where_it_is_true) {
    for (int lies = 0; lies < 2; lies++) {
        for (int by_request = 0; by_request < 2; by_request++) {
            checked_t checked;
            uint64_t count;
            checked_open(&checked, "strategy: f\nstack: [bfc: {timestamps: true, memory_limit: 2MiB}, system]\n");
            strata_block_t a = checked_allocate(&checked, checked.rig.gpu, A, 2 * MIB);
            checked_work(&checked, A, 1000, &a);
            checked_free(&checked, &a);
            EXPECT_OK(strata_next_count(checked.rig.s, checked.rig.gpu, &count));
            if (!lies) EXPECT_OK(strata_stream_synchronize(checked.rig.s, checked.rig.gpu, A));
            strata_allocate_options_t o = {.struct_size = sizeof o, .size = 2 * MIB, .freed_before = by_request ? count : 0};
            if (!by_request) EXPECT_OK(strata_set_safe_frontier(checked.rig.s, checked.rig.gpu, count));
            strata_block_t b;
            EXPECT_OK(strata_allocate_with(checked.rig.s, checked.rig.gpu, B, &o, &b));
            strata_checker_block_t checked_block = {
                .name = b.ref, .device = checked.rig.devices[0], .stream = B, .address = (uintptr_t)b.ptr, .size = b.size};
            strata_checker_allocated(checked.checker, &checked_block);
            checked_work(&checked, B, 1000, &b);
            checked_free(&checked, &b);
            EXPECT_EQ(checked_close(&checked, !lies) > 0, lies);
        }
    }
}

typedef struct shared {
    checked_t checked; /* a copy: the facade, the world and the streams are common */
    uint64_t seed;
} shared_t;

static void *run_shared(void *context) {
    shared_t *shared = context;
    strata_checker_observe(shared->checked.checker, 1);
    checked_program(&shared->checked, shared->seed, 1000, false);
    strata_checker_publish(shared->checked.checker, 2);
    return NULL;
}

/* Memory passes from thread to thread in the caches: what one has seen the other knows by the lock of the stack. */
TEST(checked_stacks, threads_share_the_caches) {
    static const char *const presets[] = {"strata", "cuda_malloc_async", STACK("stream_safe")};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        checked_t checked;
        checked_open(&checked, presets[i]);
        shared_t shared[3];
        pthread_t threads[3];
        strata_checker_publish(checked.checker, 1);
        for (uint64_t t = 0; t < 3; t++) shared[t] = (shared_t){checked, 7 + t};
        for (int t = 0; t < 3; t++) ASSERT_EQ(pthread_create(&threads[t], NULL, run_shared, &shared[t]), 0);
        for (int t = 0; t < 3; t++) pthread_join(threads[t], NULL);
        strata_checker_observe(checked.checker, 2);
        EXPECT_EQ(checked_close(&checked, true), 0);
    }
}

/* Paddle's event covers what was submitted before the borrow: only a program that borrows after its work is safe. */
TEST(checked_stacks, paddle_takes_its_event_too_early) {
    for (int borrows_first = 0; borrows_first < 2; borrows_first++) {
        checked_t checked;
        checked_open(&checked, "paddle");
        strata_block_t block = checked_allocate(&checked, checked.rig.gpu, A, MIB);
        if (borrows_first) checked_borrow(&checked, &block, B);
        checked_work(&checked, B, 500, &block);
        if (!borrows_first) checked_borrow(&checked, &block, B);
        rig_advance(&checked.rig, 50000);
        checked_free(&checked, &block);
        block = checked_allocate(&checked, checked.rig.gpu, A, MIB);
        checked_work(&checked, A, 10, &block);
        EXPECT_EQ(checked_close(&checked, !borrows_first), (uint64_t)borrows_first);
    }
}

/* Two streams, one block, no borrow: nobody can know. */
TEST(checked_stacks, a_program_that_borrows_nothing_is_at_fault) {
    checked_t checked;
    checked_open(&checked, "strata");
    strata_block_t block = checked_allocate(&checked, checked.rig.gpu, A, MIB);
    checked_work(&checked, B, 500, &block);
    checked_free(&checked, &block);
    EXPECT_EQ(strata_checker_hazards_of(checked.checker, STRATA_HAZARD_FREE), 1);
    EXPECT_EQ(checked_close(&checked, false), 1);
}

/* A copy from A to B's kernel and back into the cache, step by step: two streams and a borrow each. */
static void two_streams(checked_t *checked) {
    for (int step = 0; step < 20; step++) {
        strata_block_t block = checked_allocate(checked, checked->rig.gpu, checked->streams[0], MIB);
        checked_work(checked, checked->streams[0], 50, &block);
        checked_order(checked, checked->streams[1], checked->streams[0]);
        checked_borrow(checked, &block, checked->streams[1]);
        checked_work(checked, checked->streams[1], 200, &block);
        checked_free(checked, &block);
    }
}

/* Without a layer that knows borrows the facade waits on the host. Where one says that it knows them, and does not, the block
 * comes back at once. */
TEST(checked_stacks, without_stream_safe) {
    checked_t checked;
    checked_open(&checked, WITHOUT);
    two_streams(&checked);
    EXPECT_EQ(checked.unsupported, 20);
    EXPECT_EQ(checked_close(&checked, true), 0);
    mutant_choose(MUTATION_NO_BORROW);
    checked_open(&checked, STACK("mutant_safe"));
    two_streams(&checked);
    EXPECT_EQ(checked.unsupported, 0);
    EXPECT_EQ(strata_checker_hazards_of(checked.checker, STRATA_HAZARD_NEW_OWNER), 19);
    EXPECT_EQ(checked_close(&checked, false), 19);
}

/* ---- mutants ---- */

/* No event can be recorded at the free: the host must wait instead. */
static void free_where_no_event_can_be_recorded(checked_t *checked) {
    strata_block_t block = checked_allocate(checked, checked->rig.gpu, checked->streams[0], MIB);
    checked_borrow(checked, &block, checked->streams[1]);
    checked_order(checked, checked->streams[1], checked->streams[0]);
    checked_work(checked, checked->streams[1], 500, &block);
    EXPECT_OK(strata_sim_fail(checked->rig.devices[0], STRATA_CALL_event_record, 1, true, STRATA_E_DEVICE));
    checked_free(checked, &block);
    strata_sim_clear_faults(checked->rig.devices[0]);
    block = checked_allocate(checked, checked->rig.gpu, checked->streams[0], MIB);
    checked_work(checked, checked->streams[0], 10, &block);
    checked_free(checked, &block);
}

/* The borrower is destroyed while its work runs, before the free. */
static void free_after_a_destroyed_stream(checked_t *checked) {
    strata_block_t block = checked_allocate(checked, checked->rig.gpu, checked->streams[0], MIB);
    checked_borrow(checked, &block, checked->streams[1]);
    checked_order(checked, checked->streams[1], checked->streams[0]);
    checked_work(checked, checked->streams[1], 500, &block);
    checked_renew(checked, 1);
    checked_free(checked, &block);
    block = checked_allocate(checked, checked->rig.gpu, checked->streams[0], MIB);
    checked_work(checked, checked->streams[0], 10, &block);
    checked_free(checked, &block);
}

/* Two borrow; one gives its borrow back in good order, the other still works at the free. */
static void free_after_one_of_two(checked_t *checked) {
    strata_block_t block = checked_allocate(checked, checked->rig.gpu, checked->streams[0], MIB);
    checked_borrow(checked, &block, checked->streams[1]);
    checked_borrow(checked, &block, checked->streams[2]);
    checked_order(checked, checked->streams[1], checked->streams[0]);
    checked_work(checked, checked->streams[1], 500, &block);
    checked_erase(checked, &block, checked->streams[2]);
    checked_free(checked, &block);
    block = checked_allocate(checked, checked->rig.gpu, checked->streams[0], MIB);
    checked_work(checked, checked->streams[0], 10, &block);
    checked_free(checked, &block);
}

/* Nobody owns pinned memory: the stream that it was served for is a borrower like any other. */
static void pinned_memory_for_another(checked_t *checked) {
    strata_block_t block = checked_allocate(checked, strata_pinned(), checked->streams[0], MIB);
    checked_work(checked, checked->streams[0], 500, &block);
    checked_free(checked, &block);
    block = checked_allocate(checked, strata_pinned(), checked->streams[1], MIB);
    checked_work(checked, checked->streams[1], 10, &block);
    checked_free(checked, &block);
}

static uint64_t hazards_of(mutation_t mutation, bool seldom) {
    checked_t checked;
    mutant_choose(mutation);
    checked_open(&checked, mutation == MUTATION_EVENT_AT_BORROW ? STACK("mutant_safe: {event: use}")
                           : seldom                             ? STACK("mutant_safe: {poll: seldom}")
                                                                : STACK("mutant_safe"));
    free_where_no_event_can_be_recorded(&checked);
    free_after_a_destroyed_stream(&checked);
    free_after_one_of_two(&checked);
    pinned_memory_for_another(&checked);
    checked_program(&checked, 1, 3000, true);
    return checked_close(&checked, mutation == MUTATION_NONE);
}

TEST(checked_stacks, every_mutation_of_stream_safe_is_found) {
    for (int i = 0; i < 2 * MUTATIONS; i++) {
        mutation_t mutation = (mutation_t)(i / 2);
        if (mutation == MUTATION_EVENT_IN_CAPTURE) continue; /* nothing is captured here: random programs find it */
        uint64_t hazards = hazards_of(mutation, i % 2 == 1);
        if ((hazards > 0) != (mutation != MUTATION_NONE))
            FAIL_TEST("%llu hazards with: %s%s", (unsigned long long)hazards, mutation_what(mutation), i % 2 ? ", seldom" : "");
    }
}

TEST(checked_stacks, every_mutation_of_cuda_malloc_async_is_found) {
    for (int i = 0; i < MUTANTS_ASYNC; i++) {
        checked_t checked;
        mutant_async_choose((mutant_async_t)i);
        checked_open(&checked, "strategy: mutant\nstack: [mutant_async]\n");
        checked_program(&checked, 5, 1500, true);
        EXPECT_EQ(strata_checker_hazards_of(checked.checker, STRATA_HAZARD_UNDER_WORK) > 0, i != MUTANT_ASYNC_NONE);
        EXPECT_EQ(checked_close(&checked, i == MUTANT_ASYNC_NONE) > 0, i != MUTANT_ASYNC_NONE);
    }
}

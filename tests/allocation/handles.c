/* Caches of physical handles: where a range has gaps, how a handle leaves, and which threads wait while others unmap. */
#include "allocation/cache/runs.h"

#include <pthread.h>
#include <sched.h>

#include "tests/allocation/bench.h"

enum { SLOTS = 4 /* that a handle takes when it leaves the middle of a run and of a free block */, YIELDS = 1000 };

static strata_chunks_t *open_best_fit(bench_t *bench) {
    bench_begin(bench);
    const strata_layer_type_t *types[] = {strata_layer_find("best_fit_vmm"), strata_layer_find("vmm"), NULL};
    bench_straight(bench, types, (const char *const[]){"handle=2MiB", NULL});
    bench_open(bench, 1ull << 30);
    return (strata_chunks_t *)bench->stack->layers[1];
}

static uint64_t release(bench_t *bench) {
    strata_layer_t *layer = bench->stack->layers[1];
    strata_call_t call = {.stack = bench->stack};
    bool entered = strata_call_enter(&call, layer);
    uint64_t bytes = layer->type->release(layer, &call);
    strata_call_exit(&call, layer, entered);
    return bytes;
}

static void expect_gap(const strata_gap_t *gap, uint64_t begin, uint64_t end, uint32_t run, uint32_t next) {
    EXPECT_EQ(gap->begin, begin);
    EXPECT_EQ(gap->end, end);
    EXPECT_EQ(gap->run, run);
    EXPECT_EQ(gap->next, next);
}

/* Handles 0, 2 and 4 are mapped. A range has the gaps that begin before its end, and names no run beyond it. */
TEST(handles, a_range_has_the_gaps_up_to_its_end) {
    bench_t bench;
    strata_chunks_t *chunks = open_best_fit(&bench);
    strata_runs_t runs = {.chunks = chunks};
    strata_record_t *blocks[5];
    for (uint32_t i = 0; i < 5; i++) blocks[i] = bench_allocate(&bench, 2 * MIB);
    uint64_t base = blocks[0]->ptr, size = 2 * MIB;
    bench_free(&bench, blocks[1]);
    bench_free(&bench, blocks[3]);
    EXPECT_EQ(release(&bench), 4 * MIB);
    uint32_t first = strata_runs_find(&runs, base), second = strata_runs_find(&runs, base + 2 * size);
    strata_gap_t gap = {.end = base - size};
    ASSERT_TRUE(strata_runs_next_gap(&runs, base + 3 * size + 256, &gap));
    expect_gap(&gap, base - size, base, 0, first);
    ASSERT_TRUE(strata_runs_next_gap(&runs, base + 3 * size + 256, &gap));
    expect_gap(&gap, base + size, base + 2 * size, first, second);
    ASSERT_TRUE(strata_runs_next_gap(&runs, base + 3 * size + 256, &gap));
    expect_gap(&gap, base + 3 * size, base + 3 * size + 256, second, 0);
    EXPECT_FALSE(strata_runs_next_gap(&runs, base + 3 * size + 256, &gap));
    gap = (strata_gap_t){.end = base};
    ASSERT_TRUE(strata_runs_next_gap(&runs, base + 2 * size, &gap));
    expect_gap(&gap, base + size, base + 2 * size, first, 0);
    gap = (strata_gap_t){.end = base};
    EXPECT_FALSE(strata_runs_next_gap(&runs, base + size, &gap));
    for (uint32_t i = 0; i < 5; i += 2) bench_free(&bench, blocks[i]);
    bench_close(&bench);
}

/* The handle stays, and the next release finds as many slots as this one. */
TEST(handles, a_handle_that_cannot_leave_for_want_of_slots_takes_none) {
    bench_t bench;
    (void)open_best_fit(&bench);
    strata_record_t *low = bench_allocate(&bench, MIB), *middle = bench_allocate(&bench, 4 * MIB),
                    *high = bench_allocate(&bench, MIB);
    strata_slab_t *slab = &bench.stack->slab;
    uint32_t capacity = slab->capacity;
    bench_free(&bench, middle);
    for (uint32_t slots = 0; slots < SLOTS; slots++) {
        slab->capacity = slab->used + (slots > 0);
        for (int tries = 0; tries < SLOTS; tries++) EXPECT_EQ(release(&bench), 0);
        EXPECT_OK(strata_stack_validate(bench.stack));
    }
    slab->capacity = slab->used + 1;
    EXPECT_EQ(release(&bench), 2 * MIB);
    slab->capacity = capacity;
    EXPECT_OK(strata_stack_validate(bench.stack));
    bench_free(&bench, low);
    bench_free(&bench, high);
    bench_close(&bench);
}

typedef struct waiter {
    bench_t bench;
    strata_runs_t runs;
    uint32_t unmapping;
    bool waited; /* under the stack's lock, as `unmapping` */
} waiter_t;

static void *wait_for_gaps(void *context) {
    waiter_t *waiter = context;
    strata_call_t call = {.stack = waiter->bench.stack};
    bool entered = strata_call_enter(&call, &waiter->runs.chunks->base);
    strata_runs_wait_for_gaps(&waiter->runs, &waiter->unmapping, &call);
    waiter->waited = true;
    strata_call_exit(&call, &waiter->runs.chunks->base, entered);
    return NULL;
}

/* Returns true once the other thread sleeps, or has gone on. */
static bool has_arrived(waiter_t *waiter, bool *waits) {
    strata_call_t call = {.stack = waiter->bench.stack};
    bool entered = strata_call_enter(&call, &waiter->runs.chunks->base);
    *waits = waiter->runs.chunks->waiting == 1 && !waiter->waited;
    bool arrived = *waits || waiter->waited;
    strata_call_exit(&call, &waiter->runs.chunks->base, entered);
    return arrived;
}

/* With `ends` one thread has unmapped; without it another thread's growth has ended. */
static void wake(waiter_t *waiter, bool ends) {
    strata_call_t call = {.stack = waiter->bench.stack};
    bool entered = strata_call_enter(&call, &waiter->runs.chunks->base);
    EXPECT_FALSE(waiter->waited);
    if (ends) strata_runs_end_unmapping(&waiter->runs, &waiter->unmapping);
    else strata_condition_broadcast(&waiter->runs.chunks->grown);
    strata_call_exit(&call, &waiter->runs.chunks->base, entered);
}

/* The thread that would map sleeps until no thread unmaps, whatever else wakes it. */
static void expect_wait(uint32_t unmapping) {
    static waiter_t waiter;
    waiter = (waiter_t){.unmapping = unmapping};
    waiter.runs.chunks = open_best_fit(&waiter.bench);
    pthread_t thread;
    bool waits = false;
    ASSERT_EQ(pthread_create(&thread, NULL, wait_for_gaps, &waiter), 0);
    while (!has_arrived(&waiter, &waits)) sched_yield();
    EXPECT_TRUE(waits);
    if (waits) wake(&waiter, false);
    for (int i = 0; i < YIELDS; i++) sched_yield();
    for (; waits && unmapping > 0; unmapping--) wake(&waiter, true);
    pthread_join(thread, NULL);
    EXPECT_TRUE(waiter.waited);
    bench_close(&waiter.bench);
}

TEST(handles, growth_waits_for_all_threads_that_unmap) {
    expect_wait(1);
    expect_wait(2);
}

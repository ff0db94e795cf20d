/* Two threads that open stacks of one domain: both may have found room for one. */
#include <pthread.h>

#include "tests/allocation/bench.h"

static strata_stack_t *create(bench_t *bench, strata_handle_t *stream) {
    strata_stack_t *stack = NULL;
    EXPECT_OK(strata_device_stream_create(bench->device, STRATA_STREAM_NON_BLOCKING, stream));
    EXPECT_OK(strata_stack_create(&bench->domain->ordinary, &(strata_stack_for_t){.stream = *stream}, &stack));
    return stack;
}

/* Heard under the domain's lock; at the second time the first thread has looked for room and is about to take it. */
typedef struct other {
    strata_lock_observer_t observer; /* first */
    bench_t *bench;
    uint32_t heard;
    strata_stack_t *stack;
    strata_handle_t stream;
} other_t;

static void *open_another(void *context) {
    other_t *other = context;
    other->stack = create(other->bench, &other->stream);
    return NULL;
}

/* As if the other thread had come to the lock first. */
static void acquired(strata_lock_observer_t *observer, strata_lock_t *lock) {
    other_t *other = (other_t *)observer;
    if (++other->heard != 2) return;
    atomic_store(&observer->active, false);
    pthread_t thread;
    pthread_mutex_unlock(&lock->mutex);
    EXPECT_EQ(0, pthread_create(&thread, NULL, open_another, other));
    pthread_join(thread, NULL);
    pthread_mutex_lock(&lock->mutex);
}

static void releasing(strata_lock_observer_t *observer, strata_lock_t *lock) {
    (void)observer;
    (void)lock;
}

TEST(stacks_at_once, who_comes_second_to_the_last_room_makes_more) {
    enum { MOST = 64 };
    strata_handle_t streams[MOST];
    uint32_t opened = 0;
    bench_t bench;
    bench_open_cache(&bench, 64 * MIB, NULL);
    strata_domain_t *domain = bench.domain;
    while (domain->stack_count + 1 < domain->stack_capacity && opened < MOST - 1) create(&bench, &streams[opened++]);
    ASSERT_EQ(domain->stack_count + 1, domain->stack_capacity);

    other_t other = {.observer = {.acquired = acquired, .releasing = releasing}, .bench = &bench};
    atomic_store(&other.observer.active, true);
    strata_lock_observer_t *before = domain->lock.observer;
    domain->lock.observer = &other.observer;
    strata_stack_t *stack = create(&bench, &streams[opened++]);
    domain->lock.observer = before;

    ASSERT_TRUE(stack != NULL && other.stack != NULL);
    EXPECT_LE(domain->stack_count, domain->stack_capacity);
    bool found_one = false, found_other = false;
    for (uint32_t i = 0; i < domain->stack_count; i++) {
        found_one = found_one || domain->stacks[i] == stack;
        found_other = found_other || domain->stacks[i] == other.stack;
    }
    EXPECT_TRUE(found_one && found_other);
    strata_domain_destroy(domain);
    for (uint32_t i = 0; i < opened; i++) strata_device_stream_destroy(bench.device, streams[i]);
    strata_device_stream_destroy(bench.device, other.stream);
    EXPECT_EQ(0, bench_held(&bench));
    strata_device_close(bench.device);
    strata_sim_drop(bench.world);
    strata_arena_delete(bench.options);
}

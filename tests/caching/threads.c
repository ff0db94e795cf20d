/* caching and two threads that forget one stream. */
#include <pthread.h>

#include "tests/caching/caching.h"
#include "tests/facade/support/interleaving.h"

typedef struct forgetting {
    rig_t *rig;
    strata_stream_t stream;
} forgetting_t;

static void forget(void *context) {
    const forgetting_t *f = context;
    EXPECT_OK(strata_stream_forget(f->rig->s, f->rig->gpu, f->stream));
}

/* One makes the event that stands for the stream's work, the lock open; the other does all that meanwhile. */
TEST(caching_threads, forget_one_stream_at_once) {
    between_t between;
    RIG_BY(rig, caching_open(&rig, "", 0));
    forgetting_t f = {.rig = &rig, .stream = rig_stream(&rig)};
    strata_block_t small = rig_allocate(&rig, f.stream, 1000), large = rig_allocate(&rig, f.stream, 5 * MIB);
    RIG_FREE(&rig, small, large);
    between_begin(&between, &rig, STRATA_CALL_event_create, forget, &f);
    forget(&f);
    EXPECT_TRUE(between_end(&between));
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 5 * MIB).ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_reserved(&rig), 0);
}

typedef struct beside {
    rig_t *rig;
    pthread_barrier_t idle, released;
} beside_t;

static void *leave_idle(void *context) {
    beside_t *beside = context;
    EXPECT_OK(strata_free(beside->rig->s, rig_allocate(beside->rig, STRATA_STREAM_PER_THREAD, 5 * MIB).ref));
    pthread_barrier_wait(&beside->idle);
    pthread_barrier_wait(&beside->released);
    return NULL;
}

/* Their own default streams have one handle: a release goes through the segments of each. */
TEST(caching_threads, each_ones_idle_segments_go_back) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    uint64_t released = 0;
    RIG_BY(rig, caching_open(&rig, "", 0));
    beside_t beside = {.rig = &rig};
    pthread_barrier_init(&beside.idle, NULL, THREADS + 1);
    pthread_barrier_init(&beside.released, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, leave_idle, &beside), 0);
    pthread_barrier_wait(&beside.idle);
    EXPECT_EQ(caching_reserved(&rig), (uint64_t)THREADS * 20 * MIB);
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    EXPECT_EQ(released, (uint64_t)THREADS * 20 * MIB);
    pthread_barrier_wait(&beside.released);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&beside.idle);
    pthread_barrier_destroy(&beside.released);
}

/* caching under many threads: the lock of the shared stack is open at every growth, release and wait. */
#include <pthread.h>

#include "tests/caching/caching.h"
#include "tests/facade/between.h"

enum { THREADS = 8, ROUNDS = 600, HELD = 12 };

typedef struct actor {
    rig_t *rig;
    pthread_t thread;
    strata_stream_t own, other;
    uint64_t random;
    uint32_t refused;
} actor_t;

static uint64_t next(actor_t *a, uint64_t bound) {
    a->random = a->random * 6364136223846793005ull + 1442695040888963407ull;
    return (a->random >> 33) % bound;
}

static void drop(actor_t *a, strata_block_t *b) {
    if (b->ref == 0) return;
    if (next(a, 4) == 0) (void)strata_record_stream(a->rig->s, b->ref, a->other);
    if (next(a, 9) == 0) EXPECT_OK(strata_free_on(a->rig->s, b->ref, a->other));
    else EXPECT_OK(strata_free(a->rig->s, b->ref));
    b->ref = 0;
}

static void *act(void *context) {
    actor_t *a = context;
    strata_block_t held[HELD] = {{.ref = 0}};
    for (int i = 0; i < ROUNDS; i++) {
        strata_block_t *b = &held[next(a, HELD)];
        drop(a, b);
        size_t size = next(a, 3) ? 1 + next(a, 300 * KIB) : 1 + next(a, 14 * MIB);
        strata_status_t status = strata_allocate(a->rig->s, a->rig->gpu, a->own, size, b);
        EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_NO_MEMORY);
        a->refused += status != STRATA_OK;
        if (status != STRATA_OK) b->ref = 0;
        if (next(a, 100) == 0) EXPECT_OK(strata_release(a->rig->s, a->rig->gpu, NULL));
    }
    for (int i = 0; i < HELD; i++) drop(a, &held[i]);
    return NULL;
}

/* Two threads share each stream. */
static void run(const char *strategy, uint64_t capacity) {
    rig_t rig;
    actor_t actors[THREADS];
    strata_stream_t streams[THREADS / 2];
    rig_open(&rig, strategy, NULL, 0, capacity, 1);
    for (int i = 0; i < THREADS / 2; i++) streams[i] = rig_stream(&rig);
    for (int i = 0; i < THREADS; i++) {
        actors[i] = (actor_t){
            .rig = &rig, .own = streams[i / 2], .other = streams[(i / 2 + 1) % (THREADS / 2)], .random = 1 + (uint64_t)i};
        ASSERT_EQ(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
    }
    uint32_t refused = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(actors[i].thread, NULL);
        refused += actors[i].refused;
    }
    EXPECT_LT(refused, THREADS * ROUNDS / 2);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
    rig_pass(&rig, 100 * MILLISECOND);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_reserved(&rig), 0);
    rig_close(&rig);
}

TEST(caching_threads, share_streams_and_memory) { run("pytorch", 1 * GIB); }
TEST(caching_threads, are_out_of_memory_together) { run("pytorch", 160 * MIB); }
TEST(caching_threads, are_out_of_memory_together_without_streams) { run("tinytorch", 160 * MIB); }

TEST(caching_threads, collect_and_release_oversize_blocks_together) {
    run("version: 1\nstack:\n  - caching: {max_split_size: 20MiB, memory_fraction: 0.002, garbage_collection_threshold: 0.6, "
        "search_after_events: true, smaller_growth: true, pools_on_oom: true}\n  - system\npools: {any: }\n",
        0);
}

TEST(caching_threads, climb_the_ladder_together) {
    run("version: 1\nstack:\n  - retry: {timeout: 2ms}\n  - caching: {reclaim: ladder}\n  - system\n", 160 * MIB);
}

/* ---- two that forget one stream ---- */

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
    rig_t rig;
    between_t between;
    caching_open(&rig, "", 0);
    forgetting_t f = {.rig = &rig, .stream = rig_stream(&rig)};
    strata_block_t small = rig_allocate(&rig, f.stream, 1000), large = rig_allocate(&rig, f.stream, 5 * MIB);
    EXPECT_OK(strata_free(rig.s, small.ref));
    EXPECT_OK(strata_free(rig.s, large.ref));
    between_begin(&between, &rig, STRATA_CALL_event_create, forget, &f);
    forget(&f);
    EXPECT_TRUE(between_end(&between));
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 5 * MIB).ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_reserved(&rig), 0);
    rig_close(&rig);
}

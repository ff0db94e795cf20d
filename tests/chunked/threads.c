/* Caches under many threads: the lock of the shared stack is open at every growth, release and wait. */
#include <pthread.h>

#include "tests/chunked/chunked.h"

enum { THREADS = 8, ROUNDS = 600, HELD = 12 };

/* `strategy` on a device of so many bytes. */
typedef struct crowd {
    const char *name, *strategy;
    uint64_t capacity;
} crowd_t;

#define OVER_SYSTEM(layers) "version: 1\nstack:\n" layers "  - system\n"

static const crowd_t crowds[] = {
    {"pytorch", "pytorch", 1 * GIB},
    {"tensorflow", "tensorflow", 1 * GIB},
    {"pytorch_out_of_memory", "pytorch", 160 * MIB},
    {"tinytorch_out_of_memory", "tinytorch", 160 * MIB},
    {"tensorflow_out_of_memory", "extends: tensorflow\nstack: [bfc: {reclaim: own}, system]\n", 160 * MIB},
    {"auto_growth_out_of_memory", OVER_SYSTEM("  - auto_growth: {chunk_size: 4MiB, free_when_no_cache_hit: true}\n"), 160 * MIB},
    {"naive_best_fit_out_of_memory", OVER_SYSTEM("  - naive_best_fit: {streams: ignored, initial: 8MiB}\n"), 160 * MIB},
    {"caching_that_collects",
     OVER_SYSTEM("  - caching: {max_split_size: 20MiB, memory_fraction: 0.002, garbage_collection_threshold: 0.6, "
                 "search_after_events: true, smaller_growth: true, pools_on_oom: true}\n") "pools: {any: }\n",
     0},
    {"caching_under_retry", OVER_SYSTEM("  - retry: {timeout: 2ms}\n  - caching: {reclaim: ladder}\n"), 160 * MIB},
    {"bfc_with_counts", OVER_SYSTEM("  - bfc: {timestamps: true, memory_debug: true, memory_limit: 150MiB}\n"), 0},
    {"bfc_under_retry", OVER_SYSTEM("  - retry: {timeout: 2ms}\n  - bfc: {reclaim: ladder}\n"), 160 * MIB},
    {"segregated_fit_out_of_memory", OVER_SYSTEM("  - segregated_fit: {chunk_size: 4MiB}\n"), 160 * MIB},
    {"bfc_that_waits", OVER_SYSTEM("  - retry: {timeout: 2ms, steps: wait}\n  - bfc\n"), 160 * MIB},
};

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

/* Half of the frees so far count as passed, where frees carry counts. */
static void move_frontier(const actor_t *a) {
    uint64_t count;
    if (strata_next_count(a->rig->s, a->rig->gpu, &count) == STRATA_E_UNSUPPORTED) return;
    rig_advance(a->rig, 200 * 1000 * 1000);
    strata_status_t status = strata_set_safe_frontier(a->rig->s, a->rig->gpu, count / 2);
    EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_UNSUPPORTED);
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
        if (next(a, 20) == 0) move_frontier(a);
    }
    for (int i = 0; i < HELD; i++) drop(a, &held[i]);
    return NULL;
}

/* Two threads share each stream. */
static uint32_t refused_together(rig_t *rig) {
    actor_t actors[THREADS];
    strata_stream_t streams[THREADS / 2];
    uint32_t refused = 0;
    for (int i = 0; i < THREADS / 2; i++) streams[i] = rig_stream(rig);
    for (int i = 0; i < THREADS; i++) {
        actors[i] = (actor_t){
            .rig = rig, .own = streams[i / 2], .other = streams[(i / 2 + 1) % (THREADS / 2)], .random = 1 + (uint64_t)i};
        EXPECT_EQ(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(actors[i].thread, NULL);
        refused += actors[i].refused;
    }
    return refused;
}

TEST_EACH(chunked, threads_share_streams_and_memory, crowd_t, crowds) {
    RIG(rig, row->strategy, row->capacity);
    EXPECT_LT(refused_together(&rig), THREADS * ROUNDS / 2);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
    rig_advance(&rig, 100 * 1000 * 1000);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

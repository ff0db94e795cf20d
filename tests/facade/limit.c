/* strata_set_limit(): a bound at run time, under every strategy. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/facade/fixture.h"

static uint64_t limit_of(rig_t *rig) {
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_mem_info(rig->s, rig->gpu, &info));
    return info.limit;
}

/* One request as large as the limit, one byte more, and what that costs. A cache with steps of its own climbs no ladder. */
static void serves_to_the_byte(const char *preset) {
    strata_block_t none = {.ref = 3};
    /* A buddy's block has a header, and would ask for more; TensorFlow's last try is above the request, but for the mend. */
    static const struct {
        const char *preset, *set;
    } mended[] = {{"thread_local", "thread_local.header=0"},
                  {"naive_best_fit", "naive_best_fit.header=0"},
                  {"tensorflow", "bfc.smaller_growth=true"}};
    size_t m = 0;
    while (m < 3 && strcmp(preset, mended[m].preset) != 0) m++;
    RIG_BY(rig, rig_open(&rig, preset, m < 3 ? &mended[m].set : NULL, m < 3, GIB, 1));
    EXPECT_EQ(limit_of(&rig), STRATA_UNLIMITED);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 40 * MIB));
    EXPECT_EQ(limit_of(&rig), 40 * MIB);
    strata_block_t block = rig_allocate(&rig, NULL, 40 * MIB);
    uint64_t mallocs = rig_calls(&rig, STRATA_CALL_malloc) + rig_calls(&rig, STRATA_CALL_malloc_async);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 40 * MIB);
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 1, &none),
                "; strata_set_limit() allows 40MiB, of which 40MiB are used\n");
    EXPECT_CONTAINS(strata_last_error()->text, "\n  helps: a limit of ");
    EXPECT_EQ(none.ref, 3);
    EXPECT_LE(rig_figures(&rig).ladders, 1);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc) + rig_calls(&rig, STRATA_CALL_malloc_async), mallocs);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, STRATA_UNLIMITED));
    strata_block_t more = rig_allocate(&rig, NULL, 1);
    RIG_FREE(&rig, more, block);
}

TEST(facade_limit, holds_to_the_byte_under_every_preset) {
    const char *name;
    for (size_t i = 0; (name = strata_strategy_name(i)) != NULL; i++) serves_to_the_byte(name);
}

/* Paddle's PY::memory_limit, here at run time: a limit of 10 MiB; 5 works, 20 fails. */
TEST(facade_limit, paddle_py_memory_limit) {
    strata_block_t none;
    RIG_BY(rig, rig_open(&rig, "paddle", (const char *const[]){"auto_growth.chunk_size=10MiB", "retry.timeout=0"}, 2, 0, 1));
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 10 * MIB));
    strata_block_t five = rig_allocate(&rig, NULL, 5 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 20 * MIB, &none));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 10 * MIB);
    EXPECT_OK(strata_free(rig.s, five.ref));
}

TEST(facade_limit, below_what_is_reserved_idle_goes_back_and_live_stays) {
    strata_block_t none;
    RIG_BY(rig, rig_open(&rig, "strata", (const char *const[]){"auto_growth.chunk_size=8MiB"}, 1, 0, 1));
    strata_block_t blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = rig_allocate(&rig, NULL, 8 * MIB);
    RIG_FREE(&rig, blocks[0], blocks[1]);
    /* As much as the limit wants, no more. */
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 24 * MIB));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 24 * MIB);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 0));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 16 * MIB);
    EXPECT_EQ(rig_figures(&rig).live_allocations, 2);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 100, &none));
    /* What is freed while the place is above goes back at once, and nobody is served from it. */
    EXPECT_OK(strata_free(rig.s, blocks[2].ref));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 8 * MIB, &none));
    EXPECT_OK(strata_free(rig.s, blocks[3].ref));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

TEST(facade_limit, each_place_has_its_own) {
    strata_block_t b, none;
    RIG_BY(rig, rig_open(&rig, "system", NULL, 0, 0, 2));
    EXPECT_OK(strata_set_limit(rig.s, strata_gpu(1), MIB));
    EXPECT_OK(strata_set_limit(rig.s, strata_pinned(), 2 * MIB));
    strata_place_t places[] = {strata_gpu(0), strata_managed(0), strata_managed(1), strata_host()};
    for (int i = 0; i < 4; i++) {
        EXPECT_OK(strata_allocate(rig.s, places[i], NULL, 4 * MIB, &b));
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, strata_gpu(1), NULL, MIB + 1, &none));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, strata_pinned(), NULL, 2 * MIB + 1, &none));
    EXPECT_STATUS(STRATA_E_INVALID, strata_set_limit(rig.s, strata_gpu(2), MIB));
}

/* A struct of before there was a limit. */
TEST(facade_limit, an_older_mem_info_gets_what_it_knows) {
    RIG(rig, "strata", 0);
    strata_mem_info_t info = {.struct_size = offsetof(strata_mem_info_t, limit), .limit = 77};
    EXPECT_OK(strata_mem_info(rig.s, rig.gpu, &info));
    EXPECT_GT(info.total, 0);
    EXPECT_EQ(info.limit, 77);
}

/* ---- threads ---- */

/* ThreadSanitizer follows 64 locks of a thread at most, and a report of out-of-memory takes those of all stacks. */
enum { THREADS = 64, STREAMS = 32, ROUNDS = 60 };

typedef struct worker {
    pthread_t thread;
    rig_t *rig;
    strata_stream_t stream;
    uint64_t random, size; /* size 0: random ones */
    uint32_t served, failed;
    _Atomic uint32_t refused;
    _Atomic bool *stop;
} worker_t;

static void *work(void *context) {
    worker_t *w = context;
    strata_block_t held[4] = {{0}};
    for (uint32_t i = 0; i < ROUNDS || (w->stop && !*w->stop); i++) {
        strata_block_t *b = &held[i % 4];
        if (b->ref && strata_free(w->rig->s, b->ref) != STRATA_OK) w->failed++;
        *b = (strata_block_t){0};
        w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
        size_t size = w->size ? w->size : 1 + (w->random >> 40) % (3 * MIB);
        strata_status_t status = strata_allocate(w->rig->s, w->rig->gpu, w->stream, size, b);
        w->served += status == STRATA_OK;
        w->refused += status == STRATA_E_NO_MEMORY;
        w->failed += status != STRATA_OK && status != STRATA_E_NO_MEMORY;
    }
    for (int i = 0; i < 4; i++)
        if (held[i].ref && strata_free(w->rig->s, held[i].ref) != STRATA_OK) w->failed++;
    return NULL;
}

/* From the return of strata_set_limit() on what is reserved never grows while it is above. */
static void watch(rig_t *rig, uint64_t limit, uint32_t samples) {
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, limit));
    uint64_t before = UINT64_MAX;
    for (uint32_t i = 0; i < samples; i++) {
        uint64_t now = strata_domain_reserved(rig_domain(rig));
        EXPECT_LE(now, before > limit ? before : limit);
        before = now;
    }
}

static uint32_t refusals(worker_t *workers) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < THREADS; i++) sum += atomic_load(&workers[i].refused);
    return sum;
}

static void sixty_four_threads(const char *strategy) {
    static worker_t workers[THREADS];
    _Atomic bool stop = false;
    uint32_t served = 0;
    RIG_BY(rig, rig_open(&rig, strategy, (const char *const[]){"retry.timeout=0"}, strcmp(strategy, "system") != 0, 0, 1));
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 64 * MIB));
    for (uint32_t i = 0; i < THREADS; i++) {
        strata_stream_t stream = i < STREAMS ? rig_stream(&rig) : workers[i % STREAMS].stream;
        workers[i] = (worker_t){.rig = &rig, .stream = stream, .random = i, .stop = &stop};
        ASSERT_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 40 || (i < 4000 && refusals(workers) == 0); i++)
        watch(&rig, i % 2 ? 64 * MIB : (unsigned)(i % 40 + 1) * MIB, 300);
    stop = true;
    for (uint32_t i = 0; i < THREADS; i++) {
        ASSERT_EQ(pthread_join(workers[i].thread, NULL), 0);
        EXPECT_EQ(workers[i].failed, 0);
        served += workers[i].served;
    }
    EXPECT_GT(served, THREADS);
    EXPECT_GT(refusals(workers), 0);
    EXPECT_LE(rig_figures(&rig).peak_reserved_bytes, 64 * MIB);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(atomic_load(&rig_domain(&rig)->quota.used), 0);
}

TEST(facade_limit, sixty_four_threads_never_exceed_it_while_it_changes) {
    sixty_four_threads("system");
    sixty_four_threads("strata");
}

/* The large ones fit the limit alone, and the device refuses them; or they never fit. Small ones always fit meanwhile. */
static void small_beside_large(uint64_t large, uint64_t capacity) {
    static worker_t workers[8];
    RIG(rig, "system", capacity);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 64 * MIB));
    for (uint32_t i = 0; i < 8; i++) {
        workers[i] = (worker_t){.rig = &rig, .stream = rig_stream(&rig), .size = i < 6 ? large : MIB};
        ASSERT_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < 8; i++) {
        ASSERT_EQ(pthread_join(workers[i].thread, NULL), 0);
        EXPECT_EQ(workers[i].failed, 0);
        EXPECT_EQ(workers[i].served, i < 6 ? 0 : ROUNDS);
    }
}

TEST(facade_limit, a_failing_large_request_fails_no_small_one) {
    small_beside_large(56 * MIB, 32 * MIB);
    small_beside_large(65 * MIB, 256 * MIB);
}

typedef struct asker {
    rig_t *rig;
    strata_status_t status;
    strata_block_t block;
} asker_t;

static void *ask(void *context) {
    asker_t *asker = context;
    asker->status = strata_allocate(asker->rig->s, asker->rig->gpu, NULL, 8 * MIB, &asker->block);
    return NULL;
}

/* Whoever waits for memory hears of it at once, long before its deadline. */
TEST(facade_limit, a_higher_one_ends_a_wait) {
    pthread_t thread;
    RIG_BY(rig, rig_open(&rig, "strata", (const char *const[]){"retry.timeout=60s"}, 1, 0, 1));
    asker_t asker = {.rig = &rig};
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 4 * MIB));
    strata_block_t mine = rig_allocate(&rig, NULL, 100);
    ASSERT_EQ(pthread_create(&thread, NULL, ask, &asker), 0);
    while (rig_figures(&rig).ladders == 0) (void)usleep(100);
    (void)usleep(20 * 1000);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 64 * MIB));
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT_OK(asker.status);
    RIG_FREE(&rig, asker.block, mine);
}

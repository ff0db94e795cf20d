/* strata_set_limit(): a bound at run time, under every strategy. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/facade/support/fixture.h"

static uint64_t limit_of(rig_t *rig) {
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_mem_info(rig->s, rig->gpu, &info));
    return info.limit;
}

/* One request as large as the limit, one byte more, and what that costs. A cache with steps of its own climbs no ladder. */
static void serves_to_the_byte(const char *preset) {
    /* A buddy's block has a header, and would ask for more; TensorFlow's last try is above the request, but for the mend; 40 MiB are no
     * whole number of Paddle's handles. */
    static const struct {
        const char *preset, *set;
    } mended[] = {{"thread_local", "thread_local.header=0"},
                  {"naive_best_fit", "naive_best_fit.header=0"},
                  {"tensorflow", "bfc.smaller_growth=true"},
                  {"paddle-vmm", "large.handle=8MiB"}};
    size_t m = 0;
    while (m < 4 && strcmp(preset, mended[m].preset) != 0) m++;
    RIG_BY(rig, rig_open(&rig, preset, m < 4 ? &mended[m].set : NULL, m < 4, GIB, 1));
    EXPECT_EQ(limit_of(&rig), STRATA_UNLIMITED);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 40 * MIB));
    EXPECT_EQ(limit_of(&rig), 40 * MIB);
    (void)rig_allocate(&rig, NULL, 40 * MIB);
    uint64_t mallocs = rig_calls(&rig, STRATA_CALL_malloc) + rig_calls(&rig, STRATA_CALL_malloc_async);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 40 * MIB);
    EXPECT_SAYS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 1), "; strata_set_limit() allows 40MiB, of which 40MiB are used\n");
    EXPECT_CONTAINS(strata_last_error()->text, "\n  try: raise the limit to ");
    EXPECT_LE(rig_figures(&rig).recoveries, 1);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc) + rig_calls(&rig, STRATA_CALL_malloc_async), mallocs);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, STRATA_UNLIMITED));
    (void)rig_allocate(&rig, NULL, 1);
}

TEST(facade_limit, holds_to_the_byte_under_every_preset) {
    const char *name;
    for (size_t i = 0; (name = strata_strategy_name(i)) != NULL; i++) serves_to_the_byte(name);
}

/* Paddle's PY::memory_limit, here at run time: a limit of 10 MiB; 5 works, 20 fails. */
TEST_BY(facade_limit, paddle_py_memory_limit,
        rig_open(rig, "paddle", (const char *const[]){"auto_growth.chunk_size=10MiB", "retry.timeout=0"}, 2, 0, 1)) {
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 10 * MIB));
    (void)rig_allocate(rig, NULL, 5 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 20 * MIB));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 10 * MIB);
}

TEST_BY(facade_limit, below_what_is_reserved_idle_goes_back_and_live_stays,
        rig_open(rig, "strata-malloc", (const char *const[]){"auto_growth.chunk_size=8MiB"}, 1, 0, 1)) {
    strata_block_t blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = rig_allocate(rig, NULL, 8 * MIB);
    RIG_FREE(rig, blocks[0], blocks[1]);
    /* As much as the limit wants, no more. */
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 24 * MIB));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 24 * MIB);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 0));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 16 * MIB);
    EXPECT_EQ(rig_figures(rig).live_allocations, 2);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 100));
    /* What is freed while the place is above goes back at once, and nobody is served from it. */
    EXPECT_OK(strata_free(rig->s, blocks[2].ref));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 8 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 8 * MIB));
    EXPECT_OK(strata_free(rig->s, blocks[3].ref));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
}

TEST_BY(facade_limit, each_place_has_its_own, rig_open(rig, "system", NULL, 0, 0, 2)) {
    strata_block_t b, none;
    EXPECT_OK(strata_set_limit(rig->s, strata_gpu(1), MIB));
    EXPECT_OK(strata_set_limit(rig->s, strata_pinned(), 2 * MIB));
    strata_place_t places[] = {strata_gpu(0), strata_managed(0), strata_managed(1), strata_host()};
    for (int i = 0; i < 4; i++) {
        EXPECT_OK(strata_allocate(rig->s, places[i], NULL, 4 * MIB, &b));
        EXPECT_OK(strata_free(rig->s, b.ref));
    }
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, strata_gpu(1), NULL, MIB + 1, &none));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, strata_pinned(), NULL, 2 * MIB + 1, &none));
    EXPECT_STATUS(STRATA_E_INVALID, strata_set_limit(rig->s, strata_gpu(2), MIB));
}

/* A struct of before there was a limit. */
TEST_RIG(facade_limit, an_older_mem_info_gets_what_it_knows, 0, "strata") {
    strata_mem_info_t info = {.struct_size = offsetof(strata_mem_info_t, limit), .limit = 77};
    EXPECT_OK(strata_mem_info(rig->s, rig->gpu, &info));
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
    /* On a busy machine the threads may begin late. */
    uint64_t until = strata_real_now() + 60ull * 1000 * 1000 * 1000;
    for (int i = 0; i < 40 || (refusals(workers) == 0 && strata_real_now() < until); i++)
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
    for (uint32_t i = 0; i < 8; i++) workers[i] = (worker_t){.rig = &rig, .stream = rig_stream(&rig), .size = i < 6 ? large : MIB};
    in_threads(work, workers, sizeof *workers, 8);
    for (uint32_t i = 0; i < 8; i++) {
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
} asker_t;

static void *ask(void *context) {
    asker_t *asker = context;
    asker->status = rig_try(asker->rig, NULL, 8 * MIB);
    return NULL;
}

/* Whoever waits for memory hears of it at once, long before its deadline. */
TEST_BY(facade_limit, a_higher_one_ends_a_wait, rig_open(rig, "strata", (const char *const[]){"retry.timeout=60s"}, 1, 0, 1)) {
    pthread_t thread;
    asker_t asker = {.rig = rig};
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 4 * MIB));
    (void)rig_allocate(rig, NULL, 100);
    ASSERT_EQ(pthread_create(&thread, NULL, ask, &asker), 0);
    while (rig_figures(rig).recoveries == 0) (void)usleep(100);
    (void)usleep(20 * 1000);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 64 * MIB));
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT_OK(asker.status);
}

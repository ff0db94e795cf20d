/* Threads that capture, each into a pool of its own or all into one by turns, beside threads that allocate, lend, free, release and
 * look. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "allocation/graphs/graphs.h"
#include "tests/graphs/graphs.h"

enum { CAPTURERS = 3, OTHERS = 3, ROUNDS = 30, HELD = 6 };

typedef struct worker {
    captured_t *c;
    pthread_t thread;
    strata_stream_t stream, lent;
    uint64_t random;
} worker_t;

static uint64_t below(worker_t *w, uint64_t bound) {
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (w->random >> 33) % bound;
}

static void take(worker_t *w, strata_block_t *block) {
    captured_t *c = w->c;
    EXPECT_OK(strata_allocate(c->rig.s, c->rig.gpu, w->stream, 512 + below(w, 4 * MIB), block));
    EXPECT_OK(strata_stream_work(c->rig.s, c->rig.gpu, w->stream, 1000, &block->ref, 1));
}

static void lend(worker_t *w, const strata_block_t *block) {
    captured_t *c = w->c;
    EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, w->lent, w->stream));
    EXPECT_OK(strata_record_stream(c->rig.s, block->ref, w->lent));
    EXPECT_OK(strata_stream_work(c->rig.s, c->rig.gpu, w->lent, 1000, &block->ref, 1));
    EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, w->stream, w->lent));
}

/* A few blocks, some of them lent, some freed on another stream. */
static void pass(worker_t *w, strata_block_t held[HELD]) {
    for (int i = 0; i < HELD; i++) take(w, &held[i]);
    for (int i = 0; i < HELD; i += 2) lend(w, &held[i]);
    for (int i = 0; i + 1 < HELD; i++) EXPECT_OK(strata_free(w->c->rig.s, held[i].ref));
}

static void *capture(void *argument) {
    worker_t *w = argument;
    captured_t *c = w->c;
    strata_block_t outside, held[HELD];
    for (int round = 0; round < ROUNDS && !strata_test_has_failed(); round++) {
        uint64_t pool = 0;
        strata_graph_t graph;
        take(w, &outside);
        EXPECT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, w->stream, &pool));
        EXPECT_OK(strata_capture_begin(c->rig.s, c->rig.gpu, w->stream));
        pass(w, held);
        EXPECT_OK(strata_free(c->rig.s, outside.ref));
        EXPECT_OK(strata_capture_end(c->rig.s, c->rig.gpu, w->stream, &graph));
        EXPECT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, pool));
        EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, pool));
        for (int i = 0; i < 2; i++) EXPECT_OK(strata_graph_launch(c->rig.s, c->rig.gpu, graph, w->stream));
        EXPECT_OK(strata_stream_synchronize(c->rig.s, c->rig.gpu, w->stream));
        EXPECT_OK(strata_free(c->rig.s, held[HELD - 1].ref));
        EXPECT_OK(strata_graph_destroy(c->rig.s, c->rig.gpu, graph));
    }
    return NULL;
}

static void look(worker_t *w) {
    captured_t *c = w->c;
    uint64_t pools[8];
    size_t count;
    switch (below(w, 4)) {
    case 0: EXPECT_OK(strata_validate(c->rig.s)); break;
    case 1: EXPECT_OK(strata_release(c->rig.s, c->rig.gpu, NULL)); break;
    case 2: EXPECT_OK(strata_step(c->rig.s)); break;
    default: EXPECT_OK(strata_graph_pools(c->rig.s, c->rig.gpu, pools, 8, &count)); break;
    }
}

static void *serve(void *argument) {
    worker_t *w = argument;
    strata_block_t held[HELD];
    for (int round = 0; round < 2 * ROUNDS && !strata_test_has_failed(); round++) {
        pass(w, held);
        look(w);
        EXPECT_OK(strata_free(w->c->rig.s, held[HELD - 1].ref));
    }
    return NULL;
}

static void end_streams(worker_t *w) {
    captured_t *c = w->c;
    for (int i = 0; i < 2; i++) {
        strata_stream_t stream = i ? w->lent : w->stream;
        EXPECT_OK(strata_stream_synchronize(c->rig.s, c->rig.gpu, stream));
        EXPECT_OK(strata_stream_forget(c->rig.s, c->rig.gpu, stream));
        EXPECT_OK(strata_stream_destroy(c->rig.s, c->rig.gpu, stream));
    }
}

static void all_at_once(const char *strategy) {
    captured_t c;
    worker_t workers[CAPTURERS + OTHERS];
    captured_open(&c, strategy);
    for (int i = 0; i < CAPTURERS + OTHERS; i++) {
        workers[i] = (worker_t){
            .c = &c, .stream = rig_stream(&c.rig), .lent = rig_stream(&c.rig), .random = (uint64_t)i * 7919 + 1};
        ASSERT_EQ(pthread_create(&workers[i].thread, NULL, i < CAPTURERS ? capture : serve, &workers[i]), 0);
    }
    for (int i = 0; i < CAPTURERS + OTHERS; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < CAPTURERS + OTHERS; i++) end_streams(&workers[i]);
    captured_close(&c);
}

/* ---- waits for a device, and pools that begin ---- */

typedef struct beginner {
    captured_t c;
    _Atomic bool begun;
} beginner_t;

static void *begin(void *argument) {
    beginner_t *b = argument;
    EXPECT_OK(strata_graph_pool_begin(b->c.rig.s, b->c.rig.gpu, b->c.stream, &b->c.pool));
    atomic_store(&b->begun, true);
    return NULL;
}

/* A capture that begins during the wait would be broken by it. */
TEST(graph_threads, a_pool_begins_after_the_waits_for_a_device_and_no_wait_begins_before_its_end) {
    beginner_t b = {.begun = false};
    pthread_t thread;
    captured_open(&b.c, "strata");
    ASSERT_TRUE(strata_captures_begin_uncaptured());
    ASSERT_EQ(pthread_create(&thread, NULL, begin, &b), 0);
    while (!strata_captures_any_open()) sched_yield();
    EXPECT_FALSE(strata_captures_begin_uncaptured());
    for (int i = 0; i < 20 && !atomic_load(&b.begun); i++) (void)usleep(1000); /* time for a begin that does not wait */
    EXPECT_FALSE(atomic_load(&b.begun));
    strata_captures_end_uncaptured();
    pthread_join(thread, NULL);
    EXPECT_TRUE(atomic_load(&b.begun));
    EXPECT_FALSE(strata_captures_begin_uncaptured());
    EXPECT_OK(strata_graph_pool_end(b.c.rig.s, b.c.rig.gpu, b.c.pool));
    EXPECT_OK(strata_graph_pool_remove(b.c.rig.s, b.c.rig.gpu, b.c.pool));
    EXPECT_TRUE(strata_captures_begin_uncaptured());
    strata_captures_end_uncaptured();
    captured_close(&b.c);
}

TEST(graph_threads, capture_beside_others_strata) { all_at_once("strata"); }
TEST(graph_threads, capture_beside_others_pytorch) { all_at_once("pytorch"); }
TEST(graph_threads, capture_beside_others_tensorflow) { all_at_once("tensorflow"); }
TEST(graph_threads, capture_beside_others_paddle) { all_at_once("paddle"); }
TEST(graph_threads, capture_beside_others_cuda_malloc_async) { all_at_once("cuda_malloc_async"); }
TEST(graph_threads, capture_beside_others_stream_safe_cuda_malloc_async) { all_at_once("stack: [stream_safe, cuda_malloc_async]"); }
TEST(graph_threads, capture_beside_others_cache_over_cuda_malloc_async) { all_at_once("stack: [auto_growth, cuda_malloc_async]"); }

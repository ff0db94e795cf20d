/* Named pools: who is served from which. */
#include <pthread.h>

#include "platform/host/host_memory.h"
#include "tests/facade/pools/pooled.h"

enum { SIZE = 100 * 1000 };

static void expect_current(rig_t *rig, uint64_t pool) {
    uint64_t now = 0;
    EXPECT_OK(strata_pool_current(rig->s, rig->gpu, &now));
    EXPECT_EQ(now, pool);
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    expect_pool(rig, block.ref, pool);
    EXPECT_OK(strata_free(rig->s, block.ref));
}

TEST_RIG(facade_pools, a_request_may_name_its_pool, 0, POOLED) {
    uint64_t weights = pool_of(rig, "weights"), scratch = pool_of(rig, "scratch");
    EXPECT_NE(weights, scratch);
    strata_block_t w = get_from(rig, weights, NULL, SIZE), s = get_from(rig, scratch, NULL, SIZE);
    strata_block_t o = rig_allocate(rig, NULL, SIZE), named = get_from(rig, STRATA_POOL_ORDINARY, NULL, SIZE);
    expect_route(rig, w, "stream_safe > auto_growth | system");
    expect_route(rig, s, "limit > system");
    EXPECT_EQ(strata_ref_home(o.ref), strata_ref_home(named.ref));
    expect_pool(rig, w.ref, weights);
    expect_pool(rig, s.ref, scratch);
    expect_pool(rig, o.ref, STRATA_POOL_ORDINARY);
}

TEST_RIG(facade_pools, nest_in_a_thread, 0, POOLED) {
    uint64_t weights = pool_of(rig, "weights"), scratch = pool_of(rig, "scratch");
    expect_current(rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, weights));
    expect_current(rig, weights);
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, scratch));
    expect_current(rig, scratch);
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, scratch));
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, STRATA_POOL_ORDINARY));
    expect_current(rig, STRATA_POOL_ORDINARY);
    /* A request's own word counts more. */
    strata_block_t w = get_from(rig, weights, NULL, SIZE);
    expect_pool(rig, w.ref, weights);
    EXPECT_OK(strata_free(rig->s, w.ref));
    expect_current(rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
    expect_current(rig, scratch);
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
    expect_current(rig, weights);
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
    expect_current(rig, STRATA_POOL_ORDINARY);
}

TEST(facade_pools, places_and_facades_are_apart) {
    rig_t rig, other;
    rig_open(&rig, POOLED, NULL, 0, 0, 2);
    rig_open(&other, POOLED, NULL, 0, 0, 1);
    uint64_t weights = pool_of(&rig, "weights"), now = 0;
    strata_block_t pinned, elsewhere, foreign;
    EXPECT_OK(strata_pool_begin(rig.s, strata_pinned(), weights));
    expect_current(&rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, weights));
    EXPECT_OK(strata_allocate(rig.s, strata_pinned(), NULL, SIZE, &pinned));
    expect_pool(&rig, pinned.ref, weights);
    EXPECT_OK(strata_allocate(rig.s, strata_gpu(1), NULL, SIZE, &elsewhere));
    expect_pool(&rig, elsewhere.ref, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_allocate(other.s, strata_gpu(0), NULL, SIZE, &foreign));
    expect_pool(&other, foreign.ref, STRATA_POOL_ORDINARY);
    /* Ends need not be in the order of the begins across places. */
    EXPECT_OK(strata_pool_end(rig.s, strata_pinned()));
    expect_current(&rig, weights);
    EXPECT_OK(strata_pool_current(rig.s, strata_pinned(), &now));
    EXPECT_EQ(now, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    RIG_FREE(&rig, pinned, elsewhere);
    EXPECT_OK(strata_free(other.s, foreign.ref));
    rig_close(&other);
    rig_close(&rig);
}

TEST_RIG(facade_pools, a_pool_without_layers_has_instances_of_the_places, 0, POOLED) {
    strata_block_t a = rig_allocate(rig, NULL, SIZE), b = get_from(rig, pool_of(rig, "same"), NULL, SIZE), c;
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = SIZE, .pool = pool_of(rig, "same")};
    char mine[128], theirs[128];
    EXPECT_OK(strata_allocation_route(rig->s, a.ref, mine, sizeof mine));
    EXPECT_OK(strata_allocation_route(rig->s, b.ref, theirs, sizeof theirs));
    EXPECT_STREQ(mine, theirs);
    EXPECT_NE(strata_ref_home(a.ref), strata_ref_home(b.ref));
    EXPECT_OK(strata_allocate_with(rig->s, strata_host(), NULL, &options, &c));
    rig_register(rig, c.ref);
    expect_pool(rig, c.ref, options.pool);
}

TEST_RIG(facade_pools, no_cache_serves_another_pool, 0, POOLED) {
    uint64_t weights = pool_of(rig, "weights");
    strata_stream_t stream = rig_stream(rig);
    strata_block_t w = get_from(rig, weights, stream, SIZE);
    void *first = w.ptr;
    EXPECT_OK(strata_free(rig->s, w.ref));
    strata_block_t o = rig_allocate(rig, stream, SIZE);
    EXPECT_NE(o.ptr, first);
    w = get_from(rig, weights, stream, SIZE);
    EXPECT_EQ(w.ptr, first);
    /* Nor what a forgotten stream leaves behind. */
    EXPECT_OK(strata_free(rig->s, w.ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    strata_block_t next = rig_allocate(rig, NULL, 2 * SIZE), own = get_from(rig, weights, NULL, SIZE);
    EXPECT_NE(next.ptr, first);
    EXPECT_EQ(own.ptr, first);
    expect_pool(rig, own.ref, weights);
    strata_block_t all[] = {o, next, own};
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig->s, all[i].ref));
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, stream));
}

TEST(facade_pools, wrong_use_is_told) {
    rig_t rig, plain;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    rig_open(&plain, "strata", NULL, 0, 0, 1);
    uint64_t pool = 7, weights = pool_of(&rig, "weights");
    strata_block_t block = {.ref = 4};
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_SAYS(STRATA_E_INVALID, strata_pool(rig.s, "wieghts", &pool), "strategy pooled has no pool \"wieghts\"; write weights");
    EXPECT_SAYS(STRATA_E_INVALID, strata_pool(rig.s, "zzzzzzzzzzzz", &pool),
                "strategy pooled has no pool \"zzzzzzzzzzzz\"; write one of weights, scratch, same");
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool(rig.s, NULL, &pool));
    EXPECT_SAYS(STRATA_E_INVALID, strata_pool(plain.s, "weights", &pool),
                "strategy strata has no pools; write pools: {weights: {stack: [...]}}");
    EXPECT_EQ(pool, 7);
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool_end(rig.s, rig.gpu));
    const uint64_t wrong[] = {2, weights + 3, UINT64_MAX, weights - 1};
    for (size_t i = 0; i < 4; i++) {
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = SIZE, .pool = wrong[i]};
        EXPECT_STATUS(STRATA_E_INVALID, strata_allocate_with(rig.s, rig.gpu, NULL, &options, &block));
        EXPECT_STATUS(STRATA_E_INVALID, strata_pool_begin(rig.s, rig.gpu, wrong[i]));
        EXPECT_STATUS(STRATA_E_INVALID, strata_statistics_pool(rig.s, rig.gpu, wrong[i], &figures));
    }
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool_begin(rig.s, rig.gpu, 0));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool_begin(plain.s, plain.gpu, weights));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool_begin(rig.s, strata_gpu(3), weights));
    EXPECT_EQ(block.ref, 4);
    for (int i = 0; i < 16; i++) EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, weights));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_pool_begin(rig.s, rig.gpu, weights));
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, weights));
    rig_close(&rig);
    EXPECT_STATUS(STRATA_E_STALE, strata_pool_end(rig.s, rig.gpu));
    /* What was begun in a facade that is closed takes no room. */
    EXPECT_OK(strata_pool_begin(plain.s, plain.gpu, STRATA_POOL_ORDINARY));
    EXPECT_OK(strata_pool_end(plain.s, plain.gpu));
    rig_close(&plain);
}

/* ---- threads ---- */

typedef struct worker {
    rig_t *rig;
    strata_stream_t stream;
    uint64_t pool; /* 0: it begins none */
    uint32_t strangers; /* blocks of another pool */
} worker_t;

static void *work(void *argument) {
    worker_t *w = argument;
    uint64_t wanted = w->pool ? w->pool : STRATA_POOL_ORDINARY, of;
    strata_block_t blocks[8];
    if (w->pool) EXPECT_OK(strata_pool_begin(w->rig->s, w->rig->gpu, w->pool));
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < 8; i++) EXPECT_OK(strata_allocate(w->rig->s, w->rig->gpu, w->stream, 1000 * (i + 1), &blocks[i]));
        for (size_t i = 0; i < 8; i++) {
            EXPECT_OK(strata_pool_of(w->rig->s, blocks[i].ref, &of));
            w->strangers += of != wanted;
            EXPECT_OK(strata_free(w->rig->s, blocks[i].ref));
        }
    }
    if (w->pool) EXPECT_OK(strata_pool_end(w->rig->s, w->rig->gpu));
    return NULL;
}

TEST_RIG(facade_pools, are_a_threads_own_matter, 0, POOLED) {
    strata_stream_t stream = rig_stream(rig);
    const uint64_t pools[] = {pool_of(rig, "weights"), 0, pool_of(rig, "same")};
    worker_t workers[3];
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, pool_of(rig, "scratch")));
    for (int i = 0; i < 3; i++) workers[i] = (worker_t){.rig = rig, .stream = stream, .pool = pools[i]};
    in_threads(work, workers, sizeof *workers, 3);
    for (int i = 0; i < 3; i++) EXPECT_EQ(workers[i].strangers, 0);
    expect_current(rig, pool_of(rig, "scratch"));
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
    EXPECT_EQ(pool_figures(rig, pools[0]).allocations, 400);
    EXPECT_EQ(pool_figures(rig, pools[2]).allocations, 400);
    EXPECT_EQ(pool_figures(rig, STRATA_POOL_ORDINARY).allocations, 400);
}

/* Inside a pool hits are as quick as outside: the thread's own look-up finds the pool's stack. */
TEST_RIG(facade_pools, a_warm_pair_in_a_pool_takes_no_host_memory, 0, POOLED) {
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, pool_of(rig, "weights")));
    strata_block_t keep = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, SIZE).ref));
    uint64_t before = strata_host_allocations();
    for (int i = 0; i < 100; i++) EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, SIZE).ref));
    EXPECT_EQ(strata_host_allocations(), before);
    EXPECT_EQ(pool_figures(rig, pool_of(rig, "weights")).cache_hits, 101);
    EXPECT_OK(strata_free(rig->s, keep.ref));
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
}

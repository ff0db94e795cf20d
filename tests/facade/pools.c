/* Named pools: who is served from which, and that everything that goes over a place goes over its pools too. */
#include <pthread.h>
#include <stdio.h>

#include "platform/host_memory.h"
#include "tests/facade/fixture.h"

#define POOLED                                                              \
    "strategy: pooled\n"                                                    \
    "stack: [retry: {timeout: 2ms}, stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n" \
    "pools:\n"                                                              \
    "  weights: {stack: [stream_safe, auto_growth: {chunk_size: 8MiB}, system], places: {pinned: [buffered, system]}}\n" \
    "  scratch: [limit: {bytes: 16MiB}, system]\n"                          \
    "  same:\n"

enum { SIZE = 100 * 1000, LONG = 1000 * 1000 };

static uint64_t pool_of(rig_t *rig, const char *name) {
    uint64_t pool = 0;
    EXPECT_OK(strata_pool(rig->s, name, &pool));
    EXPECT_GT(pool, STRATA_POOL_ORDINARY);
    return pool;
}

static strata_block_t get_from(rig_t *rig, uint64_t pool, strata_stream_t stream, size_t size) {
    strata_block_t block = {0};
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .pool = pool};
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, stream, &options, &block));
    return block;
}

static strata_statistics_t pool_figures(rig_t *rig, uint64_t pool) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, pool, &figures));
    return figures;
}

static void expect_pool(rig_t *rig, strata_ref_t ref, uint64_t pool) {
    uint64_t of = 0;
    EXPECT_OK(strata_pool_of(rig->s, ref, &of));
    EXPECT_EQ(of, pool);
}

static void expect_current(rig_t *rig, uint64_t pool) {
    uint64_t now = 0;
    EXPECT_OK(strata_pool_current(rig->s, rig->gpu, &now));
    EXPECT_EQ(now, pool);
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    expect_pool(rig, block.ref, pool);
    EXPECT_OK(strata_free(rig->s, block.ref));
}

/* ---- who is served from which ---- */

TEST(facade_pools, a_request_may_name_its_pool) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    uint64_t weights = pool_of(&rig, "weights"), scratch = pool_of(&rig, "scratch");
    EXPECT_NE(weights, scratch);
    strata_block_t w = get_from(&rig, weights, NULL, SIZE), s = get_from(&rig, scratch, NULL, SIZE);
    strata_block_t o = rig_allocate(&rig, NULL, SIZE), named = get_from(&rig, STRATA_POOL_ORDINARY, NULL, SIZE);
    char path[128];
    EXPECT_OK(strata_allocation_path(rig.s, w.ref, path, sizeof path));
    EXPECT_STREQ(path, "stream_safe > auto_growth | system");
    EXPECT_OK(strata_allocation_path(rig.s, s.ref, path, sizeof path));
    EXPECT_STREQ(path, "limit > system");
    EXPECT_EQ(strata_ref_home(o.ref), strata_ref_home(named.ref));
    expect_pool(&rig, w.ref, weights);
    expect_pool(&rig, s.ref, scratch);
    expect_pool(&rig, o.ref, STRATA_POOL_ORDINARY);
    strata_block_t all[] = {w, s, o, named};
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(rig.s, all[i].ref));
    rig_close(&rig);
}

TEST(facade_pools, nest_in_a_thread) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    uint64_t weights = pool_of(&rig, "weights"), scratch = pool_of(&rig, "scratch");
    expect_current(&rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, weights));
    expect_current(&rig, weights);
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, scratch));
    expect_current(&rig, scratch);
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, scratch));
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, STRATA_POOL_ORDINARY));
    expect_current(&rig, STRATA_POOL_ORDINARY);
    /* A request's own word counts more. */
    strata_block_t w = get_from(&rig, weights, NULL, SIZE);
    expect_pool(&rig, w.ref, weights);
    EXPECT_OK(strata_free(rig.s, w.ref));
    expect_current(&rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    expect_current(&rig, scratch);
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    expect_current(&rig, weights);
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    expect_current(&rig, STRATA_POOL_ORDINARY);
    rig_close(&rig);
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
    EXPECT_OK(strata_free(rig.s, pinned.ref));
    EXPECT_OK(strata_free(rig.s, elsewhere.ref));
    EXPECT_OK(strata_free(other.s, foreign.ref));
    rig_close(&other);
    rig_close(&rig);
}

TEST(facade_pools, a_pool_without_layers_has_instances_of_the_places) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    strata_block_t a = rig_allocate(&rig, NULL, SIZE), b = get_from(&rig, pool_of(&rig, "same"), NULL, SIZE), c;
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = SIZE, .pool = pool_of(&rig, "same")};
    char mine[128], theirs[128];
    EXPECT_OK(strata_allocation_path(rig.s, a.ref, mine, sizeof mine));
    EXPECT_OK(strata_allocation_path(rig.s, b.ref, theirs, sizeof theirs));
    EXPECT_STREQ(mine, theirs);
    EXPECT_NE(strata_ref_home(a.ref), strata_ref_home(b.ref));
    EXPECT_OK(strata_allocate_with(rig.s, strata_host(), NULL, &options, &c));
    expect_pool(&rig, c.ref, options.pool);
    strata_block_t all[] = {a, b, c};
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, all[i].ref));
    rig_close(&rig);
}

TEST(facade_pools, no_cache_serves_another_pool) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    uint64_t weights = pool_of(&rig, "weights");
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t w = get_from(&rig, weights, stream, SIZE);
    void *first = w.ptr;
    EXPECT_OK(strata_free(rig.s, w.ref));
    strata_block_t o = rig_allocate(&rig, stream, SIZE);
    EXPECT_NE(o.ptr, first);
    w = get_from(&rig, weights, stream, SIZE);
    EXPECT_TRUE(w.ptr == first);
    /* Nor what a forgotten stream leaves behind. */
    EXPECT_OK(strata_free(rig.s, w.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, stream));
    strata_block_t next = rig_allocate(&rig, NULL, 2 * SIZE), own = get_from(&rig, weights, NULL, SIZE);
    EXPECT_NE(next.ptr, first);
    EXPECT_TRUE(own.ptr == first);
    expect_pool(&rig, own.ref, weights);
    strata_block_t all[] = {o, next, own};
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, all[i].ref));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, stream));
    rig_close(&rig);
}

TEST(facade_pools, wrong_use_is_told) {
    rig_t rig, plain;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    rig_open(&plain, "strata", NULL, 0, 0, 1);
    uint64_t pool = 7, weights = pool_of(&rig, "weights");
    strata_block_t block = {.ref = 4};
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool(rig.s, "wieghts", &pool));
    EXPECT_CONTAINS(strata_last_error()->text, "strategy pooled has no pool \"wieghts\"; write weights");
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool(rig.s, NULL, &pool));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool(plain.s, "weights", &pool));
    EXPECT_CONTAINS(strata_last_error()->text, "strategy strata names no pools; write pools: {weights: {stack: [...]}}");
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
    pthread_t thread;
    uint32_t strangers; /* blocks of another pool */
} worker_t;

static void *work(void *argument) {
    worker_t *w = argument;
    uint64_t wanted = w->pool ? w->pool : STRATA_POOL_ORDINARY, of;
    strata_block_t blocks[8];
    if (w->pool) EXPECT_OK(strata_pool_begin(w->rig->s, w->rig->gpu, w->pool));
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < 8; i++)
            EXPECT_OK(strata_allocate(w->rig->s, w->rig->gpu, w->stream, 1000 * (i + 1), &blocks[i]));
        for (size_t i = 0; i < 8; i++) {
            EXPECT_OK(strata_pool_of(w->rig->s, blocks[i].ref, &of));
            w->strangers += of != wanted;
            EXPECT_OK(strata_free(w->rig->s, blocks[i].ref));
        }
    }
    if (w->pool) EXPECT_OK(strata_pool_end(w->rig->s, w->rig->gpu));
    return NULL;
}

TEST(facade_pools, are_a_threads_own_matter) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    strata_stream_t stream = rig_stream(&rig);
    const uint64_t pools[] = {pool_of(&rig, "weights"), 0, pool_of(&rig, "same")};
    worker_t workers[3];
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, pool_of(&rig, "scratch")));
    for (int i = 0; i < 3; i++) {
        workers[i] = (worker_t){.rig = &rig, .stream = stream, .pool = pools[i]};
        ASSERT_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(workers[i].thread, NULL);
        EXPECT_EQ(workers[i].strangers, 0);
    }
    expect_current(&rig, pool_of(&rig, "scratch"));
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    EXPECT_EQ(pool_figures(&rig, pools[0]).allocations, 400);
    EXPECT_EQ(pool_figures(&rig, pools[2]).allocations, 400);
    EXPECT_EQ(pool_figures(&rig, STRATA_POOL_ORDINARY).allocations, 400);
    rig_close(&rig);
}

/* Inside a pool hits are as quick as outside: the thread's own look-up finds the pool's stack. */
TEST(facade_pools, a_warm_pair_in_a_pool_takes_no_host_memory) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, pool_of(&rig, "weights")));
    strata_block_t keep = rig_allocate(&rig, NULL, SIZE);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, SIZE).ref));
    uint64_t before = strata_host_allocations();
    for (int i = 0; i < 100; i++) EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, SIZE).ref));
    EXPECT_EQ(strata_host_allocations(), before);
    EXPECT_EQ(pool_figures(&rig, pool_of(&rig, "weights")).cache_hits, 101);
    EXPECT_OK(strata_free(rig.s, keep.ref));
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    rig_close(&rig);
}

/* ---- what goes over all of a place ---- */

TEST(facade_pools, blocks_go_by_their_refs_whatever_is_current) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    uint64_t weights = pool_of(&rig, "weights");
    strata_stream_t other = rig_stream(&rig), owner;
    strata_block_t w = get_from(&rig, weights, NULL, SIZE), found, o = rig_allocate(&rig, NULL, SIZE);
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, pool_of(&rig, "scratch")));
    EXPECT_OK(strata_block_of(rig.s, w.ptr, &found));
    EXPECT_EQ(found.ref, w.ref);
    EXPECT_OK(strata_base_pointer(rig.s, (char *)w.ptr + 99, &found));
    EXPECT_EQ(found.ref, w.ref);
    EXPECT_OK(strata_stream_of(rig.s, w.ref, &owner));
    EXPECT_OK(strata_retain(rig.s, w.ref));
    EXPECT_OK(strata_free(rig.s, w.ref));
    EXPECT_OK(strata_record_stream(rig.s, w.ref, other));
    rig_work(&rig, other, LONG, w.ref);
    EXPECT_OK(strata_free_pointer(rig.s, w.ptr));
    EXPECT_OK(strata_free(rig.s, o.ref));
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    EXPECT_EQ(pool_figures(&rig, weights).deferred_bytes, w.size);
    EXPECT_EQ(pool_figures(&rig, weights).borrows, 1);
    strata_block_t next = get_from(&rig, weights, NULL, SIZE);
    EXPECT_NE(next.ptr, w.ptr);
    EXPECT_OK(strata_free(rig.s, next.ref));
    rig_close(&rig);
}

TEST(facade_pools, figures_are_the_pools_and_add_up_to_the_places) {
    static char text[65536];
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    uint64_t weights = pool_of(&rig, "weights");
    strata_stream_t stream = rig_stream(&rig);
    EXPECT_EQ(pool_figures(&rig, weights).allocations, 0);
    strata_block_t a = get_from(&rig, weights, NULL, SIZE), b = get_from(&rig, weights, stream, SIZE), c = rig_allocate(&rig, NULL, 500);
    strata_statistics_t f = pool_figures(&rig, weights), o = pool_figures(&rig, STRATA_POOL_ORDINARY);
    EXPECT_EQ(f.requested_bytes, 2 * SIZE);
    EXPECT_EQ(f.reserved_bytes, 16 * MIB);
    EXPECT_EQ(f.live_allocations, 2);
    EXPECT_EQ(f.growths, 2);
    EXPECT_EQ(o.requested_bytes, 500);
    EXPECT_EQ(o.reserved_bytes, 2 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 18 * MIB);
    EXPECT_EQ(rig_figures(&rig).requested_bytes, 2 * SIZE + 500);
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, weights));
    EXPECT_EQ(pool_figures(&rig, 0).requested_bytes, 2 * SIZE);
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    EXPECT_OK(strata_statistics_json(rig.s, text, sizeof text, NULL));
    EXPECT_CONTAINS(text, "{\"stream\": \"0x0\", \"pool\": \"weights\", \"thread\": 0, \"forgotten\": false, \"requested_bytes\": 100000, ");
    EXPECT_CONTAINS(text, "\"pools\": [\n    {\"pool\": \"weights\", \"requested_bytes\": 200000, ");
    EXPECT_OK(strata_statistics_prometheus(rig.s, text, sizeof text, NULL));
    EXPECT_CONTAINS(text, "# TYPE strata_pool_requested_bytes gauge\n"
                          "strata_pool_requested_bytes{place=\"gpu:0\",pool=\"weights\"} 200000\n");
    EXPECT_CONTAINS(text, "strata_pool_allocations_total{place=\"gpu:0\",pool=\"weights\"} 2\n");
    /* What has ended stays counted. */
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, stream));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    f = pool_figures(&rig, weights);
    EXPECT_EQ(f.allocations, 2);
    EXPECT_EQ(f.frees, 1);
    EXPECT_EQ(f.reserved_bytes, 8 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_free(rig.s, c.ref));
    rig_close(&rig);
}

typedef struct seen {
    uint64_t pool;
    uint32_t live, others;
} seen_t;

static void see(const strata_snapshot_row_t *row, void *context) {
    seen_t *seen = context;
    if (row->state == 1 && row->pool == seen->pool) seen->live++;
    else if (row->state == 1) seen->others++;
}

static void hear_leak(const strata_leak_t *leak, void *context) {
    char *names = context;
    strcat(strcat(names, leak->pool), ".");
}

TEST(facade_pools, snapshot_release_forget_and_leaks_go_over_pools) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    uint64_t weights = pool_of(&rig, "weights"), released = 0;
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t a = get_from(&rig, weights, stream, SIZE), b = rig_allocate(&rig, stream, SIZE);
    strata_block_t s = get_from(&rig, pool_of(&rig, "scratch"), stream, SIZE), gone = get_from(&rig, weights, stream, 8 * MIB);
    seen_t seen = {.pool = weights};
    EXPECT_OK(strata_snapshot(rig.s, rig.gpu, see, &seen));
    EXPECT_EQ(seen.live, 2);
    EXPECT_EQ(seen.others, 2);
    EXPECT_OK(strata_free(rig.s, gone.ref));
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_mem_info(rig.s, rig.gpu, &info));
    EXPECT_EQ(info.cached, 16 * MIB - a.size + 2 * MIB - b.size);
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    EXPECT_EQ(released, 8 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, stream));
    EXPECT_EQ(rig_domain(&rig)->orphans, 3);
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, stream));
    char names[64] = "";
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig.s, STRATA_CLOSE_BUSY, hear_leak, names));
    EXPECT_STREQ(names, "weights..scratch.");
    strata_block_t all[] = {a, b, s};
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, all[i].ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_domain(&rig)->orphans, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    rig_close(&rig);
}

TEST(facade_pools, victims_are_of_the_current_pool) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 0, 1);
    uint64_t weights = pool_of(&rig, "weights");
    strata_block_t o = rig_allocate(&rig, NULL, MIB), w = get_from(&rig, weights, NULL, 2 * MIB);
    strata_ref_t victim = 0;
    size_t count = 0;
    EXPECT_OK(strata_best_victims(rig.s, rig.gpu, 2 * MIB, &victim, 1, &count));
    EXPECT_EQ(victim, o.ref);
    EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, weights));
    EXPECT_OK(strata_best_victims(rig.s, rig.gpu, 8 * MIB, &victim, 1, &count));
    EXPECT_EQ(victim, w.ref);
    EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    EXPECT_OK(strata_free(rig.s, o.ref));
    EXPECT_OK(strata_free(rig.s, w.ref));
    rig_close(&rig);
}

/* ---- out of memory ---- */

TEST(facade_pools, what_a_pool_caches_is_released_for_others_and_the_other_way_round) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 64 * MIB, 1);
    uint64_t weights = pool_of(&rig, "weights");
    EXPECT_OK(strata_free(rig.s, get_from(&rig, weights, NULL, 40 * MIB).ref));
    strata_block_t o = rig_allocate(&rig, NULL, 40 * MIB);
    EXPECT_EQ(pool_figures(&rig, weights).reserved_bytes, 0);
    EXPECT_OK(strata_free(rig.s, o.ref));
    /* The pool's stack has no retry: the facade climbs for it. */
    strata_block_t w = get_from(&rig, weights, NULL, 40 * MIB);
    EXPECT_EQ(pool_figures(&rig, weights).ladders, 1);
    EXPECT_EQ(pool_figures(&rig, STRATA_POOL_ORDINARY).ladders, 1);
    EXPECT_EQ(rig_figures(&rig).ladders, 2);
    EXPECT_OK(strata_free(rig.s, w.ref));
    rig_close(&rig);
}

/* The waiter's own stack has a retry, the holder's has none: its free wakes all the same, and long before the waiter gives up. */
static void *free_a_while_later(void *argument) {
    worker_t *holder = argument;
    strata_block_t block = get_from(holder->rig, holder->pool, holder->stream, 40 * MIB);
    __atomic_store_n(&holder->strangers, 1, __ATOMIC_RELEASE);
    uint64_t until = strata_real_now() + 40ull * 1000 * 1000;
    while (strata_real_now() < until) {}
    EXPECT_OK(strata_free(holder->rig->s, block.ref));
    return NULL;
}

TEST(facade_pools, a_free_in_a_pool_ends_the_wait_of_others) {
    static const char *const set[] = {"retry.timeout=20s"};
    rig_t rig;
    rig_open(&rig, POOLED, set, 1, 64 * MIB, 1);
    worker_t holder = {.rig = &rig, .pool = pool_of(&rig, "weights")};
    ASSERT_EQ(pthread_create(&holder.thread, NULL, free_a_while_later, &holder), 0);
    while (!__atomic_load_n(&holder.strangers, __ATOMIC_ACQUIRE)) {}
    uint64_t began = strata_real_now();
    strata_block_t block = rig_allocate(&rig, NULL, 40 * MIB);
    EXPECT_LT(strata_real_now() - began, 10ull * 1000 * 1000 * 1000);
    pthread_join(holder.thread, NULL);
    EXPECT_EQ(rig_domain(&rig)->waiters, 0);
    EXPECT_OK(strata_free(rig.s, block.ref));
    rig_close(&rig);
}

TEST(facade_pools, the_report_names_them) {
    rig_t rig;
    rig_open(&rig, POOLED, NULL, 0, 64 * MIB, 1);
    uint64_t weights = pool_of(&rig, "weights"), scratch = pool_of(&rig, "scratch");
    strata_block_t w = get_from(&rig, weights, NULL, 20 * MIB), s = get_from(&rig, scratch, NULL, 10 * MIB), none;
    strata_block_t o = rig_allocate(&rig, NULL, 4 * MIB);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 8 * MIB, .pool = scratch};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, NULL, &options, &none));
    const char *text = strata_last_error()->text;
    EXPECT_CONTAINS(text, "out of memory in gpu:0 on stream (nil) in pool scratch: asked 8MiB, ");
    EXPECT_CONTAINS(text, "\n  limit: at most 16MiB, of which 10MiB are used\n");
    EXPECT_CONTAINS(text, "\n  stream (nil): reserved 4MiB, allocated 4MiB, deferred 0"
                          "\n  stream (nil) in pool weights: reserved 20MiB, allocated 20MiB, deferred 0"
                          "\n  stream (nil) in pool scratch: reserved 10MiB, allocated 10MiB, deferred 0"
                          "\n  pool weights: reserved 20MiB, allocated 20MiB, deferred 0"
                          "\n  pool scratch: reserved 10MiB, allocated 10MiB, deferred 0\n");
    EXPECT_CONTAINS(text, "may help: a higher bound in pools.scratch.limit");
    EXPECT_EQ(pool_figures(&rig, scratch).out_of_memory, 1);
    EXPECT_EQ(pool_figures(&rig, weights).out_of_memory, 0);
    EXPECT_EQ(rig_figures(&rig).out_of_memory, 1);
    strata_block_t all[] = {w, s, o};
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, all[i].ref));
    rig_close(&rig);
}

/* ---- host memory ---- */

TEST(facade_pools, each_host_allocation_of_a_first_use_fails) {
    uint64_t k = 1;
    for (bool served = false; !served && k < 1000 && !strata_test_has_failed(); k += 1) {
        rig_t rig;
        rig_open(&rig, POOLED, NULL, 0, 0, 1);
        uint64_t weights = pool_of(&rig, "weights");
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = SIZE, .pool = weights};
        strata_block_t block = {0};
        strata_stream_t stream = rig_stream(&rig);
        strata_host_fail_at(k, 0);
        strata_status_t status = strata_stream_name(rig.s, rig.gpu, stream, "copy0");
        if (status == STRATA_OK) status = strata_allocate_with(rig.s, rig.gpu, stream, &options, &block);
        strata_host_fail_at(0, 0);
        served = status == STRATA_OK;
        if (!served) {
            EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
            EXPECT_OK(strata_stream_name(rig.s, rig.gpu, stream, "copy0"));
            EXPECT_OK(strata_allocate_with(rig.s, rig.gpu, stream, &options, &block));
        }
        expect_pool(&rig, block.ref, weights);
        EXPECT_OK(strata_free(rig.s, block.ref));
        rig_close(&rig);
    }
    EXPECT_GT(k, 5);
}

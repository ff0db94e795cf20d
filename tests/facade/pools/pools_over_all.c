/* What goes over a place goes over its pools too: figures, snapshots, releases, the ladder, the report. */
#include <pthread.h>
#include <stdio.h>

#include "platform/host/host_memory.h"
#include "tests/facade/pools/pooled.h"
#include "tests/facade/support/program.h"
#include "tests/harness/owned.h"

enum { SIZE = 100 * 1000, LONG = 1000 * 1000 };

TEST_RIG(facade_pools, blocks_go_by_their_refs_whatever_is_current, 0, POOLED) {
    uint64_t weights = pool_of(rig, "weights");
    strata_stream_t other = rig_stream(rig), owner;
    strata_block_t w = get_from(rig, weights, NULL, SIZE), found, o = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, pool_of(rig, "scratch")));
    EXPECT_OK(strata_block_of(rig->s, w.ptr, &found));
    EXPECT_EQ(found.ref, w.ref);
    EXPECT_OK(strata_base_pointer(rig->s, (char *)w.ptr + 99, &found));
    EXPECT_EQ(found.ref, w.ref);
    EXPECT_OK(strata_stream_of(rig->s, w.ref, &owner));
    EXPECT_OK(strata_retain(rig->s, w.ref));
    EXPECT_OK(strata_free(rig->s, w.ref));
    rig_borrow(rig, w.ref, other, LONG);
    EXPECT_OK(strata_free_pointer(rig->s, w.ptr));
    EXPECT_OK(strata_free(rig->s, o.ref));
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
    EXPECT_EQ(pool_figures(rig, weights).deferred_bytes, w.size);
    EXPECT_EQ(pool_figures(rig, weights).borrows, 1);
    strata_block_t next = get_from(rig, weights, NULL, SIZE);
    EXPECT_NE(next.ptr, w.ptr);
}

static void expect_pools_in_texts(const rig_t *rig) {
    static char text[65536];
    EXPECT_OK(strata_statistics_json(rig->s, text, sizeof text, NULL));
    EXPECT_CONTAINS(
        text, "{\"stream\": \"0x0\", \"pool\": \"weights\", \"thread\": 0, \"forgotten\": false, \"requested_bytes\": 100000, ");
    EXPECT_CONTAINS(text, "\"pools\": [\n    {\"pool\": \"weights\", \"requested_bytes\": 200000, ");
    EXPECT_OK(strata_statistics_prometheus(rig->s, text, sizeof text, NULL));
    EXPECT_CONTAINS(text, "# TYPE strata_pool_requested_bytes gauge\n"
                          "strata_pool_requested_bytes{place=\"gpu:0\",pool=\"weights\"} 200000\n");
    EXPECT_CONTAINS(text, "strata_pool_allocations_total{place=\"gpu:0\",pool=\"weights\"} 2\n");
    /* Layers' own figures are told apart by their pool. */
    EXPECT_CONTAINS(text, "strata_layer_auto_growth_idle_bytes{place=\"gpu:0\",layer=\"auto_growth\",number=\"3\"} ");
    EXPECT_CONTAINS(text,
                    "strata_layer_auto_growth_idle_bytes{place=\"gpu:0\",pool=\"weights\",layer=\"auto_growth\",number=\"2\"} ");
}

TEST_RIG(facade_pools, figures_are_the_pools_and_add_up_to_the_places, 0, POOLED) {
    uint64_t weights = pool_of(rig, "weights");
    strata_stream_t stream = rig_stream(rig);
    EXPECT_EQ(pool_figures(rig, weights).allocations, 0);
    (void)get_from(rig, weights, NULL, SIZE);
    strata_block_t b = get_from(rig, weights, stream, SIZE);
    (void)rig_allocate(rig, NULL, 500);
    strata_statistics_t f = pool_figures(rig, weights), o = pool_figures(rig, STRATA_POOL_ORDINARY);
    EXPECT_EQ(f.requested_bytes, 2 * SIZE);
    EXPECT_EQ(f.reserved_bytes, 16 * MIB);
    EXPECT_EQ(f.live_allocations, 2);
    EXPECT_EQ(f.growths, 2);
    EXPECT_EQ(o.requested_bytes, 500);
    EXPECT_EQ(o.reserved_bytes, 2 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 18 * MIB);
    EXPECT_EQ(rig_figures(rig).requested_bytes, 2 * SIZE + 500);
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, weights));
    EXPECT_EQ(pool_figures(rig, 0).requested_bytes, 2 * SIZE);
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
    expect_pools_in_texts(rig);
    /* What has ended stays counted. */
    EXPECT_OK(strata_free(rig->s, b.ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    f = pool_figures(rig, weights);
    EXPECT_EQ(f.allocations, 2);
    EXPECT_EQ(f.frees, 1);
    EXPECT_EQ(f.reserved_bytes, 8 * MIB);
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

TEST_RIG(facade_pools, snapshot_release_forget_and_leaks_go_over_pools, 0, POOLED) {
    uint64_t weights = pool_of(rig, "weights");
    strata_stream_t stream = rig_stream(rig);
    strata_block_t a = get_from(rig, weights, stream, SIZE), b = rig_allocate(rig, stream, SIZE);
    strata_block_t s = get_from(rig, pool_of(rig, "scratch"), stream, SIZE), gone = get_from(rig, weights, stream, 8 * MIB);
    seen_t seen = {.pool = weights};
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, see, &seen));
    EXPECT_EQ(seen.live, 2);
    EXPECT_EQ(seen.others, 2);
    EXPECT_OK(strata_free(rig->s, gone.ref));
    EXPECT_EQ(rig_cached(rig), 16 * MIB - a.size + 2 * MIB - b.size);
    EXPECT_EQ(rig_release(rig), 8 * MIB);
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_EQ(rig_domain(rig)->orphans, 3);
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, stream));
    char names[64] = "";
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig->s, STRATA_CLOSE_BUSY, hear_leak, names));
    EXPECT_STREQ(names, "weights..scratch.");
    strata_block_t all[] = {a, b, s};
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig->s, all[i].ref));
    rig_expect_empty(rig);
}

/* ---- out of memory ---- */

TEST_RIG(facade_pools, what_a_pool_caches_is_released_for_others_and_the_other_way_round, 64 * MIB, POOLED) {
    uint64_t weights = pool_of(rig, "weights");
    EXPECT_OK(strata_free(rig->s, get_from(rig, weights, NULL, 40 * MIB).ref));
    strata_block_t o = rig_allocate(rig, NULL, 40 * MIB);
    EXPECT_EQ(pool_figures(rig, weights).reserved_bytes, 0);
    EXPECT_OK(strata_free(rig->s, o.ref));
    /* The pool's stack has no retry: the facade climbs for it. */
    (void)get_from(rig, weights, NULL, 40 * MIB);
    EXPECT_EQ(pool_figures(rig, weights).recoveries, 1);
    EXPECT_EQ(pool_figures(rig, STRATA_POOL_ORDINARY).recoveries, 1);
    EXPECT_EQ(rig_figures(rig).recoveries, 2);
}

typedef struct holder {
    rig_t *rig;
    uint64_t pool;
    pthread_t thread;
    bool holds;
} holder_t;

static void *free_a_while_later(void *argument) {
    holder_t *holder = argument;
    strata_block_t block = get_from(holder->rig, holder->pool, NULL, 40 * MIB);
    __atomic_store_n(&holder->holds, true, __ATOMIC_RELEASE);
    uint64_t until = strata_real_now() + 40ull * 1000 * 1000;
    while (strata_real_now() < until) {}
    EXPECT_OK(strata_free(holder->rig->s, block.ref));
    return NULL;
}

/* The waiter's own stack has a retry, the holder's has none: its free wakes all the same, and long before the waiter gives up. */
TEST_BY(facade_pools, a_free_in_a_pool_ends_the_wait_of_others,
        rig_open(rig, POOLED, (const char *const[]){"retry.timeout=20s"}, 1, 64 * MIB, 1)) {
    holder_t holder = {.rig = rig, .pool = pool_of(rig, "weights")};
    ASSERT_EQ(pthread_create(&holder.thread, NULL, free_a_while_later, &holder), 0);
    while (!__atomic_load_n(&holder.holds, __ATOMIC_ACQUIRE)) {}
    uint64_t began = strata_real_now();
    (void)rig_allocate(rig, NULL, 40 * MIB);
    EXPECT_LT(strata_real_now() - began, 10ull * 1000 * 1000 * 1000);
    pthread_join(holder.thread, NULL);
    EXPECT_EQ(rig_domain(rig)->waiters, 0);
}

TEST_RIG(facade_pools, the_report_names_them, 64 * MIB, POOLED) {
    uint64_t weights = pool_of(rig, "weights"), scratch = pool_of(rig, "scratch");
    (void)get_from(rig, weights, NULL, 20 * MIB);
    (void)get_from(rig, scratch, NULL, 10 * MIB);
    strata_block_t none;
    (void)rig_allocate(rig, NULL, 4 * MIB);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 8 * MIB, .pool = scratch};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &none));
    const char *text = strata_last_error()->text;
    EXPECT_CONTAINS(text, "out of memory in gpu:0 on stream NULL in pool scratch: bound: requested 8MiB, ");
    EXPECT_CONTAINS(text, "; pools.scratch.limit.bytes allows 16MiB, of which 10MiB are used\n");
    EXPECT_CONTAINS(text, "\n  stream NULL: reserved 4MiB, allocated 4MiB, deferred 0"
                          "\n  stream NULL in pool weights: reserved 20MiB, allocated 20MiB, deferred 0"
                          "\n  stream NULL in pool scratch: reserved 10MiB, allocated 10MiB, deferred 0"
                          "\n  pool weights: reserved 20MiB, allocated 20MiB, deferred 0"
                          "\n  pool scratch: reserved 10MiB, allocated 10MiB, deferred 0\n");
    EXPECT_CONTAINS(text, "try: raise pools.scratch.limit.bytes to 18MiB or more (now 16MiB)");
    EXPECT_EQ(pool_figures(rig, scratch).out_of_memory, 1);
    EXPECT_EQ(pool_figures(rig, weights).out_of_memory, 0);
    EXPECT_EQ(rig_figures(rig).out_of_memory, 1);
}

/* Long names of many pools and streams leave room for what comes last. */
TEST(facade_pools, the_report_stays_short) {
    enum { POOLS = 8, STREAMS = 12 };
    char yaml[2048] = "strategy: long\npools:\n", name[128];
    for (int i = 0; i < POOLS; i++) sprintf(yaml + strlen(yaml), "  p%d%062d: [stream_safe, auto_growth, system]\n", i, 0);
    RIG(rig, yaml, 4096 * MIB);
    for (int i = 0; i < POOLS + STREAMS; i++) {
        strata_stream_t stream = rig_stream(&rig);
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = ((size_t)i + 1) * MIB, .tag = name};
        snprintf(name, sizeof name, "%c%0126d", 'a' + i, 0);
        EXPECT_OK(strata_stream_name(rig.s, rig.gpu, stream, name));
        snprintf(name, sizeof name, "p%d%062d", i, 0);
        if (i < POOLS) EXPECT_OK(strata_pool(rig.s, name, &options.pool));
        snprintf(name, sizeof name, "%c%0126d", 'A' + i, 0);
        (void)rig_allocate_with(&rig, stream, &options);
    }
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 8192 * MIB));
    const char *text = strata_last_error()->text;
    EXPECT_CONTAINS(text, " in pool p000000000000000000000");
    EXPECT_CONTAINS(text, "\n  and 10 more streams\n");
    EXPECT_CONTAINS(text, "\n  and 3 more pools\n");
    EXPECT_CONTAINS(text, "\n  try: ");
    EXPECT_LT(strlen(text), 3900);
}

/* ---- another strategy ---- */

/* A pool is a name: its number holds under every strategy that has it, and streams keep their names. */
TEST(facade_pools, outlive_a_change_of_strategy) {
    strata_t s;
    strata_open_options_t options = {
        .struct_size = sizeof options, .text = POOLED, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    ASSERT_OK(strata_open(&options, &s));
    uint64_t weights, scratch, of;
    strata_block_t block = {0};
    strata_stream_t stream;
    char path[64];
    EXPECT_OK(strata_pool(s, "weights", &weights));
    EXPECT_OK(strata_pool(s, "scratch", &scratch));
    EXPECT_OK(strata_stream_create(s, strata_gpu(0), 0, &stream));
    EXPECT_OK(strata_stream_name(s, strata_gpu(0), stream, "copy0"));
    EXPECT_OK(strata_pool_begin(s, strata_gpu(0), weights));
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, SIZE, &block));
    EXPECT_OK(strata_free(s, block.ref));
    options.text = "pools: {other: [system], weights: [buffered, system]}\nstreams: {\"copy*\": [system]}\n";
    EXPECT_OK(strata_change_strategy(s, &options));
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, SIZE, &block));
    EXPECT_OK(strata_pool_of(s, block.ref, &of));
    EXPECT_EQ(of, weights);
    EXPECT_OK(strata_allocation_route(s, block.ref, path, sizeof path));
    EXPECT_STREQ(path, "buffered | system");
    EXPECT_OK(strata_free(s, block.ref));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool_begin(s, strata_gpu(0), scratch));
    EXPECT_OK(strata_pool_end(s, strata_gpu(0)));
    EXPECT_OK(strata_allocate(s, strata_gpu(0), stream, SIZE, &block));
    EXPECT_OK(strata_allocation_route(s, block.ref, path, sizeof path));
    EXPECT_STREQ(path, "system");
    EXPECT_OK(strata_free(s, block.ref));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

/* ---- a program ---- */

/* A random program whose thread begins and ends pools as it goes: everything it frees, borrows and waits for lies in any of them. */
TEST_BY(facade_pools, a_random_program_in_and_out_of_pools,
        rig_open_with(rig, POOLED, &(strata_sim_options_t){.capacity = 96 * MIB, .contents = true}, 0)) {
    static const char *const names[] = {"weights", "scratch", "same"};
    program_t program;
    uint64_t random = 12345, served[3];
    int depth = 0;
    program_begin(&program, rig);
    for (int i = 0; i < PROGRAM_LENGTH && !strata_test_has_failed(); i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t dice = random >> 33;
        if (dice % 10 == 0 && depth < 12) {
            EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, pool_of(rig, names[dice / 10 % 3])));
            depth++;
        } else if (dice % 10 == 1 && depth > 0) {
            EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
            depth--;
        }
        program_step(&program);
        if (i % 500 == 0) program_check(&program);
    }
    for (int i = 0; i < 3; i++) {
        served[i] = pool_figures(rig, pool_of(rig, names[i])).allocations;
        EXPECT_GT(served[i], 20);
    }
    EXPECT_EQ(served[0] + served[1] + served[2] + pool_figures(rig, STRATA_POOL_ORDINARY).allocations,
              rig_figures(rig).allocations);
    program_finish(&program);
    for (; depth > 0; depth--) EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
}

TEST_RIG(facade_pools, samples_of_several_pools_stand_under_one_heading, 0, POOLED) {
    static const char heading[] = "# TYPE strata_pool_requested_bytes gauge\n";
    static char text[65536];
    (void)get_from(rig, pool_of(rig, "weights"), NULL, SIZE);
    (void)get_from(rig, pool_of(rig, "same"), NULL, 2 * SIZE);
    EXPECT_OK(strata_statistics_prometheus(rig->s, text, sizeof text, NULL));
    const char *first = strstr(text, heading);
    ASSERT_TRUE(first != NULL);
    EXPECT_EQ(strstr(first + 1, heading), NULL);
    EXPECT_CONTAINS(first, "strata_pool_requested_bytes{place=\"gpu:0\",pool=\"weights\"} 100000\n");
    EXPECT_CONTAINS(first, "strata_pool_requested_bytes{place=\"gpu:0\",pool=\"same\"} 200000\n");
}

/* ---- host memory ---- */

TEST(facade_pools, each_host_allocation_of_a_first_use_fails) {
    uint64_t k = 1;
    /* Without host memory the call succeeds and only traces lose the stream's name. So a served request does not end the loop. */
    for (uint64_t made = 0; made + 1 >= k && k < 1000 && !strata_test_has_failed(); k += 1) {
        RIG(rig, POOLED, 0);
        uint64_t weights = pool_of(&rig, "weights");
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = SIZE, .pool = weights};
        strata_block_t block = {0};
        strata_stream_t stream = rig_stream(&rig);
        uint64_t before = strata_host_allocations();
        strata_host_fail_at(k, 0);
        strata_status_t status = strata_stream_name(rig.s, rig.gpu, stream, "copy0");
        if (status == STRATA_OK) status = strata_allocate_with(rig.s, rig.gpu, stream, &options, &block);
        strata_host_fail_at(0, 0);
        made = strata_host_allocations() - before;
        if (status != STRATA_OK) {
            EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
            EXPECT_OK(strata_stream_name(rig.s, rig.gpu, stream, "copy0"));
            EXPECT_OK(strata_allocate_with(rig.s, rig.gpu, stream, &options, &block));
        }
        expect_pool(&rig, block.ref, weights);
        EXPECT_OK(strata_free(rig.s, block.ref));
    }
    EXPECT_GT(k, 10);
}

/* The life of a pool: what keeps it, and what release, out of memory, forgetting, change and close do while it is kept. */
#include "allocation/graphs/graphs.h"
#include "tests/graphs/graphs.h"

#define BYTES (4ull << 20)

/* A graph whose pool has one freed block; the block. */
static strata_block_t capture_one(captured_t *c) {
    captured_begin(c);
    strata_block_t block = rig_allocate(&c->rig, c->stream, BYTES);
    captured_work(c, c->stream, &block);
    EXPECT_OK(strata_free(c->rig.s, block.ref));
    captured_end(c);
    return block;
}

TEST(graph_pools, a_graph_keeps_what_release_and_trim_would_give_back) {
    captured_t c;
    captured_open(&c, "pytorch");
    strata_block_t block = capture_one(&c);
    uint64_t reserved = captured_pool(&c).reserved_bytes;
    EXPECT_GE(reserved, BYTES);
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    EXPECT_OK(strata_trim(c.rig.s, c.rig.gpu, 0, NULL));
    EXPECT_OK(strata_release_pool(c.rig.s, c.rig.gpu, c.pool, NULL));
    EXPECT_EQ(captured_pool(&c).reserved_bytes, reserved);
    captured_launch(&c);
    EXPECT_TRUE(captured_is_spared(&c, &block));
    captured_destroy(&c);
    EXPECT_OK(strata_step(c.rig.s));
    captured_close(&c);
}

TEST(graph_pools, begins_keep_it_as_long_as_they_are_not_removed) {
    captured_t c;
    captured_open(&c, "strata");
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    EXPECT_STATUS(STRATA_E_BUSY, strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    ASSERT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    ASSERT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_EQ(captured_pool(&c).begins, 2);
    ASSERT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_EQ(captured_pool(&c).begins, 1);
    ASSERT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    strata_graph_pool_info_t info = {.struct_size = sizeof info};
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_describe(c.rig.s, c.rig.gpu, c.pool, &info));
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    uint64_t none = 12345;
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &none));
    captured_close(&c);
}

/* A pool that has served one stream. */
static uint64_t served_pool(captured_t *c) {
    uint64_t pool = 0;
    EXPECT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, c->stream, &pool));
    EXPECT_OK(strata_free(c->rig.s, rig_allocate(&c->rig, c->stream, BYTES).ref));
    EXPECT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, pool));
    return pool;
}

TEST(graph_pools, the_end_of_one_looks_at_the_stacks_of_no_other) {
    enum { POOLS = 40, LOOKS = 60 };
    uint64_t pools[POOLS];
    captured_t c;
    captured_open(&c, "strata");
    for (int i = 0; i < POOLS; i++) pools[i] = served_pool(&c);
    for (int i = 0; i < POOLS; i++) {
        uint64_t before = rig_domain(&c.rig)->examined;
        EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, pools[i]));
        EXPECT_LE(rig_domain(&c.rig)->examined - before, LOOKS);
    }
    captured_close(&c);
}

/* A graph keeps it, so it is still there, and still no begin is left to be removed. */
TEST(graph_pools, a_remove_without_a_begin_is_refused) {
    captured_t c;
    captured_open(&c, "strata");
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_end(&c);
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_CONTAINS(strata_last_error()->text, "each remove needs a begin");
    EXPECT_EQ(captured_pool(&c).graphs, 1);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(graph_pools, only_so_many_are_begun_at_once) {
    captured_t c;
    strata_stream_t streams[STRATA_OPEN_GRAPHS + 1];
    uint64_t pools[STRATA_OPEN_GRAPHS], none = 0;
    captured_open(&c, "strata");
    for (int i = 0; i <= STRATA_OPEN_GRAPHS; i++) streams[i] = rig_stream(&c.rig);
    for (int i = 0; i < STRATA_OPEN_GRAPHS; i++) {
        pools[i] = 0;
        ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, streams[i], &pools[i]));
    }
    EXPECT_STATUS(STRATA_E_LIMIT, strata_graph_pool_begin(c.rig.s, c.rig.gpu, streams[STRATA_OPEN_GRAPHS], &none));
    for (int i = 0; i < STRATA_OPEN_GRAPHS; i++) {
        EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, pools[i]));
        EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, pools[i]));
    }
    captured_close(&c);
}

TEST(graph_pools, a_capture_ends_before_its_pool) {
    captured_t c;
    captured_open(&c, "strata");
    captured_begin(&c);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* The pool is begun inside the capture, and nothing is asked of it there. */
TEST(graph_pools, a_capture_under_way_is_the_pools_from_its_begin) {
    captured_t c;
    captured_open(&c, "strata");
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    EXPECT_EQ(captured_pool(&c).graphs, 1);
    captured_end(&c);
    EXPECT_EQ(captured_pool(&c).graphs, 1);
    captured_destroy(&c);
    captured_close(&c);
}

/* What the first had freed serves the second. */
TEST(graph_pools, graphs_share_one) {
    captured_t c;
    captured_open(&c, "strata");
    strata_block_t first = capture_one(&c);
    strata_graph_t graph = c.graph;
    strata_block_t second = capture_one(&c);
    EXPECT_EQ(first.ptr, second.ptr);
    EXPECT_EQ(captured_pool(&c).graphs, 2);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graph));
    EXPECT_EQ(captured_pool(&c).graphs, 1);
    captured_launch(&c);
    EXPECT_TRUE(captured_is_spared(&c, &second));
    captured_destroy(&c);
    captured_close(&c);
}

/* A thousand pools, one after the other, take no more stacks than one. */
TEST(graph_pools, the_place_of_an_ended_one_serves_the_next) {
    captured_t c;
    captured_open(&c, "pytorch");
    for (int i = 0; i < 1000; i++) {
        c.pool = 0;
        (void)capture_one(&c);
        captured_destroy(&c);
    }
    EXPECT_LT(rig_domain(&c.rig)->stack_count, 10);
    captured_close(&c);
}

/* The regions of TensorFlow's allocator double; those of the next pool begin anew. */
TEST(graph_pools, the_next_one_is_no_larger_for_those_before_it) {
    captured_t c;
    uint64_t first = 0;
    captured_open(&c, "tensorflow");
    for (int i = 0; i < 20; i++) {
        c.pool = 0;
        (void)capture_one(&c);
        uint64_t reserved = captured_pool(&c).reserved_bytes;
        if (i == 0) first = reserved;
        EXPECT_EQ(reserved, first);
        captured_destroy(&c);
    }
    captured_close(&c);
}

/* The graph's pool has freed 40 MiB of the device's 64: a request outside gets them only after the graph. */
static void nobody_gets_it(const char *strategy) {
    captured_t c;
    captured_open_in(&c, strategy, 64 * MIB);
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, 40 * MIB), more;
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_end(&c);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(c.rig.s, c.rig.gpu, c.stream, 40 * MIB, &more));
    captured_launch(&c);
    captured_destroy(&c);
    EXPECT_OK(strata_allocate(c.rig.s, c.rig.gpu, c.stream, 40 * MIB, &more));
    EXPECT_OK(strata_free(c.rig.s, more.ref));
    captured_close(&c);
}

TEST(graph_pools, another_request_does_not_get_its_memory_when_there_is_no_more) { nobody_gets_it("strata"); }

typedef struct short_of {
    const char *name, *strategy;
} short_of_t;

static const short_of_t caches_short_of[] = {
    {"auto_growth", "stack: [auto_growth, system]"},
    {"own_reclaim", "stack: [auto_growth: {free_when_no_cache_hit: true}, system]"},
    {"caching", "stack: [caching, system]"},
    {"oversize", "stack: [caching: {max_split_size: 20MiB}, system]"},
    {"garbage", "stack: [caching: {memory_fraction: 0.9, garbage_collection_threshold: 0.1}, system]"},
    {"bfc", "stack: [bfc: {initial_region: 40MiB}, system]"},
    {"buffered", "stack: [buffered, system]"},
    {"naive_best_fit", "stack: [naive_best_fit: {initial: 40MiB, reallocate: 1MiB}, system]"},
    {"huge", "stack: [naive_best_fit: {initial: 1MiB, reallocate: 1MiB}, system]"},
};

/* Whoever needs memory inside the capture, what the graph may use stays. */
TEST_EACH(graph_pools, its_own_requests_do_not_take_what_the_graph_uses, short_of_t, caches_short_of) {
    captured_t c;
    strata_block_t more;
    captured_open_in(&c, row->strategy, 64 * MIB);
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, 36 * MIB);
    captured_work(&c, c.stream, &block);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(c.rig.s, c.rig.gpu, c.stream, 48 * MIB, &more));
    captured_end(&c);
    captured_launch(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* What the place's caches lend to others when there is no more, a graph's do not. */
TEST(graph_pools, caches_that_lend_do_not_lend_it) {
    nobody_gets_it("stack: [caching: {pools_on_oom: true}, system]\npools: {p: }");
}

TEST(graph_pools, a_forgotten_stream_leaves_it_as_it_is) {
    captured_t c;
    captured_open(&c, "strata");
    strata_stream_t stream = c.stream;
    c.stream = rig_stream(&c.rig);
    strata_block_t block = capture_one(&c);
    EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, c.stream));
    EXPECT_OK(strata_stream_destroy(c.rig.s, c.rig.gpu, c.stream));
    c.stream = stream;
    captured_launch(&c);
    EXPECT_TRUE(captured_is_spared(&c, &block));
    captured_launch(&c);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(graph_pools, neither_a_change_of_strategy_nor_close_takes_it_from_a_graph) {
    captured_t c;
    captured_open(&c, "strata");
    (void)capture_one(&c);
    strata_open_options_t options = {.struct_size = sizeof options, .preset = "pytorch"};
    EXPECT_STATUS(STRATA_E_BUSY, strata_change_strategy(c.rig.s, &options));
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(c.rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    captured_launch(&c);
    captured_destroy(&c);
    EXPECT_OK(strata_change_strategy(c.rig.s, &options));
    c.pool = 0;
    (void)capture_one(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* The device tells of the end of a graph whose facade is gone. */
TEST(graph_pools, a_graph_may_end_after_the_facade) {
    captured_t c;
    captured_open(&c, "strata");
    (void)capture_one(&c);
    strata_checker_end(c.checker);
    EXPECT_OK(strata_close(c.rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_OK(strata_device_graph_destroy(c.rig.devices[0], c.graph));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.stream));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.other));
    rig_end(&c.rig);
}

TEST(graph_pools, places_without_owners_and_stacks_without_caches_have_none) {
    captured_t c;
    captured_open(&c, "stack: [system]");
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    EXPECT_TRUE(strstr(strata_last_error()->text, "graph: {stack:") != NULL);
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_graph_pool_begin(c.rig.s, strata_pinned(), c.stream, &c.pool));
    EXPECT_EQ(c.pool, 0);
    captured_close(&c);
}

/* An option of named pools does nothing in a graph's, whose layers are those of the place as theirs are. */
TEST(graph_pools, its_blocks_are_split_where_those_of_a_named_pool_are_not) {
    captured_t c;
    captured_open(&c, "stack: [caching: {pool_no_split: true}, system]\npools: {p: }");
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, 4096);
    EXPECT_EQ(block.size, 4096);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* Nothing is captured on a device that is gone, so the pool ends. */
TEST(graph_pools, a_pool_of_a_lost_device_ends) {
    captured_t c;
    captured_open(&c, "strata");
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_capture_status, 1, false, STRATA_E_DEVICE_LOST));
    EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    strata_sim_clear_faults(c.rig.devices[0]);
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    captured_close(&c);
}

/* The device refuses to tell of the graph's end once; the next request asks for that again. */
TEST(graph_pools, a_refused_tie_of_a_graph_is_tried_again) {
    captured_t c;
    captured_open(&c, "strata");
    strata_block_t block = {.ref = 7};
    captured_begin(&c);
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_graph_on_destroy, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(c.rig.s, c.rig.gpu, c.stream, MIB, &block));
    EXPECT_EQ(captured_pool(&c).graphs, 0);
    block = rig_allocate(&c.rig, c.stream, MIB);
    EXPECT_EQ(captured_pool(&c).graphs, 1);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* A pool whose stream may still be captured stays begun. */
TEST(graph_pools, an_end_that_cannot_ask_the_device_is_refused) {
    captured_t c;
    captured_open(&c, "strata");
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_capture_status, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_TRUE(captured_pool(&c).begun);
    EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    captured_close(&c);
}

/* What is special where the driver itself has a graph's memory (cuda_malloc_async): it is there from a launch on, and the address is
 * anybody's once the graph is gone. */
#include "platform/host/host_memory.h"
#include "tests/graphs/graphs.h"

#define BYTES (1ull << 20)

typedef struct road {
    const char *name, *strategy;
} road_t;

static const road_t roads[] = {
    {"cuda_malloc_async", "cuda_malloc_async"},
    {"own_pool", "stack: [cuda_malloc_async: {pool: own}]"},
    {"stream_safe", "stack: [stream_safe, cuda_malloc_async]"},
};

static uint64_t kept(captured_t *c) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(c->rig.s, c->rig.gpu, &figures));
    return figures.deferred_bytes;
}

static uint64_t used(captured_t *c) {
    strata_sim_figures_t figures;
    strata_sim_figures(c->rig.devices[0], &figures);
    return figures.used_bytes;
}

static uint64_t calls(captured_t *c, strata_device_call_t call) { return rig_calls(&c->rig, call); }

static void give(captured_t *c, const strata_block_t *block) { EXPECT_OK(strata_free(c->rig.s, block->ref)); }

static void join(captured_t *c) { EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, c->other, c->stream)); }

static void join_back(captured_t *c) { EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, c->stream, c->other)); }

/* A block that the graph allocates and leaves. */
static strata_block_t capture_one(captured_t *c) {
    captured_begin(c);
    strata_block_t block = rig_allocate(&c->rig, c->stream, BYTES);
    captured_work(c, c->stream, &block);
    captured_end(c);
    return block;
}

/* ---- allocated inside ---- */

TEST(graph_driver, a_request_inside_is_a_node_and_so_is_its_free) {
    captured_t c;
    captured_open(&c, "cuda_malloc_async");
    captured_begin(&c);
    uint64_t asked = calls(&c, STRATA_CALL_malloc_async), freed = calls(&c, STRATA_CALL_free_async);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    captured_work(&c, c.stream, &block);
    give(&c, &block);
    EXPECT_EQ(calls(&c, STRATA_CALL_malloc_async) - asked, 1);
    EXPECT_EQ(calls(&c, STRATA_CALL_free_async) - freed, 1);
    EXPECT_EQ(calls(&c, STRATA_CALL_stream_create), 2);
    captured_end(&c);
    EXPECT_EQ(captured_pool(&c).reserved_bytes, 0);
    for (int i = 0; i < 3; i++) captured_launch(&c);
    captured_destroy(&c);
    EXPECT_EQ(calls(&c, STRATA_CALL_free), 0);
    EXPECT_EQ(used(&c), 0);
    captured_close(&c);
}

TEST_EACH(graph_driver, what_was_borrowed_inside_is_kept_until_the_graph_is_gone, road_t, roads) {
    captured_t c;
    captured_open(&c, row->strategy);
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    join(&c);
    EXPECT_OK(strata_record_stream(c.rig.s, block.ref, c.other));
    captured_work(&c, c.other, &block);
    give(&c, &block);
    join_back(&c);
    captured_end(&c);
    EXPECT_EQ(kept(&c), BYTES);
    EXPECT_EQ(rig_figures(&c.rig).reserved_bytes, BYTES);
    for (int i = 0; i < 3; i++) captured_launch(&c);
    EXPECT_EQ(calls(&c, STRATA_CALL_free), 0);
    EXPECT_OK(strata_validate(c.rig.s));
    captured_destroy(&c);
    EXPECT_EQ(calls(&c, STRATA_CALL_free), 1);
    EXPECT_EQ(kept(&c), 0);
    EXPECT_EQ(used(&c), 0);
    captured_close(&c);
}

TEST(graph_driver, a_borrow_that_is_taken_back_leaves_a_node) {
    captured_t c;
    captured_open(&c, "cuda_malloc_async");
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    join(&c);
    EXPECT_OK(strata_record_stream(c.rig.s, block.ref, c.other));
    captured_work(&c, c.other, &block);
    join_back(&c);
    EXPECT_OK(strata_erase_stream(c.rig.s, block.ref, c.other));
    give(&c, &block);
    EXPECT_EQ(kept(&c), 0);
    captured_end(&c);
    captured_launch(&c);
    captured_destroy(&c);
    EXPECT_EQ(calls(&c, STRATA_CALL_free), 0);
    captured_close(&c);
}

/* A node in a stream that has joined would have to be joined again. */
TEST_EACH(graph_driver, streams_that_joined_may_ask_and_free_after_they_were_joined_again, road_t, roads) {
    captured_t c;
    captured_open(&c, row->strategy);
    captured_begin(&c);
    join(&c);
    strata_block_t before = rig_allocate(&c.rig, c.other, BYTES);
    captured_work(&c, c.other, &before);
    join_back(&c);
    strata_block_t after = rig_allocate(&c.rig, c.other, BYTES);
    give(&c, &before);
    give(&c, &after);
    captured_end(&c);
    captured_launch(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* With a filter nobody knows which stream begins the capture. */
static bool is_every(strata_stream_t stream, void *context) {
    (void)context;
    return stream != NULL;
}

TEST(graph_driver, a_filter_gets_memory_outside_the_capture) {
    captured_t c;
    captured_open(&c, "cuda_malloc_async");
    ASSERT_OK(strata_graph_pool_begin_filtered(c.rig.s, c.rig.gpu, is_every, NULL, &c.pool));
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    captured_work(&c, c.stream, &block);
    give(&c, &block);
    captured_end(&c);
    EXPECT_EQ(kept(&c), BYTES);
    captured_launch(&c);
    captured_destroy(&c);
    EXPECT_EQ(kept(&c), 0);
    captured_close(&c);
}

/* ---- launches, and frees outside ---- */

TEST_EACH(graph_driver, a_graph_that_was_never_launched_leaves_nothing_to_free, road_t, roads) {
    captured_t c;
    captured_open(&c, row->strategy);
    for (int order = 0; order < 2; order++) {
        c.pool = 0;
        strata_block_t block = capture_one(&c);
        if (order) give(&c, &block);
        captured_destroy(&c);
        if (!order) give(&c, &block);
        size_t pools;
        EXPECT_OK(strata_graph_pools(c.rig.s, c.rig.gpu, NULL, 0, &pools));
        EXPECT_EQ(pools, 0);
        EXPECT_EQ(rig_figures(&c.rig).reserved_bytes, 0);
    }
    captured_close(&c);
}

TEST_EACH(graph_driver, freed_between_launches_it_goes_once_when_the_graph_is_gone, road_t, roads) {
    captured_t c;
    captured_open(&c, row->strategy);
    strata_block_t block = capture_one(&c);
    captured_launch(&c);
    give(&c, &block);
    EXPECT_EQ(kept(&c), BYTES);
    captured_launch(&c);
    captured_launch(&c);
    EXPECT_EQ(calls(&c, STRATA_CALL_free), 0);
    captured_destroy(&c);
    EXPECT_EQ(calls(&c, STRATA_CALL_free), 1);
    EXPECT_EQ(used(&c), 0);
    captured_close(&c);
}

TEST_EACH(graph_driver, a_block_outlives_its_graph_and_goes_with_its_free, road_t, roads) {
    captured_t c;
    captured_open(&c, row->strategy);
    strata_block_t block = capture_one(&c);
    captured_launch(&c);
    captured_destroy(&c);
    captured_work(&c, c.stream, &block);
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    EXPECT_EQ(captured_pool(&c).live_allocations, 1);
    EXPECT_EQ(captured_pool(&c).reserved_bytes, BYTES);
    give(&c, &block);
    size_t pools;
    EXPECT_OK(strata_graph_pools(c.rig.s, c.rig.gpu, NULL, 0, &pools));
    EXPECT_EQ(pools, 0);
    EXPECT_EQ(used(&c), 0);
    captured_close(&c);
}

/* On a device whose frees wait for nothing, as CUDA's while there are graphs. */
static void open_without_waits(captured_t *c, const char *strategy) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.free_waits = false;
    const strata_sim_options_t options = {.profile = &profile};
    memset(c, 0, sizeof *c);
    rig_open_on(&c->rig, rig_strategy(strategy, NULL, 0), &options, 0);
    c->rig.borrowed_strategy = false;
    ASSERT_OK(strata_checker_begin(c->rig.world, STRATA_CHECKER_LIFETIMES, &c->checker));
    c->stream = rig_stream(&c->rig);
    c->other = rig_stream(&c->rig);
}

/* The launch is still under way, in the order of another stream than the block's. */
TEST_EACH(graph_driver, a_launch_is_waited_for, road_t, roads) {
    captured_t c;
    open_without_waits(&c, row->strategy);
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    rig_work(&c.rig, c.stream, 50 * 1000 * 1000, block.ref);
    captured_end(&c);
    EXPECT_OK(strata_graph_launch(c.rig.s, c.rig.gpu, c.graph, c.other));
    uint64_t done = strata_sim_stream_end(c.rig.devices[0], c.other);
    give(&c, &block);
    EXPECT_LT(strata_sim_now(c.rig.world), done);
    captured_destroy(&c);
    EXPECT_EQ(calls(&c, STRATA_CALL_free), 1);
    EXPECT_GE(strata_sim_now(c.rig.world), done);
    captured_close(&c);
}

/* A node of the second graph would free the first one's memory, at each launch. */
TEST_EACH(graph_driver, what_an_earlier_capture_allocates_a_later_one_does_not_free, road_t, roads) {
    captured_t c;
    captured_open(&c, row->strategy);
    strata_block_t block = capture_one(&c);
    strata_graph_t first = c.graph;
    captured_begin(&c);
    captured_work(&c, c.stream, &block);
    give(&c, &block);
    captured_end(&c);
    EXPECT_EQ(kept(&c), BYTES);
    EXPECT_OK(strata_graph_launch(c.rig.s, c.rig.gpu, first, c.stream));
    captured_launch(&c);
    captured_launch(&c);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, first));
    captured_launch(&c);
    captured_destroy(&c);
    EXPECT_EQ(kept(&c), 0);
    captured_close(&c);
}

/* ---- an address that the driver gives away ---- */

/* A graph whose block keeps the driver's chunk, so that addresses are used again. */
static strata_block_t hold_a_chunk(captured_t *c, strata_graph_t *graph) {
    strata_block_t block = capture_one(c);
    captured_launch(c);
    *graph = c->graph;
    c->pool = 0;
    return block;
}

static void free_of_another_address(const road_t *road, bool broken) {
    captured_t c;
    captured_open(&c, road->strategy);
    strata_graph_t graph;
    strata_block_t first = hold_a_chunk(&c, &graph), gone, later;
    if (broken) {
        captured_begin(&c);
        gone = rig_allocate(&c.rig, c.stream, BYTES);
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_synchronise(c.rig.devices[0], c.stream));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &c.graph));
        EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
        EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    } else {
        gone = capture_one(&c);
        captured_destroy(&c);
    }
    c.pool = 0;
    later = capture_one(&c);
    EXPECT_EQ(later.ptr, gone.ptr);
    captured_launch(&c);
    give(&c, &gone);
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    EXPECT_EQ(calls(&c, STRATA_CALL_free), 0);
    captured_work(&c, c.stream, &later);
    captured_launch(&c);
    captured_destroy(&c);
    give(&c, &later);
    give(&c, &first);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graph));
    captured_close(&c);
}

TEST_EACH(graph_driver, who_has_the_address_of_a_dead_graph_keeps_it, road_t, roads) { free_of_another_address(row, false); }
TEST_EACH(graph_driver, who_has_the_address_of_a_broken_capture_keeps_it, road_t, roads) { free_of_another_address(row, true); }

/* ---- broken captures ---- */

TEST_EACH(graph_driver, a_capture_that_the_program_breaks_loses_nothing, road_t, roads) {
    captured_t c;
    captured_open(&c, row->strategy);
    strata_block_t outside = rig_allocate(&c.rig, c.stream, BYTES), blocks[4];
    captured_begin(&c);
    for (int i = 0; i < 3; i++) blocks[i] = rig_allocate(&c.rig, c.stream, BYTES);
    give(&c, &blocks[0]);
    give(&c, &outside);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_synchronise(c.rig.devices[0], c.stream));
    give(&c, &blocks[1]);
    blocks[3] = (strata_block_t){.ref = 0};
    if (strata_allocate(c.rig.s, c.rig.gpu, c.stream, BYTES, &blocks[3]) == STRATA_OK) give(&c, &blocks[3]);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &c.graph));
    EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    give(&c, &blocks[2]);
    captured_close(&c);
}

/* ---- beside captures ---- */

/* What a layer above lets go while the owner's stream is being captured. */
TEST(graph_driver, a_free_that_comes_due_inside_a_capture_is_put_off) {
    captured_t c;
    captured_open(&c, "stack: [stream_safe, cuda_malloc_async]");
    strata_pending_t pending;
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    EXPECT_OK(strata_record_stream(c.rig.s, block.ref, c.other));
    rig_work(&c.rig, c.other, 5 * 1000 * 1000, block.ref);
    give(&c, &block);
    captured_begin(&c);
    rig_advance(&c.rig, 10 * 1000 * 1000);
    (void)strata_domain_poll(rig_domain(&c.rig), &pending);
    EXPECT_EQ(kept(&c), BYTES);
    EXPECT_EQ(calls(&c, STRATA_CALL_free_async), 0);
    EXPECT_OK(strata_validate(c.rig.s));
    captured_end(&c);
    (void)strata_domain_poll(rig_domain(&c.rig), &pending);
    EXPECT_EQ(kept(&c), 0);
    EXPECT_EQ(calls(&c, STRATA_CALL_free_async), 1);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, c.graph));
    captured_close(&c);
}

/* Any use of the legacy stream would break the capture of a stream that is ordered with it. */
TEST(graph_driver, the_legacy_stream_is_left_alone_beside_a_blocking_capture) {
    captured_t c;
    captured_open(&c, "cuda_malloc_async");
    strata_stream_t stream = c.stream;
    strata_block_t own = rig_allocate(&c.rig, NULL, BYTES), lent = rig_allocate(&c.rig, c.other, BYTES), refused;
    EXPECT_OK(strata_record_stream(c.rig.s, lent.ref, NULL));
    ASSERT_OK(strata_device_stream_create(c.rig.devices[0], STRATA_STREAM_BLOCKING, 0, &c.stream));
    captured_begin(&c);
    give(&c, &own);
    give(&c, &lent);
    EXPECT_EQ(kept(&c), 2 * BYTES);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocate(c.rig.s, c.rig.gpu, NULL, BYTES, &refused));
    captured_end(&c);
    refused = rig_allocate(&c.rig, NULL, BYTES);
    EXPECT_EQ(kept(&c), 0);
    give(&c, &refused);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, c.graph));
    EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, c.stream));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.stream));
    c.stream = stream;
    captured_close(&c);
}

/* Nobody knows whether its graph uses the block. */
TEST(graph_driver, a_capture_that_nobody_announced_is_whole_after_a_free) {
    captured_t c;
    captured_open(&c, "cuda_malloc_async");
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES), refused;
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    give(&c, &block);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocate(c.rig.s, c.rig.gpu, c.stream, BYTES, &refused));
    ASSERT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &c.graph));
    EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, BYTES);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(graph_driver, no_pool_is_looked_at_and_no_device_waited_for_inside_a_capture) {
    static const strata_device_call_t forbidden[] = {STRATA_CALL_pool_get, STRATA_CALL_pool_set, STRATA_CALL_pool_trim,
                                                     STRATA_CALL_synchronise};
    captured_t c;
    uint64_t before[4];
    captured_open(&c, "cuda_malloc_async");
    strata_block_t block = rig_allocate(&c.rig, c.other, BYTES);
    give(&c, &block);
    captured_begin(&c);
    for (int i = 0; i < 4; i++) before[i] = calls(&c, forbidden[i]);
    block = rig_allocate(&c.rig, c.stream, BYTES);
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    EXPECT_OK(strata_trim(c.rig.s, c.rig.gpu, 0, NULL));
    give(&c, &block);
    for (int i = 0; i < 4; i++) EXPECT_EQ(calls(&c, forbidden[i]), before[i]);
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* ---- a cache over the driver's pool ---- */

/* Its chunks outlive a launch: the second graph uses what the first one, which is never launched, has freed. */
TEST(graph_driver, the_chunks_of_a_cache_are_no_graphs_memory) {
    captured_t c;
    captured_open(&c, "stack: [auto_growth, cuda_malloc_async]");
    strata_block_t first = capture_one(&c);
    strata_graph_t graph = c.graph;
    give(&c, &first);
    strata_block_t second = capture_one(&c);
    EXPECT_EQ(first.ptr, second.ptr);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graph));
    EXPECT_GE(used(&c), BYTES);
    captured_launch(&c);
    captured_destroy(&c);
    give(&c, &second);
    captured_close(&c);
}

/* ---- failures ---- */

/* A graph with a block that was borrowed and freed inside, one that is freed outside, and one that outlives it. */
static void end_with_fault(const road_t *road, uint64_t k, bool onward) {
    captured_t c;
    captured_open(&c, road->strategy);
    captured_begin(&c);
    strata_block_t lent = rig_allocate(&c.rig, c.stream, BYTES), freed = rig_allocate(&c.rig, c.stream, BYTES);
    strata_block_t live = rig_allocate(&c.rig, c.stream, BYTES);
    join(&c);
    EXPECT_OK(strata_record_stream(c.rig.s, lent.ref, c.other));
    join_back(&c);
    give(&c, &lent);
    captured_end(&c);
    captured_launch(&c);
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_DEVICE_CALLS, k, onward, STRATA_E_DEVICE));
    give(&c, &freed);
    bool destroyed = strata_graph_destroy(c.rig.s, c.rig.gpu, c.graph) == STRATA_OK;
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    give(&c, &live);
    EXPECT_OK(strata_step(c.rig.s));
    strata_sim_clear_faults(c.rig.devices[0]);
    EXPECT_OK(strata_validate(c.rig.s));
    if (!destroyed) captured_destroy(&c);
    captured_close(&c);
    if (strata_test_has_failed()) FAIL_TEST("so far with k = %llu, %s", (unsigned long long)k, onward ? "onward" : "once");
}

TEST_EACH(graph_driver, each_device_call_at_the_end_fails, road_t, roads) {
    for (uint64_t k = 1; k <= 40 && !strata_test_has_failed(); k++)
        for (int onward = 0; onward < 2 && !strata_test_has_failed(); onward++) end_with_fault(row, k, onward);
}

/* The free of the block inside fails, or what is asked for the free: it is kept. */
static void free_with_fault(strata_device_call_t call, uint64_t k) {
    captured_t c;
    captured_open(&c, "cuda_malloc_async");
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], call, k, false, STRATA_E_DEVICE));
    give(&c, &block);
    strata_sim_clear_faults(c.rig.devices[0]);
    EXPECT_LE(kept(&c), BYTES);
    captured_end(&c);
    EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, 0);
    captured_launch(&c);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(graph_driver, a_free_inside_that_fails_comes_after_the_graph) {
    free_with_fault(STRATA_CALL_free_async, 1);
    for (uint64_t k = 1; k < 6; k++) free_with_fault(STRATA_DEVICE_CALLS, k);
}

/* A request inside that fails after the driver has served it; then its way back fails too. */
static void allocate_with_fault(bool host, strata_device_call_t call, uint64_t k, bool onward) {
    captured_t c;
    captured_open(&c, "cuda_malloc_async");
    captured_begin(&c);
    strata_block_t first = rig_allocate(&c.rig, c.stream, BYTES), block = {.ref = 0};
    if (host) strata_host_fail_at(k, onward);
    else ASSERT_OK(strata_sim_fail(c.rig.devices[0], call, k, onward, STRATA_E_DEVICE));
    bool served = strata_allocate(c.rig.s, c.rig.gpu, c.stream, 600 * MIB, &block) == STRATA_OK;
    strata_host_fail_at(0, 0);
    strata_sim_clear_faults(c.rig.devices[0]);
    if (served) give(&c, &block);
    give(&c, &first);
    captured_end(&c);
    EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, 0);
    captured_launch(&c);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(graph_driver, a_request_inside_that_fails_leaves_nothing) {
    for (int onward = 0; onward < 2; onward++) {
        for (uint64_t k = 1; k < 12; k++) allocate_with_fault(false, STRATA_DEVICE_CALLS, k, onward);
        for (uint64_t k = 1; k < 6; k++) allocate_with_fault(true, 0, k, onward);
    }
}

/* ---- frees that a capture puts off ---- */

/* The stream could be drawn into the capture by another thread before the driver's free. */
TEST_EACH(graph_driver, beside_a_capture_no_stream_is_freed_on, road_t, roads) {
    captured_t c;
    captured_open(&c, row->strategy);
    strata_block_t outside = rig_allocate(&c.rig, c.other, BYTES);
    captured_begin(&c);
    give(&c, &outside);
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    EXPECT_EQ(kept(&c), BYTES);
    captured_end(&c);
    captured_destroy(&c);
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    EXPECT_EQ(kept(&c), 0);
    EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, 0);
    captured_close(&c);
}

/* The end of an announced capture is no end of one that nobody announced. */
TEST(graph_driver, a_free_is_put_off_until_the_last_capture_has_ended) {
    captured_t c;
    strata_handle_t graph;
    captured_open(&c, "cuda_malloc_async");
    strata_block_t outside = rig_allocate(&c.rig, c.other, BYTES);
    ASSERT_OK(strata_device_capture_begin(c.rig.devices[0], c.other, STRATA_CAPTURE_RELAXED));
    captured_begin(&c);
    give(&c, &outside);
    captured_end(&c);
    strata_block_t first = rig_allocate(&c.rig, c.stream, BYTES);
    EXPECT_EQ(kept(&c), BYTES);
    EXPECT_OK(strata_device_capture_end(c.rig.devices[0], c.other, &graph));
    EXPECT_OK(strata_device_graph_destroy(c.rig.devices[0], graph));
    strata_block_t second = rig_allocate(&c.rig, c.stream, BYTES);
    EXPECT_EQ(kept(&c), 0);
    EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, 0);
    give(&c, &first);
    give(&c, &second);
    captured_destroy(&c);
    captured_close(&c);
}

/* ---- the end ---- */

/* What another stream was refused, and the device did not take back then, goes back at the end. */
TEST_EACH(graph_driver, closed_by_force_what_could_not_go_back_goes_back, road_t, roads) {
    captured_t c;
    strata_block_t none;
    captured_open(&c, row->strategy);
    captured_begin(&c);
    join(&c);
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_stream_synchronise, 1, false, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_free_async, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(c.rig.s, c.rig.gpu, c.other, BYTES, &none));
    strata_sim_clear_faults(c.rig.devices[0]);
    EXPECT_EQ(kept(&c), BYTES);
    join_back(&c);
    captured_end(&c);
    strata_checker_end(c.checker);
    EXPECT_OK(strata_close(c.rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_OK(strata_device_graph_destroy(c.rig.devices[0], c.graph));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.stream));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.other));
    EXPECT_EQ(used(&c), 0);
    rig_end(&c.rig);
}

TEST_EACH(graph_driver, closed_by_force_the_place_has_everything_back, road_t, roads) {
    captured_t c;
    captured_open(&c, row->strategy);
    strata_block_t left = capture_one(&c);
    captured_launch(&c);
    c.pool = 0;
    strata_graph_t graph = c.graph;
    strata_block_t never = capture_one(&c);
    give(&c, &never);
    (void)left;
    strata_checker_end(c.checker);
    EXPECT_OK(strata_close(c.rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_OK(strata_device_graph_destroy(c.rig.devices[0], graph));
    EXPECT_OK(strata_device_graph_destroy(c.rig.devices[0], c.graph));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.stream));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.other));
    rig_end(&c.rig);
}

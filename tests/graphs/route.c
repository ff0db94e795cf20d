/* Whose a request is: the pool's, the ordinary stack's, or nobody's. */
#include "platform/host/host_memory.h"
#include "tests/graphs/graphs.h"

static uint64_t pool_of(captured_t *c, const strata_block_t *block) {
    uint64_t pool = 0;
    EXPECT_OK(strata_pool_of(c->rig.s, block->ref, &pool));
    return pool;
}

static strata_status_t ask(captured_t *c, strata_stream_t stream, uint64_t pool, strata_block_t *block) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 4096, .pool = pool};
    return strata_allocate_with(c->rig.s, c->rig.gpu, stream, &options, block);
}

static void give(captured_t *c, const strata_block_t *block) { EXPECT_OK(strata_free(c->rig.s, block->ref)); }

TEST(graph_route, requests_go_to_the_pool_from_begin_to_end) {
    captured_t c;
    captured_open(&c, "strata");
    strata_block_t warm = rig_allocate(&c.rig, c.stream, 4096), block;
    give(&c, &warm);
    captured_begin(&c);
    for (int i = 0; i < 3; i++) {
        block = rig_allocate(&c.rig, c.stream, 4096);
        EXPECT_EQ(pool_of(&c, &block), c.pool);
        EXPECT_NE(block.ptr, warm.ptr);
        give(&c, &block);
    }
    captured_end(&c);
    block = rig_allocate(&c.rig, c.stream, 4096);
    EXPECT_EQ(pool_of(&c, &block), STRATA_POOL_ORDINARY);
    EXPECT_EQ(block.ptr, warm.ptr);
    give(&c, &block);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(graph_route, an_allocator_of_the_stream_is_served_from_the_pool_meanwhile) {
    captured_t c;
    strata_allocator_t allocator;
    captured_open(&c, "strata");
    strata_block_t block;
    ASSERT_OK(strata_allocator_get(c.rig.s, c.rig.gpu, c.stream, 0, &allocator));
    ASSERT_OK(strata_allocator_allocate(allocator, 4096, &block));
    ASSERT_OK(strata_allocator_free(allocator, block.ref));
    captured_begin(&c);
    ASSERT_OK(strata_allocator_allocate(allocator, 4096, &block));
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    ASSERT_OK(strata_allocator_free(allocator, block.ref));
    captured_end(&c);
    ASSERT_OK(strata_allocator_allocate(allocator, 4096, &block));
    EXPECT_EQ(pool_of(&c, &block), STRATA_POOL_ORDINARY);
    ASSERT_OK(strata_allocator_free(allocator, block.ref));
    captured_destroy(&c);
    captured_close(&c);
}

/* It names the stack that it was obtained for; between captures that serves nobody. */
TEST(graph_route, an_allocator_of_a_pool_serves_captures_alone) {
    captured_t c;
    strata_allocator_t allocator;
    strata_block_t block;
    captured_open(&c, "strata");
    captured_begin(&c);
    ASSERT_OK(strata_allocator_get(c.rig.s, c.rig.gpu, c.stream, 0, &allocator));
    ASSERT_OK(strata_allocator_allocate(allocator, 4096, &block));
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    ASSERT_OK(strata_allocator_free(allocator, block.ref));
    captured_end(&c);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocator_allocate(allocator, 4096, &block));
    captured_begin(&c);
    ASSERT_OK(strata_allocator_allocate(allocator, 4096, &block));
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    ASSERT_OK(strata_allocator_free(allocator, block.ref));
    strata_graph_t first = c.graph;
    captured_end(&c);
    captured_destroy(&c);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, first));
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_allocate(allocator, 4096, &block));
    captured_close(&c);
}

TEST(graph_route, another_stream_goes_there_once_it_has_joined) {
    captured_t c;
    captured_open(&c, "pytorch");
    captured_begin(&c);
    strata_block_t before = rig_allocate(&c.rig, c.other, 4096);
    EXPECT_EQ(pool_of(&c, &before), STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.other, c.stream));
    strata_block_t joined = rig_allocate(&c.rig, c.other, 4096);
    EXPECT_EQ(pool_of(&c, &joined), c.pool);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.stream, c.other));
    captured_end(&c);
    strata_block_t after = rig_allocate(&c.rig, c.other, 4096);
    EXPECT_EQ(pool_of(&c, &after), STRATA_POOL_ORDINARY);
    give(&c, &before);
    give(&c, &joined);
    give(&c, &after);
    captured_destroy(&c);
    captured_close(&c);
}

/* The thread remembers where a stream's last request went. */
static void expect_ordinary_once_it_is_not_captured(const char *strategy, bool by_allocator) {
    captured_t c;
    strata_allocator_t allocator;
    strata_block_t joined, after;
    captured_open(&c, strategy);
    captured_begin(&c);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.other, c.stream));
    ASSERT_OK(strata_allocator_get(c.rig.s, c.rig.gpu, c.other, 0, &allocator));
    for (int i = 0; i < 2; i++) {
        if (by_allocator) ASSERT_OK(strata_allocator_allocate(allocator, 4096, &joined));
        else joined = rig_allocate(&c.rig, c.other, 4096);
        EXPECT_EQ(pool_of(&c, &joined), c.pool);
        captured_work(&c, c.other, &joined);
        give(&c, &joined);
    }
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.stream, c.other));
    EXPECT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &c.graph));
    if (by_allocator) EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocator_allocate(allocator, 4096, &after));
    after = rig_allocate(&c.rig, c.other, 4096);
    EXPECT_EQ(pool_of(&c, &after), STRATA_POOL_ORDINARY);
    give(&c, &after);
    ASSERT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    ASSERT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    captured_launch(&c);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(graph_route, a_stream_that_had_joined_is_served_elsewhere_once_the_capture_has_ended) {
    static const char *const presets[] = {"strata", "pytorch", "tensorflow", "paddle"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        expect_ordinary_once_it_is_not_captured(presets[i], false);
        expect_ordinary_once_it_is_not_captured(presets[i], true);
    }
}

static bool is_the_one(strata_stream_t stream, void *context) { return stream == *(strata_stream_t *)context; }

TEST(graph_route, a_filter_chooses) {
    captured_t c;
    captured_open(&c, "strata");
    ASSERT_OK(strata_graph_pool_begin_filtered(c.rig.s, c.rig.gpu, is_the_one, &c.other, &c.pool));
    strata_block_t mine = rig_allocate(&c.rig, c.other, 4096), others = rig_allocate(&c.rig, c.stream, 4096);
    EXPECT_EQ(pool_of(&c, &mine), c.pool);
    EXPECT_EQ(pool_of(&c, &others), STRATA_POOL_ORDINARY);
    give(&c, &mine);
    give(&c, &others);
    ASSERT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    ASSERT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    captured_close(&c);
}

/* With another pool begun every request of the place is asked about; with none those that grow a cache are. */
TEST(graph_route, a_capture_that_nobody_announced_is_refused) {
    captured_t c;
    captured_open(&c, "strata");
    strata_block_t block;
    EXPECT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.other));
    EXPECT_STATUS(STRATA_E_CAPTURE, ask(&c, c.other, 0, &block));
    EXPECT_TRUE(strstr(strata_last_error()->text, "strata_graph_pool_begin()") != NULL);
    EXPECT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.other, &c.graph));
    captured_destroy(&c);
    strata_block_t warm = rig_allocate(&c.rig, c.other, 4096);
    give(&c, &warm);
    captured_begin(&c);
    EXPECT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.other));
    EXPECT_STATUS(STRATA_E_CAPTURE, ask(&c, c.other, 0, &block));
    strata_graph_t other;
    EXPECT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.other, &other));
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, other));
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(graph_route, where_captures_are_checked_a_hit_is_refused_too) {
    strata_strategy_t *strategy = rig_strategy("strata", NULL, 0);
    strata_sim_options_t options = {.devices = 1};
    rig_t rig;
    rig_open_on(&rig, strategy, &options, STRATA_OPEN_CHECK_CAPTURES);
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t block = rig_allocate(&rig, stream, 4096);
    strata_allocator_t allocator;
    EXPECT_OK(strata_allocator_get(rig.s, rig.gpu, stream, 0, &allocator));
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_OK(strata_capture_begin(rig.s, rig.gpu, stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocate(rig.s, rig.gpu, stream, 4096, &block));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocator_allocate(allocator, 4096, &block));
    strata_graph_t graph;
    EXPECT_OK(strata_capture_end(rig.s, rig.gpu, stream, &graph));
    EXPECT_OK(strata_graph_destroy(rig.s, rig.gpu, graph));
    block = rig_allocate(&rig, stream, 4096);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, stream));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, stream));
    rig_close(&rig);
    strata_strategy_delete(strategy);
}

TEST(graph_route, a_request_names_no_other_pool_inside_and_no_pool_of_graphs_outside) {
    captured_t c;
    captured_open(&c, "stack: [auto_growth, system]\npools: {weights: {stack: [auto_growth, system]}}");
    uint64_t weights;
    strata_block_t block;
    ASSERT_OK(strata_pool(c.rig.s, "weights", &weights));
    captured_begin(&c);
    EXPECT_STATUS(STRATA_E_CAPTURE, ask(&c, c.stream, weights, &block));
    EXPECT_STATUS(STRATA_E_CAPTURE, ask(&c, c.stream, STRATA_POOL_ORDINARY, &block));
    EXPECT_STATUS(STRATA_E_CAPTURE, ask(&c, c.other, c.pool, &block));
    EXPECT_OK(ask(&c, c.stream, c.pool, &block));
    give(&c, &block);
    ASSERT_OK(strata_pool_begin(c.rig.s, c.rig.gpu, weights));
    EXPECT_OK(ask(&c, c.stream, 0, &block));
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    give(&c, &block);
    EXPECT_OK(ask(&c, c.other, 0, &block));
    EXPECT_EQ(pool_of(&c, &block), weights);
    give(&c, &block);
    ASSERT_OK(strata_pool_end(c.rig.s, c.rig.gpu));
    captured_end(&c);
    EXPECT_STATUS(STRATA_E_CAPTURE, ask(&c, c.stream, c.pool, &block));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool_begin(c.rig.s, c.rig.gpu, c.pool));
    captured_destroy(&c);
    captured_close(&c);
}

/* Another place's memory on the same stream: its graph would use it too. */
TEST(graph_route, a_captured_stream_asks_in_each_place_for_a_pool) {
    captured_t c;
    strata_block_t block;
    uint64_t managed = 0;
    captured_open(&c, "strata");
    strata_place_t place = strata_managed(0);
    captured_begin(&c);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocate(c.rig.s, place, c.stream, 4096, &block));
    EXPECT_OK(strata_graph_pool_begin(c.rig.s, place, c.stream, &managed));
    EXPECT_OK(strata_allocate(c.rig.s, place, c.stream, 4096, &block));
    EXPECT_EQ(pool_of(&c, &block), managed);
    give(&c, &block);
    captured_end(&c);
    EXPECT_OK(strata_graph_pool_end(c.rig.s, place, managed));
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, place, managed));
    captured_launch(&c);
    captured_destroy(&c);
    EXPECT_OK(strata_stream_forget(c.rig.s, place, c.stream));
    captured_close(&c);
}

/* Pinned memory has no owner stream: what a captured stream is given of it, or borrows, is the graph's too. */
TEST(graph_route, pinned_memory_of_a_captured_stream_is_the_graphs_too) {
    captured_t c;
    strata_block_t given, lent, freed_on, next;
    captured_open(&c, "strata");
    EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), NULL, 1 << 20, &lent));
    EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), NULL, 1 << 20, &freed_on));
    captured_begin(&c);
    EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), c.stream, 1 << 20, &given));
    EXPECT_OK(strata_record_stream(c.rig.s, lent.ref, c.stream));
    give(&c, &given);
    give(&c, &lent);
    EXPECT_OK(strata_free_on(c.rig.s, freed_on.ref, c.stream));
    captured_end(&c);
    EXPECT_EQ(captured_pool(&c).outside_blocks, 3);
    for (int i = 0; i < 8; i++) {
        EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), NULL, 1 << 20, &next));
        EXPECT_TRUE(next.ptr != given.ptr && next.ptr != lent.ptr && next.ptr != freed_on.ptr);
        give(&c, &next);
    }
    captured_destroy(&c);
    EXPECT_OK(strata_release(c.rig.s, strata_pinned(), NULL));
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(c.rig.s, strata_pinned(), &figures));
    EXPECT_EQ(figures.reserved_bytes + figures.quarantined_bytes, 0);
    captured_close(&c);
}

/* A free that nobody could note is one of two owners': the other's gives nothing away either. */
TEST(graph_route, what_a_graph_may_use_is_not_given_away_by_its_last_owner) {
    for (int owners = 1; owners <= 2; owners++) {
        captured_t c;
        captured_open(&c, "strata");
        strata_block_t block = rig_allocate(&c.rig, c.stream, 1 << 20);
        if (owners == 2) EXPECT_OK(strata_retain(c.rig.s, block.ref));
        captured_begin(&c);
        captured_work(&c, c.stream, &block);
        strata_host_fail_at(1, 1);
        give(&c, &block);
        strata_host_fail_at(0, 0);
        captured_end(&c);
        if (owners == 2) give(&c, &block);
        EXPECT_STATUS(STRATA_E_STALE, strata_free(c.rig.s, block.ref));
        EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, block.size);
        EXPECT_TRUE(captured_is_spared(&c, &block));
        captured_launch(&c);
        captured_destroy(&c);
        captured_close(&c);
    }
}

TEST(graph_route, a_graph_owns_as_many_blocks_from_outside_as_it_uses) {
    enum { BLOCKS = 40 };
    captured_t c;
    strata_block_t blocks[BLOCKS], next;
    captured_open(&c, "strata");
    for (int i = 0; i < BLOCKS; i++) EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), NULL, 4096, &blocks[i]));
    captured_begin(&c);
    for (int i = 0; i < BLOCKS; i++) EXPECT_OK(strata_free_on(c.rig.s, blocks[i].ref, c.stream));
    captured_end(&c);
    EXPECT_EQ(captured_pool(&c).outside_blocks, BLOCKS);
    EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), NULL, 4096, &next));
    for (int i = 0; i < BLOCKS; i++) EXPECT_NE(next.ptr, blocks[i].ptr);
    give(&c, &next);
    captured_destroy(&c);
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(c.rig.s, strata_pinned(), &figures));
    EXPECT_EQ(figures.live_allocations, 0);
    captured_close(&c);
}

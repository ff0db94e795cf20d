/* Paddle's own tests of captured graphs, written anew from what they assert: the graph test of stream_safe_cuda_alloc_test (SS), those
 * of test_cuda_graph (CG), and the counted pools of cuda_graph_with_memory_pool (MP). A fill cannot add: where the peer's kernel adds
 * one at each replay, here each replay writes its value over zeros. */
#include "tests/graphs/peers/peers.h"

/* Under the preset that follows the peer, and under the default. */
#define EACH_PRESET(test)                                                                                                          \
    static void test##_under(const char *preset);                                                                                  \
    TEST(peers_paddle_graphs, test) {                                                                                              \
        test##_under("paddle");                                                                                                    \
        test##_under("strata");                                                                                                    \
    }                                                                                                                              \
    static void test##_under(const char *preset)

/* SS::CUDAGraph. Streams have lent each other workspaces and freed them at once. Then two buffers are captured, one of them is lent to
 * a stream that is no part of the capture, and after ten replays both are freed before the graph is. */
EACH_PRESET(ss_cuda_graph) {
    enum { STREAMS = 64, WORKSPACE = 131072 * 4, REPLAYS = 10 };
    captured_t c;
    strata_stream_t streams[STREAMS];
    strata_block_t workspaces[STREAMS], results[STREAMS];
    peer_open(&c, preset, 2 * GIB, STRATA_CHECKER_LIFETIMES);
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = rig_stream(&c.rig);
        workspaces[i] = peer_made(&c, streams[i], WORKSPACE, 0);
        results[i] = peer_made(&c, streams[i], WORKSPACE, 0);
    }
    for (int i = STREAMS - 1; i >= 0; i--) {
        captured_work(&c, streams[i], &workspaces[i > 0 ? i - 1 : i]);
        peer_fill(&c, streams[i], &results[i], 2);
        peer_borrow(&c, &workspaces[i > 0 ? i - 1 : i], streams[i]);
        peer_free(&c, &workspaces[i]);
    }
    captured_begin(&c);
    strata_block_t data = rig_allocate(&c.rig, c.stream, WORKSPACE), result = rig_allocate(&c.rig, c.stream, WORKSPACE);
    peer_fill(&c, c.stream, &result, REPLAYS);
    captured_work(&c, c.stream, &data);
    peer_borrow(&c, &data, c.other);
    captured_end(&c);
    for (int i = 0; i < REPLAYS; i++) {
        peer_fill(&c, c.stream, &result, 0);
        peer_replay(&c, c.graph, c.stream);
        EXPECT_TRUE(peer_holds(&c, &result, REPLAYS));
    }
    peer_free(&c, &data);
    peer_free(&c, &result);
    captured_destroy(&c);
    for (int i = 0; i < STREAMS; i++) {
        EXPECT_TRUE(peer_holds(&c, &results[i], 2));
        peer_free(&c, &results[i]);
        peer_end_stream(&c, streams[i]);
    }
    captured_close(&c);
}

/* CG: an input and an in-place result from outside, and one from inside; the input changes between replays. */
EACH_PRESET(cg_cuda_graph_dynamic_graph) {
    captured_t c;
    peer_open(&c, preset, 0, STRATA_CHECKER_LIFETIMES);
    strata_block_t x = peer_made(&c, c.stream, 24, 1), z = peer_made(&c, c.stream, 24, 2);
    captured_begin(&c);
    strata_block_t y = peer_made(&c, c.stream, 24, 11), numel = peer_made(&c, c.stream, 8, 6);
    peer_fill(&c, c.stream, &z, 3);
    captured_end(&c);
    for (uint8_t i = 0; i < 10; i++) {
        strata_block_t x_new = peer_made(&c, c.stream, 24, i);
        peer_fill(&c, c.stream, &x, i);
        peer_fill(&c, c.stream, &z, 0);
        peer_replay(&c, c.graph, c.stream);
        EXPECT_TRUE(peer_holds(&c, &x, i) && peer_holds(&c, &x_new, i));
        EXPECT_TRUE(peer_holds(&c, &y, 11) && peer_holds(&c, &z, 3) && peer_holds(&c, &numel, 6));
        peer_free(&c, &x_new);
    }
    captured_destroy(&c);
    const strata_block_t *all[] = {&x, &y, &z, &numel};
    for (int i = 0; i < 4; i++) peer_free(&c, all[i]);
    captured_close(&c);
}

/* CG: one block from a hundred, and a hundred from it, all inside. */
EACH_PRESET(cg_concat_and_split) {
    enum { PARTS = 100 };
    captured_t c;
    strata_block_t parts[PARTS];
    peer_open(&c, preset, 0, STRATA_CHECKER_LIFETIMES);
    captured_begin(&c);
    strata_block_t whole = peer_made(&c, c.stream, PARTS * 4, 200);
    for (int i = 0; i < PARTS; i++) parts[i] = peer_made(&c, c.stream, 4, (uint8_t)i);
    captured_end(&c);
    captured_launch(&c);
    EXPECT_TRUE(peer_holds(&c, &whole, 200));
    for (int i = 0; i < PARTS; i++) EXPECT_TRUE(peer_holds(&c, &parts[i], (uint8_t)i));
    captured_destroy(&c);
    for (int i = 0; i < PARTS; i++) peer_free(&c, &parts[i]);
    peer_free(&c, &whole);
    captured_close(&c);
}

/* CG: each batch comes through a block of its own, outside, and is copied into the graph's input. */
EACH_PRESET(cg_dataloader) {
    captured_t c;
    peer_open(&c, preset, 0, STRATA_CHECKER_LIFETIMES);
    strata_block_t x = peer_made(&c, c.stream, 8, 0);
    captured_begin(&c);
    strata_block_t y = peer_made(&c, c.stream, 8, 77);
    captured_end(&c);
    for (uint8_t i = 0; i < 100; i++) {
        strata_block_t batch = peer_made(&c, c.other, 8, i);
        EXPECT_FALSE(rig_overlap(&batch, &y));
        peer_fill(&c, c.stream, &x, i);
        peer_replay(&c, c.graph, c.stream);
        EXPECT_TRUE(peer_holds(&c, &x, i) && peer_holds(&c, &y, 77) && peer_holds(&c, &batch, i));
        peer_free(&c, &batch);
    }
    captured_destroy(&c);
    peer_free(&c, &x);
    peer_free(&c, &y);
    captured_close(&c);
}

/* CG: the allocator of a device context, got before the capture, serves from the pool inside it. */
EACH_PRESET(cg_dev_ctx_alloc) {
    captured_t c;
    strata_allocator_t allocator;
    strata_block_t y;
    uint64_t pool = 0;
    peer_open(&c, preset, 0, STRATA_CHECKER_LIFETIMES);
    ASSERT_OK(strata_allocator_get(c.rig.s, c.rig.gpu, c.stream, 0, &allocator));
    captured_begin(&c);
    ASSERT_OK(strata_allocator_allocate(allocator, 2, &y));
    EXPECT_OK(strata_pool_of(c.rig.s, y.ref, &pool));
    EXPECT_EQ(pool, c.pool);
    captured_end(&c);
    captured_destroy(&c);
    peer_free(&c, &y);
    captured_close(&c);
}

/* ---- MP: pools that are prepared and removed by number, and counted ---- */

static void prepare(captured_t *c) {
    ASSERT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, c->stream, &c->pool));
    ASSERT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, c->pool));
}

static strata_status_t take_back(captured_t *c, uint64_t pool) { return strata_graph_pool_remove(c->rig.s, c->rig.gpu, pool); }

EACH_PRESET(mp_prepare_and_remove_are_counted) {
    captured_t c;
    peer_open(&c, preset, 0, STRATA_CHECKER_LIFETIMES);
    EXPECT_STATUS(STRATA_E_INVALID, take_back(&c, 12345));
    prepare(&c);
    uint64_t first = c.pool;
    c.pool = 0;
    prepare(&c);
    EXPECT_NE(c.pool, first);
    EXPECT_OK(take_back(&c, c.pool));
    c.pool = first;
    prepare(&c);
    EXPECT_EQ(captured_pool(&c).begins, 2);
    EXPECT_OK(take_back(&c, first));
    EXPECT_EQ(captured_pool(&c).begins, 1);
    EXPECT_OK(take_back(&c, first));
    EXPECT_STATUS(STRATA_E_STALE, take_back(&c, first));
    captured_close(&c);
}

/* A prepared pool keeps its memory when the graphs in it are gone; the last remove gives it back. */
EACH_PRESET(mp_a_prepared_pool_outlives_its_graphs) {
    captured_t c;
    peer_open(&c, preset, 0, STRATA_CHECKER_LIFETIMES);
    prepare(&c);
    void *address = NULL;
    for (int i = 0; i < 3; i++) {
        captured_begin(&c);
        strata_block_t block = peer_made(&c, c.stream, MIB, (uint8_t)i);
        EXPECT_TRUE(i == 0 || block.ptr == address);
        address = block.ptr;
        peer_free(&c, &block);
        captured_end(&c);
        captured_launch(&c);
        captured_destroy(&c);
        EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
        EXPECT_GE(captured_pool(&c).reserved_bytes, MIB);
    }
    EXPECT_OK(take_back(&c, c.pool));
    EXPECT_EQ(peer_reserved(&c), 0);
    captured_close(&c);
}

/* Two pools are begun at once, for two streams that are captured at once: each request goes to the pool of its own stream. */
EACH_PRESET(mp_pools_at_once) {
    enum { BLOCKS = 8 };
    captured_t c;
    strata_graph_t graphs[2];
    uint64_t pools[2] = {0, 0}, pool;
    strata_block_t blocks[2][BLOCKS];
    peer_open(&c, preset, 0, STRATA_CHECKER_LIFETIMES);
    const strata_stream_t streams[2] = {c.stream, c.other};
    for (int s = 0; s < 2; s++) {
        ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, streams[s], &pools[s]));
        ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, streams[s]));
    }
    for (int i = 0; i < 2 * BLOCKS; i++) {
        strata_block_t *block = &blocks[i % 2][i / 2];
        *block = peer_made(&c, streams[i % 2], (size_t)512 << i, (uint8_t)(100 * (i % 2) + i / 2));
        EXPECT_OK(strata_pool_of(c.rig.s, block->ref, &pool));
        EXPECT_EQ(pool, pools[i % 2]);
    }
    for (int s = 0; s < 2; s++) {
        ASSERT_OK(strata_capture_end(c.rig.s, c.rig.gpu, streams[s], &graphs[s]));
        ASSERT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, pools[s]));
        ASSERT_OK(take_back(&c, pools[s]));
    }
    for (int s = 0; s < 2; s++) peer_replay(&c, graphs[s], streams[s]);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < BLOCKS; i++) EXPECT_TRUE(peer_holds(&c, &blocks[s][i], (uint8_t)(100 * s + i)));
    for (int s = 0; s < 2; s++) {
        peer_destroy(&c, graphs[s]);
        for (int i = 0; i < BLOCKS; i++) peer_free(&c, &blocks[s][i]);
    }
    captured_close(&c);
}

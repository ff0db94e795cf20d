/* PyTorch's tests of blocks that several streams use, that are freed and asked for again in one capture (test/test_cuda.py), written
 * anew from what they assert; with the option that they are about, and without. */
#include "tests/graphs/peers/peers.h"

#define FLOATS(n) ((size_t)(n)*4)

static const char *const reuse[] = {"stack: [caching, system]", "stack: [caching: {reuse_in_capture: true}, system]"};

/* The other stream reads what this one has, and writes a block of its own. */
static strata_block_t forked(captured_t *c, strata_stream_t other, const strata_block_t *data) {
    peer_join(c, other, c->stream);
    strata_block_t own = peer_made(c, other, FLOATS(8), 2);
    peer_read(c, other, data);
    peer_borrow(c, data, other);
    return own;
}

static void close_captured(captured_t *c, const strata_block_t *const *blocks, size_t count) {
    captured_end(c);
    captured_launch(c);
    for (size_t i = 0; i < count; i++) peer_free(c, blocks[i]);
    captured_destroy(c);
}

/* A launch orders what the graph does; with two accesses that have no order a reuse would be too early. */
TEST(peers_pytorch_graphs, test_graph_capture_reclaim_2_streams) {
    for (int on = 0; on < 2; on++) {
        captured_t c;
        peer_open(&c, reuse[on], 0, STRATA_CHECKER_ALL);
        captured_begin(&c);
        strata_block_t sink = rig_allocate(&c.rig, c.stream, FLOATS(8)), data = peer_made(&c, c.stream, FLOATS(8), 1);
        strata_block_t own = forked(&c, c.other, &data);
        peer_free(&c, &data);
        strata_block_t before = peer_made(&c, c.stream, FLOATS(8), 3);
        EXPECT_NE(before.ptr, data.ptr);
        peer_join(&c, c.stream, c.other);
        peer_fill(&c, c.stream, &sink, 1);
        strata_block_t after = peer_made(&c, c.stream, FLOATS(8), 4);
        EXPECT_EQ(after.ptr == data.ptr, on);
        close_captured(&c, (const strata_block_t *const[]){&sink, &own, &before, &after}, 4);
        captured_close(&c);
    }
}

/* Two of the three borrowers have been joined by one way, the third by another; all of them only in the end. */
TEST(peers_pytorch_graphs, test_graph_capture_reclaim_4_streams) {
    for (int on = 0; on < 2; on++) {
        captured_t c;
        strata_block_t own[3];
        peer_open(&c, reuse[on], 0, STRATA_CHECKER_ALL);
        strata_stream_t others[3] = {c.other, rig_stream(&c.rig), rig_stream(&c.rig)};
        captured_begin(&c);
        strata_block_t data = peer_made(&c, c.stream, FLOATS(8), 1), sink = rig_allocate(&c.rig, c.stream, FLOATS(8)),
                       third = rig_allocate(&c.rig, c.stream, FLOATS(8));
        for (int i = 0; i < 3; i++) own[i] = forked(&c, others[i], &data);
        peer_free(&c, &data);
        peer_join(&c, c.stream, others[0]);
        peer_fill(&c, c.stream, &sink, 1);
        peer_join(&c, others[1], others[2]);
        peer_fill(&c, others[1], &third, 3);
        peer_borrow(&c, &third, others[1]);
        strata_block_t before = peer_made(&c, c.stream, FLOATS(8), 3);
        EXPECT_NE(before.ptr, data.ptr);
        peer_join(&c, c.stream, others[1]);
        peer_fill(&c, c.stream, &sink, 2);
        strata_block_t after = peer_made(&c, c.stream, FLOATS(8), 4);
        EXPECT_EQ(after.ptr == data.ptr, on);
        close_captured(&c, (const strata_block_t *const[]){&sink, &third, &own[0], &own[1], &own[2], &before, &after}, 7);
        for (int i = 1; i < 3; i++) peer_end_stream(&c, others[i]);
        captured_close(&c);
    }
}

/* What was lent and freed inside one capture serves the next one into the pool, once the capture is over. */
TEST(peers_pytorch_graphs, test_graph_capture_reclaim_shared_pool) {
    for (int on = 0; on < 2; on++) {
        captured_t c;
        peer_open(&c, reuse[on], 0, STRATA_CHECKER_ALL);
        captured_begin(&c);
        strata_block_t data = rig_allocate(&c.rig, c.stream, 8 * MIB);
        peer_join(&c, c.other, c.stream);
        peer_fill(&c, c.other, &data, 1);
        peer_borrow(&c, &data, c.other);
        peer_join(&c, c.stream, c.other);
        peer_free(&c, &data);
        captured_end(&c);
        EXPECT_OK(strata_device_synchronise(c.rig.devices[0]));
        strata_graph_t first = c.graph;
        captured_begin(&c);
        strata_block_t again = peer_made(&c, c.stream, 8 * MIB, 42);
        EXPECT_EQ(again.ptr, data.ptr);
        close_captured(&c, (const strata_block_t *const[]){&again}, 1);
        peer_destroy(&c, first);
        captured_close(&c);
    }
}

/* A block of one capture is lent between captures, to a stream that is busy, and freed inside the next one. */
TEST(peers_pytorch_graphs, test_graph_capture_pre_capture_stream_use) {
    enum { CAPTURES = 4, LONG = 50 * 1000 * 1000 };
    for (int on = 0; on < 2; on++) {
        captured_t c;
        strata_graph_t graphs[CAPTURES];
        strata_block_t made[CAPTURES];
        peer_open(&c, reuse[on], 0, STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(1));
        for (int i = 0; i < CAPTURES; i++) {
            if (i == 3) EXPECT_OK(strata_device_synchronise(c.rig.devices[0]));
            captured_begin(&c);
            if (i == 1) peer_free(&c, &made[0]);
            else made[i] = rig_allocate(&c.rig, c.stream, 8 * MIB);
            captured_end(&c);
            graphs[i] = c.graph;
            if (i == 0) EXPECT_OK(strata_stream_work(c.rig.s, c.rig.gpu, c.other, LONG, &made[0].ref, 1));
            if (i == 0) peer_borrow(&c, &made[0], c.other);
        }
        EXPECT_NE(made[2].ptr, made[0].ptr);
        EXPECT_EQ(made[3].ptr, made[0].ptr);
        for (int i = 2; i < CAPTURES; i++) peer_free(&c, &made[i]);
        for (int i = 0; i < CAPTURES; i++) peer_destroy(&c, graphs[i]);
        captured_close(&c);
    }
}

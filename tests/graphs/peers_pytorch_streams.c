/* PyTorch's tests of blocks that several streams use inside captures (test/test_cuda.py), written anew from what they assert. */
#include "tests/graphs/peers.h"

#define FLOATS(n) ((size_t)(n) * 4)

static void join(captured_t *c, strata_stream_t stream, strata_stream_t other) {
    EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, stream, other));
}

static void borrow(captured_t *c, const strata_block_t *block, strata_stream_t stream) {
    EXPECT_OK(strata_record_stream(c->rig.s, block->ref, stream));
}

static void end_stream(captured_t *c, strata_stream_t stream) {
    EXPECT_OK(strata_stream_forget(c->rig.s, c->rig.gpu, stream));
    EXPECT_OK(strata_stream_destroy(c->rig.s, c->rig.gpu, stream));
}

/* A block is freed while another stream works on it, and a capture begins: requests inside it ask for no event of a capture, and the
 * block that was lent inside it comes back after it. */
TEST(peers_pytorch_graphs, test_graph_record_stream) {
    captured_t c;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    strata_stream_t busy = rig_stream(&c.rig);
    strata_block_t problem = peer_made(&c, NULL, FLOATS(3), 0), b, dummy;
    borrow(&c, &problem, busy);
    EXPECT_OK(strata_stream_work(c.rig.s, c.rig.gpu, busy, 50 * 1000 * 1000, &problem.ref, 1));
    peer_free(&c, &problem);
    captured_begin(&c);
    b = peer_made(&c, c.stream, FLOATS(3), 0);
    join(&c, c.other, c.stream);
    peer_fill(&c, c.other, &b, 1);
    borrow(&c, &b, c.other);
    peer_free(&c, &b);
    join(&c, c.stream, c.other);
    captured_end(&c);
    EXPECT_EQ(rig_figures(&c.rig).deferred_frees, 2);
    EXPECT_OK(strata_device_synchronise(c.rig.devices[0]));
    dummy = rig_allocate(&c.rig, NULL, FLOATS(3));
    peer_free(&c, &dummy);
    strata_graph_t first = c.graph;
    captured_begin(&c);
    dummy = rig_allocate(&c.rig, c.stream, FLOATS(3));
    EXPECT_EQ(dummy.ptr, b.ptr);
    peer_free(&c, &dummy);
    captured_end(&c);
    EXPECT_EQ(rig_figures(&c.rig).deferred_bytes, 0);
    captured_destroy(&c);
    peer_destroy(&c, first);
    end_stream(&c, busy);
    captured_close(&c);
}

/* ---- blocks that are lent, freed and asked for again in one capture: whether the option is on ---- */

static const char *const reuse[] = {"stack: [caching, system]", "stack: [caching: {reuse_in_capture: true}, system]"};

/* The other stream reads what this one has, and writes a block of its own. */
static strata_block_t forked(captured_t *c, strata_stream_t other, const strata_block_t *data) {
    join(c, other, c->stream);
    strata_block_t own = peer_made(c, other, FLOATS(8), 2);
    captured_work(c, other, data);
    borrow(c, data, other);
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
        join(&c, c.stream, c.other);
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
        join(&c, c.stream, others[0]);
        peer_fill(&c, c.stream, &sink, 1);
        join(&c, others[1], others[2]);
        peer_fill(&c, others[1], &third, 3);
        borrow(&c, &third, others[1]);
        strata_block_t before = peer_made(&c, c.stream, FLOATS(8), 3);
        EXPECT_NE(before.ptr, data.ptr);
        join(&c, c.stream, others[1]);
        peer_fill(&c, c.stream, &sink, 2);
        strata_block_t after = peer_made(&c, c.stream, FLOATS(8), 4);
        EXPECT_EQ(after.ptr == data.ptr, on);
        close_captured(&c, (const strata_block_t *const[]){&sink, &third, &own[0], &own[1], &own[2], &before, &after}, 7);
        for (int i = 1; i < 3; i++) end_stream(&c, others[i]);
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
        join(&c, c.other, c.stream);
        peer_fill(&c, c.other, &data, 1);
        borrow(&c, &data, c.other);
        join(&c, c.stream, c.other);
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
            if (i == 0) borrow(&c, &made[0], c.other);
        }
        EXPECT_NE(made[2].ptr, made[0].ptr);
        EXPECT_EQ(made[3].ptr, made[0].ptr);
        for (int i = 2; i < CAPTURES; i++) peer_free(&c, &made[i]);
        for (int i = 0; i < CAPTURES; i++) peer_destroy(&c, graphs[i]);
        captured_close(&c);
    }
}

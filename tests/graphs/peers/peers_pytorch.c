/* PyTorch's own tests of captured graphs (test/test_cuda.py), written anew from what they assert: each has the peer's name. A graph's
 * pool is begun before its capture, as torch.cuda.graph() does; a CUDAGraph holds its pool until it is reset. */
#include "tests/graphs/peers/peers.h"

#define FLOATS(n)    ((size_t)(n)*4)
#define SMALL_BUFFER (2 * MIB) /* a segment of small blocks */
#define LARGE_BUFFER (20 * MIB)

TEST(peers_pytorch_graphs, test_graph_is_current_stream_capturing) {
    captured_t c;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    uint64_t pool = 0;
    for (int i = 0; i < 3; i++) {
        if (i == 1) captured_begin(&c);
        strata_block_t block = rig_allocate(&c.rig, c.stream, 4096);
        EXPECT_OK(strata_pool_of(c.rig.s, block.ref, &pool));
        EXPECT_EQ(pool, i == 1 ? c.pool : STRATA_POOL_ORDINARY);
        peer_free(&c, &block);
        if (i == 1) EXPECT_TRUE(captured_pool(&c).begun && captured_pool(&c).graphs == 1);
        if (i == 1) captured_end(&c);
    }
    EXPECT_FALSE(captured_pool(&c).begun);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(peers_pytorch_graphs, test_graph_capture_simple) {
    captured_t c;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    strata_block_t b = peer_made(&c, c.stream, FLOATS(1000), 2);
    for (uint8_t i = 3; i <= 11; i++) b = peer_made_of(&c, c.stream, b, FLOATS(1000), i);
    captured_end(&c);
    EXPECT_FALSE(peer_holds(&c, &b, 11));
    captured_launch(&c);
    EXPECT_TRUE(peer_holds(&c, &b, 11));
    captured_destroy(&c);
    peer_free(&c, &b);
    captured_close(&c);
}

/* The second capture writes and then drops what the first has left, in a pool of its own. */
TEST(peers_pytorch_graphs, test_graph_capture_reset_recapture) {
    captured_t c;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    captured_begin(&c);
    strata_block_t b = peer_made(&c, c.stream, FLOATS(1000), 1);
    for (uint8_t i = 2; i <= 11; i++) b = peer_made_of(&c, c.stream, b, FLOATS(1000), i);
    captured_end(&c);
    captured_launch(&c);
    EXPECT_TRUE(peer_holds(&c, &b, 11));
    captured_destroy(&c);
    c.pool = 0;
    captured_begin(&c);
    peer_fill(&c, c.stream, &b, 2);
    for (uint8_t i = 4; i <= 22; i += 2) b = peer_made_of(&c, c.stream, b, FLOATS(1000), i);
    captured_end(&c);
    captured_launch(&c);
    EXPECT_TRUE(peer_holds(&c, &b, 22));
    captured_destroy(&c);
    peer_free(&c, &b);
    captured_close(&c);
}

TEST(peers_pytorch_graphs, test_graph_capture_oom) {
    captured_t c;
    strata_block_t block;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    captured_begin(&c);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(c.rig.s, c.rig.gpu, c.stream, 1ull << 40, &block));
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* The peer's cublas asks for the same workspace in each of a hundred captures. */
TEST(peers_pytorch_graphs, test_repeat_graph_capture_cublas_workspace_memory) {
    captured_t c;
    strata_sim_figures_t first, last;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    for (int i = 0; i < 100; i++) {
        c.pool = 0;
        captured_begin(&c);
        strata_block_t workspace = peer_made(&c, c.stream, 8 * MIB, 1);
        peer_free(&c, &workspace);
        captured_end(&c);
        captured_launch(&c);
        if (i == 0) strata_sim_figures(c.rig.devices[0], &first);
        captured_destroy(&c);
    }
    strata_sim_figures(c.rig.devices[0], &last);
    EXPECT_LE(last.used_bytes, first.used_bytes);
    captured_close(&c);
}

/* ---- graphs that share a pool, or do not ---- */

enum { APART, BY_FIRST, BY_HANDLE, SHARES }; /* pools of their own; the first one's; one that the program holds before and after */

/* Begins a capture in the pool that the way of sharing says. */
static void begin_shared(captured_t *c, int share, bool first) {
    if (share == APART || (share == BY_FIRST && first)) c->pool = 0;
    if (share == BY_HANDLE && first) {
        c->pool = 0;
        ASSERT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, c->stream, &c->pool));
        ASSERT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, c->pool));
    }
    captured_begin(c);
}

static void let_go_of_handle(captured_t *c, int share) {
    if (share == BY_HANDLE) EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, c->pool));
}

static strata_graph_t end_shared(captured_t *c) {
    captured_end(c);
    return c->graph;
}

/* What is reserved while both graphs exist. */
static uint64_t two_successive(int share) {
    captured_t c;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    begin_shared(&c, share, true);
    strata_block_t b = peer_made(&c, c.stream, FLOATS(1000), 1), eager;
    for (uint8_t i = 2; i <= 6; i++) b = peer_made_with_temps(&c, c.stream, b, FLOATS(1000), i);
    strata_graph_t first = end_shared(&c);
    begin_shared(&c, share, false);
    for (uint8_t i = 7; i <= 11; i++) b = peer_made_with_temps(&c, c.stream, b, FLOATS(1000), i);
    strata_graph_t second = end_shared(&c);
    eager = peer_made(&c, c.other, FLOATS(1000), 100);
    for (uint8_t i = 1; i <= 6; i++) {
        eager = peer_made_with_temps(&c, c.other, eager, FLOATS(1000), (uint8_t)(100 + i));
        if (i % 2 == 0 && i < 6) peer_replay(&c, i == 2 ? first : second, c.stream);
    }
    EXPECT_TRUE(peer_holds(&c, &b, 11));
    EXPECT_TRUE(peer_holds(&c, &eager, 106));
    uint64_t reserved = peer_reserved(&c);
    peer_destroy(&c, first);
    peer_destroy(&c, second);
    peer_free(&c, &b);
    peer_free(&c, &eager);
    let_go_of_handle(&c, share);
    captured_close(&c);
    return reserved;
}

TEST(peers_pytorch_graphs, test_graph_two_successive) {
    uint64_t apart = two_successive(APART);
    EXPECT_EQ(apart - two_successive(BY_FIRST), SMALL_BUFFER);
    EXPECT_EQ(apart - two_successive(BY_HANDLE), SMALL_BUFFER);
}

/* Whether the checker finds that replays on two streams at once use the same memory. */
static bool concurrent_replays_race(int share) {
    enum { SIZE = FLOATS(1000000) };
    captured_t c;
    strata_graph_t graphs[2];
    strata_block_t results[2];
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_RULE(1));
    for (int g = 0; g < 2; g++) {
        begin_shared(&c, share, g == 0);
        results[g] = peer_made(&c, c.stream, SIZE, 1);
        for (uint8_t i = 2; i <= 6; i++) results[g] = peer_made_with_temps(&c, c.stream, results[g], SIZE, (uint8_t)(i + 100 * g));
        graphs[g] = end_shared(&c);
    }
    EXPECT_EQ(strata_checker_hazards(c.checker), 0);
    peer_replay(&c, graphs[0], c.stream);
    peer_replay(&c, graphs[1], c.other);
    for (int g = 0; g < 2; g++) EXPECT_TRUE(peer_holds(&c, &results[g], (uint8_t)(6 + 100 * g)));
    bool race = strata_checker_hazards_of(c.checker, STRATA_HAZARD_RACE) > 0;
    for (int g = 0; g < 2; g++) peer_destroy(&c, graphs[g]);
    for (int g = 0; g < 2; g++) peer_free(&c, &results[g]);
    let_go_of_handle(&c, share);
    peer_close_raced(&c);
    return race;
}

TEST(peers_pytorch_graphs, test_graph_concurrent_replay) {
    EXPECT_FALSE(concurrent_replays_race(APART));
    EXPECT_TRUE(concurrent_replays_race(BY_FIRST));
    EXPECT_TRUE(concurrent_replays_race(BY_HANDLE));
}

/* The third graph has the memory of what the second has dropped, if they share. Replayed before the second one it spoils what that
 * reads. */
static void three_successive(int share) {
    captured_t c;
    strata_graph_t graphs[3];
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    begin_shared(&c, share, true);
    strata_block_t b = peer_made(&c, c.stream, FLOATS(1000), 1);
    strata_block_t made = peer_made(&c, c.stream, FLOATS(1000), 2), d = peer_made(&c, c.stream, FLOATS(1000), 3);
    graphs[0] = end_shared(&c);
    begin_shared(&c, share, false);
    strata_block_t e = peer_made_of(&c, c.stream, made, FLOATS(1000), 5);
    graphs[1] = end_shared(&c);
    begin_shared(&c, share, false);
    strata_block_t f = peer_made(&c, c.stream, FLOATS(1000), 7);
    graphs[2] = end_shared(&c);
    EXPECT_EQ(f.ptr == made.ptr, share != APART);
    for (int g = 0; g < 3; g++) peer_replay(&c, graphs[g], c.stream);
    EXPECT_TRUE(peer_holds(&c, &e, 5));
    EXPECT_TRUE(peer_holds(&c, &f, 7));
    peer_replay(&c, graphs[0], c.stream);
    peer_replay(&c, graphs[2], c.stream);
    EXPECT_TRUE(peer_holds(&c, &made, share == APART ? 2 : 7));
    for (int g = 0; g < 3; g++) peer_destroy(&c, graphs[g]);
    const strata_block_t *all[] = {&b, &d, &e, &f};
    for (int i = 0; i < 4; i++) peer_free(&c, all[i]);
    let_go_of_handle(&c, share);
    captured_close(&c);
}

TEST(peers_pytorch_graphs, test_graph_three_successive) {
    for (int share = APART; share < SHARES; share++) three_successive(share);
}

/* The pool is held by the program, the results of all graphs stay live, and each replay writes its own. */
TEST(peers_pytorch_graphs, test_graph_make_graphed_callables_same_pool) {
    enum { MODELS = 3 };
    captured_t c;
    strata_graph_t graphs[MODELS];
    strata_block_t outputs[MODELS];
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    for (int g = 0; g < MODELS; g++) {
        begin_shared(&c, BY_HANDLE, g == 0);
        strata_block_t hidden = peer_made(&c, c.stream, 64 * 128 * 4, 99);
        outputs[g] = peer_made_of(&c, c.stream, hidden, 64 * 32 * 4, (uint8_t)(g + 1));
        graphs[g] = end_shared(&c);
    }
    for (int g = MODELS; g-- > 0;) peer_replay(&c, graphs[g], c.stream);
    for (int g = 0; g < MODELS; g++) {
        for (int other = 0; other < g; other++) EXPECT_FALSE(rig_overlap(&outputs[g], &outputs[other]));
        peer_replay(&c, graphs[g], c.stream);
        EXPECT_TRUE(peer_holds(&c, &outputs[g], (uint8_t)(g + 1)));
        peer_destroy(&c, graphs[g]);
        peer_free(&c, &outputs[g]);
    }
    let_go_of_handle(&c, BY_HANDLE);
    captured_close(&c);
}

/* ---- several streams ---- */

/* A block is freed while another stream works on it, and a capture begins: requests inside it ask for no event of a capture, and the
 * block that was lent inside it comes back after it. */
TEST(peers_pytorch_graphs, test_graph_record_stream) {
    captured_t c;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    strata_stream_t busy = rig_stream(&c.rig);
    strata_block_t problem = peer_made(&c, NULL, FLOATS(3), 0), b, dummy;
    peer_borrow(&c, &problem, busy);
    EXPECT_OK(strata_stream_work(c.rig.s, c.rig.gpu, busy, 50 * 1000 * 1000, &problem.ref, 1));
    peer_free(&c, &problem);
    captured_begin(&c);
    b = peer_made(&c, c.stream, FLOATS(3), 0);
    peer_join(&c, c.other, c.stream);
    peer_fill(&c, c.other, &b, 1);
    peer_borrow(&c, &b, c.other);
    peer_free(&c, &b);
    peer_join(&c, c.stream, c.other);
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
    peer_end_stream(&c, busy);
    captured_close(&c);
}

/* ---- figures ---- */

typedef struct sized {
    size_t size;
    uint64_t segments, reserved, reserved_after;
} sized_t;

static const sized_t sizes[] = {
    {512, 1, SMALL_BUFFER, SMALL_BUFFER},        {MIB, 2, 2 * SMALL_BUFFER, SMALL_BUFFER},
    {MIB + 512, 1, LARGE_BUFFER, LARGE_BUFFER},  {10 * MIB - 512, 2, 2 * LARGE_BUFFER, LARGE_BUFFER},
    {10 * MIB + 512, 3, 3 * 12 * MIB, 12 * MIB},
};

/* Of the pool: at first with a replay before and one after a release, then without the graph. */
static void expect_pool(captured_t *c, uint64_t segments, uint64_t reserved, size_t size) {
    strata_graph_pool_info_t info = captured_pool(c);
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_pool(c->rig.s, c->rig.gpu, c->pool, &figures));
    EXPECT_EQ(figures.chunks, segments);
    EXPECT_EQ(info.reserved_bytes, reserved);
    EXPECT_EQ(info.live_allocations, 1);
    EXPECT_EQ(info.allocated_bytes, size);
}

static void memory_stats(const sized_t *row) {
    captured_t c;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    captured_begin(&c);
    strata_block_t b = peer_made(&c, c.stream, row->size, 1);
    for (uint8_t i = 2; i <= 6; i++) {
        strata_block_t copy = peer_made(&c, c.stream, row->size, 0xee), sum = peer_made(&c, c.stream, row->size, i);
        peer_free(&c, &copy);
        peer_free(&c, &b);
        b = sum;
    }
    captured_end(&c);
    for (int i = 0; i < 2; i++) {
        expect_pool(&c, row->segments, row->reserved, row->size);
        captured_launch(&c);
        EXPECT_TRUE(peer_holds(&c, &b, 6));
        if (i == 0) EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    }
    captured_destroy(&c);
    EXPECT_TRUE(peer_holds(&c, &b, 6));
    expect_pool(&c, 1, row->reserved_after, row->size);
    peer_free(&c, &b);
    captured_close(&c);
}

TEST(peers_pytorch_graphs, test_graph_memory_stats_and_use_result_after_destroy_graph) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) memory_stats(&sizes[i]);
}

/* Each graph has two blocks of 512 bytes for each generator, which go with it. */
static void stats_of_generators(captured_t *c, uint32_t graphs, uint32_t generators) {
    enum { MOST = 10, EACH = 2 * 20 };
    strata_graph_t made[MOST];
    strata_block_t states[MOST][EACH];
    strata_statistics_t before = rig_figures(&c->rig), with;
    for (uint32_t g = 0; g < graphs; g++) {
        c->pool = 0;
        captured_begin(c);
        for (uint32_t i = 0; i < 2 * generators; i++) states[g][i] = peer_made(c, c->stream, 512, 1);
        captured_end(c);
        captured_launch(c);
        made[g] = c->graph;
    }
    with = rig_figures(&c->rig);
    EXPECT_EQ(with.live_allocations - before.live_allocations, 2 * graphs * generators);
    EXPECT_EQ(with.allocated_bytes - before.allocated_bytes, 2 * 512 * graphs * generators);
    for (uint32_t g = 0; g < graphs; g++) {
        peer_destroy(c, made[g]);
        for (uint32_t i = 0; i < 2 * generators; i++) peer_free(c, &states[g][i]);
    }
    EXPECT_OK(strata_release(c->rig.s, c->rig.gpu, NULL));
    with = rig_figures(&c->rig);
    EXPECT_EQ(with.live_allocations, before.live_allocations);
    EXPECT_EQ(with.reserved_bytes, before.reserved_bytes);
}

TEST(peers_pytorch_graphs, test_memory_stats_of_multiple_generators_and_graphs) {
    captured_t c;
    peer_open(&c, "pytorch", 0, STRATA_CHECKER_LIFETIMES);
    stats_of_generators(&c, 1, 1);
    stats_of_generators(&c, 3, 2);
    stats_of_generators(&c, 10, 20);
    captured_close(&c);
}

/* Captured graphs: what they use is paused with its contents, and they are launched again after it. */
#include "tests/pause/pause.h"

typedef struct graphed {
    rig_t rig;
    strata_stream_t stream;
    uint64_t pool;
    strata_graph_t graph;
    strata_block_t inside; /* of the graph's pool: it writes `byte` to the second half of it at each launch */
} graphed_t;

static void graph_open(graphed_t *g, const char *strategy) {
    *g = (graphed_t){0};
    pause_open(&g->rig, strategy);
    g->stream = rig_stream(&g->rig);
}

static void graph_begin(graphed_t *g) {
    EXPECT_OK(strata_graph_pool_begin(g->rig.s, g->rig.gpu, g->stream, &g->pool));
    EXPECT_OK(strata_capture_begin(g->rig.s, g->rig.gpu, g->stream));
}

static void graph_end(graphed_t *g) {
    EXPECT_OK(strata_capture_end(g->rig.s, g->rig.gpu, g->stream, &g->graph));
    EXPECT_OK(strata_graph_pool_end(g->rig.s, g->rig.gpu, g->pool));
    EXPECT_OK(strata_graph_pool_remove(g->rig.s, g->rig.gpu, g->pool));
}

static void graph_capture(graphed_t *g, uint8_t byte) {
    graph_begin(g);
    g->inside = rig_allocate(&g->rig, g->stream, 6 * MIB);
    EXPECT_OK(strata_device_fill(g->rig.devices[0], (uintptr_t)g->inside.ptr + 3 * MIB, byte, 3 * MIB, g->stream));
    graph_end(g);
}

static strata_status_t graph_launch(graphed_t *g) {
    strata_status_t status = strata_graph_launch(g->rig.s, g->rig.gpu, g->graph, g->stream);
    if (status == STRATA_OK) EXPECT_OK(strata_stream_synchronize(g->rig.s, g->rig.gpu, g->stream));
    return status;
}

static void graph_close(graphed_t *g) {
    if (g->graph) EXPECT_OK(strata_graph_destroy(g->rig.s, g->rig.gpu, g->graph));
    rig_finish(&g->rig);
}
#define GRAPHED(g, strategy) OPENED(graphed_t, g, graph_close, graph_open(&g, strategy))

static bool graph_is_right(graphed_t *g, uint8_t kept, uint8_t written) {
    const uint8_t *bytes = pause_bytes(&g->rig, &g->inside);
    return bytes && bytes[0] == kept && bytes[3 * MIB - 1] == kept && bytes[3 * MIB] == written && bytes[6 * MIB - 1] == written;
}

TEST(pause_graphs, a_graph_is_launched_again) {
    for (uint32_t contents = STRATA_PAUSE_PINNED; contents <= STRATA_PAUSE_FILE; contents++) {
        GRAPHED(g, PAUSE_MOVING);
        graph_capture(&g, 5);
        memset(pause_bytes(&g.rig, &g.inside), 9, 6 * MIB);
        EXPECT_OK(graph_launch(&g));
        EXPECT_TRUE(graph_is_right(&g, 9, 5));
        for (uint64_t pool = g.pool; pool; pool = pool == STRATA_POOL_EVERY ? 0 : STRATA_POOL_EVERY) {
            EXPECT_GE(pause_do(&g.rig, pool, contents).kept_bytes, 6 * MIB);
            EXPECT_STATUS(STRATA_E_BUSY, graph_launch(&g));
            resume_do(&g.rig, pool);
            EXPECT_TRUE(graph_is_right(&g, 9, 5));
            memset(pause_bytes(&g.rig, &g.inside) + 3 * MIB, 0, 3 * MIB);
            EXPECT_OK(graph_launch(&g));
            EXPECT_TRUE(graph_is_right(&g, 9, 5));
        }
    }
}

/* What the capture freed is idle, and the graph writes there: it is kept too. */
TEST(pause_graphs, idle_memory_of_a_graph_comes_back) {
    GRAPHED(g, PAUSE_MOVING);
    graph_capture(&g, 5);
    memset(pause_bytes(&g.rig, &g.inside), 9, 6 * MIB);
    EXPECT_OK(strata_free(g.rig.s, g.inside.ref));
    EXPECT_GE(pause_do(&g.rig, g.pool, STRATA_PAUSE_PINNED).kept_bytes, 6 * MIB);
    EXPECT_EQ(rig_figures(&g.rig).reserved_bytes, 0);
    resume_do(&g.rig, g.pool);
    EXPECT_OK(graph_launch(&g));
    EXPECT_TRUE(graph_is_right(&g, 9, 5));
}

TEST(pause_graphs, contents_that_a_graph_uses_are_not_dropped) {
    GRAPHED(g, PAUSE_MOVING);
    graph_capture(&g, 5);
    EXPECT_STATUS(STRATA_E_BUSY, pause_try(&g.rig, g.pool, NULL, STRATA_PAUSE_DROP, NULL));
    EXPECT_STATUS(STRATA_E_BUSY, pause_try(&g.rig, STRATA_POOL_EVERY, NULL, STRATA_PAUSE_DROP, NULL));
    EXPECT_EQ(rig_figures(&g.rig).paused_bytes, 0);
    EXPECT_OK(rig_try(&g.rig, NULL, 100));
    EXPECT_OK(graph_launch(&g));
}

/* One of the block's two handles is shared with a block that stays. Without the other one the graph would lose a part of its memory. */
TEST(pause_graphs, nor_a_part_of_a_block_from_outside) {
    for (int first = 0; first < 2; first++) {
        GRAPHED(g, "stack: [stream_safe, best_fit_vmm: {handle: 2MiB}, vmm]\n"
                   "graph: {stack: [auto_growth: {chunk_size: 8MiB}, vmm]}\n");
        if (first) (void)rig_allocate_tagged(&g.rig, g.stream, MIB, "stays");
        strata_block_t used = rig_allocate_tagged(&g.rig, g.stream, 3 * MIB, "used");
        if (!first) (void)rig_allocate_tagged(&g.rig, g.stream, MIB, "stays");
        EXPECT_EQ(rig_figures(&g.rig).reserved_bytes, 4 * MIB);
        graph_begin(&g);
        EXPECT_OK(strata_device_fill(g.rig.devices[0], (uintptr_t)used.ptr, 3, used.size, g.stream));
        EXPECT_OK(strata_free_on(g.rig.s, used.ref, g.stream));
        graph_end(&g);
        EXPECT_STATUS(STRATA_E_BUSY, pause_try(&g.rig, STRATA_POOL_ORDINARY, "used", STRATA_PAUSE_DROP, NULL));
        EXPECT_EQ(rig_figures(&g.rig).paused_bytes, 0);
        EXPECT_OK(graph_launch(&g));
    }
}

/* A block from outside that the capture has freed is the graph's: it is not dropped, and its neighbours of another tag are. */
TEST(pause_graphs, nor_those_of_a_block_from_outside) {
    GRAPHED(g,
            "stack: [stream_safe, auto_growth: {chunk_size: 4MiB}, vmm]\ngraph: {stack: [auto_growth: {chunk_size: 8MiB}, vmm]}\n");
    strata_block_t used = rig_allocate_tagged(&g.rig, g.stream, 4 * MIB, "used");
    (void)rig_allocate_tagged(&g.rig, g.stream, 4 * MIB, "free");
    graph_begin(&g);
    EXPECT_OK(strata_device_fill(g.rig.devices[0], (uintptr_t)used.ptr, 3, used.size, g.stream));
    EXPECT_OK(strata_free_on(g.rig.s, used.ref, g.stream));
    graph_end(&g);
    pause_write(&g.rig, &used, 8);
    EXPECT_STATUS(STRATA_E_BUSY, pause_try(&g.rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_DROP, NULL));
    EXPECT_STATUS(STRATA_E_BUSY, pause_try(&g.rig, STRATA_POOL_ORDINARY, "used", STRATA_PAUSE_DROP, NULL));
    EXPECT_OK(pause_try(&g.rig, STRATA_POOL_ORDINARY, "free", STRATA_PAUSE_DROP, NULL));
    resume_do(&g.rig, STRATA_POOL_ORDINARY);
    EXPECT_TRUE(pause_holds(&g.rig, &used, 8));
    EXPECT_GE(pause_do(&g.rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED).kept_bytes, 4 * MIB);
    resume_do(&g.rig, STRATA_POOL_ORDINARY);
    EXPECT_TRUE(pause_holds(&g.rig, &used, 8));
    EXPECT_OK(graph_launch(&g));
}

TEST(pause_graphs, nothing_is_paused_while_a_pool_is_begun) {
    GRAPHED(g, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&g.rig, NULL, 5 * MIB);
    pause_write(&g.rig, &a, 2);
    graph_begin(&g);
    EXPECT_STATUS(STRATA_E_CAPTURE, pause_try(&g.rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_PINNED, NULL));
    graph_end(&g);
    EXPECT_TRUE(pause_holds(&g.rig, &a, 2));
    EXPECT_OK(rig_try(&g.rig, NULL, 100));
}

TEST(pause_graphs, a_paused_pool_is_not_begun_and_not_set_back) {
    GRAPHED(g, PAUSE_MOVING);
    graph_capture(&g, 5);
    strata_checkpoint_t checkpoint;
    EXPECT_OK(strata_graph_pool_checkpoint(g.rig.s, g.rig.gpu, g.pool, &checkpoint));
    pause_do(&g.rig, g.pool, STRATA_PAUSE_PINNED);
    uint64_t pool = g.pool, fresh = 0;
    EXPECT_STATUS(STRATA_E_BUSY, strata_graph_pool_begin(g.rig.s, g.rig.gpu, g.stream, &pool));
    EXPECT_STATUS(STRATA_E_BUSY, strata_graph_pool_restore(g.rig.s, g.rig.gpu, checkpoint, NULL, NULL));
    EXPECT_OK(strata_graph_pool_begin(g.rig.s, g.rig.gpu, g.stream, &fresh));
    EXPECT_OK(strata_graph_pool_end(g.rig.s, g.rig.gpu, fresh));
    EXPECT_OK(strata_graph_pool_remove(g.rig.s, g.rig.gpu, fresh));
    resume_do(&g.rig, g.pool);
    EXPECT_OK(strata_graph_pool_restore(g.rig.s, g.rig.gpu, checkpoint, NULL, NULL));
    EXPECT_OK(graph_launch(&g));
    strata_graph_checkpoint_drop(checkpoint);
}

/* Its group serves the next pool. */
TEST(pause_graphs, a_graph_ends_while_it_is_paused) {
    GRAPHED(g, PAUSE_MOVING);
    for (int i = 0; i < 3; i++) {
        g.pool = 0;
        graph_capture(&g, 5);
        pause_do(&g.rig, STRATA_POOL_EVERY, STRATA_PAUSE_PINNED);
        EXPECT_OK(strata_free(g.rig.s, g.inside.ref));
        EXPECT_OK(strata_graph_destroy(g.rig.s, g.rig.gpu, g.graph));
        g.graph = NULL;
        rig_release(&g.rig);
        EXPECT_EQ(rig_figures(&g.rig).paused_bytes, 0);
        EXPECT_EQ(rig_figures_in(&g.rig, strata_pinned()).allocated_bytes, 0);
    }
}

/* Where graphs are not in handles, they stay, and the report says so. */
TEST(pause_graphs, what_is_not_in_handles_stays) {
    GRAPHED(g, "extends: strata\ngraph: [stream_safe, auto_growth, system]\n");
    graph_capture(&g, 5);
    strata_block_t a = rig_allocate(&g.rig, NULL, 5 * MIB);
    pause_write(&g.rig, &a, 2);
    EXPECT_GE(pause_do(&g.rig, STRATA_POOL_EVERY, STRATA_PAUSE_PINNED).rest_bytes, 6 * MIB);
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, pause_try(&g.rig, g.pool, NULL, STRATA_PAUSE_PINNED, NULL));
    EXPECT_TRUE(strstr(strata_last_error()->text, "graph:") != NULL);
    EXPECT_OK(graph_launch(&g));
    resume_do(&g.rig, STRATA_POOL_EVERY);
    EXPECT_TRUE(pause_holds(&g.rig, &a, 2));
}

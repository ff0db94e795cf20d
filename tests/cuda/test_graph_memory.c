/* Memory that the driver has for a captured graph, through a facade: the calls that it takes, in which order. */
#include "facade/registry/facade.h"
#include "strata/graph.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

enum { SIZE = 4 << 20 };

typedef struct graphed {
    strata_t s;
    strata_place_t place;
    strata_stream_t stream;
    strata_graph_t graph;
    strata_block_t inside, freed, left; /* freed inside; freed outside; freed after the graph */
} graphed_t;

static strata_block_t get(graphed_t *g) {
    strata_block_t block = {.ref = 0};
    EXPECT_OK(strata_allocate(g->s, g->place, g->stream, SIZE, &block));
    return block;
}

static void give(graphed_t *g, const strata_block_t *block) { EXPECT_OK(strata_free(g->s, block->ref)); }

/* A graph that allocates three blocks and frees one. */
static void capture(graphed_t *g) {
    uint64_t pool = 0;
    fake_reset();
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .text = "stack: [cuda_malloc_async]\n",
                                     .devices = "gpu:0",
                                     .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    *g = (graphed_t){.place = strata_gpu(0)};
    ASSERT_OK(strata_open(&options, &g->s));
    ASSERT_OK(strata_stream_create(g->s, g->place, 0, &g->stream));
    ASSERT_OK(strata_graph_pool_begin(g->s, g->place, g->stream, &pool));
    ASSERT_OK(strata_capture_begin(g->s, g->place, g->stream));
    g->inside = get(g);
    g->freed = get(g);
    g->left = get(g);
    give(g, &g->inside);
    EXPECT_EQ(fake_last("MemFreeAsync")->value, (uint64_t)(uintptr_t)g->inside.ptr);
    ASSERT_OK(strata_capture_end(g->s, g->place, g->stream, &g->graph));
    ASSERT_OK(strata_graph_pool_end(g->s, g->place, pool));
    ASSERT_OK(strata_graph_pool_remove(g->s, g->place, pool));
}

static uint64_t reserved(const graphed_t *g) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(g->s, g->place, &figures));
    return figures.reserved_bytes;
}

/* No graph has memory of the driver any more. */
static void leave(graphed_t *g) {
    size_t pools = 1;
    EXPECT_OK(strata_graph_pools(g->s, g->place, NULL, 0, &pools));
    EXPECT_EQ(pools, 0);
    EXPECT_EQ(reserved(g), 0);
    EXPECT_OK(strata_stream_forget(g->s, g->place, g->stream));
    EXPECT_OK(strata_stream_destroy(g->s, g->place, g->stream));
    EXPECT_OK(strata_close(g->s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(fake_live_objects(), 0);
    fake_reset();
}

TEST(cuda_graph_memory, it_goes_back_after_the_graph_and_a_wait_for_the_device) {
    graphed_t g;
    capture(&g);
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_graph_launch(g.s, g.place, g.graph, g.stream));
    give(&g, &g.freed);
    EXPECT_OK(strata_graph_launch(g.s, g.place, g.graph, g.stream));
    EXPECT_EQ(fake_count("MemFree"), 0);
    EXPECT_OK(strata_graph_destroy(g.s, g.place, g.graph));
    EXPECT_EQ(fake_count("MemFree"), 1);
    EXPECT_EQ(fake_last("MemFree")->value, (uint64_t)(uintptr_t)g.freed.ptr);
    EXPECT_EQ(fake_last("MemFree")->pending, 0);
    EXPECT_EQ(fake_count("DeviceGraphMemTrim"), 1);
    EXPECT_EQ(reserved(&g), SIZE);
    give(&g, &g.left);
    leave(&g);
}

TEST(cuda_graph_memory, of_a_graph_that_was_never_launched_the_driver_has_none) {
    graphed_t g;
    capture(&g);
    give(&g, &g.freed);
    EXPECT_OK(strata_graph_destroy(g.s, g.place, g.graph));
    give(&g, &g.left);
    leave(&g);
}

/* A free on a captured stream would be a node that frees what no graph allocated, and end the capture. */
TEST(cuda_graph_memory, a_free_on_a_stream_whose_capture_nobody_announced_leaves_it_whole) {
    graphed_t g;
    capture(&g);
    EXPECT_OK(strata_graph_destroy(g.s, g.place, g.graph));
    give(&g, &g.freed);
    give(&g, &g.left);
    strata_block_t block = get(&g);
    uint64_t frees = fake_count("MemFreeAsync");
    ASSERT_OK(strata_capture_begin(g.s, g.place, g.stream));
    give(&g, &block);
    EXPECT_EQ(fake_count("MemFreeAsync"), frees);
    EXPECT_EQ(fake_capture_of((CUstream)g.stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ASSERT_OK(strata_capture_end(g.s, g.place, g.stream, &g.graph));
    EXPECT_OK(strata_graph_destroy(g.s, g.place, g.graph));
    EXPECT_OK(strata_close(g.s, STRATA_CLOSE_FORCE, NULL, NULL));
    fake_reset();
}

/* The cells of docs/graphs.md on both roads: where a block was allocated and freed, inside a capture or outside, and who borrowed it;
 * under every kind of cache and under the driver's pool, with and without stream_safe. A block whose bytes a graph uses is nobody else's as long as
 * the graph exists, and the device's again after that. */
#include "tests/graphs/graphs.h"

#define BYTES (1ull << 20)

typedef struct road {
    const char *name, *strategy;
} road_t;

static const road_t roads[] = {
    {"strata", "strata"},
    {"auto_growth", "stack: [auto_growth, system]"},
    {"stream_safe", "stack: [stream_safe, auto_growth, system]"},
    {"pytorch", "pytorch"},
    {"pytorch_ignoring_streams", "stack: [caching: {streams: ignored}, system]"},
    {"tensorflow", "tensorflow"},
    {"paddle", "paddle"},
    {"buffered", "stack: [buffered, system]"},
    {"naive_best_fit", "stack: [naive_best_fit, system]"},
    {"thread_local", "stack: [thread_local, system]"},
    {"idle_chunks_go", "stack: [auto_growth: {free_idle_chunk: true}, system]"},
    {"huge_blocks", "stack: [naive_best_fit: {initial: 512KiB, reallocate: 512KiB}, system]"},
    {"cache_over_cache", "stack: [auto_growth, auto_growth: {chunk_size: 32MiB}, system]"},
    {"cuda_malloc_async", "cuda_malloc_async"},
    {"cuda_malloc_async_own_pool", "stack: [cuda_malloc_async: {pool: own}]"},
    {"stream_safe_cuda_malloc_async", "stack: [stream_safe, cuda_malloc_async]"},
    {"cache_over_cuda_malloc_async", "stack: [stream_safe, auto_growth, cuda_malloc_async]"},
    {"graph_cuda_malloc_async", "stack: [stream_safe, auto_growth, system]\ngraph: {stack: [cuda_malloc_async]}"},
    {"stack_of_its_own", "stack: [stream_safe, auto_growth, system]\ngraph: {stack: [auto_growth: {chunk_size: 8MiB}, system]}"},
};

/* Another stream that uses the block inside the capture: it joins it, and is joined again. */
static void borrow_inside(captured_t *c, const strata_block_t *block) {
    EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, c->other, c->stream));
    EXPECT_OK(strata_record_stream(c->rig.s, block->ref, c->other));
    captured_work(c, c->other, block);
    EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, c->stream, c->other));
}

static void use_inside(captured_t *c, const strata_block_t *block, bool borrowed) {
    captured_work(c, c->stream, block);
    if (borrowed) borrow_inside(c, block);
}

/* Launches, and whether the block is spared before and after them. */
static void launch_and_look(captured_t *c, const strata_block_t *block) {
    EXPECT_TRUE(captured_is_spared(c, block));
    captured_launch(c);
    EXPECT_TRUE(captured_is_spared(c, block));
    captured_launch(c);
}

static void allocated_and_freed_inside(const road_t *road, bool borrowed) {
    captured_t c;
    captured_open(&c, road->strategy);
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    use_inside(&c, &block, borrowed);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_end(&c);
    launch_and_look(&c, &block);
    captured_destroy(&c);
    captured_close(&c);
}

static void allocated_inside_live_at_the_end(const road_t *road, bool borrowed) {
    captured_t c;
    captured_open(&c, road->strategy);
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    use_inside(&c, &block, borrowed);
    captured_end(&c);
    launch_and_look(&c, &block);
    captured_destroy(&c);
    EXPECT_TRUE(captured_is_spared(&c, &block));
    EXPECT_EQ(captured_pool(&c).live_allocations, 1);
    captured_work(&c, c.stream, &block);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_close(&c);
}

static void allocated_inside_freed_outside(const road_t *road, bool borrowed) {
    captured_t c;
    captured_open(&c, road->strategy);
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    use_inside(&c, &block, borrowed);
    captured_end(&c);
    captured_launch(&c);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    launch_and_look(&c, &block);
    captured_destroy(&c);
    captured_close(&c);
}

static void allocated_outside_freed_inside(const road_t *road, bool borrowed) {
    captured_t c;
    captured_open(&c, road->strategy);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    captured_work(&c, c.stream, &block);
    captured_begin(&c);
    use_inside(&c, &block, borrowed);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_end(&c);
    EXPECT_GE(captured_pool(&c).outside_blocks, 1);
    launch_and_look(&c, &block);
    captured_destroy(&c);
    captured_close(&c);
}

/* A graph may use a block that the program frees after the capture: no longer than it lives, if a stream borrowed it inside. */
static void allocated_and_freed_outside(const road_t *road, bool borrowed) {
    captured_t c;
    captured_open(&c, road->strategy);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    captured_begin(&c);
    use_inside(&c, &block, borrowed);
    captured_end(&c);
    captured_launch(&c);
    if (!borrowed) captured_destroy(&c);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    if (borrowed) {
        launch_and_look(&c, &block);
        captured_destroy(&c);
    }
    captured_close(&c);
}

#define CELL(cell)                                                                                                                 \
    TEST_EACH(graph_cells, cell, road_t, roads) { cell(row, false); }                                                              \
    TEST_EACH(graph_cells, cell##_with_a_borrow, road_t, roads) { cell(row, true); }

CELL(allocated_and_freed_inside)
CELL(allocated_inside_live_at_the_end)
CELL(allocated_inside_freed_outside)
CELL(allocated_outside_freed_inside)
CELL(allocated_and_freed_outside)

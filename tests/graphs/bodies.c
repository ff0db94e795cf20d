/* A block whose bytes a graph uses is nobody else's as long as the graph exists, and the device's again after that. */
#include "tests/graphs/cells.h"

#define BYTES (1ull << 20)

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

void graph_cell_allocated_and_freed_inside(const graph_road_t *road, bool borrowed, strata_device_t *device) {
    captured_t c;
    captured_open_on(&c, road->strategy, device);
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    use_inside(&c, &block, borrowed);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_end(&c);
    launch_and_look(&c, &block);
    captured_destroy(&c);
    captured_close(&c);
}

void graph_cell_allocated_inside_live_at_the_end(const graph_road_t *road, bool borrowed, strata_device_t *device) {
    captured_t c;
    captured_open_on(&c, road->strategy, device);
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

void graph_cell_allocated_inside_freed_outside(const graph_road_t *road, bool borrowed, strata_device_t *device) {
    captured_t c;
    captured_open_on(&c, road->strategy, device);
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

void graph_cell_allocated_outside_freed_inside(const graph_road_t *road, bool borrowed, strata_device_t *device) {
    captured_t c;
    captured_open_on(&c, road->strategy, device);
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
void graph_cell_allocated_and_freed_outside(const graph_road_t *road, bool borrowed, strata_device_t *device) {
    captured_t c;
    captured_open_on(&c, road->strategy, device);
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

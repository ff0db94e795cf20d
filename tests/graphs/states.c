/* Checkpoints where a stack, a facade or an owner is easily taken for another. */
#include "tests/graphs/graphs.h"

static void give(captured_t *c, const strata_block_t *block) { EXPECT_OK(strata_free(c->rig.s, block->ref)); }

/* The number of a stream's stack is given again, to another stack of the same pool. Nothing of the old one is set back there. */
TEST(graph_states, a_stack_that_took_the_number_of_an_ended_one_is_another) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    captured_open(&c, "stack: [auto_growth, system]");
    captured_begin(&c);
    strata_block_t kept = rig_allocate(&c.rig, c.stream, MIB);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.other, c.stream));
    strata_block_t gone = rig_allocate(&c.rig, c.other, MIB);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.stream, c.other));
    captured_end(&c);
    ASSERT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
    give(&c, &gone);
    captured_destroy(&c);
    EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, c.other));
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    captured_begin(&c);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.other, c.stream));
    strata_block_t again = rig_allocate(&c.rig, c.other, MIB);
    EXPECT_EQ(strata_ref_home(again.ref), strata_ref_home(gone.ref));
    give(&c, &again);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.stream, c.other));
    captured_end(&c);
    EXPECT_SAYS(STRATA_E_STALE, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL),
                "stream's part of the pool has ended");
    EXPECT_EQ(captured_pool(&c).live_allocations, 1);
    give(&c, &kept);
    strata_graph_checkpoint_drop(then);
    captured_destroy(&c);
    captured_close(&c);
}

/* Both facades have a pool in the same place. */
TEST(graph_states, a_checkpoint_is_of_one_facade) {
    captured_t c, other;
    strata_checkpoint_t then = NULL;
    captured_open(&c, "strata");
    captured_open(&other, "strata");
    captured_begin(&c);
    captured_begin(&other);
    captured_end(&c);
    captured_end(&other);
    ASSERT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
    EXPECT_SAYS(STRATA_E_INVALID, strata_graph_pool_restore(other.rig.s, other.rig.gpu, then, NULL, NULL),
                "of another facade or place");
    EXPECT_SAYS(STRATA_E_INVALID, strata_graph_pool_restore(c.rig.s, strata_managed(0), then, NULL, NULL),
                "of another facade or place");
    EXPECT_OK(strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL));
    strata_graph_checkpoint_drop(then);
    captured_destroy(&other);
    captured_close(&other);
    captured_destroy(&c);
    captured_close(&c);
}

static void take_requested(const strata_leak_t *leak, void *context) { *(size_t *)context = leak->requested; }

/* A block has more bytes than the program asked for. */
TEST(graph_states, a_block_that_is_set_back_has_the_size_that_was_asked_for) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    size_t requested = 0;
    captured_open(&c, "stack: [auto_growth, system]");
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, 1001), found;
    captured_end(&c);
    EXPECT_GT(block.size, 1001);
    ASSERT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
    give(&c, &block);
    ASSERT_OK(strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL));
    strata_graph_checkpoint_drop(then);
    captured_destroy(&c);
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(c.rig.s, STRATA_CLOSE_BUSY, take_requested, &requested));
    EXPECT_EQ(requested, 1001);
    EXPECT_OK(strata_block_of(c.rig.s, block.ptr, &found));
    EXPECT_EQ(found.size, block.size);
    give(&c, &found);
    captured_close(&c);
}

/* Without a layer for borrows the core waits for the borrower on the host, which no restore does. */
TEST(graph_states, a_block_whose_free_would_wait_on_the_host_is_not_freed) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    captured_open(&c, "stack: [auto_growth, system]");
    captured_begin(&c);
    captured_end(&c);
    strata_graph_t first = c.graph;
    ASSERT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, MIB);
    captured_end(&c);
    EXPECT_OK(strata_record_stream(c.rig.s, block.ref, c.other));
    EXPECT_SAYS(STRATA_E_BUSY, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL), "is borrowed by other streams");
    give(&c, &block);
    EXPECT_OK(strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL));
    strata_graph_checkpoint_drop(then);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, first));
    captured_destroy(&c);
    captured_close(&c);
}

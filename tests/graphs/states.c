/* Checkpoints where a stack, a facade or an owner is easily taken for another. */
#include "allocation/domain/layer.h"
#include "platform/host/host_memory.h"
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
                "stream's stack in the pool was closed");
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

/* Captures nothing, takes a checkpoint of that, and captures again with a block of 1 MiB. Returns the block. */
static strata_block_t block_after_checkpoint(captured_t *c, strata_checkpoint_t *then, strata_graph_t *first) {
    captured_begin(c);
    captured_end(c);
    *first = c->graph;
    EXPECT_OK(strata_graph_pool_checkpoint(c->rig.s, c->rig.gpu, c->pool, then));
    captured_begin(c);
    strata_block_t block = rig_allocate(&c->rig, c->stream, MIB);
    captured_end(c);
    return block;
}

static void drop_and_close(captured_t *c, strata_checkpoint_t then, strata_graph_t first) {
    strata_graph_checkpoint_drop(then);
    EXPECT_OK(strata_graph_destroy(c->rig.s, c->rig.gpu, first));
    captured_destroy(c);
    captured_close(c);
}

/* Without a layer for borrows the core waits for the borrower on the host, which no restore does. */
TEST(graph_states, a_block_whose_free_would_wait_on_the_host_is_not_freed) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    captured_open(&c, "stack: [auto_growth, system]");
    strata_graph_t first;
    strata_block_t block = block_after_checkpoint(&c, &then, &first);
    EXPECT_OK(strata_record_stream(c.rig.s, block.ref, c.other));
    EXPECT_SAYS(STRATA_E_BUSY, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL), "is borrowed by other streams");
    give(&c, &block);
    EXPECT_OK(strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL));
    drop_and_close(&c, then, first);
}

/* The borrow that was taken back holds nothing up. */
TEST(graph_states, a_block_whose_borrow_was_taken_back_is_freed) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    captured_open(&c, "stack: [auto_growth, system]");
    strata_graph_t first;
    strata_block_t block = block_after_checkpoint(&c, &then, &first);
    EXPECT_OK(strata_record_stream(c.rig.s, block.ref, c.other));
    EXPECT_OK(strata_erase_stream(c.rig.s, block.ref, c.other));
    EXPECT_OK(strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(c.rig.s, block.ref));
    drop_and_close(&c, then, first);
}

/* One of two owners freed the block on a stream whose work could be neither noted nor waited for. */
TEST(graph_states, a_block_with_an_unknown_use_is_not_freed) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    captured_open(&c, "stack: [auto_growth, system]");
    strata_graph_t first;
    strata_block_t block = block_after_checkpoint(&c, &then, &first);
    EXPECT_OK(strata_retain(c.rig.s, block.ref));
    EXPECT_SAYS(STRATA_E_BUSY, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL), "has other owners");
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_DEVICE_CALLS, 1, true, STRATA_E_DEVICE));
    strata_host_fail_at(1, 1);
    EXPECT_OK(strata_free_on(c.rig.s, block.ref, c.other));
    strata_host_fail_at(0, 0);
    strata_sim_clear_faults(c.rig.devices[0]);
    EXPECT_SAYS(STRATA_E_BUSY, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL), "has other owners");
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, block.size);
    drop_and_close(&c, then, first);
}

/* ---- limits ---- */

/* The free would use up the slot's generations, and the block's memory would not come back. One free before that it does. */
TEST(graph_states, a_block_of_the_last_generation_is_not_freed) {
    for (uint32_t left = 1; left <= 2; left++) {
        captured_t c;
        strata_checkpoint_t then = NULL;
        captured_open(&c, "stack: [auto_growth, system]");
        captured_begin(&c);
        captured_end(&c);
        strata_graph_t first = c.graph;
        ASSERT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
        captured_begin(&c);
        strata_block_t block = rig_allocate(&c.rig, c.stream, MIB);
        strata_stack_t *stack = strata_stack_of(strata_ref_home(block.ref));
        strata_record_t *record = strata_slab_record(&stack->slab, strata_ref_slot(block.ref));
        record->generation = STRATA_GENERATION_LAST - left;
        captured_end(&c);
        strata_status_t status = strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL);
        EXPECT_STATUS(left == 1 ? STRATA_E_LIMIT : STRATA_OK, status);
        EXPECT_EQ(captured_pool(&c).live_allocations, left == 1);
        if (left == 1) EXPECT_OK(strata_free(c.rig.s, strata_ref_of(record)));
        strata_graph_checkpoint_drop(then);
        EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, first));
        captured_destroy(&c);
        captured_close(&c);
    }
}

/* To cut a block out of the middle of a free one takes two slots: with one of them nothing is changed. */
TEST(graph_states, a_block_that_is_set_back_needs_two_slots) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    captured_open(&c, "stack: [stream_safe, auto_growth: {chunk_size: 20MiB}, system]");
    captured_begin(&c);
    strata_block_t before = rig_allocate(&c.rig, c.stream, 8 * MIB), middle = rig_allocate(&c.rig, c.stream, 4 * MIB), found;
    give(&c, &before);
    captured_end(&c);
    strata_graph_t first = c.graph;
    ASSERT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
    give(&c, &middle);
    captured_begin(&c);
    strata_block_t waits = rig_allocate(&c.rig, c.stream, MIB);
    EXPECT_FALSE(rig_overlap(&waits, &middle));
    captured_end(&c);
    EXPECT_OK(strata_record_stream(c.rig.s, waits.ref, c.other));
    rig_work(&c.rig, c.other, 1000 * 1000, waits.ref);
    give(&c, &waits);
    strata_slab_t *slab = &strata_stack_of(strata_ref_home(middle.ref))->slab;
    uint32_t capacity = slab->capacity;
    EXPECT_EQ(slab->unused, 1);
    slab->capacity = slab->used;
    EXPECT_STATUS(STRATA_E_LIMIT, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL));
    EXPECT_EQ(captured_pool(&c).live_allocations, 0);
    EXPECT_OK(strata_validate(c.rig.s));
    slab->capacity = slab->used + 1;
    EXPECT_OK(strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL));
    EXPECT_EQ(slab->unused, 0);
    slab->capacity = capacity;
    EXPECT_OK(strata_block_of(c.rig.s, middle.ptr, &found));
    EXPECT_EQ(found.size, middle.size);
    give(&c, &found);
    drop_and_close(&c, then, first);
}

/* A limit below what a graph keeps is met as soon as the graph is gone, without another call. The graph keeps a block of its pool, or one
 * that was allocated outside and is freed inside. */
TEST(graph_states, what_a_graph_kept_goes_back_to_a_lowered_limit) {
    for (int outside = 0; outside < 2; outside++) {
        captured_t c;
        strata_block_t block;
        captured_open(&c, "stack: [auto_growth: {chunk_size: 8MiB}, system]");
        if (outside) block = rig_allocate(&c.rig, c.stream, 4 * MIB);
        captured_begin(&c);
        if (!outside) block = rig_allocate(&c.rig, c.stream, 4 * MIB);
        captured_work(&c, c.stream, &block);
        EXPECT_OK(strata_free(c.rig.s, block.ref));
        captured_end(&c);
        EXPECT_OK(strata_set_limit(c.rig.s, c.rig.gpu, MIB));
        EXPECT_EQ(rig_figures(&c.rig).reserved_bytes, 8 * MIB);
        captured_destroy(&c);
        EXPECT_EQ(rig_figures(&c.rig).reserved_bytes, 0);
        captured_close(&c);
    }
}

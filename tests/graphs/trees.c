/* PyTorch's tests of a pool's checkpoints (TestBlockStateAbsorption), written anew over the preset. What a function captured into the
 * pool returns is live after it; the rest is freed inside. */
#include <string.h>

#include "tests/graphs/graphs.h"

enum { SMALL = 512, RETURNED = 4, KEPT = 16 };

typedef struct tree {
    captured_t c;
    strata_graph_t graphs[8];
    uint32_t graph_count;
    strata_block_t restored[KEPT], stale[KEPT];
    uint32_t restored_count, stale_count;
} tree_t;

static void open_tree(tree_t *t) {
    memset(t, 0, sizeof *t);
    captured_open(&t->c, "pytorch");
}

static void close_tree(tree_t *t) {
    for (uint32_t i = 0; i < t->graph_count; i++) EXPECT_OK(strata_graph_destroy(t->c.rig.s, t->c.rig.gpu, t->graphs[i]));
    captured_close(&t->c);
}

/* Captures a function that makes `count` blocks, and returns those whose bit is set, in order. */
static void run(tree_t *t, uint32_t count, size_t size, uint32_t returned, strata_block_t *out) {
    strata_block_t all[16];
    captured_begin(&t->c);
    for (uint32_t i = 0; i < count; i++) {
        all[i] = rig_allocate(&t->c.rig, t->c.stream, size);
        captured_work(&t->c, t->c.stream, &all[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (returned >> i & 1) *out++ = all[i];
        else EXPECT_OK(strata_free(t->c.rig.s, all[i].ref));
    }
    captured_end(&t->c);
    t->graphs[t->graph_count++] = t->c.graph;
}

static strata_checkpoint_t take(tree_t *t) {
    strata_checkpoint_t checkpoint = NULL;
    EXPECT_OK(strata_graph_pool_checkpoint(t->c.rig.s, t->c.rig.gpu, t->c.pool, &checkpoint));
    return checkpoint;
}

static void told(const strata_block_t *block, bool live, void *context) {
    tree_t *t = context;
    if (live) t->restored[t->restored_count++] = *block;
    else t->stale[t->stale_count++] = *block;
}

static void set_back(tree_t *t, strata_checkpoint_t checkpoint) {
    t->restored_count = t->stale_count = 0;
    EXPECT_OK(strata_graph_pool_restore(t->c.rig.s, t->c.rig.gpu, checkpoint, told, t));
    EXPECT_OK(strata_validate(t->c.rig.s));
}

static void give(tree_t *t, const strata_block_t *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) EXPECT_OK(strata_free(t->c.rig.s, blocks[i].ref));
}

/* What was returned dies, the pool is set back, and it is live again where it was; twice. */
static void returned_comes_back(uint32_t count, size_t size, uint32_t returned) {
    tree_t t;
    strata_block_t out[RETURNED];
    open_tree(&t);
    run(&t, count, size, returned, out);
    uint32_t live = (uint32_t)captured_pool(&t.c).live_allocations;
    strata_checkpoint_t checkpoint = take(&t);
    for (int again = 0; again < 2; again++) {
        give(&t, again ? t.restored : out, live);
        EXPECT_EQ(captured_pool(&t.c).live_allocations, 0);
        set_back(&t, checkpoint);
        EXPECT_EQ(t.restored_count, live);
        for (uint32_t i = 0; i < live; i++) {
            EXPECT_EQ(t.restored[i].ptr, out[i].ptr);
            EXPECT_EQ(t.restored[i].size, out[i].size);
        }
    }
    give(&t, t.restored, live);
    strata_graph_checkpoint_drop(checkpoint);
    close_tree(&t);
}

TEST(graph_trees, test_simple) { returned_comes_back(2, 4 * MIB, 2); }

TEST(graph_trees, test_allocated_in_middle_of_segment) { returned_comes_back(11, SMALL, 1 << 5); }

TEST(graph_trees, test_multiple_middle_allocations) { returned_comes_back(11, SMALL, 1 << 5 | 1 << 8); }

TEST(graph_trees, test_middle_allocations_contiguous) { returned_comes_back(11, SMALL, 1 << 5 | 1 << 6); }

/* A second graph's result is freed by setting the pool back to the state before it. */
TEST(graph_trees, test_additional_free_following_checkpoint) {
    tree_t t;
    strata_block_t first, second;
    open_tree(&t);
    run(&t, 1, SMALL, 1, &first);
    strata_checkpoint_t checkpoint = take(&t);
    run(&t, 1, SMALL, 1, &second);
    set_back(&t, checkpoint);
    EXPECT_EQ(t.stale_count, 1);
    EXPECT_EQ(t.stale[0].ref, second.ref);
    EXPECT_EQ(t.restored_count, 0);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(t.c.rig.s, second.ref));
    give(&t, &first, 1);
    strata_graph_checkpoint_drop(checkpoint);
    close_tree(&t);
}

/* One of two results dies before the pool is set back; the other one is as it was. */
TEST(graph_trees, test_tensor_dies_after_checkpoint) {
    tree_t t;
    strata_block_t out[2];
    open_tree(&t);
    run(&t, 2, SMALL, 3, out);
    strata_checkpoint_t checkpoint = take(&t);
    give(&t, &out[1], 1);
    set_back(&t, checkpoint);
    EXPECT_EQ(t.restored_count, 1);
    EXPECT_EQ(t.restored[0].ptr, out[1].ptr);
    give(&t, out, 1);
    give(&t, t.restored, 1);
    EXPECT_EQ(captured_pool(&t.c).live_allocations, 0);
    strata_graph_checkpoint_drop(checkpoint);
    close_tree(&t);
}

/* What is live again is the program's to free, by the ref that it was told. */
TEST(graph_trees, test_assigning_back_deleter_fns_to_tensor) {
    tree_t t;
    strata_block_t out[2];
    open_tree(&t);
    run(&t, 2, MIB, 3, out);
    strata_checkpoint_t checkpoint = take(&t);
    give(&t, out, 2);
    set_back(&t, checkpoint);
    EXPECT_EQ(captured_pool(&t.c).live_allocations, 2);
    for (uint32_t i = 0; i < 2; i++) EXPECT_NE(t.restored[i].ref, out[i].ref);
    give(&t, t.restored, 2);
    EXPECT_EQ(captured_pool(&t.c).live_allocations, 0);
    strata_graph_checkpoint_drop(checkpoint);
    close_tree(&t);
}

TEST(graph_trees, test_check_pool_live_allocations) {
    tree_t t;
    strata_block_t out;
    open_tree(&t);
    run(&t, 1, SMALL, 1, &out);
    EXPECT_EQ(captured_pool(&t.c).live_allocations, 1);
    EXPECT_EQ(captured_pool(&t.c).allocated_bytes, SMALL);
    give(&t, &out, 1);
    EXPECT_EQ(captured_pool(&t.c).live_allocations, 0);
    close_tree(&t);
}

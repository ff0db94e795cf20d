/* PyTorch's own tests of its memory pools (torch.cuda.MemPool in test/test_cuda.py), written anew: each case has the name of the
 * peer's. A MemPool is a named pool of the strategy, and torch.cuda.use_mem_pool() is strata_pool_begin(). A pool with `keep: true`
 * holds its memory as a MemPool does as long as it exists; strata_release_pool() stands for its end. */
#include <stdio.h>

#include "tests/caching/caching.h"

/* Two pools whose caches have options of their own beside a plain one. */
static void open_pools(rig_t *rig, const char *options, uint64_t capacity) {
    char text[512];
    snprintf(text, sizeof text,
             "stack: [caching, system]\n"
             "pools:\n"
             "  p: {keep: true, stack: [caching: {%s}, system]}\n"
             "  q: {keep: true, stack: [caching: {%s}, system]}\n",
             options, options);
    rig_open(rig, text, NULL, 0, capacity, 1);
}

static uint64_t pool_of(rig_t *rig, const char *name) {
    uint64_t pool = 0;
    EXPECT_OK(strata_pool(rig->s, name, &pool));
    return pool;
}

static void begin(rig_t *rig, const char *name) { EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, pool_of(rig, name))); }
static void end(rig_t *rig) { EXPECT_OK(strata_pool_end(rig->s, rig->gpu)); }

static void give_back(rig_t *rig, const char *name) { EXPECT_OK(strata_release_pool(rig->s, rig->gpu, pool_of(rig, name), NULL)); }

static strata_block_t take(rig_t *rig, const char *name, size_t size) {
    begin(rig, name);
    strata_block_t block = rig_allocate(rig, NULL, size);
    end(rig);
    return block;
}

TEST(pytorch, test_mempool_with_allocator) {
    RIG_BY(rig, open_pools(&rig, "", 0));
    strata_block_t outside = rig_allocate(&rig, NULL, MIB), in_pool[3];
    EXPECT_EQ(caching_reserved(&rig), 2 * MIB);
    begin(&rig, "p");
    begin(&rig, "p");
    end(&rig);
    for (int i = 0; i < 3; i++) {
        in_pool[i] = rig_allocate(&rig, NULL, MIB);
        EXPECT_EQ(caching_reserved(&rig), (i < 2 ? 4 : 6) * MIB);
    }
    end(&rig);
    RIG_FREE(&rig, in_pool[0], in_pool[1], in_pool[2]);
    EXPECT_EQ(rig_release(&rig), 0);
    EXPECT_EQ(caching_reserved(&rig), 6 * MIB);
    give_back(&rig, "p");
    EXPECT_EQ(caching_reserved(&rig), 2 * MIB);
    RIG_FREE(&rig, outside);
}

TEST(pytorch, test_tensor_delete_after_allocator_delete) {
    RIG_BY(rig, open_pools(&rig, "", 0));
    strata_block_t block = take(&rig, "p", 3 * MIB);
    give_back(&rig, "p");
    EXPECT_EQ(caching_reserved(&rig), 20 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, block);
    give_back(&rig, "p");
    EXPECT_EQ(caching_reserved(&rig), 0);
}

static void limited_memory(const char *options, bool borrowed) {
    RIG_BY(rig, open_pools(&rig, options, 40 * MIB));
    strata_block_t in_pool = take(&rig, "p", 24 * MIB), outside = {.ptr = NULL};
    RIG_FREE(&rig, in_pool);
    strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 24 * MIB, &outside);
    EXPECT_EQ(status, borrowed ? STRATA_OK : STRATA_E_NO_MEMORY);
    EXPECT_TRUE(!borrowed || outside.ptr == in_pool.ptr);
    if (status == STRATA_OK) RIG_FREE(&rig, outside);
    strata_block_t again = take(&rig, "p", 24 * MIB);
    EXPECT_EQ(again.ptr, in_pool.ptr);
    RIG_FREE(&rig, again);
}

TEST(pytorch, test_mempool_limited_memory_with_allocator) {
    limited_memory("", false);
    limited_memory("pools_on_oom: true", true);
}

/* A named pool ends with its strategy alone. One that ends under a live block is a pool of graphs that nothing keeps, in the layers
 * of a named pool that lends; what it still has beside the block is nobody's. */
TEST(pytorch, test_deleted_mempool_not_used_on_oom) {
    const char *text = "stack: [caching: {pools_on_oom: true, large_segment: 32MiB}, system]\npools: {p: {keep: true}}\n";
    for (int deleted = 0; deleted < 2; deleted++) {
        RIG(rig, text, 40 * MIB);
        uint64_t pool = 0;
        strata_block_t in_pool, block;
        if (deleted) EXPECT_OK(strata_graph_pool_begin(rig.s, rig.gpu, NULL, &pool));
        in_pool = deleted ? rig_allocate(&rig, NULL, 8 * MIB) : take(&rig, "p", 8 * MIB);
        if (deleted) EXPECT_OK(strata_graph_pool_end(rig.s, rig.gpu, pool));
        if (deleted) EXPECT_OK(strata_graph_pool_remove(rig.s, rig.gpu, pool));
        strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 20 * MIB, &block);
        EXPECT_EQ(status, deleted ? STRATA_E_NO_MEMORY : STRATA_OK);
        if (status == STRATA_OK) RIG_FREE(&rig, block);
        RIG_FREE(&rig, in_pool);
    }
}

static void count_row(const strata_snapshot_row_t *row, void *context) {
    (void)row;
    ++*(uint32_t *)context;
}

TEST(pytorch, test_mempool_no_split) {
    RIG_BY(rig, open_pools(&rig, "pool_no_split: true", 0));
    strata_block_t in_pool[2], outside[2];
    for (int i = 0; i < 2; i++) in_pool[i] = take(&rig, "p", 1000);
    EXPECT_EQ(rig_figures(&rig).chunks, 2);
    EXPECT_EQ(in_pool[0].size, 2 * MIB);
    for (int i = 0; i < 2; i++) outside[i] = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(rig_figures(&rig).chunks, 3);
    uint32_t rows = 0;
    EXPECT_OK(strata_snapshot(rig.s, rig.gpu, count_row, &rows));
    EXPECT_EQ(rows, 2 + 3);
    RIG_FREE(&rig, in_pool[0], in_pool[1], outside[0], outside[1]);
}

static bool in_segment(const strata_block_t *b, const strata_block_t *first) {
    return (uintptr_t)b->ptr - (uintptr_t)first->ptr < 2 * MIB;
}

typedef struct elsewhere {
    rig_t *rig;
    strata_block_t block;
} elsewhere_t;

static void *allocate_elsewhere(void *context) {
    elsewhere_t *other = context;
    other->block = rig_allocate(other->rig, NULL, 4096);
    return NULL;
}

/* While this thread is in the inner pool another one allocates. */
TEST(pytorch, test_nested_mempool) {
    RIG_BY(rig, open_pools(&rig, "", 0));
    elsewhere_t other = {.rig = &rig};
    strata_block_t none = rig_allocate(&rig, NULL, 4096);
    begin(&rig, "p");
    strata_block_t outer = rig_allocate(&rig, NULL, 4096);
    begin(&rig, "q");
    strata_block_t inner = rig_allocate(&rig, NULL, 4096);
    in_another_thread(allocate_elsewhere, &other);
    end(&rig);
    strata_block_t outer_again = rig_allocate(&rig, NULL, 4096);
    end(&rig);
    EXPECT_EQ(rig_figures(&rig).chunks, 3);
    EXPECT_TRUE(in_segment(&outer_again, &outer));
    EXPECT_FALSE(in_segment(&inner, &outer));
    EXPECT_TRUE(in_segment(&other.block, &none));
    RIG_FREE(&rig, none, outer, inner, outer_again, other.block);
}

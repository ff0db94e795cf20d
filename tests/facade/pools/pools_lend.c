/* PyTorch's options of pools, in named pools: blocks that are whole segments, and pools that lend. */
#include "tests/facade/pools/pooled.h"

#define CAPACITY (64 * MIB)

static void open_pool(rig_t *rig, const char *options) {
    char text[512];
    snprintf(text, sizeof text, "strategy: lending\nstack: [caching, system]\npools: {p: {stack: [caching: {%s}, system]}}\n",
             options);
    rig_open(rig, text, NULL, 0, CAPACITY, 1);
}

TEST_BY(facade_pools, in_one_that_does_not_split_a_block_is_a_whole_segment, open_pool(rig, "pool_no_split: true")) {
    uint64_t pool = pool_of(rig, "p");
    strata_block_t a = get_from(rig, pool, NULL, 1000);
    (void)get_from(rig, pool, NULL, 1000);
    strata_block_t c = rig_allocate(rig, NULL, 1000);
    EXPECT_EQ(a.size, 2 * MIB);
    EXPECT_EQ(pool_figures(rig, pool).chunks, 2);
    EXPECT_LT(c.size, MIB);
}

/* A pool's free block serves a request of no pool that has no other memory; it goes home when it is freed. */
static void one_is_out_of_memory(const char *options, bool other_stream, bool lent) {
    RIG_BY(rig, open_pool(&rig, options));
    uint64_t pool = pool_of(&rig, "p");
    strata_stream_t stream = other_stream ? rig_stream(&rig) : NULL;
    strata_block_t block, whole = get_from(&rig, pool, NULL, 30 * MIB);
    EXPECT_OK(strata_free(rig.s, whole.ref));
    /* A live block keeps the pool's segment from going back. */
    (void)get_from(&rig, pool, NULL, 2 * MIB);
    (void)rig_allocate(&rig, stream, 24 * MIB);
    strata_status_t status = strata_allocate(rig.s, rig.gpu, stream, 20 * MIB, &block);
    EXPECT_EQ(status, lent ? STRATA_OK : STRATA_E_NO_MEMORY);
    if (status == STRATA_OK) {
        expect_pool(&rig, block.ref, pool);
        EXPECT_OK(strata_free(rig.s, block.ref));
        strata_block_t again = get_from(&rig, pool, NULL, 20 * MIB);
        EXPECT_EQ(again.ptr, block.ptr);
        EXPECT_OK(strata_free(rig.s, again.ref));
    }
}

TEST(facade_pools, one_that_lends_serves_who_would_fail) {
    one_is_out_of_memory("pools_on_oom: true", false, true);
    one_is_out_of_memory("pools_on_oom: false", false, false);
    one_is_out_of_memory("pools_on_oom: true", true, false);
}

static uint64_t zeroed(rig_t *rig) { return rig_calls(rig, STRATA_CALL_fill); }

/* Who borrows is another owner than the pool, and the pool is another owner after it. */
TEST_RIG(facade_pools, what_a_pool_lends_is_scrubbed_on_both_ways, CAPACITY,
         "strategy: lending\nstack: [caching, system]\n"
         "pools: {p: {stack: [scrub, auto_growth: {chunk_size: 30MiB}, caching: {pools_on_oom: true}, system]}}\n") {
    strata_block_t block, whole;
    uint64_t pool = pool_of(rig, "p");
    whole = get_from(rig, pool, NULL, 30 * MIB);
    EXPECT_OK(strata_free(rig->s, whole.ref));
    (void)get_from(rig, pool, NULL, 2 * MIB);
    (void)rig_allocate(rig, NULL, 24 * MIB);
    strata_block_t own = get_from(rig, pool, NULL, 20 * MIB);
    EXPECT_OK(strata_free(rig->s, own.ref));
    uint64_t before = zeroed(rig);
    ASSERT_OK(strata_allocate(rig->s, rig->gpu, NULL, 20 * MIB, &block));
    EXPECT_EQ(block.ptr, own.ptr);
    EXPECT_EQ(zeroed(rig), before + 1);
    EXPECT_OK(strata_free(rig->s, block.ref));
    own = get_from(rig, pool, NULL, 20 * MIB);
    EXPECT_EQ(zeroed(rig), before + 2);
}

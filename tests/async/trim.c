/* strata_trim() over the driver's pool: what the device got back is what is told, and no more is kept than was said. */
#include "tests/async/async.h"

typedef struct trimmed {
    uint64_t used_before, told;
} trimmed_t;

static void trim(rig_t *rig, uint64_t keep, trimmed_t *trimmed) {
    *trimmed = (trimmed_t){.used_before = async_used(rig)};
    EXPECT_OK(strata_trim(rig->s, rig->gpu, keep, &trimmed->told));
    EXPECT_EQ(trimmed->told, trimmed->used_before - async_used(rig));
}

/* `count` blocks of 32 MiB, each in a piece of the pool's own; the first `live` stay. */
static void fill(rig_t *rig, strata_block_t *blocks, int count, int live) {
    for (int i = 0; i < count; i++) blocks[i] = rig_allocate(rig, NULL, 32 * MIB);
    for (int i = live; i < count; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

TEST(async_trim, the_pool_keeps_no_more_than_is_said) {
    strata_block_t blocks[4];
    trimmed_t t;
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    fill(&rig, blocks, 4, 1);
    trim(&rig, 96 * MIB, &t);
    EXPECT_EQ(t.told, 0);
    trim(&rig, 64 * MIB, &t);
    EXPECT_EQ(t.told, 32 * MIB);
    trim(&rig, 1, &t);
    EXPECT_EQ(t.told, 64 * MIB);
    EXPECT_EQ(async_used(&rig), 32 * MIB);
    EXPECT_OK(strata_free(rig.s, blocks[0].ref));
}

/* The frees of borrowed blocks are on their way: they are waited for. */
TEST(async_trim, what_borrowers_still_use_is_waited_for) {
    trimmed_t t;
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_stream_t other = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 32 * MIB);
    rig_borrow(&rig, a.ref, other, 5 * 1000 * 1000);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 32 * MIB);
    trim(&rig, 1, &t);
    EXPECT_EQ(t.told, 32 * MIB);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
}

/* With a threshold the pool itself gives back whenever the host waits for the device, so after the wait of the trim too. */
TEST(async_trim, what_goes_back_by_the_threshold_is_told) {
    static const char *const set[] = {"cuda_malloc_async.release_threshold=0"};
    strata_block_t blocks[2];
    trimmed_t t;
    RIG_BY(rig, async_open(&rig, set, 1, 0, false));
    fill(&rig, blocks, 2, 1);
    trim(&rig, 1, &t);
    EXPECT_EQ(t.told, 32 * MIB);
    EXPECT_OK(strata_free(rig.s, blocks[0].ref));
}

/* A cache above gives to the pool what the pool then gives to the device. */
TEST(async_trim, what_a_cache_above_gives_to_the_pool_goes_back_too) {
    strata_block_t blocks[4];
    trimmed_t t;
    RIG(rig, "strategy: cached\nstack: [retry, auto_growth: {chunk_size: 2MiB}, cuda_malloc_async]\n", 0);
    fill(&rig, blocks, 4, 1);
    EXPECT_EQ(async_used(&rig), 128 * MIB);
    trim(&rig, 32 * MIB, &t);
    EXPECT_EQ(t.told, 64 * MIB);
    trim(&rig, 1, &t);
    EXPECT_EQ(t.told, 32 * MIB);
    EXPECT_OK(strata_free(rig.s, blocks[0].ref));
}

/* Another library's blocks in the device's own pool are used and not idle. */
TEST(async_trim, what_others_use_of_the_pool_is_not_taken_from_what_is_kept) {
    strata_block_t blocks[2];
    trimmed_t t;
    strata_address_t theirs = 0;
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    fill(&rig, blocks, 2, 0);
    ASSERT_OK(strata_device_malloc_async(rig.devices[0], NULL, 256 * MIB, NULL, &theirs));
    trim(&rig, 64 * MIB, &t);
    EXPECT_EQ(t.told, 0);
    trim(&rig, 32 * MIB, &t);
    EXPECT_EQ(t.told, 32 * MIB);
    EXPECT_OK(strata_device_free_async(rig.devices[0], theirs, NULL));
}

/* Where the device does not say what is used of the pool, the program's own blocks are. */
TEST(async_trim, what_is_live_counts_where_the_pool_does_not_say_what_is_used) {
    strata_block_t blocks[4];
    trimmed_t t;
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    fill(&rig, blocks, 4, 1);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_pool_get, 2, false, STRATA_E_DEVICE));
    trim(&rig, 64 * MIB, &t);
    EXPECT_EQ(t.told, 32 * MIB);
    EXPECT_OK(strata_free(rig.s, blocks[0].ref));
}

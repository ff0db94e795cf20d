/* What the driver's pool keeps is nobody else's: the report of a request that failed says so. Others have the context, 500 MiB. */
#include "tests/async/async.h"

/* 128 MiB of 200 lie idle in the pool, and a block of its own beside them. */
static void fill(rig_t *rig, strata_block_t *live) {
    strata_block_t blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = rig_allocate(rig, NULL, 32 * MIB);
    *live = rig_allocate(rig, NULL, 32 * MIB);
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

static void refuse(rig_t *rig, size_t size, uint32_t flags) {
    strata_block_t none;
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .flags = flags};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &none));
}

TEST(async_report, idle_memory_of_the_pool_is_not_taken_by_others) {
    strata_block_t live;
    RIG_BY(rig, async_open(&rig, NULL, 0, 200 * MIB, false));
    fill(&rig, &live);
    refuse(&rig, 150 * MIB, STRATA_NO_RETRY);
    EXPECT_CONTAINS(strata_last_error()->text, "reserved here 32MiB, idle in the driver's pools 128MiB, used by others 500MiB");
    EXPECT_CONTAINS(strata_last_error()->text, "no_retry: ");
    EXPECT_OK(strata_free(rig.s, live.ref));
}

/* With its ladder the same request finds them trimmed, and is told of no pool. */
TEST(async_report, a_trimmed_pool_is_not_named) {
    strata_block_t live;
    RIG_BY(rig, async_open(&rig, NULL, 0, 200 * MIB, false));
    fill(&rig, &live);
    refuse(&rig, 180 * MIB, 0);
    EXPECT_CONTAINS(strata_last_error()->text, "free on the device 168MiB of 700MiB, reserved here 32MiB, used by others 500MiB");
    EXPECT_OK(strata_free(rig.s, live.ref));
}

/* Pools of the strategy that share the driver's default one count it once. */
TEST(async_report, a_pool_that_groups_share_counts_once) {
    uint64_t pool;
    strata_block_t live, other;
    RIG(rig,
        "stack: [cuda_malloc_async: {release_threshold: unlimited}]\npools: {p: {stack: [cuda_malloc_async: {release_threshold: "
        "unlimited}]}}\n",
        200 * MIB);
    EXPECT_OK(strata_pool(rig.s, "p", &pool));
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = MIB, .pool = pool};
    EXPECT_OK(strata_allocate_with(rig.s, rig.gpu, NULL, &options, &other));
    fill(&rig, &live);
    refuse(&rig, 150 * MIB, STRATA_NO_RETRY);
    EXPECT_CONTAINS(strata_last_error()->text, "used by others 500MiB");
    EXPECT_OK(strata_free(rig.s, live.ref));
    EXPECT_OK(strata_free(rig.s, other.ref));
}

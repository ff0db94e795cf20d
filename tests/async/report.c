/* The driver's pool keeps idle memory from other users of the device. The figures show it, and so does the report of a failed
 * request. The context has 500 MiB. */
#include "tests/async/async.h"

static void find_idle(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->name, "pool_idle_bytes") == 0) *(uint64_t *)context = figure->value;
}

/* UINT64_MAX if there is no such figure. */
static uint64_t idle_in_the_pool(rig_t *rig) {
    uint64_t idle = UINT64_MAX;
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, find_idle, &idle));
    return idle;
}

/* rocm-systems#11690: with the release threshold at its largest, three blocks stay in the pool after a wait. */
TEST(async_report, a_figure_shows_what_the_pool_keeps) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_block_t blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = rig_allocate(&rig, NULL, 64 * MIB);
    EXPECT_EQ(idle_in_the_pool(&rig), 0);
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    EXPECT_OK(strata_device_synchronise(rig.devices[0]));
    EXPECT_EQ(idle_in_the_pool(&rig), 128 * MIB);
    EXPECT_OK(strata_free(rig.s, blocks[2].ref));
    EXPECT_EQ(idle_in_the_pool(&rig), 192 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    rig_release(&rig);
    EXPECT_EQ(idle_in_the_pool(&rig), 0);
}

/* The figure is 0 if there is no pool yet, or if the driver does not say. Reading it leaves the last error as it was. */
TEST(async_report, an_unknown_pool_keeps_nothing) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_block_t block = rig_allocate(&rig, NULL, 64 * MIB);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, block.ref));
    const strata_error_t before = *strata_last_error();
    for (uint64_t number = 1; number <= 2; number++) {
        EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_pool_get, number, false, STRATA_E_DEVICE));
        EXPECT_EQ(idle_in_the_pool(&rig), 0);
        EXPECT_STREQ(strata_last_error()->text, before.text);
    }
    EXPECT_EQ(idle_in_the_pool(&rig), 64 * MIB);
}

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

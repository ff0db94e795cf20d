/* auto_growth_vmm: small blocks in idle memory of large ones, large blocks in idle handles of small ones, and sizes that grow. */
#include "allocation/cache/policies/virtual/auto_growth_vmm_state.h"
#include "tests/facade/support/fixture.h"

#define EXACT "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]"
enum { SMALL = 256 * 1024, MOST_SMALL = 256 };

static uint64_t reserved_mib(rig_t *rig) { return rig_figures(rig).reserved_bytes / MIB; }

static void allocate_small(rig_t *rig, strata_block_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) blocks[i] = rig_allocate(rig, NULL, SMALL);
}

static auto_growth_vmm_t *cache_of(rig_t *rig) {
    strata_stack_t *stack = rig_stack(rig, NULL);
    STRATA_EACH_OWN_LAYER(stack, layer)
        if (strcmp(layer->type->name, "auto_growth_vmm") == 0) return (auto_growth_vmm_t *)layer;
    return NULL;
}

static void free_all(rig_t *rig, strata_block_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

/* A 64th of the peak use is for small blocks alone. */
TEST_RIG(growth_mixed, small_blocks_use_idle_large_memory, 0, EXACT) {
    strata_block_t blocks[MOST_SMALL];
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 512 * MIB).ref));
    allocate_small(rig, blocks, 16);
    EXPECT_EQ(reserved_mib(rig), 512 + 4);
    allocate_small(rig, blocks + 16, 16);
    EXPECT_EQ(reserved_mib(rig), 512 + 8);
    allocate_small(rig, blocks + 32, MOST_SMALL - 32);
    EXPECT_EQ(reserved_mib(rig), 512 + 8);
    EXPECT_OK(strata_validate(rig->s));
    free_all(rig, blocks, MOST_SMALL);
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 512 * MIB).ref));
    EXPECT_EQ(reserved_mib(rig), 512 + 8);
}

/* Such a request needs no memory of the device, so it counts as a hit. */
TEST_RIG(growth_mixed, is_a_hit, 0, EXACT) {
    strata_block_t first = rig_allocate(rig, NULL, SMALL);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 32 * MIB).ref));
    strata_block_t blocks[16];
    uint64_t before = rig_figures(rig).cache_hits, creations = rig_calls(rig, STRATA_CALL_create);
    allocate_small(rig, blocks, 16);
    EXPECT_EQ(rig_figures(rig).cache_hits - before, 16);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_create), creations);
    free_all(rig, blocks, 16);
    RIG_FREE(rig, first);
}

/* Handles that went back are no longer counted, so small blocks get new ones. */
TEST_RIG(growth_mixed, begins_again_after_a_release, 0, EXACT) {
    strata_block_t blocks[16], large = rig_allocate(rig, NULL, 256 * MIB);
    for (int round = 0; round < 3; round++) {
        allocate_small(rig, blocks, 16);
        EXPECT_EQ(reserved_mib(rig), 256 + 4);
        free_all(rig, blocks, 16);
        (void)rig_release(rig);
        EXPECT_EQ(reserved_mib(rig), 256);
    }
    EXPECT_OK(strata_free(rig->s, large.ref));
    allocate_small(rig, blocks, 16);
    EXPECT_EQ(reserved_mib(rig), 256 + 4);
    free_all(rig, blocks, 16);
}

/* The handles of small blocks are pieces of a view. Afterwards they serve small blocks again, without a device call. */
TEST_RIG(growth_mixed, large_blocks_use_idle_handles_of_small_ones, 0, EXACT) {
    strata_block_t blocks[32];
    for (int round = 0; round < 3; round++) {
        allocate_small(rig, blocks, 32);
        free_all(rig, blocks, 32);
        strata_block_t large = rig_allocate(rig, NULL, 8 * MIB);
        EXPECT_EQ(reserved_mib(rig), 8);
        EXPECT_EQ(rig_calls(rig, STRATA_CALL_map) - rig_calls(rig, STRATA_CALL_create), 4);
        EXPECT_OK(strata_validate(rig->s));
        RIG_FREE(rig, large);
        EXPECT_OK(strata_validate(rig->s));
    }
    rig_expect_empty(rig);
}

/* A view that holds a handle of small blocks leaves the live ones where they are. */
TEST_RIG(growth_mixed, live_small_blocks_keep_their_handle, 0, EXACT) {
    strata_block_t blocks[32];
    allocate_small(rig, blocks, 32);
    free_all(rig, blocks, 31);
    strata_block_t large = rig_allocate(rig, NULL, 8 * MIB);
    EXPECT_EQ(reserved_mib(rig), 10);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, large, blocks[31]);
    rig_expect_empty(rig);
}

/* There are more idle handles than a view, a survey or a batch of a release can hold. The last ones are for small blocks. */
TEST_RIG(growth_mixed, many_idle_handles_of_both_kinds, 0, "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]") {
    enum { LARGE = 2100, KEPT = 64 };
    static strata_block_t large[LARGE];
    strata_block_t small[MOST_SMALL];
    for (size_t i = 0; i < LARGE; i++) large[i] = rig_allocate(rig, NULL, 2 * MIB);
    allocate_small(rig, small, MOST_SMALL);
    free_all(rig, large, LARGE);
    free_all(rig, small, MOST_SMALL);
    strata_block_t all = rig_allocate(rig, NULL, 5 * GIB);
    EXPECT_LE(cache_of(rig)->candidates.count, STRATA_VMM_CANDIDATES);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, all);
    rig_expect_empty(rig);
    for (size_t i = 0; i < 300; i++) large[i] = rig_allocate(rig, NULL, 2 * MIB);
    allocate_small(rig, small, KEPT);
    free_all(rig, large, 300);
    free_all(rig, small, KEPT);
    rig_expect_empty(rig);
}

/* Idle memory serves without a wait for a block that another stream still uses. */
TEST_RIG(growth_mixed, waits_for_nothing, 0, "strata") {
    enum { LONG = 50 * 1000 * 1000 };
    strata_stream_t user = rig_stream(rig);
    strata_block_t blocks[65], lent = rig_allocate(rig, NULL, 16 * MIB);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 512 * MIB).ref));
    allocate_small(rig, blocks, 64);
    rig_borrow(rig, lent.ref, user, LONG);
    EXPECT_OK(strata_free(rig->s, lent.ref));
    uint64_t before = strata_sim_now(rig->world);
    blocks[64] = rig_allocate(rig, NULL, SMALL);
    EXPECT_LT(strata_sim_now(rig->world) - before, LONG / 10);
    free_all(rig, blocks, 65);
}

/* ---- sizes that grow ---- */

typedef struct sizes {
    const char *name;
    size_t mib[8]; /* in order of allocation, ended by 0 */
    bool grows;
} sizes_t;

static const sizes_t rows[] = {
    {"four_sizes_are_too_few", {26, 50, 74, 98}, false},
    {"five_with_one_step", {26, 50, 74, 98, 122}, true},
    {"several_buffers", {30, 41, 33, 44, 36, 47}, true},
    {"another_block_has_the_size", {98, 26, 50, 74, 98, 122}, true},
    {"another_size_between", {26, 50, 74, 98, 31, 122, 146, 170}, false},
    {"two_rows_of_four", {26, 50, 74, 98, 300, 340, 380, 420}, false},
    {"steps_that_differ", {26, 50, 75, 99, 125, 149, 176}, false},
};

TEST_EACH(growth_mixed, sizes_that_grow_by_one_step, sizes_t, rows) {
    RIG(rig, EXACT, 0);
    for (size_t i = 0; i < COUNT(row->mib) && row->mib[i] > 0; i++) (void)rig_allocate(&rig, NULL, row->mib[i] * MIB);
    EXPECT_EQ(strata_growth_vmm_is_growing(cache_of(&rig)), row->grows);
}

/* The first size that was noted counts as known, like every later one. */
TEST_RIG(growth_mixed, a_repeated_size_is_not_new, 0, EXACT) {
    for (int i = 0; i < 3; i++) (void)rig_allocate(rig, NULL, 96 * MIB);
    EXPECT_EQ(cache_of(rig)->asked_next, 1);
    EXPECT_EQ(cache_of(rig)->unseen, 0);
    for (int i = 0; i < 3; i++) (void)rig_allocate(rig, NULL, 11 * MIB);
    EXPECT_EQ(cache_of(rig)->asked_next, 2);
}

/* Random sizes are often multiples of one unit, so one is often larger than another by the same step. */
TEST(growth_mixed, random_multiples_do_not_grow) {
    for (uint64_t seed = 1; seed <= 20; seed++) {
        RIG(rig, EXACT, STRATA_SIM_UNLIMITED);
        uint64_t random = seed;
        for (int i = 0; i < 100; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            (void)rig_allocate(&rig, NULL, (1 + (random >> 33) % 256) * 2 * MIB);
        }
        EXPECT_EQ(cache_of(&rig)->steps, 0);
        EXPECT_FALSE(strata_growth_vmm_is_growing(cache_of(&rig)));
    }
}

/* The time that auto_growth_vmm spends on views and moves, and the memory that stays after a release. */
#include <stdlib.h>

#include "allocation/cache/policies/virtual/auto_growth_vmm_state.h"
#include "platform/arithmetic.h"
#include "tests/facade/support/fixture.h"

#define GROWING "stack: [auto_growth_vmm, vmm]"
enum { LIVE = 24, REQUESTS = 100 * 1000, SEEDS = 50 };

static uint64_t random_next(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

/* Returns the least device time in ns of the mappings beside the one of each handle. */
static uint64_t join_cost(rig_t *rig) {
    const strata_sim_profile_t *h100 = strata_sim_profile("h100");
    uint64_t begun = rig_calls(rig, STRATA_CALL_map) - rig_calls(rig, STRATA_CALL_create);
    uint64_t ended = rig_calls(rig, STRATA_CALL_unmap) - rig_calls(rig, STRATA_CALL_release);
    return (uint64_t)((double)begun * (h100->map.fixed_ns + h100->set_access.fixed_ns) + (double)ended * h100->unmap.fixed_ns);
}

static uint64_t create_cost(rig_t *rig) {
    const strata_sim_profile_t *h100 = strata_sim_profile("h100");
    double each = h100->create.fixed_ns + h100->map.fixed_ns + h100->set_access.fixed_ns, gib = 1024;
    double mib = h100->create.per_mib_ns + h100->map.per_mib_ns + h100->set_access.per_mib_ns;
    return (uint64_t)((double)rig_calls(rig, STRATA_CALL_create) * each +
                      mib * gib * (double)(rig_figures(rig).peak_reserved_bytes >> 30) + mib * gib);
}

typedef struct program {
    const char *name;
    uint64_t pause; /* ns after each request */
    bool grows; /* each block is replaced by a larger one, else by one of a random size */
} program_t;

static const program_t programs[] = {
    {"random_without_a_pause", 0, false},
    {"random_with_pauses", 100 * 1000, false},
    {"growing_without_a_pause", 0, true},
    {"growing_with_pauses", 100 * 1000, true},
};

/* No size repeats, so each view or move serves once. All of them cost at most 2 % of the time, or the cost of the creations with
 * 10 ms, and one miss more. */
static void expect_budget(const program_t *row, uint64_t seed) {
    RIG(rig, GROWING, 0);
    strata_block_t blocks[LIVE] = {0};
    uint64_t state = seed, began = strata_sim_now(rig.world), mappings = 0, last = 0;
    for (int i = 0; i < REQUESTS; i++) {
        size_t at = row->grows ? (size_t)i % 4 : random_next(&state) % LIVE;
        size_t size = row->grows ? (size_t)(i + 4) * 48 * 1024 * (at + 1)
                                 : (1 + random_next(&state) % 65536) * 4096 + 512 * (size_t)(i % 8);
        if (size > 4096 * MIB) break;
        if (blocks[at].ref) EXPECT_OK(strata_free(rig.s, blocks[at].ref));
        if (strata_allocate(rig.s, rig.gpu, NULL, size, &blocks[at]) != STRATA_OK) blocks[at].ref = 0;
        rig_advance(&rig, row->pause);
        uint64_t now = join_cost(&rig);
        mappings = strata_max(mappings, now - last);
        last = now;
    }
    uint64_t elapsed = strata_sim_now(rig.world) - began;
    EXPECT_LE(join_cost(&rig), strata_max(10 * 1000 * 1000 + create_cost(&rig), elapsed / 50) + 2 * mappings);
    EXPECT_OK(strata_validate(rig.s));
    for (size_t i = 0; i < LIVE; i++)
        if (blocks[i].ref) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
}

TEST_EACH(growth_budget, is_kept_if_no_size_repeats, program_t, programs) {
    for (uint64_t seed = 1; seed <= (row->grows ? 1 : SEEDS); seed++) {
        expect_budget(row, seed);
        if (strata_test_has_failed()) FAIL_TEST("seed %d", (int)seed);
    }
}

/* The device has no memory for all that is missing, but for what idle memory lacks. The budget does not matter then. */
TEST_RIG(growth_budget, memory_is_joined_beyond_it_rather_than_refused, 1000 * MIB, GROWING) {
    enum { COUNT_OF_BLOCKS = 60 };
    strata_block_t blocks[COUNT_OF_BLOCKS];
    for (size_t i = 0; i < COUNT_OF_BLOCKS; i++) blocks[i] = rig_allocate(rig, NULL, 10 * MIB);
    for (size_t i = 0; i < COUNT_OF_BLOCKS; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    strata_stack_t *stack = rig_stack(rig, NULL);
    STRATA_EACH_OWN_LAYER(stack, layer) {
        auto_growth_vmm_t *cache = (auto_growth_vmm_t *)layer;
        if (strcmp(layer->type->name, "auto_growth_vmm") == 0) cache->joined_ns = UINT64_C(1) << 60;
    }
    strata_block_t large = {0};
    EXPECT_OK(strata_allocate(rig->s, rig->gpu, NULL, 500 * MIB, &large));
    EXPECT_OK(strata_validate(rig->s));
    if (large.ref) EXPECT_OK(strata_free(rig->s, large.ref));
    for (size_t i = 1; i < COUNT_OF_BLOCKS; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

/* A program that keeps asking for new sizes gets small handles, but at most 16 for one miss. */
TEST_RIG(growth_budget, a_large_miss_gets_few_handles, 0, GROWING) {
    strata_block_t blocks[96];
    uint64_t state = 7;
    for (size_t i = 0; i < COUNT(blocks); i++) blocks[i] = rig_allocate(rig, NULL, 5 * MIB + random_next(&state) % 65536 * 256);
    for (size_t i = 0; i < COUNT(blocks); i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    uint64_t before = rig_calls(rig, STRATA_CALL_create);
    strata_block_t large = rig_allocate(rig, NULL, 640 * MIB); /* some 200 MiB of it are new */
    EXPECT_GE(rig_calls(rig, STRATA_CALL_create) - before, 4);
    EXPECT_LE(rig_calls(rig, STRATA_CALL_create) - before, 16);
    EXPECT_OK(strata_free(rig->s, large.ref));
    for (size_t i = 1; i < COUNT(blocks); i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

/* A small block gets one handle of the smallest size, however much the program holds. */
TEST_RIG(growth_release, a_small_block_gets_one_small_handle, 0, GROWING) {
    strata_block_t large = rig_allocate(rig, NULL, 2048 * MIB);
    uint64_t reserved = rig_figures(rig).reserved_bytes;
    strata_block_t small = rig_allocate(rig, NULL, 16 * 1024);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, reserved + 2 * MIB);
    RIG_FREE(rig, large, small);
}

/* Sequences of small blocks, most of which end. A release keeps only handles with a live block. */
TEST(growth_release, keeps_the_handles_of_live_small_blocks_alone) {
    static const size_t sizes[] = {512, 16 * 1024, 100 * 1000, 256 * 1024};
    enum { SEQUENCES = 32, KEPT = 8 };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        RIG(rig, GROWING, 0);
        size_t unit = (sizes[i] + 255) / 256 * 256, length = 3 * MIB / unit, count = SEQUENCES * length;
        strata_block_t *blocks = calloc(count, sizeof *blocks);
        for (size_t k = 0; k < count; k++) blocks[k] = rig_allocate(&rig, NULL, sizes[i]);
        for (size_t k = 0; k < count; k++)
            if (k / length % KEPT != 0) EXPECT_OK(strata_free(rig.s, blocks[k].ref));
        (void)rig_release(&rig);
        /* Each of the sequences that stay has 3 MiB, which touch at most three handles of 2 MiB. */
        EXPECT_LE(rig_figures(&rig).reserved_bytes, SEQUENCES / KEPT * 3 * 2 * MIB);
        for (size_t k = 0; k < count; k++)
            if (k / length % KEPT == 0) EXPECT_OK(strata_free(rig.s, blocks[k].ref));
        free(blocks);
        if (strata_test_has_failed()) FAIL_TEST("blocks of %d bytes", (int)sizes[i]);
    }
}

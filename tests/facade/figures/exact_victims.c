/* Tests the cheapest victims and the size of a run where two answers are nearly equal. */
#include "tests/facade/support/fixture.h"

enum { MOST = 8 };

typedef struct victims_row {
    const char *name;
    uint64_t sizes[MOST]; /* MiB of consecutive live blocks in one chunk; 0 terminates the list */
    uint64_t freed; /* bit mask: blocks freed before the call */
    size_t asked; /* requested MiB */
    uint64_t victims; /* bit mask */
} victims_row_t;

static const victims_row_t rows[] = {
    {"one_of_two_ways", {2, 2, 4, 8}, 0, 4, 1 << 2}, /* as many bytes as the first two, but fewer blocks */
    {"the_first_of_equals", {4, 4, 8}, 0, 4, 1 << 0},
    {"exactly_enough", {1, 4, 5, 6}, 0, 4, 1 << 1},
    {"no_block_more", {2, 2, 4, 8}, 0, 6, (1 << 1) | (1 << 2)},
    {"free_blocks_cost_nothing", {4, 4, 4, 4}, 1 << 1, 8, (1 << 0)},
    {"between_two_free_ones", {2, 6, 2, 6}, (1 << 0) | (1 << 2), 10, 1 << 1},
    {"all_of_it", {4, 4, 8}, 0, 16, 7},
};

static void expect_one_after_the_other(const strata_block_t *blocks, size_t count) {
    for (size_t i = 1; i < count; i++) ASSERT_EQ((uintptr_t)blocks[i].ptr, (uintptr_t)blocks[i - 1].ptr + blocks[i - 1].size);
}

TEST_EACH(exact_victims, are_the_cheapest, victims_row_t, rows) {
    RIG(rig, "stack: [auto_growth: {chunk_size: 16MiB}, system]\n", 16 * MIB);
    strata_block_t blocks[MOST];
    strata_ref_t victims[MOST];
    size_t count = 0, found = 99;
    while (count < MOST && row->sizes[count]) count++;
    /* The cache splits from the end of the chunk. */
    for (size_t i = count; i-- > 0;) blocks[i] = rig_allocate(&rig, NULL, row->sizes[i] * MIB);
    expect_one_after_the_other(blocks, count);
    for (size_t i = 0; i < count; i++)
        if (row->freed >> i & 1) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    EXPECT_OK(strata_best_victims(rig.s, rig.gpu, row->asked * MIB, victims, MOST, &found));
    uint64_t named = 0, known = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < found && k < MOST; k++)
            if (victims[k] == blocks[i].ref) named |= UINT64_C(1) << i, known++;
    EXPECT_EQ(named, row->victims);
    EXPECT_EQ(known, found);
}

/* Free neighbors that the cache has not coalesced yet count as one run. */
TEST_RIG(exact_victims, a_run_is_all_that_is_free_beside_a_block, 16 * MIB, "stack: [auto_growth: {chunk_size: 16MiB}, system]\n") {
    strata_block_t blocks[MOST];
    for (int i = MOST; i-- > 0;) blocks[i] = rig_allocate(rig, NULL, 2 * MIB);
    expect_one_after_the_other(blocks, MOST);
    static const int freed[] = {4, 3, 6, 1, 0};
    for (int i = 0; i < 5; i++) EXPECT_OK(strata_free(rig->s, blocks[freed[i]].ref));
    static const struct {
        int block;
        uint64_t before, after;
    } wanted[] = {{2, 4, 4}, {5, 4, 2}, {7, 2, 0}};
    for (int i = 0; i < 3; i++) {
        strata_neighbours_t n = {.struct_size = sizeof n};
        EXPECT_OK(strata_neighbours(rig->s, blocks[wanted[i].block].ref, &n));
        EXPECT_EQ(n.free_before, wanted[i].before * MIB);
        EXPECT_EQ(n.free_after, wanted[i].after * MIB);
        EXPECT_EQ(n.run, (wanted[i].before + wanted[i].after + 2) * MIB);
        EXPECT_EQ(n.block.ptr, blocks[wanted[i].block].ptr);
    }
}

/* The peaks of ended streams, which are in the figures of their pool, are reset with all others. */
TEST_RIG(exact_victims, peaks_of_ended_streams_are_reset, 16 * MIB, "stack: [system]\n") {
    strata_statistics_t f = {.struct_size = sizeof f};
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, stream, 4 * MIB).ref));
    rig_forget(rig, stream);
    EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, STRATA_POOL_ORDINARY, &f));
    EXPECT_EQ(f.peak_requested_bytes, 4 * MIB);
    EXPECT_EQ(f.peak_allocated_bytes, 4 * MIB);
    EXPECT_EQ(f.peak_reserved_bytes, 4 * MIB);
    EXPECT_OK(strata_reset_peaks(rig->s, rig->gpu));
    EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, STRATA_POOL_ORDINARY, &f));
    EXPECT_EQ(f.peak_requested_bytes + f.peak_allocated_bytes + f.peak_reserved_bytes, 0);
    EXPECT_EQ(f.allocations, 1);
    EXPECT_EQ(f.frees, 1);
}

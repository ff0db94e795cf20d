/* auto_growth_vmm: what a miss makes of idle pieces, which handles it creates, and what goes back; by sequences worked by hand. */
#include "platform/sim/sim.h"
#include "tests/facade/support/fixture.h"

#define EXACT "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]"

static uint64_t reserved(rig_t *rig) { return rig_figures(rig).reserved_bytes; }

/* 2, 120 and 2 MiB, of which the small ones are freed. */
static strata_block_t between_two_holes(rig_t *rig) {
    strata_block_t low = rig_allocate(rig, NULL, 2 * MIB), middle = rig_allocate(rig, NULL, 120 * MIB),
                   high = rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_OK(strata_free(rig->s, low.ref));
    EXPECT_OK(strata_free(rig->s, high.ref));
    return middle;
}

static int maps(rig_t *rig) { return (int)rig_calls(rig, STRATA_CALL_map) - (int)rig_calls(rig, STRATA_CALL_create); }

/* The handles of both holes are mapped a second time, one after the other; the first mappings stay, and nobody waits. */
TEST_RIG(growth_vmm, idle_handles_are_one_block_in_a_view, 0, EXACT) {
    strata_block_t middle = between_two_holes(rig);
    EXPECT_EQ(reserved(rig), 124 * MIB);
    strata_block_t block = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_EQ(reserved(rig), 124 * MIB);
    EXPECT_EQ(maps(rig), 2);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_unmap), 0);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_synchronise), 0);
    EXPECT_OK(strata_validate(rig->s));
    strata_block_t next = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_EQ(reserved(rig), 128 * MIB);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, middle, block, next);
    EXPECT_OK(strata_validate(rig->s));
}

/* What a freed block had of the handles serves others, at the addresses that it has there. */
TEST_RIG(growth_vmm, what_a_view_had_is_free_again, 0, EXACT) {
    strata_block_t middle = between_two_holes(rig), block = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_OK(strata_free(rig->s, block.ref));
    strata_block_t low = rig_allocate(rig, NULL, 2 * MIB), high = rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_EQ(reserved(rig), 124 * MIB);
    EXPECT_NE(low.ptr, block.ptr);
    EXPECT_NE(high.ptr, block.ptr);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, low, high, middle);
}

/* A program that repeats itself finds the view again, and asks nothing of the device. */
TEST_RIG(growth_vmm, a_view_is_found_again, 0, EXACT) {
    strata_block_t middle = between_two_holes(rig);
    void *first = NULL;
    for (int step = 0; step < 4; step++) {
        strata_block_t block = rig_allocate(rig, NULL, 4 * MIB);
        if (step == 0) first = block.ptr;
        EXPECT_EQ(block.ptr, first);
        EXPECT_OK(strata_free(rig->s, block.ref));
        strata_block_t low = rig_allocate(rig, NULL, 2 * MIB), high = rig_allocate(rig, NULL, 2 * MIB);
        RIG_FREE(rig, low, high);
        EXPECT_EQ(maps(rig), 2);
    }
    EXPECT_EQ(reserved(rig), 124 * MIB);
    RIG_FREE(rig, middle);
}

/* 4 MiB at the high end of one handle and 6 at the low end of another. */
TEST_RIG(growth_vmm, ends_of_handles_are_one_block, 0, EXACT) {
    strata_block_t a = rig_allocate(rig, NULL, 10 * MIB), b = rig_allocate(rig, NULL, 2 * MIB),
                   c = rig_allocate(rig, NULL, 10 * MIB), d = rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_OK(strata_free(rig->s, a.ref));
    strata_block_t low_of_a = rig_allocate(rig, NULL, 6 * MIB), high_of_a = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_OK(strata_free(rig->s, c.ref));
    strata_block_t low_of_c = rig_allocate(rig, NULL, 6 * MIB), high_of_c = rig_allocate(rig, NULL, 4 * MIB);
    RIG_FREE(rig, high_of_a, low_of_c);
    strata_block_t block = rig_allocate(rig, NULL, 10 * MIB);
    EXPECT_EQ(reserved(rig), 24 * MIB);
    EXPECT_EQ(maps(rig), 2);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, b, d, low_of_a, high_of_c, block);
}

/* Of 100 MiB 4 are idle, and of 106 then 100: the rest is created, and is a part of the block. */
TEST_RIG(growth_vmm, only_what_is_short_is_created, 0, EXACT) {
    strata_block_t middle = between_two_holes(rig), other = rig_allocate(rig, NULL, 100 * MIB), block;
    EXPECT_EQ(reserved(rig), 124 * MIB + 96 * MIB);
    EXPECT_OK(strata_free(rig->s, other.ref));
    block = rig_allocate(rig, NULL, 106 * MIB);
    EXPECT_EQ(reserved(rig), 124 * MIB + 102 * MIB);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, middle, block);
}

/* Work may still use the addresses of a view: they end after it. */
TEST_RIG(growth_vmm, a_view_ends_once_its_work_is_done, 0, EXACT) {
    enum { LONG = 50 * 1000 * 1000 };
    strata_block_t middle = between_two_holes(rig), block = rig_allocate(rig, NULL, 4 * MIB);
    rig_work(rig, NULL, LONG, block.ref);
    RIG_FREE(rig, block, middle);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_unmap), 0);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_unmap), rig_calls(rig, STRATA_CALL_map));
    EXPECT_EQ(reserved(rig), 0);
}

/* Each call of the device that a view makes refused once: the request says why, and leaves nothing behind. */
TEST(growth_vmm, a_view_that_the_device_refuses_leaves_nothing) {
    static const strata_device_call_t kinds[] = {STRATA_CALL_map, STRATA_CALL_set_access};
    for (int number = 1; number <= 2; number++) {
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
            RIG(rig, EXACT, 0);
            strata_block_t middle = between_two_holes(&rig), block;
            ASSERT_OK(strata_sim_fail(rig.devices[0], kinds[kind], (uint64_t)number, false, STRATA_E_DEVICE));
            EXPECT_STATUS(STRATA_E_DEVICE, rig_try(&rig, NULL, 4 * MIB));
            EXPECT_EQ(reserved(&rig), 124 * MIB);
            EXPECT_OK(strata_validate(rig.s));
            block = rig_allocate(&rig, NULL, 4 * MIB);
            EXPECT_EQ(reserved(&rig), 124 * MIB);
            RIG_FREE(&rig, middle, block);
        }
    }
}

/* Its mappings stay then, and its handles with them, until the device takes them back. */
TEST_RIG(growth_vmm, a_view_that_does_not_end_keeps_its_handles, 0, EXACT) {
    strata_block_t middle = between_two_holes(rig), block = rig_allocate(rig, NULL, 4 * MIB);
    RIG_FREE(rig, middle, block);
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_unmap, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(reserved(rig), 2 * MIB);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(reserved(rig), 0);
}

/* A block of a view is freed by pointer, has the figures of any, and stands once in the map. */
static void count_row(const strata_snapshot_row_t *row, void *context) { *(uint64_t *)context += row->block.size; }

/* Of a view that is used again for less, what it has no part of now stays all the same, until the view ends. */
TEST_RIG(growth_vmm, a_view_in_use_keeps_its_handles, 0, EXACT) {
    strata_block_t middle = between_two_holes(rig), block = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_OK(strata_free(rig->s, block.ref));
    strata_block_t low = rig_allocate(rig, NULL, 2 * MIB), high = rig_allocate(rig, NULL, 2 * MIB);
    strata_block_t other = rig_allocate(rig, NULL, 120 * MIB), large = rig_allocate(rig, NULL, 8 * MIB);
    RIG_FREE(rig, low, high);
    block = rig_allocate(rig, NULL, 3 * MIB);
    uint64_t before = reserved(rig);
    (void)rig_release(rig);
    EXPECT_GT(before, 0);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, block, middle, other, large);
    EXPECT_OK(strata_validate(rig->s));
    (void)rig_release(rig);
    EXPECT_EQ(reserved(rig), 0);
    EXPECT_OK(strata_validate(rig->s));
}

/* The block uses two of the three handles of the view. The third is idle, but its second mapping must not end. */
TEST_RIG(growth_vmm, an_idle_handle_of_a_view_in_use_stays, 0, EXACT) {
    strata_block_t holes[3], between[2];
    for (int i = 0; i < 3; i++) {
        holes[i] = rig_allocate(rig, NULL, 2 * MIB);
        if (i < 2) between[i] = rig_allocate(rig, NULL, 40 * MIB);
    }
    RIG_FREE(rig, holes[0], holes[1], holes[2]);
    strata_block_t all = rig_allocate(rig, NULL, 6 * MIB);
    EXPECT_EQ(maps(rig), 3);
    RIG_FREE(rig, all);
    strata_block_t part = rig_allocate(rig, NULL, 3 * MIB);
    EXPECT_EQ(part.ptr, all.ptr);
    (void)rig_release(rig);
    EXPECT_EQ(reserved(rig), 86 * MIB);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, part, between[0], between[1]);
    rig_expect_empty(rig);
}

static void has_no_more(rig_t *rig) {
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_create, 1, true, STRATA_E_NO_MEMORY));
}

/* More might be created, if the device had some. */
TEST_RIG(growth_vmm, what_lies_idle_is_joined_where_the_device_has_no_more, 0,
         "stack: [auto_growth_vmm: {slack: 1, slack_least: 1GiB}, vmm]") {
    strata_block_t blocks[64];
    size_t count = 0;
    while (count < 8) blocks[count++] = rig_allocate(rig, NULL, 2 * MIB);
    has_no_more(rig);
    while (count < COUNT(blocks) && strata_allocate(rig->s, rig->gpu, NULL, 2 * MIB, &blocks[count]) == STRATA_OK) count++;
    ASSERT_TRUE(count < COUNT(blocks));
    RIG_FREE(rig, blocks[1], blocks[3]);
    strata_block_t block = rig_allocate(rig, NULL, 4 * MIB);
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_OK(strata_validate(rig->s));
    for (size_t i = 0; i < count; i++)
        if (i != 1 && i != 3) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_OK(strata_free(rig->s, block.ref));
}

/* Little blocks have handles of their own, as long as the device has some for them; and large ones do without them. */
TEST(growth_vmm, one_pool_serves_for_the_other_where_the_device_has_no_more) {
    static const size_t sizes[] = {2 * MIB, 1000, 1000, MIB};
    for (size_t i = 0; i < COUNT(sizes); i += 2) {
        RIG(rig, EXACT, 0);
        RIG_FREE(&rig, rig_allocate(&rig, NULL, sizes[i]));
        has_no_more(&rig);
        strata_block_t block = rig_allocate(&rig, NULL, sizes[i + 1]);
        strata_sim_clear_faults(rig.devices[0]);
        EXPECT_OK(strata_validate(rig.s));
        RIG_FREE(&rig, block);
    }
}

TEST_RIG(growth_vmm, a_block_of_a_view_is_like_any, 0, EXACT) {
    strata_block_t middle = between_two_holes(rig), block = rig_allocate(rig, NULL, 4 * MIB);
    uint64_t bytes = 0;
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, count_row, &bytes));
    EXPECT_EQ(bytes, 124 * MIB);
    EXPECT_EQ(rig_figures(rig).allocated_bytes, 124 * MIB);
    EXPECT_OK(strata_free_pointer(rig->s, block.ptr));
    EXPECT_NE(strata_free(rig->s, block.ref), STRATA_OK);
    EXPECT_EQ(rig_figures(rig).allocated_bytes, 120 * MIB);
    RIG_FREE(rig, middle);
}

TEST_RIG(growth_vmm, without_views_memory_is_created, 0,
         "stack: [auto_growth_vmm: {slack: 0, slack_least: 0, views: false}, vmm]") {
    strata_block_t middle = between_two_holes(rig), block = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_EQ(reserved(rig), 126 * MIB);
    EXPECT_EQ(maps(rig), 0);
    RIG_FREE(rig, middle, block);
}

/* Blocks of up to 256 KiB, and larger ones, have handles of their own. */
TEST_RIG(growth_vmm, small_blocks_keep_no_large_handle, 0, EXACT) {
    strata_block_t large = rig_allocate(rig, NULL, 4 * MIB - 256 * 1024), small = rig_allocate(rig, NULL, 256 * 1024);
    EXPECT_EQ(reserved(rig), 6 * MIB);
    EXPECT_OK(strata_free(rig->s, large.ref));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(reserved(rig), 2 * MIB);
    RIG_FREE(rig, small);
}

/* A share of what was needed, and at least so much: memory is created before views are made. */
TEST_RIG(growth_vmm, within_the_slack_memory_is_created, 0, "stack: [auto_growth_vmm: {slack: 0.04, slack_least: 0}, vmm]",
         "stack: [auto_growth_vmm: {slack: 0, slack_least: 16MiB}, vmm]") {
    strata_block_t middle = between_two_holes(rig), block = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_GT(reserved(rig), 124 * MIB);
    EXPECT_LE(reserved(rig), 130 * MIB);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_map), rig_calls(rig, STRATA_CALL_create));
    RIG_FREE(rig, middle, block);
}

/* A program may ask for more than there is, to see how much that is. */
TEST_RIG(growth_vmm, what_was_refused_was_not_needed, 0, "stack: [auto_growth_vmm: {}, vmm]") {
    strata_block_t first = rig_allocate(rig, NULL, 2 * MIB), none;
    for (int i = 0; i < 4; i++) EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, rig->gpu, NULL, 1024 * GIB, &none));
    strata_block_t second = rig_allocate(rig, NULL, 3 * MIB);
    EXPECT_LE(reserved(rig), 8 * MIB);
    RIG_FREE(rig, first, second);
}

/* A view of the idle memory would need more handles than the device can give. */
TEST_RIG(growth_vmm, a_request_above_the_device_takes_nothing_beside_idle_memory, 8 * GIB, "stack: [auto_growth_vmm, vmm]") {
    strata_block_t none;
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 2 * GIB).ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, rig->gpu, NULL, 40 * GIB, &none));
    EXPECT_EQ(rig_figures(rig).peak_reserved_bytes, 2 * GIB);
}

/* What is left of the memory that came for a block touches the room after it, and the next block begins there. */
TEST_RIG(growth_vmm, blocks_follow_one_another, 0, EXACT) {
    strata_block_t a = rig_allocate(rig, NULL, 3 * MIB), b = rig_allocate(rig, NULL, 3 * MIB);
    EXPECT_EQ((char *)b.ptr - (char *)a.ptr, 3 * MIB);
    EXPECT_EQ(reserved(rig), 6 * MIB);
    RIG_FREE(rig, a, b);
}

/* Handles from the middle of what is mapped go, and blocks on either side stay. */
TEST_RIG(growth_vmm, idle_handles_go_back_from_between_live_blocks, 0, EXACT) {
    strata_block_t blocks[5];
    for (int i = 0; i < 5; i++) blocks[i] = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_OK(strata_free(rig->s, blocks[1].ref));
    EXPECT_OK(strata_free(rig->s, blocks[3].ref));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(reserved(rig), 12 * MIB);
    EXPECT_OK(strata_validate(rig->s));
    strata_block_t again = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_TRUE(again.ptr == blocks[1].ptr || again.ptr == blocks[3].ptr);
    EXPECT_EQ(reserved(rig), 16 * MIB);
    RIG_FREE(rig, blocks[0], blocks[2], blocks[4], again);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(reserved(rig), 0);
}

static int ranges(rig_t *rig) { return (int)rig_calls(rig, STRATA_CALL_reserve) - (int)rig_calls(rig, STRATA_CALL_unreserve); }

/* So do those of a range that never had anything, and of one whose last piece is a view's. */
TEST_RIG(growth_vmm, addresses_go_back_with_the_last_that_lay_there, 0, EXACT) {
    strata_block_t small = rig_allocate(rig, NULL, 4096), middle = between_two_holes(rig), view = rig_allocate(rig, NULL, 4 * MIB);
    int all = ranges(rig);
    EXPECT_GE(all, 2);
    RIG_FREE(rig, middle, view);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_LT(ranges(rig), all);
    EXPECT_GE(ranges(rig), 1);
    RIG_FREE(rig, small);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(ranges(rig), 0);
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_create, 1, true, STRATA_E_NO_MEMORY));
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, rig->gpu, NULL, MIB, &none));
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(ranges(rig), 0);
}

/* Where a mapping could not be ended nobody is served: after a move, and after a release. */
TEST_RIG_WAYS(growth_vmm, addresses_that_the_device_keeps_serve_nobody, moved, 2, 0, EXACT) {
    strata_block_t low = rig_allocate(rig, NULL, 2 * MIB), middle = rig_allocate(rig, NULL, 120 * MIB),
                   high = rig_allocate(rig, NULL, 2 * MIB), larger = {0};
    RIG_FREE(rig, low);
    if (moved) RIG_FREE(rig, high);
    if (moved) larger = rig_allocate(rig, NULL, 4 * MIB);
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_unmap, 1, true, STRATA_E_DEVICE));
    if (!moved) EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    strata_block_t next = rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_NE(next.ptr, low.ptr);
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, middle, next, moved ? larger : high);
}

/* What is in use above the same source by another stream is never moved to this one. */
TEST_RIG(growth_vmm, handles_reach_other_streams_through_the_device_alone, 64 * MIB, EXACT) {
    strata_stream_t other = rig_stream(rig);
    strata_block_t mine = rig_allocate(rig, NULL, 40 * MIB);
    EXPECT_OK(strata_free(rig->s, mine.ref));
    strata_block_t others = rig_allocate(rig, other, 40 * MIB);
    EXPECT_EQ(reserved(rig), 40 * MIB);
    RIG_FREE(rig, others);
}

/* ---- without virtual memory ---- */

TEST_BY(growth_vmm, another_stack_serves_a_device_without_virtual_memory, rig_open_without_virtual_memory(rig, "strata")) {
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), 1);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_create), 0);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 20 * MIB);
    EXPECT_OK(strata_free(rig->s, block.ref));
}

TEST_RIG(growth_vmm, a_device_with_virtual_memory_has_the_first_stack, 0, "strata") {
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), 0);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_create), 1);
    RIG_FREE(rig, block);
}

/* It belongs to the stack beside it. */
TEST(growth_vmm, who_writes_another_stack_does_not_inherit_the_one_without) {
    strata_strategy_t *inherits = rig_strategy("extends: strata\n", NULL, 0),
                      *writes = rig_strategy("extends: strata\nstack: [caching, system]\n", NULL, 0);
    EXPECT_EQ(inherits->named[STRATA_NAMED_PLAIN].count, 1);
    EXPECT_EQ(writes->named[STRATA_NAMED_PLAIN].count, 0);
    strata_strategy_delete(inherits);
    strata_strategy_delete(writes);
}

/* ---- many sizes ---- */

/* 1,000 live blocks of 512 x 2^(17u) bytes, a random one freed and another allocated: highest reserved over highest requested. */
static double turnover(uint64_t seed) {
    enum { LIVE = 1000, TURNS = 30000 };
    static strata_ref_t live[LIVE];
    RIG(rig, "strata", STRATA_SIM_UNLIMITED);
    uint64_t random = seed;
    for (int i = 0; i < LIVE + TURNS; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        strata_ref_t *ref = &live[i < LIVE ? (uint64_t)i : (random >> 33) % LIVE];
        if (i >= LIVE) EXPECT_OK(strata_free(rig.s, *ref));
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        *ref = rig_allocate(&rig, NULL, (size_t)(512 * __builtin_exp2(17.0 * (double)(random >> 11) / 9007199254740992.0))).ref;
        rig_advance(&rig, 200 * 1000); /* the time of some kernels, a part of which may be spent on views */
    }
    double ratio = (double)rig_figures(&rig).peak_reserved_bytes / (double)rig_figures(&rig).peak_requested_bytes;
    EXPECT_OK(strata_validate(rig.s));
    for (int i = 0; i < LIVE; i++) EXPECT_OK(strata_free(rig.s, live[i]));
    return ratio;
}

TEST(growth_vmm, many_sizes_waste_little) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        double ratio = turnover(seed);
        printf("reserved over requested, 1,000 live blocks: %.4f\n", ratio);
        sum += ratio / 16;
    }
    EXPECT_LE(sum, 1.06);
}

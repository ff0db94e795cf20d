/* auto_growth_vmm: which handles a miss moves, which it creates, and what goes back; by sequences worked by hand. */
#include "platform/sim/sim.h"
#include "tests/facade/fixture.h"

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

/* The handle of the low hole comes to the high one; its old mapping ends once the stream's work is done, and nobody waits. */
TEST(growth_vmm, idle_handles_come_together_where_memory_is_missing) {
    RIG(rig, EXACT, 0);
    strata_block_t middle = between_two_holes(&rig);
    EXPECT_EQ(reserved(&rig), 124 * MIB);
    strata_block_t block = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_EQ(reserved(&rig), 124 * MIB);
    EXPECT_EQ((char *)block.ptr - (char *)middle.ptr, 120 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_map), rig_calls(&rig, STRATA_CALL_create) + 1);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 0);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), 0);
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t next = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 1);
    EXPECT_EQ(reserved(&rig), 128 * MIB);
    RIG_FREE(&rig, middle, block, next);
}

/* Work that was given to the stream before still uses the old address. */
TEST(growth_vmm, an_old_mapping_stays_while_work_may_use_it) {
    enum { LONG = 50 * 1000 * 1000 };
    RIG(rig, EXACT, 0);
    strata_block_t low = rig_allocate(&rig, NULL, 2 * MIB), middle = rig_allocate(&rig, NULL, 120 * MIB),
                   high = rig_allocate(&rig, NULL, 2 * MIB);
    rig_work(&rig, NULL, LONG, low.ref);
    RIG_FREE(&rig, low, high);
    strata_block_t block = rig_allocate(&rig, NULL, 4 * MIB), next = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 0);
    rig_pass(&rig, 2 * LONG);
    strata_block_t last = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 1);
    RIG_FREE(&rig, middle, block, next, last);
}

TEST(growth_vmm, without_moves_memory_is_created) {
    RIG(rig, "stack: [auto_growth_vmm: {slack: 0, slack_least: 0, moves: false}, vmm]", 0);
    strata_block_t middle = between_two_holes(&rig), block = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_EQ(reserved(&rig), 126 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_map), rig_calls(&rig, STRATA_CALL_create));
    RIG_FREE(&rig, middle, block);
}

/* A share of what was needed, and at least so much: memory is created before any is moved. */
TEST(growth_vmm, within_the_slack_memory_is_created) {
    static const char *const stacks[] = {"stack: [auto_growth_vmm: {slack: 0.04, slack_least: 0}, vmm]",
                                         "stack: [auto_growth_vmm: {slack: 0, slack_least: 16MiB}, vmm]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        RIG(rig, stacks[i], 0);
        strata_block_t middle = between_two_holes(&rig), block = rig_allocate(&rig, NULL, 4 * MIB);
        EXPECT_GT(reserved(&rig), 124 * MIB);
        EXPECT_LE(reserved(&rig), 130 * MIB);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_map), rig_calls(&rig, STRATA_CALL_create));
        RIG_FREE(&rig, middle, block);
    }
}

/* A program may ask for more than there is, to see how much that is. */
TEST(growth_vmm, what_was_refused_was_not_needed) {
    RIG(rig, "stack: [auto_growth_vmm: {}, vmm]", 0);
    strata_block_t first = rig_allocate(&rig, NULL, 2 * MIB), none;
    for (int i = 0; i < 4; i++) EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 1024 * GIB, &none));
    strata_block_t second = rig_allocate(&rig, NULL, 3 * MIB);
    EXPECT_LE(reserved(&rig), 8 * MIB);
    RIG_FREE(&rig, first, second);
}

/* What is left of the memory that came for a block touches the room after it, and the next block begins there. */
TEST(growth_vmm, blocks_follow_one_another) {
    RIG(rig, EXACT, 0);
    strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB), b = rig_allocate(&rig, NULL, 3 * MIB);
    EXPECT_EQ((char *)b.ptr - (char *)a.ptr, 3 * MIB);
    EXPECT_EQ(reserved(&rig), 6 * MIB);
    RIG_FREE(&rig, a, b);
}

/* Handles from the middle of what is mapped go, and blocks on either side stay. */
TEST(growth_vmm, idle_handles_go_back_from_between_live_blocks) {
    RIG(rig, EXACT, 0);
    strata_block_t blocks[5];
    for (int i = 0; i < 5; i++) blocks[i] = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_OK(strata_free(rig.s, blocks[1].ref));
    EXPECT_OK(strata_free(rig.s, blocks[3].ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(reserved(&rig), 12 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t again = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_TRUE(again.ptr == blocks[1].ptr || again.ptr == blocks[3].ptr);
    EXPECT_EQ(reserved(&rig), 16 * MIB);
    RIG_FREE(&rig, blocks[0], blocks[2], blocks[4], again);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(reserved(&rig), 0);
}

/* Where a mapping could not be ended nobody is served: after a move, and after a release. */
TEST(growth_vmm, addresses_that_the_device_keeps_serve_nobody) {
    for (int moved = 0; moved < 2; moved++) {
        RIG(rig, EXACT, 0);
        strata_block_t low = rig_allocate(&rig, NULL, 2 * MIB), middle = rig_allocate(&rig, NULL, 120 * MIB),
                       high = rig_allocate(&rig, NULL, 2 * MIB), larger = {0};
        RIG_FREE(&rig, low);
        if (moved) RIG_FREE(&rig, high);
        if (moved) larger = rig_allocate(&rig, NULL, 4 * MIB);
        EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_unmap, 1, true, STRATA_E_DEVICE));
        if (!moved) EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        strata_block_t next = rig_allocate(&rig, NULL, 2 * MIB);
        EXPECT_NE(next.ptr, low.ptr);
        strata_sim_clear_faults(rig.devices[0]);
        EXPECT_OK(strata_validate(rig.s));
        RIG_FREE(&rig, middle, next, moved ? larger : high);
    }
}

/* What is in use above the same source by another stream is never moved to this one. */
TEST(growth_vmm, handles_reach_other_streams_through_the_device_alone) {
    RIG(rig, EXACT, 64 * MIB);
    strata_stream_t other = rig_stream(&rig);
    strata_block_t mine = rig_allocate(&rig, NULL, 40 * MIB);
    EXPECT_OK(strata_free(rig.s, mine.ref));
    strata_block_t others = rig_allocate(&rig, other, 40 * MIB);
    EXPECT_EQ(reserved(&rig), 40 * MIB);
    RIG_FREE(&rig, others);
}

/* ---- without virtual memory ---- */

static void open_without(rig_t *rig, const char *strategy) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.virtual_memory = false;
    rig_open_on(rig, rig_strategy(strategy, NULL, 0), &(strata_sim_options_t){.profile = &profile}, 0);
    rig->borrowed_strategy = false;
}

TEST_BY(growth_vmm, another_stack_serves_a_device_without_virtual_memory, open_without(rig, "strata")) {
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), 1);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_create), 0);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 20 * MIB);
    EXPECT_OK(strata_free(rig->s, block.ref));
}

TEST(growth_vmm, a_device_with_virtual_memory_has_the_first_stack) {
    RIG(rig, "strata", 0);
    strata_block_t block = rig_allocate(&rig, NULL, MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 0);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 1);
    RIG_FREE(&rig, block);
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

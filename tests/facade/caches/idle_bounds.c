/* `idle:` at its bounds: the moments at which it marks and gives, and by how much memory comes back. */
#include "allocation/reclaim/idle.h"
#include "facade/open/idle.h"
#include "tests/facade/support/fixture.h"

#define SECOND UINT64_C(1000000000)
#define PART   (SECOND / STRATA_IDLE_PARTS)
#define VMM    "stack: [auto_growth_vmm, vmm]\nidle: {after: 1s, keep: 0%, keep_least: 0}\n"
#define CHUNKS "stack: [auto_growth: {chunk_size: 2MiB}, system]\nidle: {after: 1s, keep: 0%, keep_least: 0}\n"

static uint64_t reserved(rig_t *rig) { return rig_figures(rig).reserved_bytes; }

static uint64_t look_at(rig_t *rig, uint64_t moment) {
    strata_sim_advance_to(rig->world, moment);
    return strata_facade_check_idle(rig->s);
}

/* Marks come at 13 sixteenths of the time since the last request was seen, and what lies idle goes at 14: not a nanosecond before. */
TEST_RIG(idle_bounds, marks_and_gives_at_their_moments, 0, VMM, CHUNKS) {
    RIG_FREE(rig, rig_allocate(rig, NULL, 20 * MIB));
    uint64_t held = reserved(rig), seen = strata_sim_now(rig->world), marks = seen + 13 * PART, gives = seen + 14 * PART;
    EXPECT_GT(held, 0);
    EXPECT_EQ(strata_facade_check_idle(rig->s), marks);
    EXPECT_EQ(look_at(rig, marks - 1), marks);
    uint64_t records = rig_calls(rig, STRATA_CALL_event_record);
    EXPECT_EQ(look_at(rig, marks), gives);
    EXPECT_GT(rig_calls(rig, STRATA_CALL_event_record), records);
    EXPECT_EQ(look_at(rig, gives - 1), gives);
    EXPECT_EQ(reserved(rig), held);
    EXPECT_EQ(look_at(rig, gives), UINT64_MAX);
    EXPECT_EQ(reserved(rig), 0);
    /* A request begins it anew. */
    RIG_FREE(rig, rig_allocate(rig, NULL, MIB));
    seen = strata_sim_now(rig->world);
    EXPECT_EQ(strata_facade_check_idle(rig->s), seen + 13 * PART);
}

/* The stack that falls idle first sets how often the facade looks, whichever is written first. */
TEST_RIG(idle_bounds, the_shortest_time_of_all_stacks_counts, 0,
         "stack: [auto_growth, system]\nidle: {after: 1s}\nplaces: {pinned: {stack: [auto_growth, system], idle: {after: 3s}}}\n",
         "stack: [auto_growth, system]\nidle: {after: 3s}\nplaces: {pinned: {stack: [auto_growth, system], idle: {after: 1s}}}\n",
         "stack: [system]\ngraph: {stack: [auto_growth, system], idle: {after: 1s}}\n") {
    EXPECT_EQ(strata_facade_of(rig->s)->idle_after, SECOND);
}

/* A free alone is a request too, also on a stream that ends after it. */
TEST_RIG(idle_bounds, a_free_is_seen_although_its_stream_ends, 0, VMM, CHUNKS) {
    strata_stream_t stream = rig_stream(rig);
    RIG_FREE(rig, rig_allocate(rig, NULL, 20 * MIB));
    strata_block_t block = rig_allocate(rig, stream, MIB);
    uint64_t first = strata_facade_check_idle(rig->s);
    EXPECT_EQ(look_at(rig, first - PART), first);
    RIG_FREE(rig, block);
    rig_end_stream(rig, stream);
    uint64_t now = strata_sim_now(rig->world);
    EXPECT_EQ(strata_facade_check_idle(rig->s), now + 13 * PART);
}

/* What went comes back in steps: an eighth at first, then each time as much as all before it. */
TEST_RIG(idle_bounds, memory_comes_back_in_steps_that_double, 0, VMM) {
    RIG_FREE(rig, rig_allocate(rig, NULL, 4 * GIB));
    for (uint64_t next = strata_facade_check_idle(rig->s); next != UINT64_MAX;) next = look_at(rig, next);
    EXPECT_EQ(reserved(rig), 0);
    static const uint64_t steps[] = {GIB / 2, GIB, 2 * GIB, 4 * GIB};
    for (size_t i = 0; i < COUNT(steps); i++) {
        uint64_t before = reserved(rig);
        while (reserved(rig) == before) (void)rig_allocate(rig, NULL, 32 * MIB);
        EXPECT_GE(reserved(rig), steps[i]);
        EXPECT_LE(reserved(rig), steps[i] + 64 * MIB * (i + 1));
    }
    uint64_t before = reserved(rig);
    while (reserved(rig) == before) (void)rig_allocate(rig, NULL, 32 * MIB);
    EXPECT_LE(reserved(rig), before + 128 * MIB); /* all is back: growth is as ever */
}

/* All that lies idle goes. */
static void fall_idle(rig_t *rig) {
    for (uint64_t next = strata_facade_check_idle(rig->s); next != UINT64_MAX;) next = look_at(rig, next);
    EXPECT_EQ(reserved(rig), 0);
}

#define EXACT "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]\nidle: {after: 1s, keep: 0%, keep_least: 0}\n"

/* A request that grows by as much as a step is that step; one that grows by less has the step beside it. */
TEST_RIG(idle_bounds, a_request_as_large_as_a_step_is_one, 0, EXACT) {
    for (int less = 0; less < 2; less++) {
        RIG_FREE(rig, rig_allocate(rig, NULL, 4 * GIB));
        fall_idle(rig);
        strata_block_t block = rig_allocate(rig, NULL, 512 * MIB - (less ? 2 * MIB : 0));
        if (less) EXPECT_GE(reserved(rig), 1022 * MIB);
        else EXPECT_EQ(reserved(rig), 512 * MIB);
        RIG_FREE(rig, block);
        EXPECT_GT(rig_release(rig), 0);
    }
}

/* What cannot come back leaves the thread's last error as it was. */
TEST_RIG(idle_bounds, what_cannot_come_back_is_nobodys_error, 0, EXACT) {
    uint64_t pool;
    RIG_FREE(rig, rig_allocate(rig, NULL, 4 * GIB));
    fall_idle(rig);
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool(rig->s, "none", &pool));
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_create, 2, true, STRATA_E_DEVICE));
    (void)rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_GT(rig_calls(rig, STRATA_CALL_create), 1);
    EXPECT_EQ(strata_last_error()->status, STRATA_E_INVALID);
    strata_sim_clear_faults(rig->devices[0]);
}

/* Pauses at their bounds: as many handles as a list or a file's slots take at a time and one more, names that begin alike, handles whose
 * numbers fall where their addresses rise. */
#include "tests/pause/pause.h"

#define EXACT "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]"
enum { MOST = 130 };

typedef struct row {
    const char *name;
    size_t count; /* handles of 2 MiB */
    uint32_t contents;
    uint64_t staging; /* of which a slot has a quarter; 0: as usual */
} row_t;

static const row_t rows[] = {
    {"one_in_a_file", 1, STRATA_PAUSE_FILE, 8 * MIB},
    {"three_in_a_file", 3, STRATA_PAUSE_FILE, 8 * MIB},
    {"as_many_as_slots", 4, STRATA_PAUSE_FILE, 8 * MIB},
    {"one_more_than_slots", 5, STRATA_PAUSE_FILE, 8 * MIB},
    {"seven_in_slots_of_1_mib", 7, STRATA_PAUSE_FILE, 4 * MIB},
    {"seven_in_slots_that_are_no_part_of_them", 7, STRATA_PAUSE_FILE, 6 * MIB},
    {"seven_in_the_least_slots", 7, STRATA_PAUSE_FILE, 1},
    {"seven_in_usual_slots", 7, STRATA_PAUSE_FILE, 0},
    {"two_in_pinned_memory", 2, STRATA_PAUSE_PINNED, 0},
    {"as_many_as_are_listed_at_first", 64, STRATA_PAUSE_PINNED, 0},
    {"one_more_than_are_listed_at_first", 65, STRATA_PAUSE_PINNED, 0},
    {"one_more_than_twice_as_many", 129, STRATA_PAUSE_PINNED, 0},
    {"more_than_are_listed_in_a_file", 65, STRATA_PAUSE_FILE, 8 * MIB},
};

/* Later handles lie lower than earlier ones. */
static void make_falling(rig_t *rig, size_t count, strata_block_t *blocks) {
    ASSERT_LE(count, MOST);
    for (size_t i = 0; i <= count; i++) blocks[i] = rig_allocate(rig, NULL, 2 * MIB);
    for (size_t i = count; i-- > 0;) {
        void *at = blocks[i].ptr;
        EXPECT_OK(strata_free(rig->s, blocks[i].ref));
        EXPECT_EQ(rig_release(rig), 2 * MIB);
        blocks[i] = rig_allocate(rig, NULL, 2 * MIB);
        EXPECT_EQ(blocks[i].ptr, at);
    }
    EXPECT_OK(strata_free(rig->s, blocks[count].ref));
    EXPECT_EQ(rig_release(rig), 2 * MIB);
}

TEST_EACH(pause_bounds, each_handle_has_its_own_bytes_again, row_t, rows) {
    strata_block_t blocks[MOST + 1];
    PAUSED_RIG(rig, EXACT);
    make_falling(&rig, row->count, blocks);
    for (size_t i = 0; i < row->count; i++) pause_write(&rig, &blocks[i], (uint32_t)i + 1);
    for (int round = 0; round < 2; round++) {
        const strata_pause_options_t options = {
            .struct_size = sizeof options, .contents = row->contents, .directory = "/tmp", .staging = row->staging};
        strata_paused_t report = {.struct_size = sizeof report};
        EXPECT_OK(strata_pause(rig.s, rig.gpu, &options, &report));
        EXPECT_EQ(report.handles, row->count);
        EXPECT_EQ(report.bytes, row->count * 2 * MIB);
        EXPECT_EQ(report.kept_bytes, row->count * 2 * MIB);
        EXPECT_EQ(report.rest_bytes, 0);
        /* Slots have 1 MiB at least. */
        uint64_t pinned = rig_figures_in(&rig, strata_pinned()).peak_allocated_bytes,
                 most = row->staging > 4 * MIB ? row->staging : 4 * MIB;
        if (row->contents == STRATA_PAUSE_FILE && row->staging && round == 0) EXPECT_LE(pinned, most);
        strata_paused_t back = resume_do(&rig, STRATA_POOL_ORDINARY);
        EXPECT_EQ(back.handles, row->count);
        EXPECT_EQ(back.kept_bytes, row->count * 2 * MIB);
        EXPECT_EQ(rig_figures_in(&rig, strata_pinned()).allocated_bytes, 0);
        for (size_t i = 0; i < row->count; i++) EXPECT_TRUE(pause_holds(&rig, &blocks[i], (uint32_t)i + 1));
    }
}

/* A tag is a whole name, not how one begins. */
TEST(pause_bounds, a_tag_that_begins_as_another_is_another) {
    static const char *const tags[] = {"kv", "kv_cache", "k", ""};
    PAUSED_RIG(rig, EXACT);
    strata_block_t blocks[COUNT(tags)];
    for (size_t i = 0; i < COUNT(tags); i++) blocks[i] = rig_allocate_tagged(&rig, NULL, 2 * MIB, tags[i]);
    for (size_t i = 0; i < COUNT(tags); i++) pause_write(&rig, &blocks[i], (uint32_t)i + 1);
    for (size_t i = 0; i < 3; i++) {
        strata_paused_t report;
        EXPECT_OK(pause_try(&rig, STRATA_POOL_ORDINARY, tags[i], STRATA_PAUSE_PINNED, &report));
        EXPECT_EQ(report.handles, 1);
        for (size_t k = 0; k < COUNT(tags); k++) EXPECT_EQ(pause_bytes(&rig, &blocks[k]) == NULL, k == i);
        EXPECT_OK(strata_resume(rig.s, rig.gpu, STRATA_POOL_ORDINARY, tags[i], NULL));
        EXPECT_TRUE(pause_holds(&rig, &blocks[i], (uint32_t)i + 1));
    }
}

/* What a pause that fails has kept goes again, all of it; what an earlier one has kept stays. */
TEST(pause_bounds, a_failure_drops_what_it_kept_and_no_more) {
    static const char text[] = EXACT
        "\npools: {first: {stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]}}\nplaces: {pinned: [limit: {bytes: 7MiB}, "
        "system]}\n";
    PAUSED_RIG(rig, text);
    uint64_t first = pause_pool(&rig, "first");
    strata_block_t early[2], late[3];
    for (size_t i = 0; i < COUNT(early); i++) early[i] = pause_allocate_in(&rig, first, NULL, 2 * MIB, NULL);
    for (size_t i = 0; i < COUNT(late); i++) late[i] = rig_allocate(&rig, NULL, 2 * MIB);
    for (size_t i = 0; i < COUNT(early); i++) pause_write(&rig, &early[i], (uint32_t)i + 1);
    for (size_t i = 0; i < COUNT(late); i++) pause_write(&rig, &late[i], (uint32_t)i + 11);
    (void)pause_do(&rig, first, STRATA_PAUSE_PINNED);
    uint64_t kept = rig_figures_in(&rig, strata_pinned()).allocated_bytes;
    EXPECT_EQ(kept, 4 * MIB);
    /* The first of the three has room, and the second has none. */
    EXPECT_STATUS(STRATA_E_NO_MEMORY, pause_try(&rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_PINNED, NULL));
    EXPECT_EQ(rig_figures_in(&rig, strata_pinned()).allocated_bytes, kept);
    for (size_t i = 0; i < COUNT(late); i++) EXPECT_TRUE(pause_holds(&rig, &late[i], (uint32_t)i + 11));
    EXPECT_OK(rig_try(&rig, NULL, 300));
    (void)resume_do(&rig, first);
    for (size_t i = 0; i < COUNT(early); i++) EXPECT_TRUE(pause_holds(&rig, &early[i], (uint32_t)i + 1));
    EXPECT_EQ(rig_figures_in(&rig, strata_pinned()).allocated_bytes, 0);
}

/* Of two pools that sleep, the second's failure to wake leaves both asleep where they were woken together. */
TEST(pause_bounds, the_second_of_two_that_cannot_wake_takes_the_first_back) {
    static const char text[] = EXACT "\npools: {other: {stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]}}\n";
    for (uint64_t creates = 1; creates <= 4; creates++) {
        PAUSED_RIG(rig, text);
        uint64_t other = pause_pool(&rig, "other");
        strata_block_t blocks[4];
        for (size_t i = 0; i < 2; i++) blocks[i] = rig_allocate(&rig, NULL, 2 * MIB);
        for (size_t i = 2; i < 4; i++) blocks[i] = pause_allocate_in(&rig, other, NULL, 2 * MIB, NULL);
        for (size_t i = 0; i < 4; i++) pause_write(&rig, &blocks[i], (uint32_t)i + 1);
        (void)pause_do(&rig, STRATA_POOL_EVERY, STRATA_PAUSE_PINNED);
        uint64_t used = pause_used(&rig);
        EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_create, creates, true, STRATA_E_NO_MEMORY));
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_resume(rig.s, rig.gpu, STRATA_POOL_EVERY, NULL, NULL));
        strata_sim_clear_faults(rig.devices[0]);
        EXPECT_EQ(pause_used(&rig), used);
        EXPECT_EQ(rig_figures(&rig).paused_bytes, 8 * MIB);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
        (void)resume_do(&rig, STRATA_POOL_EVERY);
        for (size_t i = 0; i < 4; i++) EXPECT_TRUE(pause_holds(&rig, &blocks[i], (uint32_t)i + 1));
    }
}

/* A peer may use the memory without a word to anybody: where there are peers, their work is waited for too. */
TEST(pause_bounds, work_of_a_peer_is_waited_for) {
    enum { LONG = 50 * 1000 * 1000 };
    PAUSED_RIG(rig, EXACT);
    strata_block_t block = rig_allocate(&rig, NULL, 2 * MIB);
    ASSERT_OK(strata_enable_peer(rig.s, 0, 1));
    const strata_access_t access = {(uintptr_t)block.ptr, block.size, true};
    uint64_t began = strata_sim_now(rig.world);
    EXPECT_OK(strata_device_work(rig.devices[1], NULL, LONG, &access, 1));
    (void)pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    EXPECT_GE(strata_sim_now(rig.world), began + LONG);
    (void)resume_do(&rig, STRATA_POOL_ORDINARY);
}

/* The device is full of what another pool keeps idle: that makes room, once. */
TEST(pause_bounds, idle_memory_of_others_makes_room_for_a_resume) {
    PAUSED_RIG(rig, EXACT "\npools: {other: {stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]}}\n");
    uint64_t other = pause_pool(&rig, "other");
    strata_block_t block = pause_allocate_in(&rig, other, NULL, GIB, NULL);
    (void)pause_do(&rig, other, STRATA_PAUSE_DROP);
    uint64_t left = 0, total = 0;
    ASSERT_OK(strata_device_mem_info(rig.devices[0], &left, &total));
    RIG_FREE(&rig, rig_allocate(&rig, NULL, left - left % (2 * MIB)));
    EXPECT_EQ(resume_do(&rig, other).bytes, GIB);
    EXPECT_EQ(rig_figures(&rig).paused_bytes, 0);
    RIG_FREE(&rig, block);
}

/* Under a limit of exactly what is away: a resume that the device refuses leaves nothing claimed of it. */
TEST(pause_bounds, a_refused_resume_claims_nothing) {
    PAUSED_RIG(rig, "stack: [stream_safe, auto_growth: {chunk_size: 8MiB}, vmm]\n");
    strata_block_t blocks[2] = {rig_allocate(&rig, NULL, 8 * MIB), rig_allocate(&rig, NULL, 8 * MIB)};
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_DROP);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 16 * MIB));
    for (uint64_t refused = 1; refused <= 2; refused++) {
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_create, refused, true, STRATA_E_NO_MEMORY));
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_resume(rig.s, rig.gpu, STRATA_POOL_ORDINARY, NULL, NULL));
        strata_sim_clear_faults(rig.devices[0]);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
        EXPECT_EQ(rig_figures(&rig).paused_bytes, 16 * MIB);
    }
    EXPECT_EQ(resume_do(&rig, STRATA_POOL_ORDINARY).bytes, 16 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 16 * MIB);
    rig_free(&rig, blocks, 2);
}

/* Bytes that cannot be copied back leave all asleep: the memory is the device's again, and what was kept is still there. */
TEST(pause_bounds, a_copy_that_fails_lets_nothing_wake) {
    for (uint32_t contents = STRATA_PAUSE_PINNED; contents <= STRATA_PAUSE_FILE; contents++) {
        PAUSED_RIG(rig, EXACT);
        strata_block_t blocks[2] = {rig_allocate(&rig, NULL, 2 * MIB), rig_allocate(&rig, NULL, 2 * MIB)};
        for (size_t i = 0; i < 2; i++) pause_write(&rig, &blocks[i], (uint32_t)i + 1);
        (void)pause_do(&rig, STRATA_POOL_ORDINARY, contents);
        uint64_t used = pause_used(&rig);
        for (uint64_t copies = 1; copies <= 2; copies++) {
            ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_copy, copies, false, STRATA_E_DEVICE));
            EXPECT_STATUS(STRATA_E_DEVICE, strata_resume(rig.s, rig.gpu, STRATA_POOL_ORDINARY, NULL, NULL));
            EXPECT_EQ(pause_used(&rig), used);
            EXPECT_EQ(rig_figures(&rig).paused_bytes, 4 * MIB);
            EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
        }
        EXPECT_EQ(resume_do(&rig, STRATA_POOL_ORDINARY).kept_bytes, 4 * MIB);
        for (size_t i = 0; i < 2; i++) EXPECT_TRUE(pause_holds(&rig, &blocks[i], (uint32_t)i + 1));
    }
}

/* Only the pool that has the tag sleeps. */
TEST(pause_bounds, a_pool_without_the_tag_serves_on) {
    PAUSED_RIG(rig, EXACT "\npools: {a: {stack: [auto_growth_vmm, vmm]}, b: {stack: [auto_growth_vmm, vmm]}}\n");
    uint64_t pools[3] = {STRATA_POOL_ORDINARY, pause_pool(&rig, "a"), pause_pool(&rig, "b")};
    for (size_t tagged = 0; tagged < 3; tagged++) {
        strata_block_t blocks[3];
        for (size_t i = 0; i < 3; i++) blocks[i] = pause_allocate_in(&rig, pools[i], NULL, 2 * MIB, i == tagged ? "kv" : "other");
        EXPECT_OK(pause_try(&rig, STRATA_POOL_EVERY, "kv", STRATA_PAUSE_DROP, NULL));
        for (size_t i = 0; i < 3; i++) {
            const strata_allocate_options_t options = {.struct_size = sizeof options, .size = MIB, .pool = pools[i]};
            strata_block_t more;
            strata_status_t status = strata_allocate_with(rig.s, rig.gpu, NULL, &options, &more);
            EXPECT_EQ(status, i == tagged ? STRATA_E_BUSY : STRATA_OK);
            if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, more.ref));
        }
        EXPECT_OK(strata_resume(rig.s, rig.gpu, STRATA_POOL_EVERY, "kv", NULL));
        rig_free(&rig, blocks, 3);
    }
}

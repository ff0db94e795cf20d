/* Moves of auto_growth_vmm: idle handles come together for the room of a plan. */
#include "tests/facade/fixture.h"
#include "tests/harness/files.h"

#define PLANNED "stack: [planned, auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]"
enum { BATCH = 256, BLOCKS = 700, LONG = 50 * 1000 * 1000 };

static void add_moved(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->type, "vmm") == 0 && strcmp(figure->name, "moved") == 0) *(uint64_t *)context += figure->value;
}

static uint64_t moved(rig_t *rig) {
    uint64_t handles = 0;
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, add_moved, &handles));
    return handles;
}

/* A plan of one request; its room comes together now. */
static strata_status_t load(rig_t *rig, uint64_t bytes) {
    char text[128];
    snprintf(text, sizeof text, "id,lower,upper,size,alignment,offset\na,0,1,%llu,256,0\n", (unsigned long long)bytes);
    return strata_plan_load(rig->s, rig->gpu, NULL, write_text("room.csv", text), NULL);
}

/* Blocks of 2 MiB in handles of their own, of which every second one is freed. */
static void make_holes(rig_t *rig, size_t holes, strata_block_t *blocks) {
    ASSERT_LE(2 * holes, BLOCKS);
    for (size_t i = 0; i < 2 * holes; i++) blocks[i] = rig_allocate(rig, NULL, 2 * MIB);
    for (size_t i = 0; i < 2 * holes; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

typedef struct room {
    const char *name;
    size_t holes, bytes; /* MiB of the room */
    size_t moved; /* handles; 0: as many as there are nodes for, and no more than a batch */
    bool creates;
} room_t;

static const room_t rooms[] = {
    {"two_that_are_enough", 2, 4, 2, false},    {"more_than_are_wanted", 4, 6, 3, false}, {"fewer_than_are_wanted", 2, 10, 2, true},
    {"all_but_one", 150, 298, 149, false},      {"one_too_few", 150, 302, 150, true},     {"more_than_a_batch", 257, 514, 0, true},
    {"fewer_than_are_idle", 340, 600, 0, true},
};

/* What is idle moves, as many handles as there are at a time; the rest is created, and what is left over goes back. */
TEST_EACH(growth_moves, idle_handles_make_the_room, room_t, rooms) {
    static strata_block_t blocks[BLOCKS];
    RIG(rig, PLANNED, 0);
    make_holes(&rig, row->holes, blocks);
    uint64_t created = rig_calls(&rig, STRATA_CALL_create), live = row->holes * 2 * MIB;
    EXPECT_OK(load(&rig, row->bytes * MIB));
    if (row->moved) EXPECT_EQ(moved(&rig), row->moved);
    EXPECT_GT(moved(&rig), 1);
    EXPECT_LE(moved(&rig), BATCH);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create) > created, row->creates);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, live + row->bytes * MIB);
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t block = rig_allocate(&rig, NULL, row->bytes * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, live + row->bytes * MIB);
    RIG_FREE(&rig, block);
    for (size_t i = 1; i < 2 * row->holes; i += 2) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    (void)rig_release(&rig);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

/* The gap below what is free before a live block is filled downwards: moved handles lie next to it, and what is created below them. */
TEST(growth_moves, a_room_below_what_is_free_is_filled_downwards) {
    RIG(rig, PLANNED, 0);
    strata_block_t gap = rig_allocate(&rig, NULL, 20 * MIB), free = rig_allocate(&rig, NULL, 4 * MIB),
                   live = rig_allocate(&rig, NULL, 2 * MIB), small = rig_allocate(&rig, NULL, 2 * MIB),
                   last = rig_allocate(&rig, NULL, 2 * MIB);
    RIG_FREE(&rig, gap);
    EXPECT_EQ(rig_release(&rig), 20 * MIB);
    RIG_FREE(&rig, free, small);
    EXPECT_OK(load(&rig, 16 * MIB));
    EXPECT_EQ(moved(&rig), 1);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 20 * MIB);
    strata_block_t block = rig_allocate(&rig, NULL, 16 * MIB);
    EXPECT_EQ((uintptr_t)block.ptr + 16 * MIB, (uintptr_t)live.ptr);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 20 * MIB);
    RIG_FREE(&rig, block, live, last);
}

/* Work under way may use a handle where it was: that mapping ends after it, and nobody is served there before. */
TEST(growth_moves, a_mapping_under_running_work_ends_after_it) {
    RIG(rig, PLANNED, 0);
    strata_block_t blocks[4];
    for (size_t i = 0; i < COUNT(blocks); i++) blocks[i] = rig_allocate(&rig, NULL, 2 * MIB);
    rig_work(&rig, NULL, LONG, blocks[0].ref);
    RIG_FREE(&rig, blocks[0], blocks[2]);
    uint64_t unmaps = rig_calls(&rig, STRATA_CALL_unmap);
    EXPECT_OK(load(&rig, 4 * MIB));
    EXPECT_EQ(moved(&rig), 2);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), unmaps);
    strata_block_t room = rig_allocate(&rig, NULL, 4 * MIB), next = rig_allocate(&rig, NULL, 2 * MIB);
    EXPECT_NE(next.ptr, blocks[0].ptr);
    EXPECT_NE(next.ptr, blocks[2].ptr);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), unmaps);
    EXPECT_OK(strata_device_synchronise(rig.devices[0]));
    RIG_FREE(&rig, room, next, blocks[1], blocks[3]);
    (void)rig_release(&rig);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), rig_calls(&rig, STRATA_CALL_map));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

/* auto_growth_vmm under a program whose large blocks are replaced by slightly larger ones. */
#include <pthread.h>

#include "tests/facade/support/fixture.h"

#define GROWING "stack: [auto_growth_vmm, vmm]"
enum { STEPS = 60, LONG = 50 * 1000 * 1000 };
#define LATER (10ull * 1000 * 1000 * 1000) /* ns */

static uint64_t calls_of(rig_t *rig) {
    static const strata_device_call_t kinds[] = {STRATA_CALL_create, STRATA_CALL_map,     STRATA_CALL_set_access,
                                                 STRATA_CALL_unmap,  STRATA_CALL_release, STRATA_CALL_reserve};
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT(kinds); i++) sum += rig_calls(rig, kinds[i]);
    return sum;
}

static void find_moves(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->name, "moves") == 0) *(uint64_t *)context += figure->value;
}

static uint64_t moves_of(rig_t *rig) {
    uint64_t moves = 0;
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, find_moves, &moves));
    return moves;
}

/* Replaces each of `count` blocks by one that is `step` bytes larger. Returns false if a request was refused. */
static bool replace(rig_t *rig, strata_block_t *blocks, size_t count, size_t step) {
    for (size_t i = 0; i < count; i++) {
        strata_block_t next;
        if (strata_allocate(rig->s, rig->gpu, NULL, blocks[i].size + step, &next) != STRATA_OK) return false;
        EXPECT_OK(strata_free(rig->s, blocks[i].ref));
        blocks[i] = next;
    }
    return true;
}

/* The program has run for a while, so the budget of time for moves is large. */
static void begin(rig_t *rig, strata_block_t *blocks, size_t count, size_t size) {
    rig_advance(rig, LATER);
    for (size_t i = 0; i < count; i++) blocks[i] = rig_allocate(rig, NULL, size);
}

/* In the second half a step needs at most four calls of the device for each request, and 6 % more than the largest sum. */
TEST(growth_moves, growing_blocks_cost_few_calls_and_little_memory) {
    for (size_t count = 1; count <= 3; count++) {
        RIG(rig, GROWING, 0);
        strata_block_t blocks[3];
        begin(&rig, blocks, count, 8 * MIB);
        for (int i = 0; i < STEPS / 2; i++) ASSERT_TRUE(replace(&rig, blocks, count, 8 * MIB));
        uint64_t before = calls_of(&rig);
        for (int i = 0; i < STEPS / 2; i++) ASSERT_TRUE(replace(&rig, blocks, count, 8 * MIB));
        EXPECT_LE(calls_of(&rig) - before, 4 * count * (STEPS / 2));
        strata_statistics_t f = rig_figures(&rig);
        EXPECT_LE(f.peak_reserved_bytes, f.peak_requested_bytes + f.peak_requested_bytes * 6 / 100);
        EXPECT_OK(strata_validate(rig.s));
        for (size_t i = 0; i < count; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
        (void)rig_release(&rig);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
        if (strata_test_has_failed()) FAIL_TEST("%d blocks", (int)count);
    }
}

/* The blocks grow until the next step of them would move handles. */
static void grow_until_moves(rig_t *rig, strata_block_t *blocks, size_t count) {
    begin(rig, blocks, count, 24 * MIB);
    for (int i = 0; i < STEPS && moves_of(rig) == 0; i++) ASSERT_TRUE(replace(rig, blocks, count, (size_t)(i % 3 + 1) * 2 * MIB));
    EXPECT_GT(moves_of(rig), 0);
}

/* Mappings beside the one of each handle. */
static uint64_t second_mappings(rig_t *rig) {
    return rig_calls(rig, STRATA_CALL_map) - rig_calls(rig, STRATA_CALL_unmap) -
           (rig_calls(rig, STRATA_CALL_create) - rig_calls(rig, STRATA_CALL_release));
}

/* The work may still use the addresses from which handles have moved. */
TEST_RIG(growth_moves, old_addresses_stay_mapped_under_running_work, 0, GROWING) {
    strata_block_t blocks[2];
    begin(rig, blocks, 2, 24 * MIB);
    rig_work(rig, NULL, LONG, 0);
    for (int i = 0; i < STEPS && moves_of(rig) < 4; i++) ASSERT_TRUE(replace(rig, blocks, 2, (size_t)(i % 3 + 1) * 2 * MIB));
    EXPECT_GE(moves_of(rig), 4);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_unmap), 0);
    EXPECT_GT(second_mappings(rig), 8);
    rig_advance(rig, LONG);
    for (int i = 0; i < 3; i++) ASSERT_TRUE(replace(rig, blocks, 2, 2 * MIB));
    EXPECT_LE(second_mappings(rig), 8); /* those of the last steps */
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, blocks[0], blocks[1]);
}

/* Without the option idle memory is mapped again instead. */
TEST_RIG(growth_moves, none_without_the_option, 0, "stack: [auto_growth_vmm: {moves: false}, vmm]",
         "stack: [auto_growth_vmm: {views: false}, vmm]") {
    strata_block_t blocks[2];
    begin(rig, blocks, 2, 24 * MIB);
    for (int step = 0; step < STEPS; step++) ASSERT_TRUE(replace(rig, blocks, 2, (size_t)(step % 3 + 1) * 2 * MIB));
    EXPECT_EQ(moves_of(rig), 0);
    RIG_FREE(rig, blocks[0], blocks[1]);
}

/* Each call of the device is refused in turn while blocks grow. A request may fail, but nothing is lost. */
TEST(growth_moves, a_refused_call_loses_nothing) {
    static const strata_device_call_t kinds[] = {STRATA_CALL_create, STRATA_CALL_map, STRATA_CALL_set_access, STRATA_CALL_unmap,
                                                 STRATA_CALL_event_record};
    for (size_t kind = 0; kind < COUNT(kinds); kind++)
        for (uint64_t number = 1; number <= 24 && !strata_test_has_failed(); number++) {
            RIG(rig, GROWING, 0);
            strata_block_t blocks[2];
            grow_until_moves(&rig, blocks, 2);
            ASSERT_OK(strata_sim_fail(rig.devices[0], kinds[kind], number, false, STRATA_E_DEVICE));
            for (int i = 0; i < 20; i++) (void)replace(&rig, blocks, 2, (size_t)(i % 3 + 1) * 2 * MIB);
            strata_sim_clear_faults(rig.devices[0]);
            EXPECT_OK(strata_validate(rig.s));
            ASSERT_TRUE(replace(&rig, blocks, 2, 2 * MIB));
            RIG_FREE(&rig, blocks[0], blocks[1]);
            (void)rig_release(&rig);
            (void)rig_release(&rig);
            EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
            if (strata_test_has_failed()) FAIL_TEST("call kind %d, number %d", (int)kind, (int)number);
        }
}

/* ---- without a slot ---- */

enum { HOARDED = 1 << 16 };

static struct {
    strata_device_operations_t table;
    const strata_device_operations_t *real;
    strata_slab_t *slab;
    strata_stack_t *stack;
    uint64_t creations; /* of handles that are not mapped yet */
    int left; /* mappings of handles that are mapped elsewhere, until the slots are gone */
    uint32_t capacity, count, slots[HOARDED];
} hoard;

static strata_status_t count_creation(strata_device_t *device, uint64_t size, bool shared, strata_physical_t *handle) {
    hoard.creations++;
    return hoard.real->create(device, size, shared, handle);
}

/* Takes all slots of the stack at one mapping, so that none is left when the call returns. */
static strata_status_t map_and_hoard(strata_device_t *device, strata_address_t address, uint64_t size, strata_physical_t handle) {
    bool again = hoard.creations == 0;
    hoard.creations -= !again;
    if (again && --hoard.left == 0) {
        strata_stack_lock(hoard.stack);
        hoard.capacity = hoard.slab->capacity;
        hoard.slab->capacity = hoard.slab->used;
        for (uint32_t slot; hoard.count < HOARDED && (slot = strata_slab_acquire(hoard.slab)) != 0;)
            hoard.slots[hoard.count++] = slot;
        strata_stack_unlock(hoard.stack);
    }
    return hoard.real->map(device, address, size, handle);
}

static void hoard_at(rig_t *rig, int mapping) {
    hoard.stack = rig_stack(rig, NULL);
    hoard.slab = &hoard.stack->slab;
    hoard.real = rig->devices[0]->operations;
    hoard.table = *hoard.real;
    hoard.table.create = count_creation;
    hoard.table.map = map_and_hoard;
    hoard.left = mapping;
    hoard.creations = hoard.capacity = hoard.count = 0;
    rig->devices[0]->operations = &hoard.table;
}

static void hoard_end(rig_t *rig) {
    rig->devices[0]->operations = hoard.real;
    if (hoard.capacity) hoard.slab->capacity = hoard.capacity;
    while (hoard.count > 0) strata_slab_release(hoard.slab, hoard.slots[--hoard.count]);
}

/* A handle that has moved finds no slot for its block. The device gets it back, since no block would ever be served from it. */
TEST(growth_moves, a_handle_without_a_slot_goes_back) {
    for (int mapping = 1; mapping <= 8 && !strata_test_has_failed(); mapping++) {
        RIG(rig, GROWING, 0);
        strata_block_t blocks[2];
        grow_until_moves(&rig, blocks, 2);
        hoard_at(&rig, mapping);
        for (int i = 0; i < 20 && hoard.left > 0; i++) (void)replace(&rig, blocks, 2, (size_t)(i % 3 + 1) * 2 * MIB);
        EXPECT_EQ(hoard.left, 0);
        hoard_end(&rig);
        EXPECT_OK(strata_validate(rig.s));
        RIG_FREE(&rig, blocks[0], blocks[1]);
        rig_expect_empty(&rig);
        if (strata_test_has_failed()) FAIL_TEST("mapping %d", mapping);
    }
}

/* Two idle handles of 32 MiB serve one block, beside live memory up to the peak. Returns the handles moved for that. */
static uint64_t join_two(rig_t *rig) {
    uint64_t before = moves_of(rig), rest = rig_figures(rig).peak_reserved_bytes - 64 * MIB;
    strata_block_t low = rig_allocate(rig, NULL, 32 * MIB), middle = rig_allocate(rig, NULL, rest),
                   high = rig_allocate(rig, NULL, 32 * MIB);
    RIG_FREE(rig, low, high);
    strata_block_t both = rig_allocate(rig, NULL, 64 * MIB);
    RIG_FREE(rig, middle, both);
    (void)rig_release(rig);
    return moves_of(rig) - before;
}

/* A program that stops growing maps idle memory again instead. */
TEST_RIG(growth_moves, end_if_sizes_repeat, 0, "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]") {
    strata_block_t blocks[2];
    grow_until_moves(rig, blocks, 2);
    RIG_FREE(rig, blocks[0], blocks[1]);
    (void)rig_release(rig);
    EXPECT_GT(join_two(rig), 0);
    for (size_t i = 0; i < 300; i++) {
        EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, (32 + i % 2 * 32) * MIB).ref));
        (void)rig_release(rig);
    }
    EXPECT_EQ(join_two(rig), 0);
}

/* The device reserves no more addresses. The first range has room for the blocks, but not for what they may become. */
TEST_RIG(growth_moves, narrow_room_is_enough, 0, GROWING) {
    strata_block_t blocks[2];
    begin(rig, blocks, 2, 100 * MIB);
    for (size_t i = 0; i < 4; i++) ASSERT_TRUE(replace(rig, blocks, 2, (i % 3 + 1) * 2 * MIB)); /* views have a range now */
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_reserve, 1, true, STRATA_E_NO_MEMORY));
    for (size_t i = 0; i < 12; i++) EXPECT_TRUE(replace(rig, blocks, 2, (i % 3 + 1) * 2 * MIB));
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, blocks[0], blocks[1]);
}

typedef struct releasing {
    rig_t *rig;
    _Atomic bool over;
} releasing_t;

static void *release_again(void *context) {
    releasing_t *releasing = context;
    uint64_t bytes;
    while (!atomic_load(&releasing->over)) EXPECT_OK(strata_release(releasing->rig->s, releasing->rig->gpu, &bytes));
    return NULL;
}

/* Another thread gives idle handles back while this one moves them. */
TEST_RIG(growth_moves, beside_a_thread_that_releases, 0, GROWING) {
    releasing_t releasing = {.rig = rig};
    pthread_t thread;
    strata_block_t blocks[3];
    begin(rig, blocks, 3, 24 * MIB);
    ASSERT_EQ(pthread_create(&thread, NULL, release_again, &releasing), 0);
    for (size_t i = 0; i < 3 * STEPS; i++) EXPECT_TRUE(replace(rig, blocks, 3, (i % 3 + 1) * 2 * MIB));
    atomic_store(&releasing.over, true);
    pthread_join(thread, NULL);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, blocks[0], blocks[1], blocks[2]);
}

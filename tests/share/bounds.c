/* Shares at their bounds: the last byte, the second of two handles, names and numbers that come again, what changes during a wait. */
#include "facade/share/share.h"
#include "tests/share/share.h"

/* Handles of 2 MiB, each as large as its block. */
#define EXACT "stack: [stream_safe, auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]\n"
enum { LONG = 50 * 1000 * 1000 };

/* ---- what can be a block ---- */

typedef struct told {
    const char *name;
    uint64_t first, second; /* sizes of segments; 0: there is no second one */
    uint64_t offset, size;
    bool can_be;
} told_t;

#define HUGE (UINT64_C(1) << 47)
static const told_t tolds[] = {
    {"all_of_one", 4096, 0, 0, 4096, true},
    {"the_last_byte_of_one", 4096, 0, 4095, 1, true},
    {"a_byte_behind_one", 4096, 0, 4096, 1, false},
    {"a_byte_more_than_one", 4096, 0, 0, 4097, false},
    {"one_from_its_second_byte_on", 4096, 0, 1, 4096, false},
    {"nothing", 4096, 0, 0, 0, false},
    {"the_first_of_two", 10, 20, 0, 10, false},
    {"a_byte_of_the_second_too", 10, 20, 0, 11, true},
    {"both", 10, 20, 0, 30, true},
    {"a_byte_more_than_both", 10, 20, 0, 31, false},
    {"the_last_byte_of_the_first_of_two", 10, 20, 9, 1, false},
    {"a_byte_of_each", 10, 20, 9, 2, true},
    {"all_from_the_last_byte_of_the_first_on", 10, 20, 9, 21, true},
    {"a_byte_more_from_there_on", 10, 20, 9, 22, false},
    {"the_second_of_two", 10, 20, 10, 20, false},
    {"as_many_bytes_as_there_are_addresses", HUGE, 0, 0, 1, false},
    {"a_byte_fewer", HUGE - 1, 0, 0, 1, true},
    {"as_many_together", HUGE / 2, HUGE / 2, 0, HUGE, false},
    {"a_byte_fewer_together", HUGE / 2, HUGE / 2 - 1, 0, HUGE - 1, true},
    {"a_second_of_no_bytes_would_be_none", 10, 0, 0, 10, true},
};

TEST_EACH(share_bounds, of_a_block_in_its_segments, told_t, tolds) {
    strata_shared_t shared = {.count = row->second ? 2 : 1, .offset = row->offset, .size = row->size};
    shared.segments[0].size = row->first;
    shared.segments[1].size = row->second;
    EXPECT_EQ(strata_shared_check(&shared), row->can_be ? STRATA_OK : STRATA_E_FORMAT);
}

TEST(share_bounds, of_the_number_of_segments) {
    strata_shared_t shared = {.count = STRATA_SHARE_SEGMENTS, .size = STRATA_SHARE_SEGMENTS};
    for (uint32_t i = 0; i < STRATA_SHARE_SEGMENTS; i++) shared.segments[i].size = 1;
    EXPECT_OK(strata_shared_check(&shared));
    shared.count++;
    EXPECT_STATUS(STRATA_E_FORMAT, strata_shared_check(&shared));
}

/* ---- registrations ---- */

/* Two blocks in handles that follow one another. */
typedef struct two {
    rig_t rig;
    strata_block_t first, second;
} two_t;

static void open_adjacent(two_t *two) {
    open_two(&two->rig, EXACT);
    two->first = rig_allocate(&two->rig, NULL, 2 * MIB);
    two->second = rig_allocate(&two->rig, NULL, 2 * MIB);
    ASSERT_EQ((uintptr_t)two->first.ptr + 2 * MIB, (uintptr_t)two->second.ptr);
}

static void close_adjacent(two_t *two) { rig_finish(&two->rig); }

/* Of a row of handles all must be registered, whichever one is not. */
TEST(share_bounds, a_row_of_which_one_is_not_registered_stays) {
    for (int second = 0; second < 2; second++) {
        OPENED(two_t, two, close_adjacent, open_adjacent(&two));
        strata_registration_t one;
        ASSERT_OK(strata_register(two.rig.s, second ? two.second.ref : two.first.ref, &one));
        strata_registration_t both = one;
        both.ptr = two.first.ptr;
        both.size = 4 * MIB;
        EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_unregister(two.rig.s, &both));
        both.size = 2 * MIB + 1;
        EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_unregister(two.rig.s, &both));
        EXPECT_OK(strata_unregister(two.rig.s, &one));
        EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_unregister(two.rig.s, &one));
        RIG_FREE(&two.rig, two.first, two.second);
        rig_expect_empty(&two.rig);
    }
}

/* Each registration is ended by itself, twice is once too often; two of one block count. */
TEST(share_bounds, registrations_of_one_block_count) {
    OPENED(two_t, two, close_adjacent, open_adjacent(&two));
    strata_registration_t first, again, second;
    ASSERT_OK(strata_register(two.rig.s, two.first.ref, &first));
    ASSERT_OK(strata_register(two.rig.s, two.first.ref, &again));
    ASSERT_OK(strata_register(two.rig.s, two.second.ref, &second));
    RIG_FREE(&two.rig, two.first, two.second);
    EXPECT_OK(strata_unregister(two.rig.s, &first));
    EXPECT_EQ(rig_release(&two.rig), 0);
    EXPECT_OK(strata_unregister(two.rig.s, &again));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_unregister(two.rig.s, &again));
    EXPECT_EQ(rig_release(&two.rig), 2 * MIB);
    EXPECT_OK(strata_unregister(two.rig.s, &second));
    EXPECT_EQ(rig_release(&two.rig), 2 * MIB);
}

/* A block of a view lies in further mappings: what is registered there stays mapped there, and no other view has its handles. */
TEST(share_bounds, a_view_that_is_registered_stays_until_it_is_not) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t large = make_join(&rig);
    uint64_t joins = joins_of(&rig);
    EXPECT_GT(joins, 0);
    strata_registration_t kept;
    ASSERT_OK(strata_register(rig.s, large.ref, &kept));
    EXPECT_OK(strata_device_fill(rig.devices[0], (uintptr_t)large.ptr, 9, large.size, NULL));
    EXPECT_OK(strata_free(rig.s, large.ref));
    uint64_t before = rig_figures(&rig).reserved_bytes;
    EXPECT_EQ(rig_release(&rig), before - rig_figures(&rig).reserved_bytes);
    const uint8_t *first = bytes_at(&rig, 0, kept.ptr), *last = bytes_at(&rig, 0, (char *)kept.ptr + kept.size - 1);
    ASSERT_TRUE(first && last);
    EXPECT_EQ(*first, 9);
    EXPECT_EQ(*last, 9);
    EXPECT_OK(strata_unregister(rig.s, &kept));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_unregister(rig.s, &kept));
    EXPECT_GT(rig_release(&rig), 0);
    EXPECT_TRUE(bytes_at(&rig, 0, kept.ptr) == NULL);
}

/* So does a pause: what was exported by its address in a view is exported as a handle. */
TEST(share_bounds, what_was_exported_in_a_view_is_not_paused) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t large = make_join(&rig);
    EXPECT_GT(joins_of(&rig), 0);
    strata_shared_t shared = export_block(&rig, &large);
    strata_shared_close(&shared);
    const strata_pause_options_t options = {.struct_size = sizeof options, .pool = STRATA_POOL_ORDINARY};
    EXPECT_SAYS(STRATA_E_BUSY, strata_pause(rig.s, rig.gpu, &options, NULL), "was exported");
}

/* ---- peers ---- */

TEST(share_bounds, a_peer_reaches_each_of_adjacent_handles) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, EXACT));
    strata_block_t blocks[7];
    for (size_t i = 0; i < COUNT(blocks); i++) blocks[i] = rig_allocate(&rig, NULL, 2 * MIB);
    ASSERT_OK(strata_enable_peer(rig.s, 0, 1));
    for (size_t i = 0; i < COUNT(blocks); i++) EXPECT_TRUE(can_use(&rig, 1, blocks[i].ptr, blocks[i].size));
}

/* The device does something else at the first call of a kind, once. */
typedef struct hooked {
    strata_device_operations_t table; /* first */
    const strata_device_operations_t *real;
    rig_t *rig;
    strata_block_t block;
    strata_shared_t shared;
    uint32_t calls;
} hooked_t;

static void hook(hooked_t *hooked, rig_t *rig, uint32_t device) {
    hooked->rig = rig;
    hooked->real = rig->devices[device]->operations;
    hooked->table = *hooked->real;
}

/* The handle goes, and another one comes to lie where it was; the access is that of a mapping that is no more. */
static strata_status_t refuse_access(strata_device_t *device, strata_address_t address, uint64_t size, const uint32_t *peers,
                                     size_t count) {
    hooked_t *hooked = (hooked_t *)(uintptr_t)device->operations;
    if (hooked->calls++) return hooked->real->set_access(device, address, size, peers, count);
    EXPECT_OK(strata_free(hooked->rig->s, hooked->block.ref));
    EXPECT_EQ(rig_release(hooked->rig), 2 * MIB);
    strata_block_t next = rig_allocate(hooked->rig, NULL, 2 * MIB);
    EXPECT_EQ(next.ptr, hooked->block.ptr);
    hooked->block = next;
    return strata_fail(STRATA_E_DEVICE, 1, "nothing is mapped there");
}

TEST(share_bounds, a_handle_that_went_meanwhile_fails_no_peer) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, EXACT));
    hooked_t hooked = {.block = rig_allocate(&rig, NULL, 2 * MIB)};
    strata_block_t keeps_the_range = rig_allocate(&rig, NULL, 2 * MIB);
    hook(&hooked, &rig, 0);
    hooked.table.set_access = refuse_access;
    rig.devices[0]->operations = &hooked.table;
    EXPECT_OK(strata_enable_peer(rig.s, 0, 1));
    rig.devices[0]->operations = hooked.real;
    EXPECT_GT(hooked.calls, 1);
    EXPECT_TRUE(can_use(&rig, 1, hooked.block.ptr, hooked.block.size));
    EXPECT_TRUE(can_use(&rig, 1, keeps_the_range.ptr, keeps_the_range.size));
}

/* ---- imports ---- */

/* A block over two handles, and one in each of them: the addresses of all three imports lie in one row. The blocks are live at the same
 * time, because the handles of a block in limbo serve no other one. */
TEST(share_bounds, a_row_serves_imports_of_its_first_and_its_last_handle) {
    OPENED(two_t, two, close_adjacent, open_adjacent(&two));
    RIG_FREE(&two.rig, two.first, two.second);
    strata_block_t first = rig_allocate(&two.rig, NULL, MIB), both = rig_allocate(&two.rig, NULL, 2 * MIB),
                   last = rig_allocate(&two.rig, NULL, MIB);
    ASSERT_EQ((uintptr_t)first.ptr + MIB, (uintptr_t)both.ptr);
    ASSERT_EQ((uintptr_t)both.ptr + 2 * MIB, (uintptr_t)last.ptr);
    strata_imported_t all = import_block(&two.rig, &both);
    uint64_t addresses = reserved_addresses(&two.rig, 1);
    strata_imported_t one = import_block(&two.rig, &first), other = import_block(&two.rig, &last);
    EXPECT_EQ(reserved_addresses(&two.rig, 1), addresses);
    EXPECT_EQ(one.ptr, (char *)all.ptr - MIB);
    EXPECT_EQ(other.ptr, (char *)all.ptr + 2 * MIB);
    const strata_imported_t imports[] = {all, other, one};
    for (size_t i = 0; i < COUNT(imports); i++) EXPECT_OK(strata_import_end(two.rig.s, imports[i].id));
    EXPECT_EQ(reserved_addresses(&two.rig, 1), 0);
}

/* An import that has ended leaves its place to another one, which its number does not end. */
TEST(share_bounds, the_number_of_an_import_names_it_alone) {
    OPENED(two_t, two, close_adjacent, open_adjacent(&two));
    strata_imported_t first = import_block(&two.rig, &two.first);
    EXPECT_OK(strata_import_end(two.rig.s, first.id));
    strata_imported_t second = import_block(&two.rig, &two.second);
    EXPECT_STATUS(STRATA_E_STALE, strata_import_end(two.rig.s, first.id));
    EXPECT_STATUS(STRATA_E_STALE, strata_import_end(two.rig.s, 0));
    EXPECT_TRUE(bytes_at(&two.rig, 1, second.ptr) != NULL);
    EXPECT_OK(strata_import_end(two.rig.s, second.id));
}

/* A segment is known by all of its name: on each device by itself, and by both halves of its owner. */
TEST(share_bounds, a_segment_is_known_by_its_whole_name) {
    OPENED(two_t, two, close_adjacent, open_adjacent(&two));
    strata_shared_t shared = export_block(&two.rig, &two.first);
    strata_imported_t there, here;
    ASSERT_OK(strata_import(two.rig.s, strata_gpu(1), &shared, &there));
    for (int part = 0; part < 4; part++) {
        strata_shared_t other = shared;
        other.descriptors[0] = -1;
        if (part == 0) other.owner[0] ^= 1;
        if (part == 1) other.owner[1] ^= 1;
        if (part == 2) other.segments[0].number++;
        if (part == 3) other.sender++;
        EXPECT_STATUS(STRATA_E_DEVICE, strata_import(two.rig.s, strata_gpu(1), &other, &here));
    }
    uint64_t imports = atomic_load(&two.rig.devices[0]->calls[STRATA_CALL_import_memory]);
    ASSERT_OK(strata_import(two.rig.s, strata_gpu(0), &shared, &here));
    EXPECT_EQ(atomic_load(&two.rig.devices[0]->calls[STRATA_CALL_import_memory]), imports + 1);
    EXPECT_OK(strata_import_end(two.rig.s, there.id));
    EXPECT_TRUE(can_use(&two.rig, 0, here.ptr, here.size));
    EXPECT_OK(strata_import_end(two.rig.s, here.id));
    strata_shared_close(&shared);
}

/* A row of which a part was mapped, and that the device keeps, serves nobody. */
TEST(share_bounds, half_a_row_serves_nobody) {
    OPENED(two_t, two, close_adjacent, open_adjacent(&two));
    RIG_FREE(&two.rig, two.first, two.second);
    strata_block_t both = rig_allocate(&two.rig, NULL, 4 * MIB);
    strata_shared_t shared = export_block(&two.rig, &both);
    strata_imported_t there;
    ASSERT_OK(strata_sim_fail(two.rig.devices[1], STRATA_CALL_map, 2, false, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(two.rig.devices[1], STRATA_CALL_unmap, 1, true, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_import(two.rig.s, strata_gpu(1), &shared, &there));
    strata_sim_clear_faults(two.rig.devices[1]);
    EXPECT_GT(reserved_addresses(&two.rig, 1), 0);
    ASSERT_OK(strata_import(two.rig.s, strata_gpu(1), &shared, &there));
    EXPECT_TRUE(can_use(&two.rig, 1, there.ptr, there.size));
    EXPECT_OK(strata_import_end(two.rig.s, there.id));
    EXPECT_EQ(reserved_addresses(&two.rig, 1), 0);
    strata_shared_close(&shared);
}

/* Addresses that the device keeps after their mapping has ended have no access to give. */
TEST(share_bounds, a_peer_comes_while_addresses_are_left) {
    OPENED(two_t, two, close_adjacent, open_adjacent(&two));
    strata_imported_t there = import_block(&two.rig, &two.first);
    ASSERT_OK(strata_sim_fail(two.rig.devices[1], STRATA_CALL_unreserve, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_import_end(two.rig.s, there.id));
    strata_sim_clear_faults(two.rig.devices[1]);
    EXPECT_GT(reserved_addresses(&two.rig, 1), 0);
    EXPECT_OK(strata_enable_peer(two.rig.s, 1, 0));
}

/* During the wait for the last import of a row another one comes, is worked on, and ends: that work is waited for too. */
static strata_status_t use_meanwhile(strata_device_t *device) {
    hooked_t *hooked = (hooked_t *)(uintptr_t)device->operations;
    strata_status_t status = hooked->real->synchronise(device);
    if (hooked->calls++) return status;
    strata_imported_t there;
    EXPECT_OK(strata_import(hooked->rig->s, strata_gpu(1), &hooked->shared, &there));
    const strata_access_t access = {(uintptr_t)there.ptr, there.size, true};
    EXPECT_OK(hooked->real->work(device, NULL, LONG, &access, 1));
    EXPECT_OK(strata_import_end(hooked->rig->s, there.id));
    return status;
}

TEST(share_bounds, what_comes_during_the_wait_for_the_last_is_waited_for) {
    OPENED(two_t, two, close_adjacent, open_adjacent(&two));
    hooked_t hooked = {.shared = export_block(&two.rig, &two.first)};
    strata_imported_t there = import_block(&two.rig, &two.first);
    hook(&hooked, &two.rig, 1);
    hooked.table.synchronise = use_meanwhile;
    two.rig.devices[1]->operations = &hooked.table;
    EXPECT_OK(strata_import_end(two.rig.s, there.id));
    two.rig.devices[1]->operations = hooked.real;
    EXPECT_EQ(hooked.calls, 2);
    EXPECT_EQ(reserved_addresses(&two.rig, 1), 0);
    strata_shared_close(&hooked.shared);
}

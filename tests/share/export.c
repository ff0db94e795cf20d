/* Export and import within a process, on two devices of one world: what is told, what is shared, what stays where it is. */
#include "tests/share/share.h"

static void fill(rig_t *rig, const strata_block_t *block, uint8_t byte) {
    EXPECT_OK(strata_device_fill(rig->devices[0], (uintptr_t)block->ptr, byte, block->size, NULL));
}

TEST(share, an_import_is_the_same_memory) {
    static const char *const strategies[] = {CACHED, ONE_HANDLE, ONLY_VMM};
    for (size_t i = 0; i < COUNT(strategies); i++) {
        OPENED(rig_t, rig, rig_finish, open_two(&rig, strategies[i]));
        (void)rig_allocate(&rig, NULL, 300 * 1000);
        strata_block_t block = rig_allocate(&rig, NULL, 9 * MIB);
        fill(&rig, &block, 42);
        strata_imported_t there = import_block(&rig, &block);
        EXPECT_EQ(there.size, block.size);
        EXPECT_EQ(*bytes_at(&rig, 1, there.ptr), 42);
        EXPECT_TRUE(can_use(&rig, 1, there.ptr, there.size));
        *bytes_at(&rig, 1, (char *)there.ptr + there.size - 1) = 43;
        EXPECT_EQ(*bytes_at(&rig, 0, (char *)block.ptr + block.size - 1), 43);
        EXPECT_OK(strata_import_end(rig.s, there.id));
        EXPECT_STATUS(STRATA_E_STALE, strata_import_end(rig.s, there.id));
    }
}

/* The message says where in its segments the block lies, whatever was cut before it. */
TEST(share, base_handle_and_offset) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, ONE_HANDLE));
    strata_block_t first = rig_allocate(&rig, NULL, MIB), second = rig_allocate(&rig, NULL, MIB);
    strata_shared_t a = export_block(&rig, &first), b = export_block(&rig, &second);
    void *base;
    size_t size;
    ASSERT_OK(strata_base_of(rig.s, second.ref, &base, &size));
    EXPECT_EQ(a.count, 1);
    EXPECT_EQ(b.count, 1);
    EXPECT_EQ(a.segments[0].number, b.segments[0].number);
    EXPECT_EQ(b.segments[0].size, size);
    EXPECT_EQ(b.offset, (uint64_t)((char *)second.ptr - (char *)base));
    EXPECT_EQ(b.size, second.size);
    strata_shared_close(&a);
    strata_shared_close(&b);
    EXPECT_EQ(a.count, 0);
}

/* 10,000 blocks of 20 handles: each handle is imported once, and the addresses are those of the handles. */
TEST(share, a_segment_is_imported_once) {
    enum { IMPORTS = 10000, BLOCKS = 400 };
    static uint64_t ids[IMPORTS];
    strata_block_t blocks[BLOCKS];
    OPENED(rig_t, rig, rig_finish, open_two(&rig, ONE_HANDLE));
    uint64_t before = atomic_load(&rig.devices[1]->calls[STRATA_CALL_import_memory]), sizes = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = rig_allocate(&rig, NULL, MIB);
        sizes += blocks[i].size;
    }
    for (size_t i = 0; i < IMPORTS; i++) ids[i] = import_block(&rig, &blocks[i * 7 % BLOCKS]).id;
    EXPECT_EQ(atomic_load(&rig.devices[1]->calls[STRATA_CALL_import_memory]) - before, sizes / (20 * MIB));
    EXPECT_LE(reserved_addresses(&rig, 1), sizes + 20 * MIB);
    for (size_t i = 0; i < IMPORTS; i++) EXPECT_OK(strata_import_end(rig.s, ids[i]));
    EXPECT_EQ(reserved_addresses(&rig, 1), 0);
}

/* And one after the other, in a program that keeps none. */
TEST(share, many_imports_leave_nothing) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t block = rig_allocate(&rig, NULL, 50 * MIB);
    int descriptors = 0;
    for (size_t i = 0; i < 1000; i++) {
        strata_imported_t there = import_block(&rig, &block);
        EXPECT_LE(reserved_addresses(&rig, 1), 50 * MIB + 2 * 20 * MIB);
        EXPECT_OK(strata_import_end(rig.s, there.id));
        if (i == 0) descriptors = open_descriptors();
    }
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(reserved_addresses(&rig, 1), 0);
}

/* Blocks that lie across handles, some of them shared. */
TEST(share, rows_of_handles_share_views) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t blocks[24];
    strata_imported_t there[24];
    for (size_t i = 0; i < COUNT(blocks); i++) {
        blocks[i] = rig_allocate(&rig, NULL, (size_t)(i % 5 + 1) * 700 * 1000);
        fill(&rig, &blocks[i], (uint8_t)(i + 1));
    }
    for (size_t i = 0; i < COUNT(blocks); i++) there[i] = import_block(&rig, &blocks[i]);
    for (size_t i = 0; i < COUNT(blocks); i++) {
        EXPECT_EQ(*bytes_at(&rig, 1, there[i].ptr), i + 1);
        EXPECT_EQ(*bytes_at(&rig, 1, (char *)there[i].ptr + there[i].size - 1), i + 1);
        EXPECT_OK(strata_import_end(rig.s, there[i].id));
    }
    EXPECT_EQ(reserved_addresses(&rig, 1), 0);
}

TEST(share, work_that_uses_an_import_is_waited_for) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t block = rig_allocate(&rig, NULL, 3 * MIB);
    strata_imported_t there = import_block(&rig, &block);
    const strata_access_t access = {(uintptr_t)there.ptr, there.size, true};
    EXPECT_OK(strata_device_work(rig.devices[1], NULL, 1000 * 1000, &access, 1));
    EXPECT_OK(strata_import_end(rig.s, there.id));
    EXPECT_OK(strata_device_synchronise(rig.devices[1]));
}

TEST(share, an_import_reaches_enabled_peers) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t blocks[2] = {rig_allocate(&rig, NULL, 3 * MIB), rig_allocate(&rig, NULL, 5 * MIB)};
    strata_imported_t before = import_block(&rig, &blocks[0]);
    EXPECT_FALSE(can_use(&rig, 0, before.ptr, before.size));
    ASSERT_OK(strata_enable_peer(rig.s, 1, 0));
    strata_imported_t after = import_block(&rig, &blocks[1]);
    EXPECT_TRUE(can_use(&rig, 0, before.ptr, before.size));
    EXPECT_TRUE(can_use(&rig, 0, after.ptr, after.size));
    EXPECT_OK(strata_import_end(rig.s, before.id));
    EXPECT_OK(strata_import_end(rig.s, after.id));
}

TEST(share, a_facade_with_imports_is_busy) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t block = rig_allocate(&rig, NULL, 3 * MIB);
    strata_imported_t there = import_block(&rig, &block);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_OK(strata_import_end(rig.s, there.id));
}

TEST(share, a_forced_close_ends_imports) {
    rig_t rig;
    open_two(&rig, CACHED);
    strata_block_t block = rig_allocate(&rig, NULL, 3 * MIB);
    (void)import_block(&rig, &block);
    rig_close_by_force(&rig);
}

TEST(share, what_is_in_no_handle_is_refused_by_name) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, "stack: [stream_safe, auto_growth, system]\n"));
    strata_block_t block = rig_allocate(&rig, NULL, 3 * MIB), nothing = rig_allocate(&rig, NULL, 0);
    strata_shared_t shared = {.count = 77};
    strata_registration_t registration;
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_export(rig.s, block.ref, &shared));
    EXPECT_TRUE(strstr(strata_last_error()->text, "vmm") != NULL);
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_export(rig.s, nothing.ref, &shared));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_register(rig.s, block.ref, &registration));
    EXPECT_STATUS(STRATA_E_STALE, strata_export(rig.s, 12345, &shared));
    EXPECT_EQ(shared.count, 77);
}

TEST(share, too_many_handles_are_refused_and_none_is_held) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    for (size_t i = 0; i < 300; i++) (void)rig_allocate(&rig, NULL, 2 * MIB);
    for (uint32_t i = 0; i < 300; i++) EXPECT_OK(strata_free(rig.s, rig.registered[i]));
    strata_block_t block = rig_allocate(&rig, NULL, 590 * MIB);
    strata_shared_t shared;
    strata_status_t status = strata_export(rig.s, block.ref, &shared);
    if (status == STRATA_OK) strata_shared_close(&shared);
    else EXPECT_EQ(status, STRATA_E_LIMIT);
}

/* ---- what stays ---- */

static uint64_t first_handle(rig_t *rig, const strata_block_t *block) {
    strata_shared_t shared = export_block(rig, block);
    uint64_t number = shared.segments[0].number;
    strata_shared_close(&shared);
    return number;
}

/* All that lies idle was exported: no view is made for the block that no hole holds. */
TEST(share, what_was_exported_is_in_no_view) {
    for (int exports = 0; exports < 2; exports++) {
        OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
        strata_block_t blocks[32];
        for (size_t i = 0; i < COUNT(blocks); i++) {
            blocks[i] = rig_allocate(&rig, NULL, 4 * MIB);
            if (exports) (void)first_handle(&rig, &blocks[i]);
        }
        for (size_t i = 0; i < COUNT(blocks); i += 2) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
        (void)rig_allocate(&rig, NULL, 40 * MIB);
        EXPECT_EQ(joins_of(&rig) > 0, !exports);
    }
}

TEST(share, what_is_registered_is_in_no_view_nor_goes_back) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t blocks[32];
    strata_registration_t kept[32];
    for (size_t i = 0; i < COUNT(blocks); i++) {
        blocks[i] = rig_allocate(&rig, NULL, 4 * MIB);
        ASSERT_OK(strata_register(rig.s, blocks[i].ref, &kept[i]));
        fill(&rig, &blocks[i], (uint8_t)(i + 1));
    }
    for (size_t i = 0; i < COUNT(blocks); i += 2) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    strata_block_t large = rig_allocate(&rig, NULL, 40 * MIB);
    EXPECT_EQ(joins_of(&rig), 0);
    EXPECT_OK(strata_free(rig.s, large.ref));
    (void)rig_release(&rig);
    for (size_t i = 0; i < COUNT(blocks); i++) EXPECT_EQ(*bytes_at(&rig, 0, kept[i].ptr), i + 1);
    for (size_t i = 0; i < COUNT(blocks); i++) EXPECT_OK(strata_unregister(rig.s, &kept[i]));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_unregister(rig.s, &kept[0]));
    EXPECT_GT(rig_release(&rig), 0);
}

/* Under a cache that gives whole chunks back, and under none. */
TEST(share, a_registered_chunk_stays_until_it_is_unregistered) {
    static const char *const strategies[] = {ONE_HANDLE, ONLY_VMM};
    for (size_t i = 0; i < COUNT(strategies); i++) {
        OPENED(rig_t, rig, rig_finish, open_two(&rig, strategies[i]));
        strata_block_t block = rig_allocate(&rig, NULL, 64 * MIB);
        strata_registration_t kept;
        ASSERT_OK(strata_register(rig.s, block.ref, &kept));
        EXPECT_EQ(kept.handles, 1);
        EXPECT_EQ(kept.base_size, 64 * MIB);
        fill(&rig, &block, 9);
        EXPECT_OK(strata_free(rig.s, block.ref));
        (void)rig_release(&rig);
        EXPECT_EQ(*bytes_at(&rig, 0, kept.ptr), 9);
        EXPECT_OK(strata_unregister(rig.s, &kept));
        rig_expect_empty(&rig);
    }
}

/* ---- registrable ---- */

/* What a program with buffers for collectives asks for: one handle a block, and little more than was asked. */
TEST(share, registrable_blocks_lie_in_one_handle_with_little_waste) {
    static const size_t sizes[] = {1, 4, 16, 64, 25, 100, 400, 33, 128, 7};
    OPENED(rig_t, rig, rig_finish, open_two(&rig, ONE_HANDLE));
    uint64_t asked = 0;
    for (size_t i = 0; i < 3 * COUNT(sizes); i++) {
        strata_registration_t kept;
        size_t size = sizes[i % COUNT(sizes)] * 1000 * 1000;
        strata_block_t block = rig_allocate(&rig, NULL, size);
        asked += size;
        ASSERT_OK(strata_register(rig.s, block.ref, &kept));
        EXPECT_EQ(kept.handles, 1);
        EXPECT_EQ((uintptr_t)kept.base % (2 * MIB), 0);
        EXPECT_EQ(kept.base_size % (2 * MIB), 0);
        EXPECT_OK(strata_unregister(rig.s, &kept));
    }
    EXPECT_LE(rig_figures(&rig).reserved_bytes, asked + asked * 3 / 100);
}

TEST(share, registrable_refuses_a_cache_across_handles) {
    static const char text[] = "devices: sim\nstack: [stream_safe, auto_growth_vmm, vmm: {registrable: true}]\n";
    strata_t s;
    EXPECT_STATUS(STRATA_E_STRATEGY,
                  strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .text = text}, &s));
    EXPECT_TRUE(strstr(strata_last_error()->text, "registrable") != NULL);
}

/* ---- failures ---- */

/* Call k of each kind that an import makes fails: nothing is left of it, and the next one succeeds. */
TEST(share, a_failed_import_leaves_nothing) {
    static const strata_device_call_t calls[] = {STRATA_CALL_import_memory, STRATA_CALL_reserve, STRATA_CALL_map,
                                                 STRATA_CALL_set_access};
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t block = make_join(&rig);
    strata_shared_t shared = export_block(&rig, &block);
    EXPECT_GT(shared.count, 1);
    for (size_t i = 0; i < COUNT(calls); i++) {
        strata_status_t status = STRATA_E_DEVICE;
        for (uint64_t k = 1; status != STRATA_OK; k++) {
            strata_imported_t there = {.id = 5};
            ASSERT_OK(strata_sim_fail(rig.devices[1], calls[i], k, false, STRATA_E_DEVICE));
            status = strata_import(rig.s, strata_gpu(1), &shared, &there);
            strata_sim_clear_faults(rig.devices[1]);
            if (status == STRATA_OK) EXPECT_OK(strata_import_end(rig.s, there.id));
            else EXPECT_EQ(there.id, 5);
            EXPECT_EQ(reserved_addresses(&rig, 1), 0);
        }
    }
    strata_shared_close(&shared);
}

TEST(share, a_failed_export_leaves_nothing) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t block = make_join(&rig);
    strata_shared_t shared = {.count = 7};
    int descriptors = open_descriptors();
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_export_memory, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_export(rig.s, block.ref, &shared));
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(shared.count, 7);
}

/* What the device does not unmap is offered again. */
TEST(share, a_refused_unmapping_is_offered_again) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t blocks[2] = {rig_allocate(&rig, NULL, 3 * MIB), rig_allocate(&rig, NULL, 70 * MIB)};
    strata_imported_t first = import_block(&rig, &blocks[0]);
    ASSERT_OK(strata_sim_fail(rig.devices[1], STRATA_CALL_unmap, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_import_end(rig.s, first.id));
    strata_sim_clear_faults(rig.devices[1]);
    EXPECT_GT(reserved_addresses(&rig, 1), 0);
    strata_imported_t second = import_block(&rig, &blocks[1]);
    EXPECT_OK(strata_import_end(rig.s, second.id));
    EXPECT_EQ(reserved_addresses(&rig, 1), 0);
}

/* The device has memory for eight handles. Four of them are free between live ones, and two of these move to the end. */
TEST(share, a_handle_that_has_moved_is_exported_at_its_new_address) {
    enum { HANDLES = 8 };
    strata_block_t blocks[HANDLES], two;
    OPENED(rig_t, rig, rig_finish,
           rig_open(&rig, "stack: [best_fit_vmm: {handle: 2MiB, remap_on_oom: true}, vmm]\n", NULL, 0, HANDLES * 2 * MIB, 2));
    for (int i = 0; i < HANDLES; i++) blocks[i] = rig_allocate(&rig, NULL, 2 * MIB);
    for (int i = 0; i < HANDLES; i += 2) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    two = rig_allocate(&rig, NULL, 4 * MIB);
    strata_shared_t shared = export_block(&rig, &two);
    EXPECT_EQ(shared.count, 2);
    EXPECT_EQ(shared.size, two.size);
    strata_shared_close(&shared);
}

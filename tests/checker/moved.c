/* Faults of physical memory that has further addresses (docs/contracts.md §6), each planted in what auto_growth_vmm and vmm do: the
 * checker or the device finds each, and nothing without it. */
#include <unistd.h>

#include "allocation/layers/sources/vmm_state.h"
#include "platform/sim/checker/checker.h"
#include "tests/facade/support/fixture.h"

#define EXACT "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]"
enum { LONG = 50 * 1000 * 1000 };

typedef struct moved {
    rig_t rig;
    strata_checker_t *checker;
    strata_device_operations_t operations; /* of device 0, with what is planted */
} moved_t;

static void open_moved(moved_t *m, uint32_t devices) {
    *m = (moved_t){.checker = NULL};
    rig_open(&m->rig, EXACT, NULL, 0, 0, devices);
    EXPECT_OK(strata_checker_begin(m->rig.world, STRATA_CHECKER_ALL, &m->checker));
    m->operations = *m->rig.devices[0]->operations;
    m->rig.devices[0]->operations = &m->operations;
}

/* Whatever the planted fault has left, the world ends. Returns what the device did not get back. */
static strata_sim_held_t end_moved(moved_t *m) {
    strata_sim_held_t held;
    strata_checker_end(m->checker);
    (void)strata_close(m->rig.s, STRATA_CLOSE_FORCE, NULL, NULL);
    strata_sim_held(m->rig.devices[0], &held);
    for (uint32_t i = 0; i < m->rig.count; i++) strata_device_close(m->rig.devices[i]);
    strata_sim_drop(m->rig.world);
    strata_strategy_delete(m->rig.strategy);
    return held;
}

static strata_block_t serve(moved_t *m, size_t size) {
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate(m->rig.s, m->rig.gpu, NULL, size, &block));
    strata_checker_allocated(
        m->checker, &(strata_checker_block_t){
                        .name = block.ref, .device = m->rig.devices[0], .address = (uintptr_t)block.ptr, .size = block.size});
    return block;
}

static void give(moved_t *m, strata_block_t block) {
    strata_checker_freed(m->checker, block.ref);
    EXPECT_OK(strata_free(m->rig.s, block.ref));
}

static strata_status_t work(moved_t *m, uint32_t device, const void *at, uint64_t size, uint64_t ns) {
    strata_access_t access = {(uintptr_t)at, size, true};
    return strata_device_work(m->rig.devices[device], NULL, ns, &access, 1);
}

/* 2, 120 and 2 MiB; once the small ones are freed, 4 MiB are both in a view. */
typedef struct holes {
    strata_block_t low, middle, high;
} holes_t;

static holes_t three(moved_t *m) {
    holes_t holes = {.low = serve(m, 2 * MIB)};
    holes.middle = serve(m, 120 * MIB);
    holes.high = serve(m, 2 * MIB);
    return holes;
}

static strata_block_t join(moved_t *m, const holes_t *holes) {
    give(m, holes->low);
    give(m, holes->high);
    return serve(m, 4 * MIB);
}

static uint64_t hazards(moved_t *m, strata_hazard_t kind) { return strata_checker_hazards_of(m->checker, kind); }

/* ---- under running work ---- */

static strata_status_t has_passed(strata_device_t *device, strata_handle_t event) {
    (void)device, (void)event;
    return STRATA_OK;
}

static strata_status_t is_done(strata_device_t *device) {
    (void)device;
    return STRATA_OK;
}

static void wait_for_nothing(moved_t *m) {
    m->operations.event_query = m->operations.event_synchronise = has_passed;
    m->operations.synchronise = is_done;
}

/* Nobody waits for the work: the view ends under it. At a release, and at a close that waits for nothing else. */
TEST(moved, a_view_that_ends_under_running_work_is_found) {
    for (int planted = 0; planted < 2; planted++)
        for (int closes = 0; closes < 2; closes++) {
            moved_t m;
            open_moved(&m, 1);
            holes_t holes = three(&m);
            strata_block_t view = join(&m, &holes);
            EXPECT_OK(work(&m, 0, view.ptr, view.size, LONG));
            give(&m, view);
            give(&m, holes.middle);
            if (planted) wait_for_nothing(&m);
            if (closes) (void)strata_close(m.rig.s, STRATA_CLOSE_BUSY, NULL, NULL);
            else (void)strata_release(m.rig.s, m.rig.gpu, NULL);
            EXPECT_EQ(hazards(&m, STRATA_HAZARD_UNDER_WORK) > 0, planted);
            EXPECT_EQ(strata_checker_hazards(m.checker) > 0, planted);
            (void)end_moved(&m);
        }
}

/* What goes back, by its own address or joined in a view. */
TEST(moved, given_back_under_running_work_is_found) {
    for (int planted = 0; planted < 2; planted++)
        for (int joined = 0; joined < 2; joined++) {
            moved_t m;
            open_moved(&m, 1);
            holes_t holes = three(&m);
            EXPECT_OK(work(&m, 0, holes.low.ptr, holes.low.size, LONG));
            if (joined) {
                give(&m, join(&m, &holes));
            } else {
                give(&m, holes.low);
                give(&m, holes.high);
            }
            give(&m, holes.middle);
            if (planted) wait_for_nothing(&m);
            (void)strata_release(m.rig.s, m.rig.gpu, NULL);
            EXPECT_EQ(hazards(&m, STRATA_HAZARD_UNDER_WORK) > 0, planted);
            EXPECT_EQ(strata_checker_hazards(m.checker) > 0, planted);
            (void)end_moved(&m);
        }
}

/* ---- access forgotten for a peer ---- */

static strata_status_t (*real_set_access)(strata_device_t *, strata_address_t, uint64_t, const uint32_t *, size_t);

static strata_status_t set_own_access(strata_device_t *device, strata_address_t address, uint64_t size, const uint32_t *peers,
                                      size_t count) {
    (void)peers, (void)count;
    return real_set_access(device, address, size, NULL, 0);
}

TEST(moved, without_access_of_a_peer_is_found) {
    for (int planted = 0; planted < 2; planted++) {
        moved_t m;
        open_moved(&m, 2);
        EXPECT_OK(strata_enable_peer(m.rig.s, 0, 1));
        holes_t holes = three(&m);
        real_set_access = m.operations.set_access;
        if (planted) m.operations.set_access = set_own_access;
        strata_block_t block = join(&m, &holes);
        EXPECT_EQ(work(&m, 1, block.ptr, block.size, 1000) != STRATA_OK, planted);
        (void)end_moved(&m);
    }
}

/* ---- an exported handle joined ---- */

/* vmm forgets which handles somebody outside relies on. */
static void forget_exports(moved_t *m) {
    strata_group_t *group = &rig_domain(&m->rig)->ordinary;
    for (uint32_t n = 1; n <= group->plan->count; n++) {
        vmm_layer_t *vmm = (vmm_layer_t *)group->shared[n];
        if (!vmm || strcmp(vmm->base.type->name, "vmm") != 0) continue;
        for (uint32_t i = 1; i < vmm->pieces.used; i++) atomic_store(&strata_vmm_piece(vmm, i)->exported, 0);
    }
}

/* Its block is freed, and who imported it still writes there: by another address than whoever has the memory next. The importer has
 * another lease than the owner's, which would keep the block. */
TEST(moved, though_it_was_exported_is_found) {
    for (int planted = 0; planted < 2; planted++) {
        moved_t m;
        open_moved(&m, 2);
        holes_t holes = three(&m);
        strata_shared_t shared;
        strata_imported_t there = {0};
        int foreign[2];
        EXPECT_OK(strata_export(m.rig.s, holes.low.ref, &shared));
        ASSERT_EQ(pipe(foreign), 0);
        close(shared.lease);
        shared.lease = foreign[1];
        EXPECT_OK(strata_import(m.rig.s, strata_gpu(1), &shared, &there));
        strata_shared_close(&shared);
        close(foreign[0]);
        if (planted) forget_exports(&m);
        EXPECT_OK(work(&m, 1, there.ptr, there.size, 1000));
        strata_block_t block = join(&m, &holes);
        EXPECT_OK(work(&m, 0, block.ptr, block.size, 1000));
        EXPECT_EQ(hazards(&m, STRATA_HAZARD_RACE), (uint64_t)planted);
        EXPECT_EQ(strata_checker_hazards(m.checker), (uint64_t)planted);
        EXPECT_OK(strata_import_end(m.rig.s, there.id));
        (void)end_moved(&m);
    }
}

/* ---- half a mapping left ---- */

static strata_status_t unmap_nothing(strata_device_t *device, strata_address_t address, uint64_t size) {
    (void)device, (void)address, (void)size;
    return STRATA_OK;
}

/* Access is refused at the new address, and the mapping there stays. */
TEST(moved, half_and_left_there_is_found) {
    for (int planted = 0; planted < 2; planted++) {
        moved_t m;
        open_moved(&m, 1);
        holes_t holes = three(&m);
        strata_status_t (*real_unmap)(strata_device_t *, strata_address_t, uint64_t) = m.operations.unmap;
        give(&m, holes.low);
        give(&m, holes.high);
        EXPECT_OK(strata_sim_fail(m.rig.devices[0], STRATA_CALL_set_access, 1, false, STRATA_E_NO_MEMORY));
        if (planted) m.operations.unmap = unmap_nothing;
        strata_block_t block = {0};
        (void)strata_allocate(m.rig.s, m.rig.gpu, NULL, 4 * MIB, &block);
        strata_sim_clear_faults(m.rig.devices[0]);
        m.operations.unmap = real_unmap;
        strata_sim_held_t held = end_moved(&m);
        EXPECT_EQ(held.mappings > 0, planted);
        EXPECT_EQ(held.address_bytes > 0, planted);
    }
}

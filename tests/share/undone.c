/* Calls of sharing that are refused halfway: nothing of them stays, neither memory of the host, nor descriptors, nor addresses. */
#include <sys/resource.h>

#include "platform/host/host_memory.h"
#include "tests/share/share.h"

/* The second import needs a descriptor more, which the process does not get. */
TEST(share_undone, a_lease_without_a_descriptor_leaves_no_memory) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, ONE_HANDLE));
    strata_block_t first = rig_allocate(&rig, NULL, 3 * MIB), second = rig_allocate(&rig, NULL, 3 * MIB);
    strata_shared_t shared = export_block(&rig, &second);
    strata_imported_t kept = import_block(&rig, &first), there = {.id = 5};
    struct rlimit before, none;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    uint64_t allocations = strata_host_live().allocations;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_import(rig.s, strata_gpu(1), &shared, &there));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(strata_host_live().allocations, allocations);
    EXPECT_OK(strata_import_end(rig.s, kept.id));
    strata_shared_close(&shared);
}

/* The table of sent blocks takes no entry more. */
TEST(share_undone, an_export_beyond_the_table_is_refused) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t first = rig_allocate(&rig, NULL, 3 * MIB), second = rig_allocate(&rig, NULL, 3 * MIB);
    strata_shared_t kept = export_block(&rig, &first), shared = {.count = 7};
    strata_nodes_t *nodes = &rig_domain(&rig)->sent.nodes;
    uint32_t capacity = nodes->capacity;
    int descriptors = open_descriptors();
    nodes->capacity = nodes->used;
    EXPECT_STATUS(STRATA_E_LIMIT, strata_export(rig.s, second.ref, &shared));
    EXPECT_EQ(shared.count, 7);
    EXPECT_LE(open_descriptors(), descriptors + 1); /* the handle is a file from now on */
    nodes->capacity = capacity;
    shared = export_block(&rig, &second);
    EXPECT_EQ(rig_figures(&rig).sent_blocks, 2);
    strata_shared_close(&shared);
    strata_shared_close(&kept);
}

/* More exports than the table has room for at first, and no other call between them. */
TEST(share_undone, the_table_of_sent_blocks_grows_as_blocks_are_exported) {
    enum { BLOCKS = 400 };
    static strata_block_t blocks[BLOCKS];
    static strata_shared_t shared[BLOCKS];
    OPENED(rig_t, rig, rig_finish, open_two(&rig, ONE_HANDLE));
    for (int i = 0; i < BLOCKS; i++) blocks[i] = rig_allocate(&rig, NULL, MIB);
    for (int i = 0; i < BLOCKS; i++) ASSERT_OK(strata_export(rig.s, blocks[i].ref, &shared[i]));
    EXPECT_EQ(rig_figures(&rig).sent_blocks, BLOCKS);
    for (int i = 0; i < BLOCKS; i++) strata_shared_close(&shared[i]);
}

TEST(share_undone, a_close_leaves_no_descriptors_of_live_blocks) {
    rig_t rig;
    int before = open_descriptors();
    open_two(&rig, CACHED);
    strata_block_t block = rig_allocate(&rig, NULL, 3 * MIB);
    strata_shared_t shared = export_block(&rig, &block);
    rig_close_by_force(&rig);
    strata_shared_close(&shared);
    EXPECT_EQ(open_descriptors(), before);
}

/* Two imports with addresses of their own. */
static void import_two(rig_t *rig, strata_imported_t there[2]) {
    strata_block_t small = rig_allocate(rig, NULL, 3 * MIB), large = rig_allocate(rig, NULL, 70 * MIB);
    there[0] = import_block(rig, &small);
    there[1] = import_block(rig, &large);
}

TEST(share_undone, a_peer_reaches_every_import) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_imported_t there[2];
    import_two(&rig, there);
    ASSERT_OK(strata_enable_peer(rig.s, 1, 0));
    for (int i = 0; i < 2; i++) EXPECT_TRUE(can_use(&rig, 0, there[i].ptr, there[i].size));
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_import_end(rig.s, there[i].id));
}

/* The facade is closed with the imports, and each end is offered a second time. */
TEST(share_undone, a_close_offers_imports_again) {
    static const strata_device_call_t calls[] = {STRATA_CALL_unmap, STRATA_CALL_unreserve, STRATA_CALL_release};
    for (size_t i = 0; i < COUNT(calls); i++) {
        for (uint64_t k = 1; k <= 2; k++) {
            rig_t rig;
            strata_imported_t there[2];
            open_two(&rig, CACHED);
            import_two(&rig, there);
            ASSERT_OK(strata_sim_fail(rig.devices[1], calls[i], k, false, STRATA_E_DEVICE));
            rig_close_by_force(&rig);
        }
    }
}

static uint64_t ladders_of_a_refusal(rig_t *rig) {
    uint64_t before = rig_figures(rig).recoveries;
    EXPECT_EQ(rig_try(rig, NULL, 5 * GIB), STRATA_E_NO_MEMORY);
    return rig_figures(rig).recoveries - before;
}

/* A cache that has taken its own steps is asked again only while another process may give a freed block back. */
TEST(share_undone, without_freed_blocks_elsewhere_a_refusal_climbs_no_ladder) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, "stack: [caching_vmm: {reclaim: own}, vmm]\n"));
    strata_block_t block = rig_allocate(&rig, NULL, 3 * MIB);
    EXPECT_EQ(ladders_of_a_refusal(&rig), 0);
    strata_shared_t shared = export_block(&rig, &block);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_EQ(ladders_of_a_refusal(&rig), 1);
    strata_shared_close(&shared);
    (void)rig_release(&rig);
    EXPECT_EQ(ladders_of_a_refusal(&rig), 0);
}

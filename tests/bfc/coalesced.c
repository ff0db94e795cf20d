/* Regions over vmm: handles lie side by side, so that regions become one. */
#include "allocation/layers/sources/vmm_state.h"
#include "tests/bfc/bfc.h"

#define DOUBLING "coalesce_regions: true"

static vmm_layer_t *vmm_of(rig_t *rig) {
    const strata_group_t *group = &rig_domain(rig)->ordinary;
    return (vmm_layer_t *)group->shared[group->plan->count];
}

/* Regions of 2, 4 and 8 MiB, whose blocks are freed. The first one's address. */
static char *grow_by_three(rig_t *rig) {
    strata_block_t a = rig_allocate(rig, NULL, 2 * MIB), b = rig_allocate(rig, NULL, 4 * MIB), c = rig_allocate(rig, NULL, 8 * MIB);
    RIG_FREE(rig, a, b, c);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 14 * MIB);
    return a.ptr;
}

TEST(bfc_coalesced, a_request_is_served_across_regions_without_growth) {
    for (int coalesces = 0; coalesces < 2; coalesces++) {
        RIG_BY(rig, bfc_open_over(&rig, coalesces ? DOUBLING : "", "vmm", 0));
        char *first = grow_by_three(&rig);
        EXPECT_EQ(bfc_of(&rig)->chunks.count, coalesces ? 1 : 3);
        EXPECT_EQ(rig_figures(&rig).chunks, 3);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_reserve), coalesces ? 1 : 3);
        uint64_t growths = rig_figures(&rig).growths;
        strata_block_t across = rig_allocate(&rig, NULL, 14 * MIB);
        EXPECT_EQ(rig_figures(&rig).growths - growths, coalesces ? 0 : 1);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, coalesces ? 14 * MIB : 30 * MIB);
        EXPECT_EQ(across.ptr == first, coalesces);
        rig_work(&rig, NULL, MILLISECOND, across.ref);
        EXPECT_OK(strata_validate(rig.s));
        EXPECT_OK(strata_free(rig.s, across.ref));
    }
}

/* The first region's block is in use: one request is larger than each region, and the next one than all of them. */
TEST(bfc_coalesced, what_is_larger_than_all_grows_by_what_follows_them) {
    RIG_BY(rig, bfc_open_over(&rig, DOUBLING, "vmm", 0));
    char *first = grow_by_three(&rig);
    strata_block_t kept = rig_allocate(&rig, NULL, 2 * MIB), rest = rig_allocate(&rig, NULL, 12 * MIB);
    EXPECT_EQ((char *)rest.ptr, first + 2 * MIB);
    EXPECT_OK(strata_free(rig.s, rest.ref));
    strata_block_t more = rig_allocate(&rig, NULL, 28 * MIB); /* a region of 32 MiB joins the 12 MiB that are free */
    EXPECT_EQ((char *)more.ptr, first + 2 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 46 * MIB);
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 1);
    RIG_FREE(&rig, kept, more);
}

/* Each region is a handle, which is unmapped and released alone; then the range begins anew. */
TEST(bfc_coalesced, one_region_goes_back_handle_by_handle) {
    RIG_BY(rig, bfc_open_over(&rig, DOUBLING, "vmm", 0));
    char *first = grow_by_three(&rig);
    strata_block_t kept = rig_allocate(&rig, NULL, 256);
    EXPECT_EQ(rig_release(&rig), 0);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 0);
    EXPECT_OK(strata_free(rig.s, kept.ref));
    EXPECT_EQ(rig_trim(&rig, 4 * MIB), 14 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 3);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_release), 3);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(vmm_of(&rig)->parts_order.count, 0);
    EXPECT_EQ(vmm_of(&rig)->ranges, 1);
    strata_block_t again = rig_allocate(&rig, NULL, 256);
    EXPECT_EQ((char *)again.ptr, first);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_reserve), 1);
    EXPECT_OK(strata_free(rig.s, again.ref));
}

/* Addresses that the device does not give back serve nobody; once it has, the lowest gap that is large enough serves. */
TEST(bfc_coalesced, what_the_device_keeps_mapped_keeps_its_addresses) {
    RIG_BY(rig, bfc_open_over(&rig, "coalesce_regions: true, max_region: 256", "vmm", 0));
    strata_block_t a = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_unmap, 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 4 * MIB);
    strata_block_t b = rig_allocate(&rig, NULL, 2 * MIB);
    EXPECT_EQ((char *)b.ptr, (char *)a.ptr + 4 * MIB);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
    strata_block_t large = rig_allocate(&rig, NULL, 6 * MIB), gap = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_EQ((char *)large.ptr, (char *)b.ptr + 2 * MIB);
    EXPECT_EQ((char *)gap.ptr, (char *)a.ptr);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, b, large, gap);
}

/* Each device call of a growth fails in turn: nothing stays taken, and the next growth has the same address. */
TEST(bfc_coalesced, a_growth_that_fails_takes_no_addresses) {
    static const strata_device_call_t calls[] = {STRATA_CALL_create, STRATA_CALL_map, STRATA_CALL_set_access};
    for (size_t i = 0; i < COUNT(calls); i++) {
        RIG_BY(rig, bfc_open_over(&rig, DOUBLING, "vmm", 0));
        strata_block_t a = rig_allocate(&rig, NULL, 2 * MIB), none;
        ASSERT_OK(strata_sim_fail(rig.devices[0], calls[i], 1, true, STRATA_E_NO_MEMORY));
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 4 * MIB, &none));
        strata_sim_clear_faults(rig.devices[0]);
        EXPECT_EQ(vmm_of(&rig)->parts_order.count, 1);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 2 * MIB);
        strata_block_t b = rig_allocate(&rig, NULL, 4 * MIB);
        EXPECT_EQ((char *)b.ptr, (char *)a.ptr + 2 * MIB);
        RIG_FREE(&rig, a, b);
    }
}

TEST(bfc_coalesced, a_range_that_cannot_be_reserved_is_asked_for_again) {
    RIG_BY(rig, bfc_open_over(&rig, DOUBLING, "vmm", 0));
    strata_block_t none;
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_reserve, 1, true, STRATA_E_NO_MEMORY));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 256, &none));
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(vmm_of(&rig)->handles, 0);
    (void)grow_by_three(&rig);
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 1);
}

/* A gap of exactly the size serves, and one granule less does not. */
TEST(bfc_coalesced, without_a_gap_a_request_is_out_of_memory) {
    for (int fits = 0; fits < 2; fits++) {
        RIG_BY(rig, bfc_open_over(&rig, "coalesce_regions: true, max_region: 256", "vmm", 0));
        strata_block_t a = rig_allocate(&rig, NULL, 2 * MIB), b = {.ref = 0};
        vmm_layer_t *vmm = vmm_of(&rig);
        uint64_t whole = vmm->room_size;
        vmm->room_size = fits ? 6 * MIB : 4 * MIB;
        strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 4 * MIB, &b);
        EXPECT_EQ(status, fits ? STRATA_OK : STRATA_E_NO_MEMORY);
        if (!fits) EXPECT_CONTAINS(strata_last_error()->text, "have no gap of 4194304 bytes");
        vmm->room_size = whole;
        if (b.ref) EXPECT_OK(strata_free(rig.s, b.ref));
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
}

/* Out of memory, idle regions go back as one, and the request has their addresses. */
TEST(bfc_coalesced, collected_regions_make_room_for_a_larger_one) {
    RIG_BY(rig, bfc_open_over(&rig, "coalesce_regions: true, memory_limit: 16MiB", "vmm", 0));
    char *first = grow_by_three(&rig);
    strata_block_t all = rig_allocate(&rig, NULL, 16 * MIB);
    EXPECT_EQ((char *)all.ptr, first);
    EXPECT_EQ(bfc_of(&rig)->collected_bytes, 14 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 16 * MIB);
    EXPECT_OK(strata_free(rig.s, all.ref));
}

/* Through a decorator, and with releases in between. */
TEST(bfc_coalesced, a_program_of_random_sizes_keeps_one_region) {
    enum { BLOCKS = 48, STEPS = 6000 };
    RIG_BY(rig, bfc_open_over(&rig, DOUBLING, "limit: {bytes: 8GiB}\n  - vmm", 0));
    strata_block_t blocks[BLOCKS] = {{.ref = 0}};
    uint64_t random = 11;
    for (int i = 0; i < STEPS && !strata_test_has_failed(); i++) {
        strata_block_t *block = &blocks[bfc_next(&random, BLOCKS)];
        if (block->ref) {
            EXPECT_OK(strata_free(rig.s, block->ref));
            block->ref = 0;
        } else {
            *block = rig_allocate(&rig, NULL, 1 + bfc_next(&random, 4 * MIB));
        }
        if (i % 500 == 499) EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        EXPECT_LE(bfc_of(&rig)->chunks.count, 1);
    }
    EXPECT_OK(strata_validate(rig.s));
    bfc_free_all(&rig, blocks, BLOCKS);
    rig_expect_empty(&rig);
    EXPECT_EQ(vmm_of(&rig)->parts_order.count, 0);
}

/* ---- TensorFlow's test over its allocator of virtual memory ---- */

TEST(bfc_coalesced, virtual_allocator_promotes_reuse) {
    strata_block_t blocks[128];
    RIG_BY(rig, bfc_open_over(&rig, "memory_limit: 512MiB, garbage_collection: false, coalesce_regions: true", "vmm", 0));
    for (int i = 0; i < 128; i++) blocks[i] = rig_allocate(&rig, NULL, 4 * MIB);
    for (int i = 0; i < 127; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 1);
    strata_block_t large = rig_allocate(&rig, NULL, 508 * MIB);
    EXPECT_EQ(large.ptr, blocks[0].ptr);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 512 * MIB);
    RIG_FREE(&rig, large, blocks[127]);
}

/* Virtual memory: reserve, create, map, access, unmap, release. */
#include "tests/sim/sim_fixture.h"

TEST_WORLD(sim_vmm, a_handle_is_used_until_released_and_unmapped, .capacity = 4 * MIB) {
    mapped_t m = map_new(f->device, 4 * MIB);
    strata_physical_t none = 3;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_create(f->device, 2 * MIB, false, &none));
    EXPECT_EQ(strata_last_error()->device_code, 2);
    ASSERT_OK(strata_device_release(f->device, m.physical));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_release(f->device, m.physical));
    EXPECT_EQ(figures_of(f->device).used_bytes, 4 * MIB);
    ASSERT_OK(strata_device_unmap(f->device, m.address, 4 * MIB));
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
    EXPECT_OK(strata_device_unreserve(f->device, m.address, 4 * MIB));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unreserve(f->device, m.address, 4 * MIB));
    EXPECT_EQ(none, 3);
}

TEST_WORLD(sim_vmm, an_unmapped_handle_keeps_its_memory_until_released, 0) {
    mapped_t m = map_new(f->device, 4 * MIB);
    ASSERT_OK(strata_device_unmap(f->device, m.address, 4 * MIB));
    EXPECT_EQ(figures_of(f->device).used_bytes, 4 * MIB);
    ASSERT_OK(strata_device_map(f->device, m.address, 4 * MIB, m.physical));
    ASSERT_OK(strata_device_unmap(f->device, m.address, 4 * MIB));
    ASSERT_OK(strata_device_release(f->device, m.physical));
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
}

TEST_WORLD(sim_vmm, ranges_must_fit, .devices = 2) {
    strata_address_t a, none;
    strata_physical_t h, big;
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_reserve(f->device, 3 * MIB, 0, &none));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_reserve(f->device, 2 * MIB, 3, &none));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_create(f->device, MIB, false, &h));
    ASSERT_OK(strata_device_reserve(f->device, 8 * MIB, 64 * MIB, &a));
    EXPECT_EQ(a % (64 * MIB), 0);
    ASSERT_OK(strata_device_create(f->device, 2 * MIB, false, &h));
    ASSERT_OK(strata_device_create(f->device, 4 * MIB, false, &big));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(f->device, a + MIB, 2 * MIB, h));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(f->device, a, 4 * MIB, h));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(f->device, a, 2 * MIB, big));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(f->device, a + 6 * MIB, 4 * MIB, big));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(f->other, a, 2 * MIB, h));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(f->device, get(f->device, 2 * MIB), 2 * MIB, h));
    ASSERT_OK(strata_device_map(f->device, a + 2 * MIB, 2 * MIB, h));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(f->device, a, 4 * MIB, big));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(f->device, a + 2 * MIB, 2 * MIB, h));
    ASSERT_OK(strata_device_map(f->device, a + 4 * MIB, 4 * MIB, big));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_set_access(f->device, a, 8 * MIB, NULL, 0));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unmap(f->device, a + 4 * MIB, 2 * MIB));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unmap(f->device, a, 8 * MIB));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unreserve(f->device, a, 8 * MIB));
    EXPECT_OK(strata_device_unmap(f->device, a + 2 * MIB, 6 * MIB));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unreserve(f->device, a, 4 * MIB));
    EXPECT_OK(strata_device_unreserve(f->device, a, 8 * MIB));
}

TEST_WORLD(sim_vmm, a_mapping_gives_no_access_by_itself, .devices = 2) {
    strata_address_t a;
    strata_physical_t h;
    ASSERT_OK(strata_device_reserve(f->device, 2 * MIB, 0, &a));
    ASSERT_OK(strata_device_create(f->device, 2 * MIB, false, &h));
    ASSERT_OK(strata_device_map(f->device, a, 2 * MIB, h));
    const strata_access_t access = {a, 2 * MIB, true};
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(f->device, NULL, 1, &access, 1));
    strata_sim_clear_faults(f->device);
    ASSERT_OK(strata_device_set_access(f->device, a, 2 * MIB, NULL, 0));
    EXPECT_OK(strata_device_work(f->device, NULL, 1, &access, 1));
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(f->other, NULL, 1, &access, 1));
    strata_sim_clear_faults(f->other);
    const uint32_t peer = 1, stranger = 2;
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_set_access(f->device, a, 2 * MIB, &stranger, 1));
    ASSERT_OK(strata_device_set_access(f->device, a, 2 * MIB, &peer, 1));
    EXPECT_OK(strata_device_work(f->other, NULL, 1, &access, 1));
    ASSERT_OK(strata_device_synchronise(f->device));
    ASSERT_OK(strata_device_synchronise(f->other));
    ASSERT_OK(strata_device_unmap(f->device, a, 2 * MIB));
    ASSERT_OK(strata_device_map(f->device, a, 2 * MIB, h));
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(f->device, NULL, 1, &access, 1));
}

static strata_status_t touch_from(strata_device_t *device, const strata_access_t *access) {
    strata_status_t status = strata_device_work(device, NULL, 1, access, 1);
    if (status != STRATA_OK) strata_sim_clear_faults(device);
    return status;
}

/* As in CUDA, a call says who has access from now on, and says nothing of the devices that it does not name: PyTorch names them one
 * by one. A mapping made anew begins with none. */
TEST_WORLD(sim_vmm, access_set_again_adds_to_what_was_set_until_the_next_map, .devices = 3) {
    strata_device_t *third;
    ASSERT_OK(strata_sim_open(f->world, 2, &third));
    mapped_t m = map_new(f->device, 2 * MIB);
    const strata_access_t access = {m.address, 2 * MIB, true};
    const uint32_t one = 1, two = 2, both[] = {1, 2};
    EXPECT_EQ(touch_from(f->other, &access), STRATA_E_DEVICE_LOST);
    ASSERT_OK(strata_device_set_access(f->device, m.address, 2 * MIB, &one, 1));
    EXPECT_EQ(touch_from(f->other, &access), STRATA_OK);
    EXPECT_EQ(touch_from(third, &access), STRATA_E_DEVICE_LOST);
    ASSERT_OK(strata_device_set_access(f->device, m.address, 2 * MIB, &two, 1));
    ASSERT_OK(strata_device_set_access(f->device, m.address, 2 * MIB, NULL, 0));
    EXPECT_EQ(touch_from(f->device, &access), STRATA_OK);
    EXPECT_EQ(touch_from(f->other, &access), STRATA_OK);
    EXPECT_EQ(touch_from(third, &access), STRATA_OK);
    for (uint32_t i = 0; i < 3; i++) ASSERT_OK(strata_device_synchronise(i == 0 ? f->device : i == 1 ? f->other : third));
    ASSERT_OK(strata_device_unmap(f->device, m.address, 2 * MIB));
    ASSERT_OK(strata_device_map(f->device, m.address, 2 * MIB, m.physical));
    EXPECT_EQ(touch_from(f->device, &access), STRATA_E_DEVICE_LOST);
    EXPECT_EQ(touch_from(third, &access), STRATA_E_DEVICE_LOST);
    ASSERT_OK(strata_device_set_access(f->device, m.address, 2 * MIB, both, 2));
    EXPECT_EQ(touch_from(f->other, &access), STRATA_OK);
    EXPECT_EQ(touch_from(third, &access), STRATA_OK);
    ASSERT_OK(strata_device_synchronise(f->other));
    strata_device_close(third);
}

TEST_WORLD(sim_vmm, unmapping_under_running_work_kills_the_bytes_and_the_device, .contents = true) {
    mapped_t m = map_new(f->device, 2 * MIB);
    const strata_access_t access = {m.address + 100, 8, true};
    ASSERT_OK(strata_device_fill(f->device, m.address, 7, 2 * MIB, NULL));
    ASSERT_OK(strata_device_work(f->device, NULL, 1000 * US, &access, 1));
    EXPECT_OK(strata_device_unmap(f->device, m.address, 2 * MIB));
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_synchronise(f->device));
    EXPECT_EQ(strata_last_error()->device_code, 700);
    strata_sim_clear_faults(f->device);
    ASSERT_OK(strata_device_map(f->device, m.address, 2 * MIB, m.physical));
    EXPECT_NE(*(uint8_t *)strata_device_host_view(f->device, m.address, 1), 7);
}

/* The bytes of the mapping that goes and no other's, wherever it stands. */
TEST(sim_vmm, each_mapping_under_running_work_loses_its_own_bytes) {
    for (uint64_t gone = 0; gone < 3; gone++) {
        fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.contents = true});
        strata_address_t range;
        strata_physical_t handles[3];
        ASSERT_OK(strata_device_reserve(f.device, 6 * MIB, 0, &range));
        for (uint64_t i = 0; i < 3; i++) {
            ASSERT_OK(strata_device_create(f.device, 2 * MIB, false, &handles[i]));
            ASSERT_OK(strata_device_map(f.device, range + i * 2 * MIB, 2 * MIB, handles[i]));
        }
        ASSERT_OK(strata_device_set_access(f.device, range, 6 * MIB, NULL, 0));
        ASSERT_OK(strata_device_fill(f.device, range, 7, 6 * MIB, NULL));
        const strata_access_t access = {range, 6 * MIB, true};
        ASSERT_OK(strata_device_work(f.device, NULL, 1000 * US, &access, 1));
        EXPECT_OK(strata_device_unmap(f.device, range + gone * 2 * MIB, 2 * MIB));
        strata_sim_clear_faults(f.device);
        ASSERT_OK(strata_device_map(f.device, range + gone * 2 * MIB, 2 * MIB, handles[gone]));
        const uint8_t *view = strata_device_host_view(f.device, range, 6 * MIB);
        ASSERT_NE(view, NULL);
        for (uint64_t byte = 0; byte < 6 * MIB; byte += 2 * MIB - 1) EXPECT_EQ(view[byte] != 7, byte / (2 * MIB) == gone);
    }
}

TEST_WORLD(sim_vmm, unmapping_after_the_work_is_seen_done_is_no_fault, .contents = true) {
    mapped_t m = map_new(f->device, 2 * MIB);
    const strata_access_t access = {m.address, 8, true};
    ASSERT_OK(strata_device_fill(f->device, m.address, 7, 2 * MIB, NULL));
    ASSERT_OK(strata_device_work(f->device, NULL, 1000 * US, &access, 1));
    ASSERT_OK(strata_device_synchronise(f->device));
    EXPECT_OK(strata_device_unmap(f->device, m.address, 2 * MIB));
    EXPECT_OK(strata_device_synchronise(f->device));
    EXPECT_EQ(strata_device_host_view(f->device, m.address, 1), NULL);
    ASSERT_OK(strata_device_map(f->device, m.address, 2 * MIB, m.physical));
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(f->device, m.address, 1), 7);
}

TEST_WORLD(sim_vmm, a_handle_mapped_twice_shows_the_same_bytes, .contents = true) {
    strata_address_t a;
    strata_physical_t h[2];
    ASSERT_OK(strata_device_reserve(f->device, 6 * MIB, 0, &a));
    for (int i = 0; i < 2; i++) ASSERT_OK(strata_device_create(f->device, 2 * MIB, false, &h[i]));
    ASSERT_OK(strata_device_map(f->device, a, 2 * MIB, h[0]));
    ASSERT_OK(strata_device_map(f->device, a + 2 * MIB, 2 * MIB, h[1]));
    ASSERT_OK(strata_device_map(f->device, a + 4 * MIB, 2 * MIB, h[0]));
    ASSERT_OK(strata_device_set_access(f->device, a, 6 * MIB, NULL, 0));
    ASSERT_OK(strata_device_fill(f->device, a, 1, 2 * MIB, NULL));
    ASSERT_OK(strata_device_fill(f->device, a + 2 * MIB, 2, 2 * MIB, NULL));
    const uint8_t *view = strata_device_host_view(f->device, a, 6 * MIB);
    ASSERT_NE(view, NULL);
    EXPECT_EQ(view[2 * MIB - 1], 1);
    EXPECT_EQ(view[2 * MIB], 2);
    EXPECT_EQ(view[5 * MIB], 1);
    EXPECT_EQ(figures_of(f->device).used_bytes, 4 * MIB);
}

TEST(sim_vmm, mappings_and_addresses_run_out) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.mappings_max = 2;
    profile.address_bytes = 64 * MIB;
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
    strata_address_t a, none;
    strata_physical_t h;
    ASSERT_OK(strata_device_reserve(f.device, 64 * MIB, 0, &a));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_reserve(f.device, 2 * MIB, 0, &none));
    ASSERT_OK(strata_device_create(f.device, 2 * MIB, false, &h));
    ASSERT_OK(strata_device_map(f.device, a, 2 * MIB, h));
    ASSERT_OK(strata_device_map(f.device, a + 2 * MIB, 2 * MIB, h));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_map(f.device, a + 4 * MIB, 2 * MIB, h));
    ASSERT_OK(strata_device_unmap(f.device, a, 2 * MIB));
    EXPECT_OK(strata_device_map(f.device, a + 4 * MIB, 2 * MIB, h));
    ASSERT_OK(strata_device_unmap(f.device, a + 2 * MIB, 4 * MIB));
    ASSERT_OK(strata_device_unreserve(f.device, a, 64 * MIB));
    EXPECT_OK(strata_device_reserve(f.device, 64 * MIB, 0, &none));
    EXPECT_NE(a, none);
}

/* Virtual memory on a real GPU. */
#include <unistd.h>

#include "tests/gpu/gpu.h"

TEST(gpu, virtual_memory_maps_and_moves) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, virtual_memory);
    enum { HANDLES = 8 };
    uint64_t unit = device->capabilities.granularity;
    strata_address_t range;
    strata_physical_t handles[HANDLES];
    ASSERT_TRUE(unit != 0 && (unit & (unit - 1)) == 0);
    ASSERT_OK(strata_device_reserve(device, 2 * HANDLES * unit, unit, &range));
    EXPECT_EQ(range % unit, 0);
    for (uint64_t i = 0; i < HANDLES; i++) {
        ASSERT_OK(strata_device_create(device, unit, false, &handles[i]));
        ASSERT_OK(strata_device_map(device, range + i * unit, unit, handles[i]));
    }
    /* One call gives access to all of them, one unmaps them. */
    ASSERT_OK(strata_device_set_access(device, range, HANDLES * unit, NULL, 0));
    EXPECT_OK(strata_device_fill(device, range, 9, HANDLES * unit, NULL));
    EXPECT_OK(strata_device_synchronise(device));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(device, range, unit, handles[0]));
    EXPECT_OK(strata_device_unmap(device, range, HANDLES * unit));
    /* The same memory at another place, in another order; half of the handles released first. */
    for (uint64_t i = 0; i < HANDLES; i++) {
        ASSERT_OK(strata_device_map(device, range + (2 * HANDLES - 1 - i) * unit, unit, handles[i]));
        if (i % 2) EXPECT_OK(strata_device_release(device, handles[i]));
    }
    ASSERT_OK(strata_device_set_access(device, range + HANDLES * unit, HANDLES * unit, NULL, 0));
    EXPECT_OK(strata_device_fill(device, range + HANDLES * unit, 7, HANDLES * unit, NULL));
    EXPECT_OK(strata_device_synchronise(device));
    for (uint64_t i = 0; i < HANDLES; i++) EXPECT_OK(strata_device_unmap(device, range + (HANDLES + i) * unit, unit));
    for (uint64_t i = 0; i < HANDLES; i += 2) EXPECT_OK(strata_device_release(device, handles[i]));
    EXPECT_OK(strata_device_unreserve(device, range, 2 * HANDLES * unit));
    strata_device_close(device);
}

TEST(gpu, virtual_memory_is_given_back) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, virtual_memory);
    uint64_t unit = device->capabilities.granularity, size = 64 * unit, before, during, after, total;
    strata_address_t range;
    strata_physical_t handle;
    ASSERT_OK(strata_device_reserve(device, size, unit, &range));
    ASSERT_OK(strata_device_mem_info(device, &before, &total));
    ASSERT_OK(strata_device_create(device, size, false, &handle));
    ASSERT_OK(strata_device_map(device, range, size, handle));
    EXPECT_OK(strata_device_release(device, handle)); /* still mapped */
    EXPECT_OK(strata_device_mem_info(device, &during, &total));
    EXPECT_OK(strata_device_unmap(device, range, size));
    EXPECT_OK(strata_device_mem_info(device, &after, &total));
    EXPECT_LE(during + size / 2, before);
    EXPECT_GE(after, during + size / 2);
    EXPECT_OK(strata_device_unreserve(device, range, size));
    strata_device_close(device);
}

TEST(gpu, physical_memory_is_shared_by_descriptor) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, share);
    uint64_t unit = device->capabilities.granularity;
    strata_address_t range;
    strata_physical_t handle, imported;
    int descriptor = -1;
    ASSERT_OK(strata_device_create(device, unit, true, &handle));
    ASSERT_OK(strata_device_export_memory(device, handle, &descriptor));
    EXPECT_GE(descriptor, 0);
    ASSERT_OK(strata_device_import_memory(device, descriptor, &imported));
    EXPECT_EQ(close(descriptor), 0);
    ASSERT_OK(strata_device_reserve(device, unit, unit, &range));
    ASSERT_OK(strata_device_map(device, range, unit, imported));
    ASSERT_OK(strata_device_set_access(device, range, unit, NULL, 0));
    EXPECT_OK(strata_device_fill(device, range, 3, unit, NULL));
    EXPECT_OK(strata_device_synchronise(device));
    EXPECT_OK(strata_device_unmap(device, range, unit));
    EXPECT_OK(strata_device_unreserve(device, range, unit));
    EXPECT_OK(strata_device_release(device, imported));
    EXPECT_OK(strata_device_release(device, handle));
    strata_device_close(device);
}

TEST(gpu, peers_are_asked_for) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, peers);
    uint32_t count = 0;
    ASSERT_OK(strata_cuda_count(&count));
    for (uint32_t peer = 1; peer < count; peer++) {
        bool can = false;
        ASSERT_OK(strata_device_can_access_peer(device, peer, &can));
        if (!can) continue;
        EXPECT_OK(strata_device_enable_peer(device, peer));
        EXPECT_OK(strata_device_enable_peer(device, peer));
        break;
    }
    strata_device_close(device);
}

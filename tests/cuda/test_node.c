/* Pinned and host memory of a named node: mapped, told to the kernel, pinned in place. */
#include "platform/host/host_memory.h"
#include "platform/host/host_nodes.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

static strata_device_t *open_device(void) {
    strata_device_t *device = NULL;
    EXPECT_OK(strata_cuda_open(0, &device));
    return device;
}

static strata_status_t get(strata_device_t *device, strata_memory_t memory, uint64_t alignment, uint32_t flags,
                           strata_address_t *address) {
    return strata_device_host_alloc(device, memory, 5000, alignment, flags, address);
}

TEST(cuda_node, is_pinned_in_place_and_given_back) {
    fake_reset();
    strata_device_t *device = open_device();
    uint32_t on_0 = STRATA_HOST_ON_NODE(0);
    if (!(device->capabilities.host_nodes & 1)) {
        strata_device_close(device);
        TEST_SKIP("the kernel does not let this process choose a node of the host");
    }
    for (uint64_t alignment = 64; alignment <= 4 << 20; alignment *= 4) {
        strata_address_t pinned, host;
        ASSERT_OK(get(device, STRATA_MEMORY_PINNED, alignment, on_0 | STRATA_HOST_PORTABLE | STRATA_HOST_MAPPED, &pinned));
        ASSERT_OK(get(device, STRATA_MEMORY_HOST, alignment, on_0, &host));
        EXPECT_EQ(pinned % alignment, 0);
        EXPECT_EQ(host % alignment, 0);
        EXPECT_EQ(fake_last("MemHostRegister")->value, 8192);
        EXPECT_EQ(fake_last("MemHostRegister")->extra, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
        memset((void *)(uintptr_t)pinned, 1, 5000);
        memset((void *)(uintptr_t)host, 1, 5000);
        /* What the driver keeps stays ours and can be given back later. */
        fake_fail("MemHostUnregister", 1, CUDA_ERROR_INVALID_VALUE);
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(device, STRATA_MEMORY_PINNED, pinned));
        *(volatile char *)(uintptr_t)pinned = 2;
        EXPECT_OK(strata_device_host_free(device, STRATA_MEMORY_PINNED, pinned));
        EXPECT_OK(strata_device_host_free(device, STRATA_MEMORY_HOST, host));
    }
    EXPECT_EQ(fake_count("MemHostAlloc"), 0);
    EXPECT_EQ(fake_live_objects(), 0);
    strata_device_close(device);
}

TEST(cuda_node, a_refusal_leaves_nothing) {
    FAKE_DEVICE(device);
    strata_address_t address = 7;
    if (device->capabilities.host_nodes & 1) {
        strata_host_fail_at(1, 0); /* the room to note it in */
        EXPECT_STATUS(STRATA_E_HOST_MEMORY, get(device, STRATA_MEMORY_HOST, 64, STRATA_HOST_ON_NODE(0), &address));
        strata_host_fail_at(0, 0);
        fake_fail("MemHostRegister", 1, CUDA_ERROR_OUT_OF_MEMORY);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, get(device, STRATA_MEMORY_PINNED, 64, STRATA_HOST_ON_NODE(0), &address));
        EXPECT_STATUS(STRATA_E_UNSUPPORTED,
                      get(device, STRATA_MEMORY_PINNED, 64, STRATA_HOST_ON_NODE(0) | STRATA_HOST_WRITE_COMBINED, &address));
    }
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, get(device, STRATA_MEMORY_PINNED, 64, STRATA_HOST_ON_NODE(63), &address));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, get(device, STRATA_MEMORY_HOST, 64, STRATA_HOST_ON_NODE(64), &address));
    EXPECT_EQ(address, 7);
    EXPECT_EQ(fake_live_objects(), 0);
}

/* The device has to see registered memory under the host's own address. */
TEST(cuda_node, is_a_capability) {
    fake_reset();
    strata_device_t *device = open_device();
    EXPECT_EQ(device->capabilities.host_nodes, strata_host_nodes());
    EXPECT_EQ(device->capabilities.near_node, 0);
    strata_device_close(device);
    fake_options.no_register = true;
    device = open_device();
    EXPECT_EQ(device->capabilities.host_nodes, 0);
    strata_address_t address = 7;
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, get(device, STRATA_MEMORY_PINNED, 64, STRATA_HOST_ON_NODE(0), &address));
    strata_device_close(device);
    strata_cuda_driver_t older = fake_table();
    fake_options.no_register = false;
    older.MemHostRegister = NULL;
    strata_cuda_set_table_for_tests(&older);
    device = open_device();
    EXPECT_EQ(device->capabilities.host_nodes, 0);
    strata_device_close(device);
    fake_reset();
}

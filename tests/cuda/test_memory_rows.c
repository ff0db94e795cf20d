/* CUDA's semantics that the device must live with, one test for each fact: memory. */
#include <unistd.h>

#include "platform/host/host_memory.h"
#include "tests/cuda/every_call.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

TEST(cuda, row1_free_waits_for_all_work) {
    static const strata_memory_t kinds[] = {STRATA_MEMORY_DEVICE, STRATA_MEMORY_MANAGED};
    for (size_t i = 0; i < 2; i++) {
        EVERY_CALL(things, STRATA_CALL_free);
        fake_submit((CUstream)things.stream);
        fake_submit((CUstream)things.other_stream);
        EXPECT_EQ(fake_pending(0), 2);
        EXPECT_OK(strata_device_free(things.device, kinds[i], i == 0 ? things.address : things.managed));
        EXPECT_EQ(fake_last("MemFree")->pending, 0);
        /* Frees in stream order and unmapping wait for nothing. */
        fake_submit((CUstream)things.other_stream);
        EXPECT_OK(strata_device_free_async(things.device, things.pool_address, things.stream));
        EXPECT_OK(strata_device_unmap(things.device, things.mapped, FAKE_GRANULE));
        EXPECT_GE(fake_pending(0), 1);
    }
}

TEST(cuda, row9_release_threshold) {
    strata_handle_t stream, pool;
    strata_address_t address;
    uint64_t value = 0;
    FAKE_DEVICE(device);
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_pool_create(device, 0, false, &pool));
    for (int keeps = 0; keeps < 2; keeps++) {
        ASSERT_OK(strata_device_pool_set(device, pool, STRATA_POOL_RELEASE_THRESHOLD, keeps ? UINT64_MAX : 0));
        EXPECT_OK(strata_device_pool_get(device, pool, STRATA_POOL_RELEASE_THRESHOLD, &value));
        EXPECT_EQ(value, keeps ? UINT64_MAX : 0);
        ASSERT_OK(strata_device_malloc_async(device, pool, UINT64_C(5) << 20, stream, &address));
        EXPECT_OK(strata_device_pool_get(device, pool, STRATA_POOL_USED_CURRENT, &value));
        EXPECT_EQ(value, UINT64_C(5) << 20);
        ASSERT_OK(strata_device_free_async(device, address, stream));
        EXPECT_EQ(fake_used(0), UINT64_C(6) << 20);
        ASSERT_OK(strata_device_stream_synchronise(device, stream));
        EXPECT_EQ(fake_used(0), keeps ? UINT64_C(6) << 20 : 0);
    }
    ASSERT_OK(strata_device_pool_trim(device, pool, 0));
    EXPECT_EQ(fake_used(0), 0);
    EXPECT_EQ(fake_count("DeviceGraphMemTrim"), 0);
    EXPECT_OK(strata_device_pool_get(device, pool, STRATA_POOL_RESERVED_HIGH, &value));
    EXPECT_EQ(value, UINT64_C(6) << 20);
    EXPECT_OK(strata_device_pool_set(device, pool, STRATA_POOL_RESERVED_HIGH, 0));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_pool_set(device, pool, STRATA_POOL_USED_HIGH, 1));
    /* Policies are narrower than sizes: neighbours are not touched. */
    for (int policy = STRATA_POOL_REUSE_FOLLOW_EVENTS; policy <= STRATA_POOL_REUSE_INTERNAL; policy++) {
        ASSERT_OK(strata_device_pool_set(device, pool, (strata_pool_attribute_t)policy, 0));
        EXPECT_OK(strata_device_pool_get(device, pool, (strata_pool_attribute_t)policy, &value));
        EXPECT_EQ(value, 0);
        ASSERT_OK(strata_device_pool_set(device, pool, (strata_pool_attribute_t)policy, 5)); /* anything but 0 is "on" */
        EXPECT_OK(strata_device_pool_get(device, pool, (strata_pool_attribute_t)policy, &value));
        EXPECT_EQ(value, 1);
    }
    EXPECT_OK(strata_device_pool_destroy(device, pool));
}

TEST(cuda, row10_default_and_shareable_pools) {
    strata_handle_t pool, shared, stream, limited;
    strata_address_t address;
    FAKE_DEVICE(device);
    ASSERT_OK(strata_device_pool_default(device, &pool));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_pool_destroy(device, pool));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_pool_destroy(device, NULL));
    ASSERT_OK(strata_device_pool_create(device, 0, true, &shared));
    EXPECT_EQ(fake_last("MemPoolCreate")->extra, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_malloc_async(device, shared, 4096, stream, &address));
    EXPECT_EQ((strata_handle_t)(uintptr_t)fake_last("MemAllocFromPoolAsync")->extra, shared);
    ASSERT_OK(strata_device_free_async(device, address, stream));
    ASSERT_OK(strata_device_pool_trim(device, shared, 0));
    EXPECT_EQ(fake_used(0), FAKE_GRANULE);
    /* "Default" is the device's default, whichever pool the program has made current. */
    ASSERT_OK(strata_device_malloc_async(device, NULL, 4096, stream, &address));
    EXPECT_EQ((strata_handle_t)(uintptr_t)fake_last("MemAllocFromPoolAsync")->extra, pool);
    ASSERT_OK(strata_device_free_async(device, address, stream));
    EXPECT_OK(strata_device_pool_set_access(device, shared, 1));
    EXPECT_EQ(fake_last("MemPoolSetAccess")->value, 1);
    ASSERT_OK(strata_device_pool_create(device, FAKE_GRANULE, false, &limited));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc_async(device, limited, 2 * FAKE_GRANULE, stream, &address));
    EXPECT_OK(strata_device_pool_destroy(device, limited));
    EXPECT_OK(strata_device_pool_destroy(device, shared));
}

TEST(cuda, row11_graph_allocations) {
    strata_address_t inside, left;
    EVERY_CALL(things, STRATA_CALL_capture_end);
    strata_device_t *device = things.device;
    ASSERT_OK(strata_device_malloc_async(device, NULL, 4096, things.stream, &inside));
    ASSERT_OK(strata_device_free_async(device, inside, things.stream));
    ASSERT_OK(strata_device_malloc_async(device, NULL, 8192, things.stream, &left));
    ASSERT_OK(strata_device_capture_end(device, things.stream, &things.graph));
    uint64_t used = fake_used(0);
    /* Twice, though the first launch leaves an allocation: its addresses are the same. */
    ASSERT_OK(strata_device_graph_launch(device, things.graph, things.stream));
    ASSERT_OK(strata_device_graph_launch(device, things.graph, things.stream));
    EXPECT_EQ(fake_count("GraphInstantiateWithFlags"), 1);
    EXPECT_EQ(fake_last("GraphInstantiateWithFlags")->extra, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    EXPECT_GT(fake_used(0), used);
    /* What was left survives the graph and is freed in stream order; what the graph freed is not the caller's. */
    ASSERT_OK(strata_device_graph_destroy(device, things.graph));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(device, inside, things.stream));
    EXPECT_OK(strata_device_free_async(device, left, things.stream));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(device, left, things.stream));
    /* The graphs' own pool is given back with the default pool. */
    EXPECT_GT(fake_used(0), used);
    EXPECT_OK(strata_device_pool_trim(device, NULL, UINT64_MAX));
    EXPECT_EQ(fake_used(0), used);
}

/* By a call or by the launch of another graph, but not before a launch, not twice, and never what the graph itself frees. */
TEST(cuda, row11_memory_of_a_graph_is_freed_outside_once_a_launch_has_allocated_it) {
    strata_address_t inside, left;
    strata_handle_t other = NULL;
    EVERY_CALL(things, STRATA_CALL_capture_end);
    strata_device_t *device = things.device;
    ASSERT_OK(strata_device_malloc_async(device, NULL, 4096, things.stream, &inside));
    ASSERT_OK(strata_device_free_async(device, inside, things.stream));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(device, inside, things.stream));
    ASSERT_OK(strata_device_malloc_async(device, NULL, 8192, things.stream, &left));
    ASSERT_OK(strata_device_capture_end(device, things.stream, &things.graph));
    ASSERT_OK(strata_device_capture_begin(device, things.stream, STRATA_CAPTURE_RELAXED));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(device, inside, things.stream));
    ASSERT_OK(strata_device_free_async(device, left, things.stream));
    ASSERT_OK(strata_device_capture_end(device, things.stream, &other));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(device, left, things.stream));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_graph_launch(device, other, things.stream));
    for (int way = 0; way < 3; way++) {
        ASSERT_OK(strata_device_graph_launch(device, things.graph, things.stream));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(device, inside, things.stream));
        if (way == 0) EXPECT_OK(strata_device_free_async(device, left, things.stream));
        if (way == 1) EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, left));
        if (way == 2) EXPECT_OK(strata_device_graph_launch(device, other, things.stream));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(device, left, things.stream));
    }
    EXPECT_OK(strata_device_graph_destroy(device, other));
}

TEST(cuda, row11_instances_go_with_their_graph) {
    fake_reset();
    every_call_t things;
    if (!every_call_prepare(&things, STRATA_CALL_graph_launch)) return;
    ASSERT_OK(strata_device_graph_launch(things.device, things.graph, things.stream));
    /* A destroy that fails half-way can be tried again. */
    fake_fail("GraphExecDestroy", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_graph_destroy(things.device, things.graph));
    uint64_t live = fake_live_objects();
    EXPECT_OK(strata_device_graph_destroy(things.device, things.graph));
    EXPECT_EQ(fake_live_objects(), live - 2);
    /* An instance whose graph is still there when the device is closed goes then. */
    ASSERT_OK(strata_device_capture_begin(things.device, things.stream, STRATA_CAPTURE_RELAXED));
    ASSERT_OK(strata_device_capture_end(things.device, things.stream, &things.graph));
    ASSERT_OK(strata_device_graph_launch(things.device, things.graph, things.stream));
    live = fake_live_objects();
    strata_device_close(things.device);
    EXPECT_EQ(fake_live_objects(), live - 1);
}

/* Of a lost device nothing goes, the instance no more than the graph: the driver is not called. */
TEST(cuda, row11_on_a_lost_device_instance_and_graph_stay) {
    EVERY_CALL(things, STRATA_CALL_graph_launch);
    ASSERT_OK(strata_device_graph_launch(things.device, things.graph, things.stream));
    fake_options.sticky[0] = CUDA_ERROR_ILLEGAL_ADDRESS;
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_event_query(things.device, things.event));
    fake_options.sticky[0] = CUDA_SUCCESS;
    uint64_t calls = fake_calls();
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_graph_destroy(things.device, things.graph));
    EXPECT_EQ(fake_calls(), calls);
}

/* An instance that could not be noted would never go: none is made, and nothing runs. */
TEST(cuda, row11_without_room_to_note_its_instance_no_graph_is_launched) {
    EVERY_CALL(things, STRATA_CALL_graph_launch);
    uint64_t live = fake_live_objects();
    strata_host_fail_at(1, 1);
    strata_status_t status = strata_device_graph_launch(things.device, things.graph, things.stream);
    strata_host_fail_at(0, 0);
    EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    EXPECT_EQ(fake_live_objects(), live);
    EXPECT_EQ(fake_depth(), 0);
    EXPECT_OK(strata_device_graph_launch(things.device, things.graph, things.stream));
    EXPECT_EQ(fake_live_objects(), live + 1);
}

TEST(cuda, row14_virtual_memory_order) {
    strata_address_t range;
    strata_physical_t handles[3];
    FAKE_DEVICE(device);
    ASSERT_OK(strata_device_reserve(device, 4 * FAKE_GRANULE, FAKE_GRANULE, &range));
    for (uint64_t i = 0; i < 3; i++) {
        ASSERT_OK(strata_device_create(device, FAKE_GRANULE, false, &handles[i]));
        ASSERT_OK(strata_device_map(device, range + i * FAKE_GRANULE, FAKE_GRANULE, handles[i]));
        EXPECT_EQ(fake_bytes_reachable(range + i * FAKE_GRANULE), 0); /* a map gives no access */
    }
    ASSERT_OK(strata_device_set_access(device, range, 3 * FAKE_GRANULE, (uint32_t[]){1}, 1));
    EXPECT_EQ(fake_last("MemSetAccess")->extra, 2);
    for (uint64_t i = 0; i < 3; i++) {
        EXPECT_EQ(fake_bytes_reachable(range + i * FAKE_GRANULE), 1);
        EXPECT_EQ(fake_peer_reachable(range + i * FAKE_GRANULE, 1), 1);
    }
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(device, range, FAKE_GRANULE, handles[0]));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_set_access(device, range, 4 * FAKE_GRANULE, NULL, 0));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unmap(device, range, FAKE_GRANULE / 2));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unreserve(device, range, 4 * FAKE_GRANULE));
    /* A handle may be released first: its memory goes with its last mapping. */
    for (uint64_t i = 0; i < 3; i++) EXPECT_OK(strata_device_release(device, handles[i]));
    EXPECT_EQ(fake_used(0), 3 * FAKE_GRANULE);
    EXPECT_OK(strata_device_unmap(device, range, FAKE_GRANULE));
    EXPECT_EQ(fake_used(0), 2 * FAKE_GRANULE);
    EXPECT_OK(strata_device_unmap(device, range + FAKE_GRANULE, 2 * FAKE_GRANULE));
    EXPECT_EQ(fake_used(0), 0);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unreserve(device, range, FAKE_GRANULE));
    EXPECT_OK(strata_device_unreserve(device, range, 4 * FAKE_GRANULE));
    EXPECT_EQ(fake_live_objects(), 0);
}

TEST(cuda, row15_address_space_and_mappings_run_out) {
    fake_reset();
    fake_options.mappings_max = 2;
    fake_options.address_space = 8 * FAKE_GRANULE;
    strata_address_t range, other = 7;
    strata_physical_t handles[3];
    OPEN_DEVICE(device);
    ASSERT_OK(strata_device_reserve(device, 4 * FAKE_GRANULE, FAKE_GRANULE, &range));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_device_reserve(device, 5 * FAKE_GRANULE, FAKE_GRANULE, &other),
                "it ran out of address space: cuMemAddressReserve");
    EXPECT_EQ(other, 7);
    for (uint64_t i = 0; i < 3; i++) {
        ASSERT_OK(strata_device_create(device, FAKE_GRANULE, false, &handles[i]));
        ASSERT_OK(strata_device_map(device, range + i * FAKE_GRANULE, FAKE_GRANULE, handles[i]));
        strata_status_t status = strata_device_set_access(device, range + i * FAKE_GRANULE, FAKE_GRANULE, NULL, 0);
        EXPECT_EQ(status, i < 2 ? STRATA_OK : STRATA_E_NO_MEMORY);
    }
    EXPECT_CONTAINS(strata_last_error()->text, "it ran out of mappings: cuMemSetAccess");
    EXPECT_EQ(strata_last_error()->device_code, 2);
    /* With the device full it is the memory. */
    fake_options.memory = fake_used(0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_set_access(device, range, FAKE_GRANULE, NULL, 0));
    EXPECT_LACKS(strata_last_error()->text, "ran out");
}

TEST(cuda, row16_sharing_by_descriptor) {
    strata_physical_t alone, shared, other = 0;
    int descriptor = -1;
    FAKE_DEVICE(device);
    ASSERT_OK(strata_device_create(device, FAKE_GRANULE, false, &alone));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_export_memory(device, alone, &descriptor));
    EXPECT_EQ((int64_t)descriptor, -1);
    ASSERT_OK(strata_device_create(device, FAKE_GRANULE, true, &shared));
    ASSERT_OK(strata_device_export_memory(device, shared, &descriptor));
    EXPECT_EQ(fake_last("MemExportToShareableHandle")->extra, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    EXPECT_OK(strata_device_import_memory(device, descriptor, &other));
    EXPECT_EQ(fake_last("MemImportFromShareableHandle")->value, (uint64_t)descriptor); /* by value, not by address */
    EXPECT_EQ(close(descriptor), 0); /* the caller's */
}

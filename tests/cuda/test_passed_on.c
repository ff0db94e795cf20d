/* What the driver is handed: sizes, flags, places and devices as they were given; and that no room of a table is kept for nothing. */
#include "platform/cuda/cuda_device.h"
#include "tests/cuda/every_call.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

static uint64_t claims_of(strata_device_t *base) {
    const strata_cuda_device_t *device = strata_cuda_of(base);
    return device->events.claimed + device->captures.claimed + device->shifted.claimed + device->on_node.claimed +
           device->graphs.claimed;
}

/* ---- pinned memory ---- */

/* Where the driver's alignment does not do, more is taken with the same flags, and what the driver gave goes back. */
TEST(cuda_passed_on, pinned_memory_with_its_flags_at_every_alignment) {
    static const uint32_t flags[] = {0, STRATA_HOST_PORTABLE, STRATA_HOST_MAPPED | STRATA_HOST_WRITE_COMBINED};
    for (size_t i = 0; i < 3; i++) {
        for (uint64_t alignment = 4096; alignment <= 4 * 4096; alignment *= 2) {
            strata_address_t address = 0;
            bool shifted = alignment > 4096;
            FAKE_DEVICE(device);
            uint64_t live = fake_live_objects();
            ASSERT_OK(strata_device_host_alloc(device, STRATA_MEMORY_PINNED, 1000, alignment, flags[i], &address));
            EXPECT_EQ(address % alignment, 0);
            EXPECT_EQ(fake_last("MemHostAlloc")->extra, flags[i]);
            EXPECT_EQ(fake_last("MemHostAlloc")->value, shifted ? 1000 + alignment : 1000);
            EXPECT_EQ(strata_cuda_of(device)->shifted_count, shifted);
            EXPECT_EQ(fake_live_objects(), live + 1);
            fake_fail("MemFreeHost", 1, CUDA_ERROR_INVALID_VALUE);
            EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(device, STRATA_MEMORY_PINNED, address));
            EXPECT_EQ(strata_cuda_of(device)->shifted_count, shifted);
            EXPECT_OK(strata_device_host_free(device, STRATA_MEMORY_PINNED, address));
            EXPECT_EQ(strata_cuda_of(device)->shifted_count, 0);
            EXPECT_EQ(fake_live_objects(), live);
            EXPECT_EQ(claims_of(device), 0);
        }
    }
}

TEST(cuda_passed_on, pinned_memory_that_cannot_be_had_at_its_alignment_leaves_nothing) {
    for (uint64_t k = 1; k <= 2; k++) {
        strata_address_t address = 7;
        FAKE_DEVICE(device);
        uint64_t live = fake_live_objects();
        fake_fail("MemHostAlloc", k, CUDA_ERROR_OUT_OF_MEMORY);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_host_alloc(device, STRATA_MEMORY_PINNED, 1000, 8192, 0, &address));
        EXPECT_EQ(address, 7);
        EXPECT_EQ(fake_live_objects(), live);
        EXPECT_EQ(claims_of(device) + strata_cuda_of(device)->shifted_count, 0);
    }
}

/* ---- graphs ---- */

/* Two launches are of one instance, and a graph that is gone keeps no room. */
TEST(cuda_passed_on, launches_and_destroys_keep_no_room) {
    EVERY_CALL(things, STRATA_CALL_graph_launch);
    for (int i = 0; i < 3; i++) ASSERT_OK(strata_device_graph_launch(things.device, things.graph, things.stream));
    EXPECT_EQ(fake_count("GraphInstantiateWithFlags"), 1);
    EXPECT_EQ(claims_of(things.device), 0);
    fake_fail("GraphExecDestroy", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_graph_destroy(things.device, things.graph));
    EXPECT_EQ(claims_of(things.device), 0);
    EXPECT_EQ(strata_cuda_of(things.device)->graphs.count, 1);
    EXPECT_OK(strata_device_graph_destroy(things.device, things.graph));
    EXPECT_EQ(claims_of(things.device) + strata_cuda_of(things.device)->graphs.count, 0);
}

/* ---- pools ---- */

TEST(cuda_passed_on, a_pool_is_of_its_own_device) {
    for (int ordinal = 0; ordinal < 2; ordinal++) {
        fake_reset();
        strata_device_t *device;
        strata_handle_t pool, stream;
        strata_address_t address;
        ASSERT_OK(strata_cuda_open((uint32_t)ordinal, &device));
        ASSERT_OK(strata_device_pool_create(device, 0, false, &pool));
        EXPECT_EQ(fake_last("MemPoolCreate")->value, (uint64_t)ordinal);
        EXPECT_EQ(fake_last("MemPoolCreate")->extra, CU_MEM_HANDLE_TYPE_NONE);
        ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
        ASSERT_OK(strata_device_malloc_async(device, pool, 4096, stream, &address));
        EXPECT_EQ(fake_used(ordinal), FAKE_GRANULE);
        ASSERT_OK(strata_device_free_async(device, address, stream));
        EXPECT_OK(strata_device_pool_trim(device, pool, 12345));
        EXPECT_EQ(fake_last("MemPoolTrimTo")->extra, 12345);
        EXPECT_EQ((strata_handle_t)(uintptr_t)fake_last("MemPoolTrimTo")->value, pool);
        strata_device_close(device);
    }
}

TEST(cuda_passed_on, a_largest_size_of_a_pool_from_the_driver_that_knows_it) {
    static const int versions[] = {12000, 12019, 12020, 13000};
    for (size_t i = 0; i < 4; i++) {
        fake_reset();
        fake_options.driver_version = versions[i];
        strata_handle_t pool;
        OPEN_DEVICE(device);
        strata_status_t status = strata_device_pool_create(device, FAKE_GRANULE, false, &pool);
        EXPECT_EQ(status, versions[i] < 12020 ? STRATA_E_UNSUPPORTED : STRATA_OK);
        EXPECT_OK(strata_device_pool_create(device, 0, false, &pool));
    }
}

/* ---- memory ---- */

TEST(cuda_passed_on, free_and_total_memory_are_told_apart) {
    strata_address_t address;
    uint64_t left = 0, total = 0;
    FAKE_DEVICE(device);
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 3 * FAKE_GRANULE, &address));
    ASSERT_OK(strata_device_mem_info(device, &left, &total));
    EXPECT_EQ(total, fake_options.memory);
    EXPECT_EQ(left, fake_options.memory - fake_used(0));
    EXPECT_LT(left, total);
}

/* The host is one place of managed memory, the device another. */
TEST(cuda_passed_on, managed_memory_is_sent_where_it_was_said) {
    for (int old = 0; old < 2; old++) {
        for (int to_host = 0; to_host < 2; to_host++) {
            fake_reset();
            strata_cuda_driver_t driver = fake_table();
            if (!old) driver.MemPrefetchAsync = NULL;
            if (!old) driver.MemAdvise = NULL;
            strata_cuda_set_table_for_tests(&driver);
            strata_device_t *device;
            strata_handle_t stream;
            strata_address_t managed;
            ASSERT_OK(strata_cuda_open(1, &device));
            ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
            ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_MANAGED, 4096, &managed));
            EXPECT_OK(strata_device_prefetch(device, managed, 4096, to_host, stream));
            EXPECT_OK(strata_device_advise(device, managed, 4096, STRATA_ADVISE_SET_PREFERRED, to_host));
            const char *prefetch = fake_last("MemPrefetchAsync") ? "MemPrefetchAsync" : "MemPrefetchAsyncAt";
            const char *advise = fake_last("MemAdvise") ? "MemAdvise" : "MemAdviseAt";
            bool by_device = strcmp(prefetch, "MemPrefetchAsync") == 0;
            uint64_t host = by_device ? (uint64_t)CU_DEVICE_CPU : 2, here = 1; /* a location's type: device 1, host 2 */
            EXPECT_EQ((int)fake_last(prefetch)->extra, (int)(to_host ? host : here));
            EXPECT_EQ((int)fake_last(advise)->extra, (int)(to_host ? host : here));
            EXPECT_EQ(fake_last(advise)->value, STRATA_ADVISE_SET_PREFERRED);
            strata_device_close(device);
        }
    }
    fake_reset();
}

/* ---- virtual memory ---- */

static CUmemAllocationProp asked, granule_asked;
static CUmemAllocationGranularity_flags granule_option;
static bool has_rdma;

static CUresult note_create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                            unsigned long long flags) {
    asked = *properties;
    strata_cuda_driver_t program = fake_table();
    return program.MemCreate(handle, size, properties, flags);
}

static CUresult note_granularity(size_t *unit, const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags option) {
    granule_asked = *properties;
    granule_option = option;
    strata_cuda_driver_t program = fake_table();
    return program.MemGetAllocationGranularity(unit, properties, option);
}

static CUresult with_rdma(int *value, CUdevice_attribute attribute, CUdevice device) {
    strata_cuda_driver_t program = fake_table();
    CUresult code = program.DeviceGetAttribute(value, attribute, device);
    if (attribute == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) *value = has_rdma;
    return code;
}

/* Of the device itself, known to network cards where that can be, to other processes where that was said; the least granule. */
TEST(cuda_passed_on, physical_memory_is_what_was_asked_for) {
    for (int way = 0; way < 4; way++) {
        fake_reset();
        strata_cuda_driver_t driver = fake_table();
        driver.MemCreate = note_create;
        driver.MemGetAllocationGranularity = note_granularity;
        driver.DeviceGetAttribute = with_rdma;
        has_rdma = way & 1;
        strata_cuda_set_table_for_tests(&driver);
        strata_device_t *device;
        strata_physical_t handle;
        ASSERT_OK(strata_cuda_open(1, &device));
        EXPECT_EQ(granule_option, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        EXPECT_EQ(granule_asked.location.id, 1);
        ASSERT_OK(strata_device_create(device, FAKE_GRANULE, way & 2, &handle));
        EXPECT_EQ(asked.location.id, 1);
        EXPECT_EQ(asked.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
        EXPECT_EQ(asked.allocFlags.gpuDirectRDMACapable, way & 1);
        EXPECT_EQ(asked.requestedHandleTypes, way & 2 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE);
        EXPECT_EQ(fake_used(1), FAKE_GRANULE);
        strata_device_close(device);
    }
    fake_reset();
}

/* The second device gets access to its own memory, with and without a peer. */
TEST(cuda_passed_on, access_is_of_the_device_itself_and_of_its_peers) {
    for (int peer = 0; peer < 2; peer++) {
        fake_reset();
        strata_device_t *device;
        strata_physical_t handle;
        strata_address_t range;
        ASSERT_OK(strata_cuda_open(1, &device));
        ASSERT_OK(strata_device_reserve(device, FAKE_GRANULE, 4 * FAKE_GRANULE, &range));
        EXPECT_EQ(fake_last("MemAddressReserve")->value, FAKE_GRANULE);
        EXPECT_EQ(fake_last("MemAddressReserve")->extra, 4 * FAKE_GRANULE);
        ASSERT_OK(strata_device_create(device, FAKE_GRANULE, false, &handle));
        ASSERT_OK(strata_device_map(device, range, FAKE_GRANULE, handle));
        ASSERT_OK(strata_device_set_access(device, range, FAKE_GRANULE, (uint32_t[]){0}, (size_t)peer));
        EXPECT_EQ(fake_peer_reachable(range, 1), 1);
        EXPECT_EQ(fake_peer_reachable(range, 0), (uint64_t)peer);
        strata_device_close(device);
    }
}

/* Less than two granules free: then it is the memory that ran out, and not what has none. */
TEST(cuda_passed_on, what_ran_out_is_told_by_what_is_left) {
    for (uint64_t left = 1; left <= 3; left++) {
        fake_reset();
        fake_options.address_space = FAKE_GRANULE;
        fake_options.memory = left * FAKE_GRANULE;
        strata_address_t range;
        OPEN_DEVICE(device);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_reserve(device, 2 * FAKE_GRANULE, FAKE_GRANULE, &range));
        EXPECT_EQ(strstr(strata_last_error()->text, "it ran out of address space") != NULL, left >= 2);
    }
    fake_reset();
}

/* Sharing by descriptors is refused before the driver is asked, where it cannot be had. */
TEST(cuda_passed_on, memory_to_share_needs_descriptors) {
    fake_reset();
    fake_options.no_fd = true;
    strata_device_t *device;
    strata_physical_t handle;
    ASSERT_OK(strata_cuda_open(0, &device));
    EXPECT_TRUE(device->capabilities.virtual_memory && !device->capabilities.share);
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_device_create(device, FAKE_GRANULE, true, &handle));
    EXPECT_EQ(fake_count("MemCreate"), 0);
    EXPECT_OK(strata_device_create(device, FAKE_GRANULE, false, &handle));
    strata_device_close(device);
    fake_reset();
}

/* ---- capabilities ---- */

static int numa_id, compute_major;

static CUresult with_attributes(int *value, CUdevice_attribute attribute, CUdevice device) {
    strata_cuda_driver_t program = fake_table();
    CUresult code = program.DeviceGetAttribute(value, attribute, device);
    if (attribute == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID) *value = numa_id;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = compute_major;
    return code;
}

static strata_device_capabilities_t capabilities_with(int node, int major) {
    strata_cuda_driver_t driver = fake_table();
    strata_device_t *device = NULL;
    driver.DeviceGetAttribute = with_attributes;
    numa_id = node;
    compute_major = major;
    strata_cuda_set_table_for_tests(&driver);
    EXPECT_OK(strata_cuda_open(0, &device));
    strata_device_capabilities_t capabilities = device->capabilities;
    strata_device_close(device);
    return capabilities;
}

TEST(cuda_passed_on, capabilities_are_what_the_driver_says) {
    fake_reset();
    EXPECT_EQ(capabilities_with(3, 9).near_node, 3);
    EXPECT_EQ(capabilities_with(0, 9).near_node, 0);
    EXPECT_GE(capabilities_with(-1, 9).near_node, 64); /* the driver knows none: one that no host has */
    EXPECT_TRUE(capabilities_with(0, 7).work);
    EXPECT_FALSE(capabilities_with(0, 6).work);
    EXPECT_TRUE(capabilities_with(0, 9).concurrent_managed);
    fake_options.no_concurrent = true;
    EXPECT_TRUE(capabilities_with(0, 9).managed);
    EXPECT_FALSE(capabilities_with(0, 9).concurrent_managed);
    fake_options.no_concurrent = false;
    fake_options.no_managed = true;
    EXPECT_FALSE(capabilities_with(0, 9).managed);
    EXPECT_FALSE(capabilities_with(0, 9).concurrent_managed);
    fake_reset();
}

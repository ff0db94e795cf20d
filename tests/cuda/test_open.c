/* Finding and opening: which code says what, whose context is opened, which entries may be missing. */
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "tests/cuda/every_call.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

TEST(cuda, open_tells_why_there_is_no_device) {
    static const struct {
        int code;
        strata_status_t status;
    } rows[] = {{3, STRATA_E_NO_DEVICE},   {34, STRATA_E_NO_DEVICE},  {46, STRATA_E_NO_DEVICE},  {100, STRATA_E_NO_DEVICE},
                {803, STRATA_E_NO_DEVICE}, {804, STRATA_E_NO_DEVICE}, {999, STRATA_E_NO_DEVICE}, {4, STRATA_E_SHUTDOWN}};
    static const char *const calls[] = {"Init", "DeviceGetCount", "DevicePrimaryCtxRetain"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
            fake_reset();
            strata_device_t *device = NULL;
            fake_fail(calls[k], 1, (CUresult)rows[i].code);
            EXPECT_STATUS(rows[i].status, strata_cuda_open(0, &device));
            EXPECT_EQ(strata_last_error()->device_code, rows[i].code);
            EXPECT_CONTAINS(strata_last_error()->text, calls[k]);
            EXPECT_EQ(device, NULL);
            EXPECT_EQ(fake_retains(0), 0);
        }
    }
    fake_reset();
}

TEST(cuda, count_and_ordinals) {
    fake_reset();
    uint32_t count = 0;
    strata_device_t *device = NULL;
    EXPECT_OK(strata_cuda_count(&count));
    EXPECT_EQ(count, 2);
    EXPECT_SAYS(STRATA_E_NO_DEVICE, strata_cuda_open(2, &device), "there is no gpu:2");
    EXPECT_EQ(fake_count("DevicePrimaryCtxRetain"), 0);
    ASSERT_OK(strata_cuda_open(1, &device));
    EXPECT_STREQ(device->name, "Fake GPU 1");
    EXPECT_EQ(device->ordinal, 1);
    EXPECT_EQ(device->capabilities.alignment, 256);
    EXPECT_EQ(device->capabilities.granularity, FAKE_GRANULE);
    EXPECT_TRUE(device->clock == strata_real_clock() && device->lock_observer == NULL);
    strata_device_close(device);
}

TEST(cuda, only_the_used_device_is_opened) {
    fake_reset();
    strata_device_t *device;
    strata_address_t address;
    bool can = false;
    ASSERT_OK(strata_cuda_open(1, &device));
    EXPECT_TRUE(device->capabilities.peers);
    EXPECT_OK(strata_device_can_access_peer(device, 0, &can));
    EXPECT_TRUE(can);
    EXPECT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 4096, &address));
    EXPECT_EQ(fake_last("MemAlloc")->device, 1);
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, address));
    EXPECT_EQ(fake_retains(0), 0);
    EXPECT_EQ(fake_retains(1), 1);
    for (uint64_t i = 0; i < fake_calls(); i++) EXPECT_NE(fake_call_at(i)->device, 0);
    /* A peer's context is opened when it is asked for, once, and closed with the device. */
    EXPECT_OK(strata_device_enable_peer(device, 0));
    EXPECT_OK(strata_device_enable_peer(device, 0));
    EXPECT_EQ(fake_retains(0), 1);
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_enable_peer(device, 1));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_enable_peer(device, 2));
    strata_device_close(device);
    EXPECT_EQ(fake_retains(0) + fake_retains(1), 0);
}

TEST(cuda, peer_that_the_program_enabled_already) {
    fake_reset();
    strata_device_t *device;
    ASSERT_OK(strata_cuda_open(0, &device));
    fake_fail("CtxEnablePeerAccess", 1, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    EXPECT_OK(strata_device_enable_peer(device, 1));
    strata_device_close(device);
    EXPECT_EQ(fake_retains(1), 0);
}

TEST(cuda, failures_leave_no_context_after) {
    static const char *const calls[] = {"CtxGetCurrent", "CtxPushCurrent", "ThreadExchangeStreamCaptureMode"};
    strata_device_t *device = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fake_reset();
        fake_fail(calls[i], 1, CUDA_ERROR_INVALID_VALUE);
        EXPECT_STATUS(STRATA_E_DEVICE, strata_cuda_open(0, &device));
        EXPECT_EQ(device, NULL);
        EXPECT_EQ(fake_retains(0), 0);
        EXPECT_EQ(fake_depth(), 0);
    }
    fake_reset();
    ASSERT_OK(strata_cuda_open(0, &device));
    fake_fail("CtxEnablePeerAccess", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_enable_peer(device, 1));
    EXPECT_EQ(fake_retains(1), 0);
    strata_device_close(device);
}

TEST(cuda, a_driver_that_shuts_down_while_a_device_is_opened_is_called_no_more) {
    static const char *const calls[] = {"CtxGetCurrent", "CtxPushCurrent", "ThreadExchangeStreamCaptureMode"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        strata_device_t *device;
        fake_reset();
        fake_fail(calls[i], 1, CUDA_ERROR_DEINITIALIZED);
        EXPECT_STATUS(STRATA_E_SHUTDOWN, strata_cuda_open(0, &device));
        EXPECT_TRUE(fake_failed());
        EXPECT_EQ(strcmp(fake_call_at(fake_calls() - 1)->name, calls[i]), 0);
    }
    fake_reset();
}

TEST(cuda, two_devices) {
    fake_reset();
    strata_device_t *devices[2];
    strata_address_t addresses[2];
    strata_handle_t streams[2], event;
    for (uint32_t i = 0; i < 2; i++) {
        ASSERT_OK(strata_cuda_open(i, &devices[i]));
        ASSERT_OK(strata_device_malloc(devices[i], STRATA_MEMORY_DEVICE, UINT64_C(3) << 20, &addresses[i]));
        EXPECT_EQ(fake_last("MemAlloc")->device, i);
        EXPECT_EQ(fake_used((int)i), UINT64_C(4) << 20);
        ASSERT_OK(strata_device_stream_create(devices[i], STRATA_STREAM_NON_BLOCKING, 0, &streams[i]));
    }
    EXPECT_NE(addresses[0], addresses[1]);
    /* The other device's handles are strangers. */
    uint64_t id;
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_device_stream_id(devices[1], streams[0], &id));
    ASSERT_OK(strata_device_event_create(devices[0], &event));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_record(devices[1], event, streams[1]));
    /* What waits, waits for its own device. */
    fake_submit((CUstream)streams[0]);
    fake_submit((CUstream)streams[1]);
    EXPECT_OK(strata_device_free(devices[1], STRATA_MEMORY_DEVICE, addresses[1]));
    EXPECT_EQ(fake_pending(1), 0);
    EXPECT_EQ(fake_pending(0), 1);
    strata_device_close(devices[1]);
    EXPECT_OK(strata_device_free(devices[0], STRATA_MEMORY_DEVICE, addresses[0]));
    strata_device_close(devices[0]);
}

static const char *const symbols[] = {
#define SYMBOL(field, name, version, group, arguments) "cu" #name,
    STRATA_CUDA_ENTRY_MAP(SYMBOL)
#undef SYMBOL
};
static const strata_cuda_group_t groups[] = {
#define GROUP(field, name, version, group, arguments) STRATA_CUDA_##group,
    STRATA_CUDA_ENTRY_MAP(GROUP)
#undef GROUP
};

static bool has_capability(const strata_device_capabilities_t *can, strata_cuda_group_t group) {
    switch (group) {
    case STRATA_CUDA_MANAGED: return can->managed || can->concurrent_managed;
    case STRATA_CUDA_POOLS: return can->pools;
    case STRATA_CUDA_VIRTUAL: return can->virtual_memory || can->granularity || can->share;
    case STRATA_CUDA_SHARE: return can->share;
    case STRATA_CUDA_CAPTURE: return can->capture;
    case STRATA_CUDA_IDS: return can->stream_ids;
    case STRATA_CUDA_PEERS: return can->peers;
    case STRATA_CUDA_WORK: return can->work;
    default: return false; /* texts, trimming, prefetch: no capability of their own */
    }
}

TEST(cuda, missing_mandatory_entry_is_no_device) {
    size_t mandatory = 0;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (groups[i] != STRATA_CUDA_BASE) continue;
        mandatory++;
        fake_reset();
        fake_omitted = symbols[i];
        strata_cuda_driver_t driver;
        EXPECT_SAYS(STRATA_E_NO_DEVICE, strata_cuda_driver_fill(fake_get_proc, &driver), symbols[i]);
    }
    EXPECT_GT(mandatory, 20);
}

static void check_missing_optional_entries(CUresult code) {
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (groups[i] == STRATA_CUDA_BASE) continue;
        fake_reset();
        fake_omitted = symbols[i];
        fake_omission = code;
        strata_cuda_driver_t driver;
        ASSERT_OK(strata_cuda_driver_fill(fake_get_proc, &driver));
        EXPECT_FALSE(strata_cuda_driver_has(&driver, groups[i]));
        strata_cuda_set_table_for_tests(&driver);
        OPEN_DEVICE(device);
        for (int group = STRATA_CUDA_TEXT; group < STRATA_CUDA_GROUPS; group++) {
            bool has = has_capability(&device->capabilities, (strata_cuda_group_t)group);
            if (has && (strata_cuda_group_t)group == groups[i]) FAIL_TEST("%s is missing, its capability is on", symbols[i]);
        }
    }
    fake_reset();
}

/* A driver may also say of one that it does not support it. */
TEST(cuda, missing_optional_entry_turns_its_capability_off) {
    check_missing_optional_entries(CUDA_ERROR_NOT_FOUND);
    check_missing_optional_entries(CUDA_ERROR_NOT_SUPPORTED);
}

/* Any other answer says nothing of the entry: the table is not made. */
TEST(cuda, an_entry_that_cannot_be_asked_for_fails_the_open) {
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        fake_reset();
        fake_omitted = symbols[i];
        fake_omission = CUDA_ERROR_OUT_OF_MEMORY;
        strata_cuda_driver_t driver;
        EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_cuda_driver_fill(fake_get_proc, &driver), "cuGetProcAddress");
    }
    fake_reset();
}

static void omit(strata_cuda_driver_t *driver, strata_cuda_group_t group) {
#define OMIT(field, name, version, entry_group, arguments)                                                                         \
    if (group == STRATA_CUDA_##entry_group) driver->field = NULL;
    STRATA_CUDA_ENTRY_MAP(OMIT)
#undef OMIT
}

static strata_status_t call_of_group(strata_device_t *device, strata_cuda_group_t group) {
    uint64_t out;
    strata_handle_t handle;
    bool can;
    switch (group) {
    case STRATA_CUDA_MANAGED: return strata_device_malloc(device, STRATA_MEMORY_MANAGED, 4096, &out);
    case STRATA_CUDA_POOLS: return strata_device_malloc_async(device, NULL, 4096, NULL, &out);
    case STRATA_CUDA_VIRTUAL: return strata_device_reserve(device, FAKE_GRANULE, FAKE_GRANULE, &out);
    case STRATA_CUDA_SHARE: return strata_device_create(device, FAKE_GRANULE, true, &out);
    case STRATA_CUDA_CAPTURE: return strata_device_capture_end(device, NULL, &handle);
    case STRATA_CUDA_GRAPH_EDGES: return strata_device_capture_follows(device, NULL, NULL, &out);
    case STRATA_CUDA_IDS: return strata_device_stream_id(device, NULL, &out);
    case STRATA_CUDA_PEERS: return strata_device_can_access_peer(device, 1, &can);
    case STRATA_CUDA_WORK: return strata_device_work(device, NULL, 1, NULL, 0);
    default: return STRATA_E_UNSUPPORTED;
    }
}

TEST(cuda, call_without_its_entry_is_unsupported) {
    for (int group = STRATA_CUDA_TEXT; group < STRATA_CUDA_GROUPS; group++) {
        fake_reset();
        strata_cuda_driver_t driver = fake_table();
        omit(&driver, (strata_cuda_group_t)group);
        strata_cuda_set_table_for_tests(&driver);
        OPEN_DEVICE(device);
        EXPECT_STATUS(STRATA_E_UNSUPPORTED, call_of_group(device, (strata_cuda_group_t)group));
        EXPECT_EQ(fake_depth(), 0);
    }
    fake_reset();
}

TEST(cuda, driver_of_the_base_line) {
    fake_reset();
    fake_options.driver_version = 12000;
    strata_cuda_driver_t driver;
    strata_device_t *device;
    strata_handle_t pool;
    strata_address_t address;
    ASSERT_OK(strata_cuda_driver_fill(fake_get_proc, &driver));
    strata_cuda_set_table_for_tests(&driver);
    ASSERT_OK(strata_cuda_open(0, &device));
    const strata_device_capabilities_t *can = &device->capabilities;
    EXPECT_TRUE(can->managed && can->pools && can->virtual_memory && can->capture);
    EXPECT_TRUE(can->share && can->stream_ids && can->work && can->peers);
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_device_pool_create(device, 1 << 20, false, &pool));
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_MANAGED, 4096, &address));
    EXPECT_OK(strata_device_prefetch(device, address, 4096, true, NULL));
    EXPECT_EQ((int64_t)fake_last("MemPrefetchAsync")->extra, CU_DEVICE_CPU);
    strata_device_close(device);
    fake_reset();
}

TEST(cuda, prefetch_by_the_form_that_exists) {
    fake_reset();
    strata_cuda_driver_t driver = fake_table();
    strata_device_t *device;
    strata_address_t address;
    omit(&driver, STRATA_CUDA_PREFETCH);
    strata_cuda_set_table_for_tests(&driver);
    ASSERT_OK(strata_cuda_open(0, &device));
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_MANAGED, 4096, &address));
    EXPECT_OK(strata_device_prefetch(device, address, 4096, true, NULL));
    EXPECT_EQ(fake_last("MemPrefetchAsyncAt")->extra, CU_MEM_LOCATION_TYPE_HOST);
    EXPECT_OK(strata_device_prefetch(device, address, 4096, false, NULL));
    EXPECT_EQ(fake_last("MemPrefetchAsyncAt")->extra, CU_MEM_LOCATION_TYPE_DEVICE);
    EXPECT_OK(strata_device_advise(device, address, 4096, STRATA_ADVISE_SET_PREFERRED, true));
    EXPECT_EQ(fake_last("MemAdviseAt")->value, CU_MEM_ADVISE_SET_PREFERRED_LOCATION);
    strata_device_close(device);
    fake_reset();
}

TEST(cuda, attributes_turn_capabilities_off) {
    fake_reset();
    fake_options.no_managed = fake_options.no_pools = fake_options.no_virtual = true;
    fake_options.devices = 1;
    strata_address_t address;
    OPEN_DEVICE(device);
    const strata_device_capabilities_t *can = &device->capabilities;
    EXPECT_FALSE(can->managed || can->concurrent_managed || can->pools || can->virtual_memory || can->share || can->peers);
    EXPECT_EQ(can->granularity, 0);
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_device_malloc(device, STRATA_MEMORY_MANAGED, 4096, &address));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_device_enable_peer(device, 1));
}

TEST(cuda, host_memory_failed_in_turn) {
    for (uint64_t k = 1; k < 8; k++) {
        fake_reset();
        strata_device_t *device = NULL;
        strata_handle_t event = NULL;
        strata_host_fail_at(k, 0);
        strata_status_t opened = strata_cuda_open(0, &device);
        strata_status_t created = opened == STRATA_OK ? strata_device_event_create(device, &event) : opened;
        strata_host_fail_at(0, 0);
        if (created != STRATA_OK) EXPECT_EQ(created, STRATA_E_HOST_MEMORY);
        EXPECT_EQ(fake_live_objects(), created == STRATA_OK ? 1 : 0);
        EXPECT_EQ(fake_depth(), 0);
        if (opened == STRATA_OK) strata_device_close(device);
        EXPECT_EQ(fake_retains(0), 0);
        if (k == 1) EXPECT_EQ(opened, STRATA_E_HOST_MEMORY);
        if (k == 2) EXPECT_TRUE(opened == STRATA_OK && created == STRATA_E_HOST_MEMORY);
    }
}

TEST(cuda, arguments_are_checked) {
    strata_address_t address = 7;
    uint32_t peers[65] = {0};
    FAKE_DEVICE(device);
    uint64_t before = fake_calls();
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_malloc(device, STRATA_MEMORY_DEVICE, 0, &address));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_malloc(device, STRATA_MEMORY_PINNED, 64, &address));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_malloc_async(device, NULL, 0, NULL, &address));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(device, STRATA_MEMORY_PINNED, 0, 64, 0, &address));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(device, STRATA_MEMORY_PINNED, 64, 32, 0, &address));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(device, STRATA_MEMORY_HOST, 64, 96, 0, &address));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(device, STRATA_MEMORY_DEVICE, 64, 64, 0, &address));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_free(device, STRATA_MEMORY_DEVICE, 0));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_free(device, STRATA_MEMORY_PINNED, 0));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_set_access(device, FAKE_GRANULE, FAKE_GRANULE, peers, 65));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_stream_destroy(device, NULL));
    EXPECT_EQ(fake_calls(), before);
    EXPECT_EQ(address, 7);
}

TEST(cuda, host_memory_and_its_view) {
    fake_reset();
    strata_device_t *device;
    strata_address_t pinned, host, memory, managed;
    fake_options.pinned_alignment = 64; /* less than a page: the driver promises none */
    ASSERT_OK(strata_cuda_open(0, &device));
    for (uint64_t alignment = 64; alignment <= 65536; alignment *= 4) {
        ASSERT_OK(strata_device_host_alloc(device, STRATA_MEMORY_PINNED, 1000, alignment, STRATA_HOST_PORTABLE, &pinned));
        EXPECT_EQ(pinned & (alignment - 1), 0);
        EXPECT_EQ(fake_last("MemHostAlloc")->extra, CU_MEMHOSTALLOC_PORTABLE);
        memset((void *)(uintptr_t)pinned, 1, 1000);
        if (alignment == 64) EXPECT_EQ(strata_device_host_view(device, pinned, 1000), (void *)(uintptr_t)pinned);
        EXPECT_OK(strata_device_host_free(device, STRATA_MEMORY_PINNED, pinned));
        EXPECT_EQ(fake_live_objects(), 0);
        ASSERT_OK(strata_device_host_alloc(device, STRATA_MEMORY_HOST, 1000, alignment, 0, &host));
        EXPECT_EQ(host & (alignment - 1), 0);
        EXPECT_EQ(strata_device_host_view(device, host, 1000), (void *)(uintptr_t)host);
        EXPECT_OK(strata_device_host_free(device, STRATA_MEMORY_HOST, host));
    }
    /* A pin that was moved up stays known when giving it back fails. */
    ASSERT_OK(strata_device_host_alloc(device, STRATA_MEMORY_PINNED, 1000, 4096, 0, &pinned));
    fake_fail("MemFreeHost", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(device, STRATA_MEMORY_PINNED, pinned));
    EXPECT_OK(strata_device_host_free(device, STRATA_MEMORY_PINNED, pinned));
    EXPECT_EQ(fake_live_objects(), 0);
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 1000, &memory));
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_MANAGED, 1000, &managed));
    EXPECT_EQ(strata_device_host_view(device, memory, 1000), NULL);
    EXPECT_EQ(strata_device_host_view(device, managed, 1000), (void *)(uintptr_t)managed);
    device->capabilities.concurrent_managed = false;
    EXPECT_EQ(strata_device_host_view(device, managed, 1000), NULL);
    strata_device_close(device);
    fake_reset();
}

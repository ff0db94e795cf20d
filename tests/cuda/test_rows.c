/* One test for each fact of CUDA's semantics that the device must live with. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/every_call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/harness/test.h"

TEST(cuda, row1_free_waits_for_all_work) {
    static const strata_memory_t kinds[] = {STRATA_MEMORY_DEVICE, STRATA_MEMORY_MANAGED};
    for (size_t i = 0; i < 2; i++) {
        fake_reset();
        every_call_t things;
        if (!every_call_prepare(&things, STRATA_CALL_free)) return;
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
        strata_device_close(things.device);
    }
}

TEST(cuda, row1_free_beside_a_capture_leaves_it_alone) {
    fake_reset();
    every_call_t things;
    if (!every_call_prepare(&things, STRATA_CALL_capture_end)) return;
    uint64_t waits = fake_count("CtxSynchronize");
    EXPECT_OK(strata_device_free(things.device, STRATA_MEMORY_DEVICE, things.address));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_synchronise(things.device));
    EXPECT_EQ(fake_count("CtxSynchronize"), waits);
    EXPECT_EQ(fake_capture_of((CUstream)things.stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_OK(strata_device_capture_end(things.device, things.stream, &things.graph));
    EXPECT_OK(strata_device_synchronise(things.device));
    strata_device_close(things.device);
}

/* The program captures; every call of the device's that would be unsafe is made beside it. */
static void check_unsafe_calls(CUstreamCaptureMode mode) {
    for (int call = 0; call < (int)STRATA_DEVICE_CALLS; call++) {
        /* A wait for the whole device ends a capture that was told to nobody; the calls that are about captures are others'. */
        bool other = call == STRATA_CALL_synchronise || (call >= STRATA_CALL_capture_begin && call <= STRATA_CALL_graph_destroy);
        bool waits = call == STRATA_CALL_free;
        if (other || waits) continue;
        fake_reset();
        every_call_t things;
        CUstream stream;
        if (!every_call_prepare(&things, (strata_device_call_t)call)) return;
        strata_cuda_driver_t program = fake_table();
        CUcontext popped;
        program.CtxPushCurrent(fake_context(0));
        EXPECT_EQ(program.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        EXPECT_EQ(program.StreamBeginCapture(stream, mode), CUDA_SUCCESS);
        program.CtxPopCurrent(&popped);
        if (every_call_make(&things, (strata_device_call_t)call) != STRATA_OK ||
            fake_capture_of(stream) != CU_STREAM_CAPTURE_STATUS_ACTIVE)
            FAIL_TEST("%s beside a capture: %s", strata_device_call_name((strata_device_call_t)call), strata_last_error()->text);
        EXPECT_EQ(fake_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
        every_call_clear(&things);
        strata_device_close(things.device);
        EXPECT_EQ(fake_capture_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    }
}

TEST(cuda, row2_unsafe_calls_run_relaxed) {
    check_unsafe_calls(CU_STREAM_CAPTURE_MODE_GLOBAL);
    check_unsafe_calls(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

TEST(cuda, row2_statistics_and_attributes_run_relaxed) {
    fake_reset();
    every_call_t things;
    if (!every_call_prepare(&things, STRATA_CALL_malloc)) return;
    uint64_t left, total;
    EXPECT_OK(strata_device_mem_info(things.device, &left, &total));
    EXPECT_OK(strata_device_pool_set(things.device, things.pool, STRATA_POOL_RELEASE_THRESHOLD, 1));
    EXPECT_OK(strata_device_pool_get(things.device, things.pool, STRATA_POOL_USED_HIGH, &left));
    static const char *const calls[] = {"MemGetInfo", "MemPoolSetAttribute", "MemPoolGetAttribute", "MemAlloc", "MemCreate",
                                        "MemMap", "MemSetAccess", "MemHostAlloc", "MemPoolCreate"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (fake_last(calls[i])->mode != CU_STREAM_CAPTURE_MODE_RELAXED) FAIL_TEST("%s ran in another mode", calls[i]);
    strata_device_close(things.device);
}

TEST(cuda, row3_captured_event_is_never_queried) {
    fake_reset();
    every_call_t things;
    strata_handle_t second;
    if (!every_call_prepare(&things, STRATA_CALL_capture_end)) return;
    strata_device_t *device = things.device;
    ASSERT_OK(strata_device_event_create(device, &second));
    EXPECT_EQ(fake_last("EventCreate")->value, CU_EVENT_DISABLE_TIMING);
    ASSERT_OK(strata_device_event_record(device, second, things.other_stream));
    ASSERT_OK(strata_device_event_record(device, things.event, things.stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(device, things.event));
    EXPECT_EQ(strata_last_error()->device_code, 907);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_synchronise(device, things.event));
    EXPECT_EQ(fake_count("EventQuery") + fake_count("EventSynchronize"), 0);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_query(device, things.stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_synchronise(device, things.stream));
    EXPECT_EQ(fake_capture_of((CUstream)things.stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_OK(strata_device_event_query(device, second));
    /* Behind the capture's end still; a record elsewhere makes it an ordinary event again. */
    ASSERT_OK(strata_device_capture_end(device, things.stream, &things.graph));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(device, things.event));
    ASSERT_OK(strata_device_event_record(device, things.event, things.other_stream));
    EXPECT_OK(strata_device_event_query(device, things.event));
    strata_device_close(device);
}

TEST(cuda, row3_recycled_handle_is_a_new_event) {
    fake_reset();
    every_call_t things;
    strata_handle_t again;
    if (!every_call_prepare(&things, STRATA_CALL_capture_end)) return;
    ASSERT_OK(strata_device_event_record(things.device, things.event, things.stream));
    /* A destroy that fails changes nothing. */
    fake_fail("EventDestroy", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_destroy(things.device, things.event));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(things.device, things.event));
    ASSERT_OK(strata_device_event_destroy(things.device, things.event));
    ASSERT_OK(strata_device_event_create(things.device, &again));
    EXPECT_TRUE(again == things.event);
    EXPECT_OK(strata_device_event_query(things.device, again));
    strata_device_close(things.device);
}

TEST(cuda, row4_legacy_stream_is_left_alone) {
    fake_reset();
    every_call_t things;
    strata_handle_t blocking, event;
    if (!every_call_prepare(&things, STRATA_CALL_malloc)) return;
    strata_device_t *device = things.device;
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_BLOCKING, &blocking));
    ASSERT_OK(strata_device_event_create(device, &event));
    ASSERT_OK(strata_device_capture_begin(device, blocking, STRATA_CAPTURE_THREAD_LOCAL));
    strata_capture_status_t status = STRATA_CAPTURE_NONE;
    uint64_t id = 7, address;
    for (uintptr_t legacy = 0; legacy <= 1; legacy++) {
        strata_handle_t stream = (strata_handle_t)legacy;
        EXPECT_OK(strata_device_capture_status(device, stream, &status, &id));
        EXPECT_EQ(status, STRATA_CAPTURE_IMPLICIT);
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_record(device, event, stream));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_wait(device, stream, things.event));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_query(device, stream));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_synchronise(device, stream));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_fill(device, things.address, 0, 64, stream));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_prefetch(device, things.managed, 64, true, stream));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_malloc_async(device, NULL, 64, stream, &address));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_free_async(device, things.pool_address, stream));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_graph_launch(device, things.graph, stream));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_work(device, stream, 1, NULL, 0));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_begin(device, stream, STRATA_CAPTURE_RELAXED));
        EXPECT_EQ(fake_capture_of((CUstream)blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    }
    EXPECT_OK(strata_device_capture_status(device, blocking, &status, &id));
    EXPECT_EQ(status, STRATA_CAPTURE_ACTIVE);
    strata_device_close(device);
}

static void *capture_elsewhere(void *stream) {
    strata_cuda_driver_t program = fake_table();
    CUcontext popped;
    program.CtxPushCurrent(fake_context(0));
    CUresult code = program.StreamBeginCapture((CUstream)stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    program.CtxPopCurrent(&popped);
    return code == CUDA_SUCCESS ? stream : NULL;
}

TEST(cuda, row5_captures_are_told_apart) {
    fake_reset();
    every_call_t things;
    if (!every_call_prepare(&things, STRATA_CALL_capture_status)) return;
    pthread_t thread;
    void *captured = NULL;
    ASSERT_EQ(pthread_create(&thread, NULL, capture_elsewhere, things.other_stream), 0);
    pthread_join(thread, &captured);
    ASSERT_TRUE(captured == things.other_stream);
    strata_capture_status_t status;
    uint64_t ids[2] = {0, 0}, address;
    EXPECT_OK(strata_device_capture_status(things.device, things.stream, &status, &ids[0]));
    EXPECT_OK(strata_device_capture_status(things.device, things.other_stream, &status, &ids[1]));
    EXPECT_TRUE(ids[0] && ids[1] && ids[0] != ids[1]);
    /* Another thread's global capture forbids this thread too, unless it is in relaxed mode. */
    EXPECT_OK(strata_device_malloc(things.device, STRATA_MEMORY_DEVICE, 64, &address));
    EXPECT_EQ(fake_capture_of((CUstream)things.other_stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    /* Ending it here fails and leaves it as it was, in the device's own books too. */
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(things.device, things.other_stream, &things.graph));
    EXPECT_EQ(fake_capture_of((CUstream)things.other_stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    strata_device_close(things.device);
}

TEST(cuda, row6_callback_runs_when_graph_and_instances_are_gone) {
    fake_reset();
    every_call_t things;
    if (!every_call_prepare(&things, STRATA_CALL_graph_on_destroy)) return;
    strata_device_t *device = things.device;
    int before = every_call_gone;
    ASSERT_OK(every_call_make(&things, STRATA_CALL_graph_on_destroy));
    EXPECT_EQ(fake_last("UserObjectCreate")->extra, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    EXPECT_EQ(fake_last("GraphRetainUserObject")->extra, CU_GRAPH_USER_OBJECT_MOVE);
    /* Tying that fails half-way does not call back: the graph lives. */
    fake_fail("GraphRetainUserObject", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, every_call_make(&things, STRATA_CALL_graph_on_destroy));
    EXPECT_EQ(every_call_gone, before);
    ASSERT_OK(strata_device_capture_end(device, things.stream, &things.graph));
    EXPECT_STATUS(STRATA_E_INVALID, every_call_make(&things, STRATA_CALL_graph_on_destroy));
    ASSERT_OK(strata_device_graph_launch(device, things.graph, things.stream));
    EXPECT_EQ(every_call_gone, before);
    uint64_t calls = fake_calls();
    ASSERT_OK(strata_device_graph_destroy(device, things.graph));
    EXPECT_EQ(every_call_gone, before + 1);
    /* The callback made no call of its own: behind the destroy only mode and context are put back. */
    EXPECT_STREQ(fake_call_at(fake_calls() - 3)->name, "GraphDestroy");
    EXPECT_LE(fake_calls() - calls, 7);
    /* Nothing is left of it: a free waits again. */
    fake_submit((CUstream)things.stream);
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, things.address));
    EXPECT_EQ(fake_last("MemFree")->pending, 0);
    strata_device_close(device);
}

TEST(cuda, row6_announced_capture_of_the_program_survives_a_free) {
    fake_reset();
    every_call_t things;
    CUstream stream;
    CUgraph graph;
    CUcontext popped;
    if (!every_call_prepare(&things, STRATA_CALL_free)) return;
    strata_cuda_driver_t program = fake_table();
    program.CtxPushCurrent(fake_context(0));
    program.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    program.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    things.stream = stream;
    EXPECT_OK(every_call_make(&things, STRATA_CALL_graph_on_destroy));
    EXPECT_OK(strata_device_free(things.device, STRATA_MEMORY_DEVICE, things.address));
    EXPECT_EQ(fake_capture_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(program.StreamEndCapture(stream, &graph), CUDA_SUCCESS);
    /* The graph lives on; waiting is allowed again. */
    EXPECT_OK(strata_device_synchronise(things.device));
    program.GraphDestroy(graph);
    program.CtxPopCurrent(&popped);
    strata_device_close(things.device);
}

TEST(cuda, row9_release_threshold) {
    fake_reset();
    strata_device_t *device;
    strata_handle_t stream, pool;
    strata_address_t address;
    uint64_t value = 0;
    ASSERT_OK(strata_cuda_open(0, &device));
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, &stream));
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
        ASSERT_OK(strata_device_pool_set(device, pool, (strata_pool_attribute_t)policy, 1));
        EXPECT_OK(strata_device_pool_get(device, pool, (strata_pool_attribute_t)policy, &value));
        EXPECT_EQ(value, 1);
    }
    EXPECT_OK(strata_device_pool_destroy(device, pool));
    strata_device_close(device);
}

TEST(cuda, row10_default_and_shareable_pools) {
    fake_reset();
    strata_device_t *device;
    strata_handle_t pool, shared, stream, limited;
    strata_address_t address;
    ASSERT_OK(strata_cuda_open(0, &device));
    ASSERT_OK(strata_device_pool_default(device, &pool));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_pool_destroy(device, pool));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_pool_destroy(device, NULL));
    ASSERT_OK(strata_device_pool_create(device, 0, true, &shared));
    EXPECT_EQ(fake_last("MemPoolCreate")->extra, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, &stream));
    ASSERT_OK(strata_device_malloc_async(device, shared, 4096, stream, &address));
    EXPECT_TRUE((strata_handle_t)(uintptr_t)fake_last("MemAllocFromPoolAsync")->extra == shared);
    ASSERT_OK(strata_device_free_async(device, address, stream));
    ASSERT_OK(strata_device_pool_trim(device, shared, 0));
    EXPECT_EQ(fake_used(0), FAKE_GRANULE);
    /* "Default" is the device's default, whichever pool the program has made current. */
    ASSERT_OK(strata_device_malloc_async(device, NULL, 4096, stream, &address));
    EXPECT_TRUE((strata_handle_t)(uintptr_t)fake_last("MemAllocFromPoolAsync")->extra == pool);
    ASSERT_OK(strata_device_free_async(device, address, stream));
    EXPECT_OK(strata_device_pool_set_access(device, shared, 1));
    EXPECT_EQ(fake_last("MemPoolSetAccess")->value, 1);
#if CUDA_VERSION >= 12020
    ASSERT_OK(strata_device_pool_create(device, FAKE_GRANULE, false, &limited));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc_async(device, limited, 2 * FAKE_GRANULE, stream, &address));
    EXPECT_OK(strata_device_pool_destroy(device, limited));
#else
    (void)limited;
#endif
    EXPECT_OK(strata_device_pool_destroy(device, shared));
    strata_device_close(device);
}

TEST(cuda, row11_graph_allocations) {
    fake_reset();
    every_call_t things;
    strata_address_t inside, left;
    if (!every_call_prepare(&things, STRATA_CALL_capture_end)) return;
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
    strata_device_close(device);
}

TEST(cuda, row7_capture_frees_only_memory_of_graphs) {
    fake_reset();
    every_call_t things;
    if (!every_call_prepare(&things, STRATA_CALL_capture_end)) return;
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_free_async(things.device, things.pool_address, things.stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(things.device, things.stream, &things.graph));
    EXPECT_EQ(strata_last_error()->device_code, 901);
    EXPECT_TRUE(things.graph == NULL);
    /* The capture is over: waiting is allowed, the memory is the pool's still. */
    EXPECT_OK(strata_device_synchronise(things.device));
    EXPECT_OK(strata_device_free_async(things.device, things.pool_address, things.stream));
    strata_device_close(things.device);
}

TEST(cuda, row14_virtual_memory_order) {
    fake_reset();
    strata_device_t *device;
    strata_address_t range;
    strata_physical_t handles[3];
    ASSERT_OK(strata_cuda_open(0, &device));
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
    strata_device_close(device);
}

TEST(cuda, row15_address_space_and_mappings_run_out) {
    fake_reset();
    fake_options.mappings_max = 2;
    fake_options.address_space = 8 * FAKE_GRANULE;
    strata_device_t *device;
    strata_address_t range, other = 7;
    strata_physical_t handles[3];
    ASSERT_OK(strata_cuda_open(0, &device));
    ASSERT_OK(strata_device_reserve(device, 4 * FAKE_GRANULE, FAKE_GRANULE, &range));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_reserve(device, 5 * FAKE_GRANULE, FAKE_GRANULE, &other));
    EXPECT_CONTAINS(strata_last_error()->text, "it is address space that ran out: cuMemAddressReserve");
    EXPECT_EQ(other, 7);
    for (uint64_t i = 0; i < 3; i++) {
        ASSERT_OK(strata_device_create(device, FAKE_GRANULE, false, &handles[i]));
        ASSERT_OK(strata_device_map(device, range + i * FAKE_GRANULE, FAKE_GRANULE, handles[i]));
        strata_status_t status = strata_device_set_access(device, range + i * FAKE_GRANULE, FAKE_GRANULE, NULL, 0);
        EXPECT_EQ(status, i < 2 ? STRATA_OK : STRATA_E_NO_MEMORY);
    }
    EXPECT_CONTAINS(strata_last_error()->text, "it is mappings that ran out: cuMemSetAccess");
    EXPECT_EQ(strata_last_error()->device_code, 2);
    /* With the device full it is the memory. */
    fake_options.memory = fake_used(0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_set_access(device, range, FAKE_GRANULE, NULL, 0));
    EXPECT_TRUE(strstr(strata_last_error()->text, "ran out") == NULL);
    strata_device_close(device);
}

TEST(cuda, row16_sharing_by_descriptor) {
    fake_reset();
    strata_device_t *device;
    strata_physical_t alone, shared, other = 0;
    int descriptor = -1;
    ASSERT_OK(strata_cuda_open(0, &device));
    ASSERT_OK(strata_device_create(device, FAKE_GRANULE, false, &alone));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_export_memory(device, alone, &descriptor));
    EXPECT_EQ((int64_t)descriptor, -1);
    ASSERT_OK(strata_device_create(device, FAKE_GRANULE, true, &shared));
    ASSERT_OK(strata_device_export_memory(device, shared, &descriptor));
    EXPECT_EQ(fake_last("MemExportToShareableHandle")->extra, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    EXPECT_OK(strata_device_import_memory(device, descriptor, &other));
    EXPECT_EQ(fake_last("MemImportFromShareableHandle")->value, (uint64_t)descriptor); /* by value, not by address */
    EXPECT_EQ(close(descriptor), 0); /* the caller's */
    strata_device_close(device);
}

TEST(cuda, row17_default_streams_and_recycled_handles) {
    fake_reset();
    strata_device_t *device;
    strata_handle_t first, second;
    uint64_t ids[5] = {0};
    ASSERT_OK(strata_cuda_open(0, &device));
    EXPECT_OK(strata_device_stream_id(device, NULL, &ids[0]));
    EXPECT_OK(strata_device_stream_id(device, (strata_handle_t)CU_STREAM_LEGACY, &ids[1]));
    EXPECT_OK(strata_device_stream_id(device, (strata_handle_t)CU_STREAM_PER_THREAD, &ids[2]));
    EXPECT_EQ(ids[0], ids[1]);
    EXPECT_NE(ids[0], ids[2]);
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, &first));
    EXPECT_EQ(fake_last("StreamCreate")->value, CU_STREAM_NON_BLOCKING);
    EXPECT_OK(strata_device_stream_id(device, first, &ids[3]));
    EXPECT_OK(strata_device_stream_destroy(device, first));
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_device_stream_id(device, first, &ids[4]));
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_device_stream_synchronise(device, first));
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_BLOCKING, &second));
    EXPECT_EQ(fake_last("StreamCreate")->value, CU_STREAM_DEFAULT);
    EXPECT_TRUE(second == first);
    EXPECT_OK(strata_device_stream_id(device, second, &ids[4]));
    EXPECT_NE(ids[3], ids[4]);
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_stream_destroy(device, (strata_handle_t)CU_STREAM_PER_THREAD));
    strata_device_close(device);
}

TEST(cuda, row17_plain_entries_are_asked_for) {
    fake_reset();
    strata_cuda_driver_t driver;
    ASSERT_OK(strata_cuda_driver_fill(fake_get_proc, &driver));
    EXPECT_GT(fake_asked_plain, 60);
    EXPECT_EQ(fake_asked_otherwise, 0);
}

TEST(cuda, row18_sticky_error_loses_the_device) {
    for (int call = 0; call < (int)STRATA_DEVICE_CALLS; call++) {
        fake_reset();
        every_call_t things;
        strata_device_t *other;
        uint64_t left, total;
        if (!every_call_prepare(&things, (strata_device_call_t)call)) return;
        ASSERT_OK(strata_cuda_open(1, &other));
        fake_options.sticky[0] = CUDA_ERROR_ILLEGAL_ADDRESS; /* shows in a call that has nothing to do with it */
        EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_event_query(things.device, things.event));
        EXPECT_EQ(fake_depth(), 0);
        fake_options.sticky[0] = CUDA_SUCCESS; /* it stays lost whatever the driver says */
        uint64_t calls = fake_calls();
        if (every_call_make(&things, (strata_device_call_t)call) != STRATA_E_DEVICE_LOST || every_call_answered(&things))
            FAIL_TEST("%s on a lost device", strata_device_call_name((strata_device_call_t)call));
        EXPECT_EQ(strata_last_error()->device_code, 700);
        EXPECT_TRUE(strata_device_host_view(things.device, things.managed, 1) == NULL);
        strata_device_close(things.device);
        EXPECT_EQ(fake_calls(), calls);
        EXPECT_OK(strata_device_mem_info(other, &left, &total));
        strata_device_close(other);
    }
}

/* The child's verdict as an exit status: tests do not run in it. */
static int in_child(every_call_t *things) {
    uint64_t before = fake_calls();
    for (int call = 0; call < (int)STRATA_DEVICE_CALLS; call++)
        if (every_call_make(things, (strata_device_call_t)call) != STRATA_E_FORKED || every_call_answered(things)) return 10 + call;
    strata_address_t host;
    if (strata_device_host_alloc(things->device, STRATA_MEMORY_HOST, 64, 64, 0, &host) != STRATA_E_FORKED) return 2;
    uint32_t count;
    strata_device_t *second;
    if (strata_cuda_count(&count) != STRATA_E_FORKED || strata_cuda_open(1, &second) != STRATA_E_FORKED) return 3;
    if (strata_device_host_view(things->device, things->managed, 1) != NULL) return 4;
    strata_device_close(things->device);
    return fake_calls() == before ? 0 : 5;
}

TEST(cuda, row19_forked_child_calls_nothing) {
    fake_reset();
    every_call_t things;
    int status = -1;
    if (!every_call_prepare(&things, STRATA_CALL_malloc)) return;
    pid_t child = fork();
    ASSERT_TRUE(child >= 0);
    if (child == 0) _exit(in_child(&things));
    ASSERT_TRUE(waitpid(child, &status, 0) == child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    /* The parent goes on. */
    EXPECT_OK(every_call_make(&things, STRATA_CALL_malloc));
    strata_device_close(things.device);
}

TEST(cuda, row20_work_is_a_kernel_of_our_own) {
    fake_reset();
    every_call_t things;
    if (!every_call_prepare(&things, STRATA_CALL_work)) return;
    EXPECT_EQ(fake_count("ModuleLoadData"), 0); /* nothing is loaded into a program that never asks */
    EXPECT_OK(strata_device_work(things.device, things.stream, 5000, NULL, 0));
    EXPECT_OK(strata_device_work(things.device, things.other_stream, 6000, NULL, 0));
    EXPECT_EQ(fake_count("ModuleLoadData"), 1);
    EXPECT_EQ(fake_last("LaunchKernel")->value, 6000);
    EXPECT_EQ(fake_pending(0), 2);
    strata_device_close(things.device);
    EXPECT_EQ(fake_count("ModuleUnload"), 1);
}

/* CUDA's semantics that the device must live with, one test for each fact: captures, events, graphs' callbacks. */
#include <pthread.h>

#include "platform/cuda/cuda_device.h"
#include "tests/cuda/every_call.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

TEST(cuda, row1_free_beside_a_capture_leaves_it_alone) {
    EVERY_CALL(things, STRATA_CALL_capture_end);
    uint64_t waits = fake_count("CtxSynchronize");
    EXPECT_OK(strata_device_free(things.device, STRATA_MEMORY_DEVICE, things.address));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_synchronise(things.device));
    EXPECT_EQ(fake_count("CtxSynchronize"), waits);
    EXPECT_EQ(fake_capture_of((CUstream)things.stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_OK(strata_device_capture_end(things.device, things.stream, &things.graph));
    EXPECT_OK(strata_device_synchronise(things.device));
}

/* The program captures; every call of the device's that would be unsafe is made beside it. */
static void check_unsafe_calls(CUstreamCaptureMode mode) {
    for (int call = 0; call < (int)STRATA_DEVICE_CALLS; call++) {
        /* A wait for the whole device ends a capture that was told to nobody; the calls that are about captures are others'. */
        bool waits = call == STRATA_CALL_synchronise || call == STRATA_CALL_free;
        bool other = call >= STRATA_CALL_capture_begin && call <= STRATA_CALL_graph_destroy;
        if (other || waits) continue;
        fake_reset();
        every_call_t things;
        CUstream stream;
        if (!every_call_prepare(&things, (strata_device_call_t)call)) return;
        strata_cuda_driver_t program = fake_table();
        CUcontext popped;
        program.CtxPushCurrent(fake_context(0));
        EXPECT_EQ(program.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
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
    EVERY_CALL(things, STRATA_CALL_malloc);
    uint64_t left, total;
    EXPECT_OK(strata_device_mem_info(things.device, &left, &total));
    EXPECT_OK(strata_device_pool_set(things.device, things.pool, STRATA_POOL_RELEASE_THRESHOLD, 1));
    EXPECT_OK(strata_device_pool_get(things.device, things.pool, STRATA_POOL_USED_HIGH, &left));
    static const char *const calls[] = {"MemGetInfo", "MemPoolSetAttribute", "MemPoolGetAttribute", "MemAlloc",     "MemCreate",
                                        "MemMap",     "MemSetAccess",        "MemHostAlloc",        "MemPoolCreate"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (fake_last(calls[i])->mode != CU_STREAM_CAPTURE_MODE_RELAXED) FAIL_TEST("%s ran in another mode", calls[i]);
}

TEST(cuda, row3_captured_event_is_never_queried) {
    strata_handle_t second;
    EVERY_CALL(things, STRATA_CALL_capture_end);
    strata_device_t *device = things.device;
    ASSERT_OK(strata_device_event_create(device, &second));
    EXPECT_EQ(fake_last("EventCreate")->value, CU_EVENT_DISABLE_TIMING);
    ASSERT_OK(strata_device_event_record(device, second, things.other_stream));
    ASSERT_OK(strata_device_event_record(device, things.event, things.stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(device, things.event));
    EXPECT_EQ(strata_last_error()->device_code, 907);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_synchronise(device, things.event));
    EXPECT_TRUE(strata_device_event_is_captured(device, things.event) && !strata_device_event_is_captured(device, second));
    EXPECT_EQ(fake_count("EventQuery") + fake_count("EventSynchronize"), 0);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_query(device, things.stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_synchronise(device, things.stream));
    EXPECT_EQ(fake_capture_of((CUstream)things.stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_OK(strata_device_event_query(device, second));
    /* A record that fails leaves the event what it was. */
    fake_fail("EventRecord", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_record(device, second, things.stream));
    EXPECT_OK(strata_device_event_query(device, second));
    /* Behind the capture's end still; a record elsewhere makes it an ordinary event again. */
    ASSERT_OK(strata_device_capture_end(device, things.stream, &things.graph));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(device, things.event));
    ASSERT_OK(strata_device_event_record(device, things.event, things.other_stream));
    EXPECT_OK(strata_device_event_query(device, things.event));
    EXPECT_FALSE(strata_device_event_is_captured(device, things.event));
}

TEST(cuda, row3_recycled_handle_is_a_new_event) {
    strata_handle_t again;
    EVERY_CALL(things, STRATA_CALL_capture_end);
    ASSERT_OK(strata_device_event_record(things.device, things.event, things.stream));
    /* A destroy that fails changes nothing. */
    fake_fail("EventDestroy", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_destroy(things.device, things.event));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(things.device, things.event));
    EXPECT_EQ(fake_count("EventQuery"), 0);
    ASSERT_OK(strata_device_event_destroy(things.device, things.event));
    EXPECT_EQ(strata_cuda_of(things.device)->captured_events, 0); /* queries take no lock again */
    ASSERT_OK(strata_device_event_create(things.device, &again));
    EXPECT_EQ(again, things.event);
    EXPECT_OK(strata_device_event_query(things.device, again));
}

TEST(cuda, row4_legacy_stream_is_left_alone) {
    strata_handle_t blocking, event;
    EVERY_CALL(things, STRATA_CALL_malloc);
    strata_device_t *device = things.device;
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_BLOCKING, 0, &blocking));
    ASSERT_OK(strata_device_event_create(device, &event));
    ASSERT_OK(strata_device_capture_begin(device, blocking, STRATA_CAPTURE_THREAD_LOCAL));
    strata_capture_status_t status = STRATA_CAPTURE_NONE;
    uint64_t id = 7, address;
    for (uintptr_t legacy = 0; legacy <= 1; legacy++) {
        strata_handle_t stream = (strata_handle_t)legacy;
        EXPECT_OK(strata_device_capture_status(device, stream, &status, &id));
        EXPECT_EQ(status, STRATA_CAPTURE_IMPLICIT);
        EXPECT_EQ(id, 0);
        id = 7;
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
}

TEST(cuda, row4_destroyed_stream_captures_nothing) {
    EVERY_CALL(things, STRATA_CALL_malloc);
    ASSERT_OK(strata_device_capture_begin(things.device, things.other_stream, STRATA_CAPTURE_RELAXED));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_synchronise(things.device));
    EXPECT_OK(strata_device_stream_destroy(things.device, things.other_stream));
    EXPECT_OK(strata_device_synchronise(things.device));
}

typedef struct elsewhere {
    strata_device_t *device;
    strata_handle_t stream;
    strata_status_t status;
} elsewhere_t;

static void *begin_elsewhere(void *argument) {
    elsewhere_t *self = argument;
    self->status = strata_device_capture_begin(self->device, self->stream, STRATA_CAPTURE_THREAD_LOCAL);
    return NULL;
}

static strata_device_t *waiting_device;
static strata_status_t waited;

/* What another thread may do once the driver has begun the capture, and before the one that asked for it goes on. */
static CUresult begin_and_wait(CUstream stream, CUstreamCaptureMode mode) {
    strata_cuda_driver_t program = fake_table();
    CUresult code = program.StreamBeginCapture(stream, mode);
    if (waiting_device) waited = strata_device_synchronise(waiting_device);
    return code;
}

TEST(cuda, row5_a_capture_is_known_from_before_it_begins_until_it_has_failed_to) {
    fake_reset();
    every_call_t things;
    strata_handle_t stream;
    strata_cuda_driver_t driver = fake_table();
    driver.StreamBeginCapture = begin_and_wait;
    strata_cuda_set_table_for_tests(&driver);
    if (!every_call_prepare(&things, STRATA_CALL_malloc)) return;
    strata_device_t *device = waiting_device = things.device;
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_capture_begin(device, stream, STRATA_CAPTURE_RELAXED));
    EXPECT_EQ(waited, STRATA_E_CAPTURE);
    ASSERT_EQ(fake_capture_of((CUstream)stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_begin(device, stream, STRATA_CAPTURE_RELAXED));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_synchronise(device));
    ASSERT_OK(strata_device_capture_end(device, stream, &things.graph));
    fake_fail("StreamBeginCapture", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_capture_begin(device, stream, STRATA_CAPTURE_RELAXED));
    EXPECT_OK(strata_device_synchronise(device));
    EXPECT_OK(strata_device_graph_destroy(device, things.graph));
    EXPECT_OK(strata_device_stream_destroy(device, stream));
    waiting_device = NULL;
    strata_device_close(device);
    fake_reset();
}

TEST(cuda, row5_only_its_thread_ends_a_capture) {
    pthread_t thread;
    EVERY_CALL(things, STRATA_CALL_malloc);
    elsewhere_t elsewhere = {things.device, things.other_stream, STRATA_E_IO};
    ASSERT_EQ(pthread_create(&thread, NULL, begin_elsewhere, &elsewhere), 0);
    pthread_join(thread, NULL);
    ASSERT_OK(elsewhere.status);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(things.device, things.other_stream, &things.graph));
    EXPECT_EQ(strata_last_error()->device_code, 908);
    /* The capture is on, and the device knows. */
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_synchronise(things.device));
    EXPECT_EQ(fake_count("CtxSynchronize"), 0);
    EXPECT_EQ(fake_capture_of((CUstream)things.other_stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
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
    EVERY_CALL(things, STRATA_CALL_capture_status);
    pthread_t thread;
    void *captured = NULL;
    ASSERT_EQ(pthread_create(&thread, NULL, capture_elsewhere, things.other_stream), 0);
    pthread_join(thread, &captured);
    ASSERT_EQ(captured, things.other_stream);
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
}

/* What would join a capture with work outside it, with another capture or with the legacy stream breaks it. */
TEST(cuda, row5_a_capture_is_joined_with_nothing_else) {
    static const int64_t codes[] = {905, 902, 906, 907};
    for (int way = 0; way < 4; way++) {
        EVERY_CALL(things, STRATA_CALL_capture_end);
        strata_device_t *device = things.device;
        strata_handle_t waiting = way == 0 ? things.stream : way == 2 ? NULL : things.other_stream;
        if (way == 1) ASSERT_OK(strata_device_capture_begin(device, things.other_stream, STRATA_CAPTURE_RELAXED));
        ASSERT_OK(strata_device_event_record(device, things.event, way == 0 ? things.other_stream : things.stream));
        if (way == 3) ASSERT_OK(strata_device_capture_end(device, things.stream, &things.graph));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_wait(device, waiting, things.event));
        EXPECT_EQ(strata_last_error()->device_code, codes[way]);
        if (way < 3) EXPECT_EQ(fake_capture_of((CUstream)things.stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        if (way == 1) EXPECT_EQ(fake_capture_of((CUstream)things.other_stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    }
}

TEST(cuda, row5_only_its_stream_ends_a_capture) {
    EVERY_CALL(things, STRATA_CALL_capture_end);
    ASSERT_OK(strata_device_event_record(things.device, things.event, things.stream));
    ASSERT_OK(strata_device_stream_wait(things.device, things.other_stream, things.event));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(things.device, things.other_stream, &things.graph));
    EXPECT_EQ(strata_last_error()->device_code, 903);
    EXPECT_EQ(fake_capture_of((CUstream)things.stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_OK(strata_device_capture_end(things.device, things.stream, &things.graph));
}

TEST(cuda, row6_callback_runs_when_graph_and_instances_are_gone) {
    EVERY_CALL(things, STRATA_CALL_graph_on_destroy);
    strata_device_t *device = things.device;
    int before = every_call_callbacks;
    ASSERT_OK(every_call_make(&things, STRATA_CALL_graph_on_destroy));
    EXPECT_EQ(fake_last("UserObjectCreate")->extra, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    EXPECT_EQ(fake_last("GraphRetainUserObject")->extra, CU_GRAPH_USER_OBJECT_MOVE);
    /* Tying that fails half-way does not call back: the graph lives. */
    fake_fail("GraphRetainUserObject", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, every_call_make(&things, STRATA_CALL_graph_on_destroy));
    EXPECT_EQ(every_call_callbacks, before);
    ASSERT_OK(strata_device_capture_end(device, things.stream, &things.graph));
    EXPECT_STATUS(STRATA_E_INVALID, every_call_make(&things, STRATA_CALL_graph_on_destroy));
    ASSERT_OK(strata_device_graph_launch(device, things.graph, things.stream));
    EXPECT_EQ(every_call_callbacks, before);
    uint64_t calls = fake_calls();
    ASSERT_OK(strata_device_graph_destroy(device, things.graph));
    EXPECT_EQ(every_call_callbacks, before + 1);
    /* The callback made no call of its own: after the destroy only mode and context are put back. */
    EXPECT_STREQ(fake_call_at(fake_calls() - 3)->name, "GraphDestroy");
    EXPECT_LE(fake_calls() - calls, 7);
    /* Nothing is left of it: a free waits again. */
    fake_submit((CUstream)things.stream);
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, things.address));
    EXPECT_EQ(fake_last("MemFree")->pending, 0);
}

TEST(cuda, row6_announced_capture_of_the_program_survives_a_free) {
    CUstream stream;
    CUgraph graph;
    CUcontext popped;
    EVERY_CALL(things, STRATA_CALL_free);
    strata_cuda_driver_t program = fake_table();
    program.CtxPushCurrent(fake_context(0));
    program.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
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
}

TEST(cuda, row7_capture_frees_only_memory_of_graphs) {
    EVERY_CALL(things, STRATA_CALL_capture_end);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_free_async(things.device, things.pool_address, things.stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(things.device, things.stream, &things.graph));
    EXPECT_EQ(strata_last_error()->device_code, 901);
    EXPECT_EQ(things.graph, NULL);
    /* The capture is over: waiting is allowed, the memory is the pool's still. */
    EXPECT_OK(strata_device_synchronise(things.device));
    EXPECT_OK(strata_device_free_async(things.device, things.pool_address, things.stream));
}

/* What a call that fails, or meets what it did not know of, leaves: the thread, marks and counts as they were. */
#include "platform/cuda/cuda_device.h"
#include "tests/cuda/every_call.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

/* ---- the thread, where the question whether a stream is captured fails ---- */

typedef struct thread_state {
    CUcontext current;
    size_t depth;
    CUstreamCaptureMode mode;
} thread_state_t;

static thread_state_t state_of_thread(void) { return (thread_state_t){fake_current(), fake_depth(), fake_mode()}; }

static bool is_state(const thread_state_t *wanted) {
    thread_state_t now = state_of_thread();
    return now.current == wanted->current && now.depth == wanted->depth && now.mode == wanted->mode;
}

/* How many calls asked it of this stream. A thread without a context, or with the other device's. */
static int questions_that_fail(strata_handle_t (*stream_of)(const every_call_t *), int current) {
    int asked = 0;
    for (int call = 0; call < (int)STRATA_DEVICE_CALLS; call++) {
        if (call == STRATA_CALL_capture_end) continue; /* asks once it has failed */
        fake_reset();
        every_call_t things;
        if (!every_call_prepare(&things, (strata_device_call_t)call)) return -1;
        CUcontext other, popped;
        fake_table().DevicePrimaryCtxRetain(&other, 1);
        if (current >= 0) fake_table().CtxPushCurrent(fake_context(current));
        thread_state_t before = state_of_thread();
        uint64_t live = fake_live_objects();
        things.stream = stream_of(&things);
        fake_fail("StreamIsCapturing", 1, CUDA_ERROR_INVALID_VALUE);
        strata_status_t status = every_call_make(&things, (strata_device_call_t)call);
        bool failed = fake_failed() && status != STRATA_OK;
        fake_fail(NULL, 0, CUDA_SUCCESS);
        if (!is_state(&before)) FAIL_TEST("%s changed the thread", strata_device_call_name((strata_device_call_t)call));
        if (failed && (every_call_answered(&things) || fake_live_objects() != live))
            FAIL_TEST("%s changed something", strata_device_call_name((strata_device_call_t)call));
        asked += failed;
        every_call_clear(&things);
        if (current >= 0) fake_table().CtxPopCurrent(&popped);
        strata_device_close(things.device);
    }
    return asked;
}

static strata_handle_t null_stream(const every_call_t *things) {
    (void)things;
    return NULL;
}
static strata_handle_t legacy_stream(const every_call_t *things) {
    (void)things;
    return STRATA_STREAM_LEGACY;
}
static strata_handle_t own_stream(const every_call_t *things) { return things->stream; }

/* The legacy stream, by either name, is asked about before whatever is put there: malloc_async, free_async, wait, fill, copy, prefetch,
 * launch and work; any stream before a record, a query and a wait of the host. */
TEST(cuda_left_right, a_thread_is_put_back_where_the_question_of_a_capture_fails) {
    for (int current = -1; current <= 1; current += 2) {
        EXPECT_EQ(questions_that_fail(null_stream, current), 11);
        EXPECT_EQ(questions_that_fail(legacy_stream, current), 11);
        EXPECT_EQ(questions_that_fail(own_stream, current), 3);
    }
}

/* ---- pools ---- */

/* The driver's own pool of graphs goes with the default pool, by whatever name that is called, and with no other. */
TEST(cuda_left_right, the_default_pool_is_trimmed_by_its_handle_too) {
    for (int way = 0; way < 3; way++) {
        strata_handle_t pool;
        strata_address_t inside;
        EVERY_CALL(things, STRATA_CALL_capture_end);
        ASSERT_OK(strata_device_malloc_async(things.device, NULL, FAKE_GRANULE, things.stream, &inside));
        ASSERT_OK(strata_device_free_async(things.device, inside, things.stream));
        ASSERT_OK(strata_device_capture_end(things.device, things.stream, &things.graph));
        uint64_t used = fake_used(0);
        ASSERT_OK(strata_device_graph_launch(things.device, things.graph, things.stream));
        ASSERT_OK(strata_device_graph_destroy(things.device, things.graph));
        EXPECT_EQ(fake_used(0), used + FAKE_GRANULE);
        ASSERT_OK(strata_device_pool_default(things.device, &pool));
        strata_handle_t named[] = {NULL, pool, things.pool};
        EXPECT_OK(strata_device_pool_trim(things.device, named[way], UINT64_MAX));
        EXPECT_EQ(fake_count("DeviceGraphMemTrim"), way < 2);
        EXPECT_EQ(fake_used(0), way < 2 ? used : used + FAKE_GRANULE);
    }
}

/* Where the pool itself is refused, the graphs' memory is left alone. */
TEST(cuda_left_right, a_trim_that_fails_trims_nothing_else) {
    EVERY_CALL(things, STRATA_CALL_pool_trim);
    fake_fail("MemPoolTrimTo", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_pool_trim(things.device, NULL, 0));
    EXPECT_EQ(fake_count("DeviceGraphMemTrim"), 0);
}

/* ---- captures that nobody told of ---- */

static CUstream captured_by_the_program(CUstreamCaptureMode mode) {
    strata_cuda_driver_t program = fake_table();
    CUstream stream = NULL;
    CUcontext popped;
    program.CtxPushCurrent(fake_context(0));
    EXPECT_EQ(program.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    EXPECT_EQ(program.StreamBeginCapture(stream, mode), CUDA_SUCCESS);
    program.CtxPopCurrent(&popped);
    return stream;
}

/* The wait is refused; the memory goes back all the same, by the driver's own wait. */
TEST(cuda_left_right, a_free_whose_wait_meets_a_capture_still_frees) {
    static const strata_memory_t kinds[] = {STRATA_MEMORY_DEVICE, STRATA_MEMORY_MANAGED};
    for (size_t i = 0; i < 2; i++) {
        EVERY_CALL(things, STRATA_CALL_free);
        CUstream stream = captured_by_the_program(CU_STREAM_CAPTURE_MODE_RELAXED);
        uint64_t live = fake_live_objects();
        strata_address_t address = i == 0 ? things.address : things.managed;
        ASSERT_OK(strata_device_free(things.device, kinds[i], address));
        EXPECT_EQ(fake_count("CtxSynchronize"), 1);
        EXPECT_NE(fake_capture_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE); /* what an announcement would have spared */
        EXPECT_EQ(fake_live_objects(), live - 1);
        EXPECT_EQ(fake_last("MemFree")->value, address);
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(things.device, kinds[i], address));
    }
}

/* One of a blocking stream is seen from the legacy stream: neither a synchronise nor a free waits, and it stays whole. */
TEST(cuda_left_right, an_unannounced_capture_of_a_blocking_stream_is_seen) {
    CUstream stream;
    CUcontext popped;
    EVERY_CALL(things, STRATA_CALL_free);
    strata_cuda_driver_t program = fake_table();
    program.CtxPushCurrent(fake_context(0));
    EXPECT_EQ(program.StreamCreateWithPriority(&stream, CU_STREAM_DEFAULT, 0), CUDA_SUCCESS);
    EXPECT_EQ(program.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    program.CtxPopCurrent(&popped);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_synchronise(things.device));
    EXPECT_OK(strata_device_free(things.device, STRATA_MEMORY_DEVICE, things.address));
    EXPECT_EQ(fake_count("CtxSynchronize"), 0);
    EXPECT_EQ(fake_capture_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

/* A captured stream that the program destroyed by itself is still on our books; its handle, used again, is counted once. */
TEST(cuda_left_right, a_capture_on_a_recycled_handle_is_counted_once) {
    strata_handle_t again;
    CUcontext popped;
    EVERY_CALL(things, STRATA_CALL_malloc);
    strata_cuda_driver_t program = fake_table();
    ASSERT_OK(strata_device_capture_begin(things.device, things.other_stream, STRATA_CAPTURE_RELAXED));
    program.CtxPushCurrent(fake_context(0));
    EXPECT_EQ(program.StreamDestroy((CUstream)things.other_stream), CUDA_SUCCESS);
    program.CtxPopCurrent(&popped);
    ASSERT_OK(strata_device_stream_create(things.device, STRATA_STREAM_NON_BLOCKING, 0, &again));
    ASSERT_EQ(again, things.other_stream);
    ASSERT_OK(strata_device_capture_begin(things.device, again, STRATA_CAPTURE_RELAXED));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_synchronise(things.device));
    ASSERT_OK(strata_device_capture_end(things.device, again, &things.graph));
    EXPECT_OK(strata_device_synchronise(things.device));
}

/* Any other reason for which the wait fails keeps the memory: somebody may still be at it. */
TEST(cuda_left_right, a_free_whose_wait_fails_otherwise_keeps_the_memory) {
    EVERY_CALL(things, STRATA_CALL_free);
    fake_fail("CtxSynchronize", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(things.device, STRATA_MEMORY_DEVICE, things.address));
    EXPECT_EQ(fake_count("MemFree"), 0);
    EXPECT_OK(strata_device_free(things.device, STRATA_MEMORY_DEVICE, things.address));
}

/* ---- marks of events ---- */

/* A record that fails, in a capture or outside, leaves an event that was last recorded in a capture just that. */
TEST(cuda_left_right, a_record_that_fails_leaves_an_earlier_mark) {
    for (int inside = 0; inside < 2; inside++) {
        EVERY_CALL(things, STRATA_CALL_capture_end);
        strata_device_t *device = things.device;
        ASSERT_OK(strata_device_event_record(device, things.event, things.stream));
        EXPECT_EQ(strata_cuda_of(device)->captured_events, 1);
        fake_fail("EventRecord", 1, CUDA_ERROR_INVALID_VALUE);
        strata_handle_t stream = inside ? things.stream : things.other_stream;
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_record(device, things.event, stream));
        EXPECT_EQ(strata_cuda_of(device)->captured_events, 1);
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(device, things.event));
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_synchronise(device, things.event));
        EXPECT_EQ(fake_capture_of((CUstream)things.stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
        /* A second record in the capture counts it once. */
        ASSERT_OK(strata_device_event_record(device, things.event, things.stream));
        EXPECT_EQ(strata_cuda_of(device)->captured_events, 1);
        ASSERT_OK(strata_device_event_record(device, things.event, things.other_stream));
        EXPECT_EQ(strata_cuda_of(device)->captured_events, 0);
        EXPECT_OK(strata_device_event_query(device, things.event));
    }
}

TEST(cuda_left_right, a_first_record_that_fails_in_a_capture_leaves_no_mark) {
    EVERY_CALL(things, STRATA_CALL_capture_end);
    fake_fail("EventRecord", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_record(things.device, things.event, things.stream));
    EXPECT_EQ(strata_cuda_of(things.device)->captured_events, 0);
    EXPECT_OK(strata_device_event_query(things.device, things.event));
}

/* ---- graphs that are watched ---- */

/* One that could not be watched is none: a free waits by itself as before. */
TEST(cuda_left_right, a_user_object_that_fails_leaves_no_count) {
    static const char *const calls[] = {"UserObjectCreate", "GraphRetainUserObject", "StreamGetCaptureInfo"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        EVERY_CALL(things, STRATA_CALL_graph_on_destroy);
        int before = every_call_callbacks;
        fake_fail(calls[i], 1, CUDA_ERROR_INVALID_VALUE);
        EXPECT_STATUS(STRATA_E_DEVICE, every_call_make(&things, STRATA_CALL_graph_on_destroy));
        ASSERT_OK(strata_device_capture_end(things.device, things.stream, &things.graph));
        fake_submit((CUstream)things.stream);
        EXPECT_OK(strata_device_free(things.device, STRATA_MEMORY_DEVICE, things.address));
        EXPECT_EQ(fake_count("CtxSynchronize"), 1);
        EXPECT_EQ(fake_last("MemFree")->pending, 0);
        EXPECT_OK(strata_device_graph_destroy(things.device, things.graph));
        EXPECT_EQ(every_call_callbacks, before);
    }
}

/* ---- modes ---- */

/* What a capture records is done in the thread's own mode, all else in relaxed mode. */
TEST(cuda_left_right, what_a_capture_records_is_called_in_the_threads_own_mode) {
    static const struct {
        strata_device_call_t call;
        const char *name;
    } rows[] = {{STRATA_CALL_event_record, "EventRecord"},     {STRATA_CALL_stream_wait, "StreamWaitEvent"},
                {STRATA_CALL_fill, "MemsetD8Async"},           {STRATA_CALL_capture_begin, "StreamBeginCapture"},
                {STRATA_CALL_capture_end, "StreamEndCapture"}, {STRATA_CALL_capture_status, "StreamGetCaptureInfo"},
                {STRATA_CALL_stream_id, "StreamGetId"},        {STRATA_CALL_capture_follows, "StreamGetCaptureInfo"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
            EVERY_CALL(things, rows[i].call);
            fake_table().ThreadExchangeStreamCaptureMode(&(CUstreamCaptureMode){(CUstreamCaptureMode)mode});
            ASSERT_OK(every_call_make(&things, rows[i].call));
            if (fake_last(rows[i].name)->mode != (CUstreamCaptureMode)mode) FAIL_TEST("%s in mode %d", rows[i].name, mode);
            every_call_clear(&things);
        }
    }
    fake_reset();
}

/* ---- streams that are gone ---- */

typedef strata_status_t (*of_stream_t)(strata_device_t *, strata_handle_t);

/* A driver says of a destroyed stream that it does not know it, or that the context is destroyed, which is asked then; it is, beside
 * a capture that keeps the legacy stream for itself. A default stream is never destroyed: there it is the context. */
TEST(cuda_left_right, a_destroyed_stream_is_unknown_whatever_the_driver_says) {
    static const of_stream_t calls[] = {strata_device_stream_query, strata_device_stream_synchronise, strata_device_stream_destroy};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int way = 0; way < 3; way++) {
            strata_handle_t blocking;
            EVERY_CALL(things, STRATA_CALL_malloc);
            if (way > 0) fake_options.unknown_stream = CUDA_ERROR_CONTEXT_IS_DESTROYED;
            ASSERT_OK(strata_device_stream_create(things.device, STRATA_STREAM_BLOCKING, 0, &blocking));
            if (way > 1) ASSERT_OK(strata_device_capture_begin(things.device, blocking, STRATA_CAPTURE_THREAD_LOCAL));
            ASSERT_OK(strata_device_stream_destroy(things.device, things.other_stream));
            EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, calls[i](things.device, things.other_stream));
            uint64_t id;
            EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_device_stream_id(things.device, things.other_stream, &id));
            EXPECT_OK(strata_device_stream_query(things.device, things.stream)); /* nothing is lost */
        }
    }
}

TEST(cuda_left_right, a_default_stream_without_its_context_is_a_lost_device) {
    static strata_handle_t const defaults[] = {NULL, STRATA_STREAM_LEGACY, STRATA_STREAM_PER_THREAD};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        EVERY_CALL(things, STRATA_CALL_malloc);
        fake_fail("StreamSynchronize", 1, CUDA_ERROR_CONTEXT_IS_DESTROYED);
        EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_stream_synchronise(things.device, defaults[i]));
        EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_stream_query(things.device, things.stream));
    }
    fake_reset();
}

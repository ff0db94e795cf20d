/* Codes and their answers; each call's way back. */
#include "platform/cuda/cuda_device.h"
#include "tests/cuda/every_call.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

TEST(cuda, codes_are_mapped) {
    static const struct {
        int code;
        strata_status_t status;
    } rows[] = {{1, STRATA_E_DEVICE},        {2, STRATA_E_NO_MEMORY},     {4, STRATA_E_SHUTDOWN},      {201, STRATA_E_DEVICE},
                {400, STRATA_E_DEVICE},      {600, STRATA_E_NOT_READY},   {801, STRATA_E_DEVICE},      {900, STRATA_E_CAPTURE},
                {901, STRATA_E_CAPTURE},     {902, STRATA_E_CAPTURE},     {903, STRATA_E_CAPTURE},     {904, STRATA_E_CAPTURE},
                {905, STRATA_E_CAPTURE},     {906, STRATA_E_CAPTURE},     {907, STRATA_E_CAPTURE},     {226, STRATA_E_DEVICE_LOST},
                {700, STRATA_E_DEVICE_LOST}, {702, STRATA_E_DEVICE_LOST}, {710, STRATA_E_DEVICE_LOST}, {714, STRATA_E_DEVICE_LOST},
                {715, STRATA_E_DEVICE_LOST}, {716, STRATA_E_DEVICE_LOST}, {717, STRATA_E_DEVICE_LOST}, {718, STRATA_E_DEVICE_LOST},
                {719, STRATA_E_DEVICE_LOST}, {721, STRATA_E_DEVICE_LOST}, {810, STRATA_E_DEVICE_LOST}, {911, STRATA_E_DEVICE_LOST},
                {214, STRATA_E_DEVICE_LOST}, {220, STRATA_E_DEVICE_LOST}, {709, STRATA_E_DEVICE_LOST}, {999, STRATA_E_DEVICE_LOST}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_address_t address = 7;
        FAKE_DEVICE(device);
        fake_fail("MemAlloc", 1, (CUresult)rows[i].code);
        EXPECT_STATUS(rows[i].status, strata_device_malloc(device, STRATA_MEMORY_DEVICE, 4096, &address));
        EXPECT_EQ(strata_last_error()->device_code, rows[i].code);
        EXPECT_EQ(address, 7);
    }
}

TEST(cuda, text_names_call_code_and_reason) {
    fake_reset();
    strata_device_t *device;
    strata_address_t address;
    ASSERT_OK(strata_cuda_open(0, &device));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_device_malloc(device, STRATA_MEMORY_DEVICE, UINT64_C(1) << 40, &address),
                "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): said by the fake");
    strata_device_close(device);

    strata_cuda_driver_t mute = fake_table();
    mute.GetErrorName = NULL;
    mute.GetErrorString = NULL;
    strata_cuda_set_table_for_tests(&mute);
    ASSERT_OK(strata_cuda_open(0, &device));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_device_malloc(device, STRATA_MEMORY_DEVICE, UINT64_C(1) << 40, &address),
                "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    strata_device_close(device);
    fake_reset();
}

TEST(cuda, not_ready_is_no_failure) {
    EVERY_CALL(things, STRATA_CALL_malloc);
    fake_submit((CUstream)things.stream);
    strata_fail(STRATA_E_IO, 0, "before");
    ASSERT_OK(strata_device_event_record(things.device, things.event, things.stream));
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_event_query(things.device, things.event));
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(things.device, things.stream));
    EXPECT_STREQ(strata_last_error()->text, "before");
    fake_run(NULL);
    EXPECT_OK(strata_device_event_query(things.device, things.event));
    EXPECT_OK(strata_device_stream_query(things.device, things.stream));
}

/* Under each state of the thread: no context, another device's, this device's. */
static void check_thread_is_kept(int current, CUstreamCaptureMode mode) {
    for (int call = 0; call < (int)STRATA_DEVICE_CALLS; call++) {
        fake_reset();
        every_call_t things;
        if (!every_call_prepare(&things, (strata_device_call_t)call)) return;
        CUcontext popped;
        CUcontext other;
        fake_table().DevicePrimaryCtxRetain(&other, 1);
        if (current >= 0) fake_table().CtxPushCurrent(fake_context(current));
        fake_table().ThreadExchangeStreamCaptureMode(&(CUstreamCaptureMode){mode});
        size_t depth = fake_depth();
        strata_status_t status = every_call_make(&things, (strata_device_call_t)call);
        if (status != STRATA_OK)
            FAIL_TEST("%s: %s", strata_device_call_name((strata_device_call_t)call), strata_last_error()->text);
        CUcontext wanted = current < 0 ? NULL : fake_context(current);
        bool kept = fake_depth() == depth && fake_current() == wanted && fake_mode() == mode;
        if (!kept) FAIL_TEST("%s changed the thread", strata_device_call_name((strata_device_call_t)call));
        strata_device_host_view(things.device, things.managed, 1);
        EXPECT_EQ(fake_depth(), depth);
        every_call_clear(&things);
        strata_device_close(things.device);
        EXPECT_EQ(fake_depth(), depth);
        EXPECT_EQ(fake_mode(), mode);
        if (current >= 0) fake_table().CtxPopCurrent(&popped);
    }
}

TEST(cuda, context_is_restored_none) { check_thread_is_kept(-1, CU_STREAM_CAPTURE_MODE_GLOBAL); }

TEST(cuda, context_is_restored_other_device) { check_thread_is_kept(1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }

TEST(cuda, context_is_restored_own) {
    check_thread_is_kept(0, CU_STREAM_CAPTURE_MODE_RELAXED);
    check_thread_is_kept(0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

/* A failure of what only puts the thread back cannot be told, nor one of a question that has a safe answer. */
static bool may_pass(const char *failed) {
    return strcmp(failed, "CtxPopCurrent") == 0 || strcmp(failed, "ThreadExchangeStreamCaptureMode") == 0 ||
           strcmp(failed, "StreamIsCapturing") == 0;
}

/* Room that is claimed in a table and never filled would make it grow for ever. */
static uint64_t claims_of(const strata_device_t *base) {
    const strata_cuda_device_t *device = (const strata_cuda_device_t *)base;
    return device->events.claimed + device->captures.claimed + device->shifted.claimed + device->on_node.claimed +
           device->graphs.claimed;
}

/* The k-th driver call of `call` fails; false when it makes fewer. */
static bool fail_in_turn(strata_device_call_t call, uint64_t k) {
    fake_reset();
    every_call_t things;
    if (!every_call_prepare(&things, call)) return false;
    uint64_t live = fake_live_objects(), first = fake_calls();
    fake_fail(NULL, k, CUDA_ERROR_INVALID_VALUE);
    strata_status_t status = every_call_make(&things, call);
    bool failed = fake_failed();
    const char *name = failed ? fake_call_at(first + k - 1)->name : "";
    fake_fail(NULL, 0, CUDA_SUCCESS);
    if (failed && status == STRATA_OK && !may_pass(name))
        FAIL_TEST("%s succeeded though %s failed", strata_device_call_name(call), name);
    if (status != STRATA_OK) {
        EXPECT_EQ(status, STRATA_E_DEVICE);
        bool changed = every_call_answered(&things) || fake_depth() != 0 || fake_mode() != CU_STREAM_CAPTURE_MODE_GLOBAL;
        /* Two objects go with a graph; a later failure leaves the second. */
        if (fake_live_objects() != live && call != STRATA_CALL_graph_launch) changed = true;
        if (changed) FAIL_TEST("%s changed something though %s failed", strata_device_call_name(call), name);
        every_call_clear(&things);
        strata_status_t again = every_call_make(&things, call);
        if (again != STRATA_OK) FAIL_TEST("%s cannot be tried again after %s", strata_device_call_name(call), name);
    }
    if (claims_of(things.device)) FAIL_TEST("%s keeps room that it claimed, when %s fails", strata_device_call_name(call), name);
    every_call_clear(&things);
    strata_device_close(things.device);
    return failed && !strata_test_has_failed();
}

TEST(cuda, each_driver_call_failed_in_turn) {
    uint64_t failures = 0;
    for (int call = 0; call < (int)STRATA_DEVICE_CALLS; call++)
        for (uint64_t k = 1; k < 32 && fail_in_turn((strata_device_call_t)call, k); k++) failures++;
    EXPECT_GT(failures, 4u * STRATA_DEVICE_CALLS);
    fake_reset();
}

TEST(cuda, shutdown_frees_succeed_and_nothing_is_called) {
    for (int call = 0; call < (int)STRATA_DEVICE_CALLS; call++) {
        fake_reset();
        every_call_t things;
        uint64_t free_bytes, total;
        if (!every_call_prepare(&things, (strata_device_call_t)call)) return;
        fake_options.deinitialised = true;
        /* The first call hears of it, the later ones make none. */
        EXPECT_STATUS(STRATA_E_SHUTDOWN, strata_device_mem_info(things.device, &free_bytes, &total));
        EXPECT_EQ(strata_last_error()->device_code, 4);
        uint64_t before = fake_calls();
        strata_status_t wanted = every_call_releases((strata_device_call_t)call) ? STRATA_OK : STRATA_E_SHUTDOWN;
        strata_status_t status = every_call_make(&things, (strata_device_call_t)call);
        if (status != wanted)
            FAIL_TEST("%s answered %s", strata_device_call_name((strata_device_call_t)call), strata_status_name(status));
        uint32_t count;
        EXPECT_STATUS(STRATA_E_SHUTDOWN, strata_cuda_count(&count));
        strata_device_close(things.device);
        EXPECT_EQ(fake_calls(), before);
    }
    fake_reset();
}

TEST(cuda, shutdown_heard_by_a_free) {
    fake_reset();
    every_call_t things;
    if (!every_call_prepare(&things, STRATA_CALL_free)) return;
    fake_fail("MemFree", 1, CUDA_ERROR_DEINITIALIZED);
    EXPECT_OK(strata_device_free(things.device, STRATA_MEMORY_DEVICE, things.address));
    EXPECT_STREQ(fake_call_at(fake_calls() - 1)->name, "MemFree");
    uint64_t before = fake_calls();
    strata_device_close(things.device);
    EXPECT_EQ(fake_calls(), before);
    fake_reset();
}

/* CUDA's semantics that the device must live with, one test for each fact: handles, lost devices, forks. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/every_call.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

TEST(cuda, row17_default_streams_and_recycled_handles) {
    strata_handle_t first, second;
    uint64_t ids[5] = {0};
    FAKE_DEVICE(device);
    EXPECT_OK(strata_device_stream_id(device, NULL, &ids[0]));
    EXPECT_OK(strata_device_stream_id(device, (strata_handle_t)CU_STREAM_LEGACY, &ids[1]));
    EXPECT_OK(strata_device_stream_id(device, (strata_handle_t)CU_STREAM_PER_THREAD, &ids[2]));
    EXPECT_EQ(ids[0], ids[1]);
    EXPECT_NE(ids[0], ids[2]);
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &first));
    EXPECT_EQ(fake_last("StreamCreateWithPriority")->value, CU_STREAM_NON_BLOCKING);
    EXPECT_EQ(fake_last("StreamCreateWithPriority")->extra, 0);
    EXPECT_OK(strata_device_stream_id(device, first, &ids[3]));
    EXPECT_OK(strata_device_stream_destroy(device, first));
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_device_stream_id(device, first, &ids[4]));
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_device_stream_synchronise(device, first));
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_BLOCKING, -3, &second));
    EXPECT_EQ(fake_last("StreamCreateWithPriority")->value, CU_STREAM_DEFAULT);
    EXPECT_EQ((int)fake_last("StreamCreateWithPriority")->extra, -3);
    EXPECT_EQ(second, first);
    EXPECT_OK(strata_device_stream_id(device, second, &ids[4]));
    EXPECT_NE(ids[3], ids[4]);
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_stream_destroy(device, (strata_handle_t)CU_STREAM_PER_THREAD));
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
        EXPECT_EQ(strata_device_host_view(things.device, things.managed, 1), NULL);
        strata_device_close(things.device);
        EXPECT_EQ(fake_calls(), calls);
        EXPECT_OK(strata_device_mem_info(other, &left, &total));
        strata_device_close(other);
    }
}

static const strata_device_call_t on_streams[] = {STRATA_CALL_malloc_async,
                                                  STRATA_CALL_free_async,
                                                  STRATA_CALL_event_record,
                                                  STRATA_CALL_stream_wait,
                                                  STRATA_CALL_stream_destroy,
                                                  STRATA_CALL_stream_query,
                                                  STRATA_CALL_stream_synchronise,
                                                  STRATA_CALL_stream_id,
                                                  STRATA_CALL_fill,
                                                  STRATA_CALL_copy,
                                                  STRATA_CALL_prefetch,
                                                  STRATA_CALL_capture_begin,
                                                  STRATA_CALL_capture_end,
                                                  STRATA_CALL_capture_status,
                                                  STRATA_CALL_capture_follows,
                                                  STRATA_CALL_graph_on_destroy,
                                                  STRATA_CALL_graph_launch,
                                                  STRATA_CALL_work};

/* A driver may say of a destroyed stream's handle that its context is gone. */
TEST(cuda, row18_a_destroyed_streams_handle_loses_no_device) {
    for (size_t i = 0; i < sizeof on_streams / sizeof *on_streams; i++) {
        strata_handle_t stream;
        uint64_t left, total;
        EVERY_CALL(things, on_streams[i]);
        ASSERT_OK(strata_device_stream_create(things.device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
        ASSERT_OK(strata_device_stream_destroy(things.device, stream));
        things.stream = things.other_stream = stream;
        fake_options.unknown_stream = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        strata_status_t status = every_call_make(&things, on_streams[i]);
        if (status != STRATA_E_UNKNOWN_STREAM)
            FAIL_TEST("%s answered %s", strata_device_call_name(on_streams[i]), strata_last_error()->text);
        EXPECT_EQ(strata_last_error()->device_code, CUDA_ERROR_CONTEXT_IS_DESTROYED);
        EXPECT_OK(strata_device_mem_info(things.device, &left, &total));
        EXPECT_EQ(fake_depth(), 0);
        every_call_clear(&things);
    }
}

TEST(cuda, row18_a_context_that_is_gone_loses_its_device_whatever_the_call_names) {
    for (size_t i = 0; i < sizeof on_streams / sizeof *on_streams; i++) {
        uint64_t left, total;
        EVERY_CALL(things, on_streams[i]);
        fake_options.sticky[0] = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        if (every_call_make(&things, on_streams[i]) != STRATA_E_DEVICE_LOST)
            FAIL_TEST("%s answered %s", strata_device_call_name(on_streams[i]), strata_last_error()->text);
        fake_options.sticky[0] = CUDA_SUCCESS;
        EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_mem_info(things.device, &left, &total));
        every_call_clear(&things);
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
    int status = -1;
    EVERY_CALL(things, STRATA_CALL_malloc);
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(in_child(&things));
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    /* The parent goes on. */
    EXPECT_OK(every_call_make(&things, STRATA_CALL_malloc));
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

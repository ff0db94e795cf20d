/* Streams, events, work and graphs on a real GPU. */
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/gpu.h"

#define LONG_NS UINT64_C(200000000)

TEST(gpu, streams_have_ids) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, stream_ids);
    uint64_t ids[4] = {0};
    strata_handle_t streams[2];
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(strata_device_stream_create(device, i ? STRATA_STREAM_BLOCKING : STRATA_STREAM_NON_BLOCKING, 0, &streams[i]));
        EXPECT_OK(strata_device_stream_id(device, streams[i], &ids[i]));
        EXPECT_OK(strata_device_stream_query(device, streams[i]));
    }
    EXPECT_OK(strata_device_stream_id(device, NULL, &ids[2]));
    EXPECT_OK(strata_device_stream_id(device, STRATA_STREAM_PER_THREAD, &ids[3]));
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++) EXPECT_NE(ids[i], ids[k]);
    EXPECT_OK(strata_device_stream_id(device, STRATA_STREAM_LEGACY, &ids[3]));
    EXPECT_EQ(ids[2], ids[3]);
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_device_stream_destroy(device, streams[i]));
    /* A recycled handle is another stream. */
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &streams[0]));
    EXPECT_OK(strata_device_stream_id(device, streams[0], &ids[3]));
    EXPECT_TRUE(ids[3] != ids[0] && ids[3] != ids[1]);
    EXPECT_OK(strata_device_stream_destroy(device, streams[0]));
    strata_device_close(device);
}

/* What is beyond the device's range is taken to its end. */
TEST(gpu, streams_have_any_priority) {
    GPU_OR_SKIP(device);
    static const int priorities[] = {-1000000, -1, 0, 1, 1000000};
    strata_handle_t streams[5];
    for (int i = 0; i < 5; i++) {
        ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, priorities[i], &streams[i]));
        EXPECT_OK(strata_device_work(device, streams[i], 1000, NULL, 0));
    }
    for (int i = 0; i < 5; i++) {
        EXPECT_OK(strata_device_stream_synchronise(device, streams[i]));
        EXPECT_OK(strata_device_stream_destroy(device, streams[i]));
    }
    strata_device_close(device);
}

TEST(gpu, events_order_work) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, work);
    strata_handle_t streams[2], events[2];
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &streams[i]));
        ASSERT_OK(strata_device_event_create(device, &events[i]));
        EXPECT_OK(strata_device_event_query(device, events[i])); /* never recorded */
        EXPECT_EQ(strata_device_event_ready_at(device, events[i]), STRATA_NEVER);
    }
    ASSERT_OK(strata_device_work(device, streams[0], LONG_NS, NULL, 0));
    ASSERT_OK(strata_device_event_record(device, events[0], streams[0]));
    ASSERT_OK(strata_device_stream_wait(device, streams[1], events[0]));
    ASSERT_OK(strata_device_event_record(device, events[1], streams[1]));
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_event_query(device, events[0]));
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_event_query(device, events[1]));
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(device, streams[1]));
    EXPECT_OK(strata_device_event_synchronise(device, events[1]));
    EXPECT_OK(strata_device_event_query(device, events[0]));
    EXPECT_OK(strata_device_stream_synchronise(device, streams[0]));
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(strata_device_event_destroy(device, events[i]));
        EXPECT_OK(strata_device_stream_destroy(device, streams[i]));
    }
    strata_device_close(device);
}

TEST(gpu, free_waits_for_all_work) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, work);
    strata_handle_t stream;
    strata_address_t address;
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 4096, &address));
    ASSERT_OK(strata_device_work(device, stream, LONG_NS, NULL, 0));
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(device, stream));
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, address));
    EXPECT_OK(strata_device_stream_query(device, stream));
    EXPECT_OK(strata_device_stream_destroy(device, stream));
    strata_device_close(device);
}

/* Waits, at most ten seconds, for the driver's thread that runs callbacks. */
static bool reaches(_Atomic int *counter, int wanted) {
    for (int i = 0; i < 1000 && atomic_load(counter) < wanted; i++) usleep(10000);
    return atomic_load(counter) == wanted;
}

TEST(gpu, capture_launch_and_destroy) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, capture);
    static _Atomic int gone;
    atomic_store(&gone, 0);
    strata_handle_t stream, event, graph;
    strata_address_t address, other;
    strata_capture_status_t status;
    uint64_t id = 0, left, total;
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_event_create(device, &event));
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 1 << 20, &address));
    ASSERT_OK(strata_device_capture_begin(device, stream, STRATA_CAPTURE_GLOBAL));
    EXPECT_OK(strata_device_fill(device, address, 1, 1 << 20, stream));
    EXPECT_OK(strata_device_graph_on_destroy(device, stream, gpu_count_up, &gone));
    /* None of these ends the capture. */
    EXPECT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 4096, &other));
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, other));
    EXPECT_OK(strata_device_mem_info(device, &left, &total));
    EXPECT_OK(strata_device_event_record(device, event, stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(device, event));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_query(device, stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_synchronise(device));
    EXPECT_OK(strata_device_capture_status(device, stream, &status, &id));
    EXPECT_EQ(status, STRATA_CAPTURE_ACTIVE);
    EXPECT_NE(id, 0);
    ASSERT_OK(strata_device_capture_end(device, stream, &graph));
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_device_graph_launch(device, graph, stream));
    EXPECT_OK(strata_device_stream_synchronise(device, stream));
    EXPECT_EQ(atomic_load(&gone), 0);
    EXPECT_OK(strata_device_graph_destroy(device, graph));
    EXPECT_TRUE(reaches(&gone, 1));
    EXPECT_OK(strata_device_event_record(device, event, stream));
    EXPECT_OK(strata_device_event_synchronise(device, event));
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, address));
    EXPECT_OK(strata_device_event_destroy(device, event));
    EXPECT_OK(strata_device_stream_destroy(device, stream));
    strata_device_close(device);
}

static uint64_t follows(strata_device_t *device, strata_handle_t stream, strata_handle_t other) {
    uint64_t id = 12345;
    EXPECT_OK(strata_device_capture_follows(device, stream, other, &id));
    return id;
}

static void join(strata_device_t *device, strata_handle_t stream, strata_handle_t other, strata_handle_t event) {
    EXPECT_OK(strata_device_event_record(device, event, other));
    EXPECT_OK(strata_device_stream_wait(device, stream, event));
}

TEST(gpu, a_captured_stream_follows_what_it_has_joined) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, capture);
    strata_handle_t stream, other, event, graph;
    strata_address_t address;
    strata_capture_status_t status;
    uint64_t id = 0;
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &other));
    ASSERT_OK(strata_device_event_create(device, &event));
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 4096, &address));
    ASSERT_OK(strata_device_capture_begin(device, stream, STRATA_CAPTURE_RELAXED));
    EXPECT_OK(strata_device_capture_status(device, stream, &status, &id));
    EXPECT_EQ(follows(device, stream, other), 0);
    EXPECT_OK(strata_device_fill(device, address, 1, 4096, stream));
    join(device, other, stream, event);
    EXPECT_EQ(follows(device, other, stream), id);
    EXPECT_OK(strata_device_fill(device, address, 2, 4096, other));
    EXPECT_EQ(follows(device, stream, other), 0);
    join(device, stream, other, event);
    EXPECT_EQ(follows(device, stream, other), id);
    EXPECT_OK(strata_device_fill(device, address, 3, 4096, stream));
    EXPECT_EQ(follows(device, stream, other), id);
    EXPECT_EQ(follows(device, other, stream), 0);
    ASSERT_OK(strata_device_capture_end(device, stream, &graph));
    EXPECT_OK(strata_device_graph_destroy(device, graph));
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, address));
    EXPECT_OK(strata_device_event_destroy(device, event));
    EXPECT_OK(strata_device_stream_destroy(device, other));
    EXPECT_OK(strata_device_stream_destroy(device, stream));
    strata_device_close(device);
}

TEST(gpu, legacy_stream_beside_a_blocking_capture) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, capture);
    strata_handle_t stream, event, graph;
    strata_capture_status_t status;
    uint64_t id;
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_event_create(device, &event));
    ASSERT_OK(strata_device_capture_begin(device, stream, STRATA_CAPTURE_THREAD_LOCAL));
    EXPECT_OK(strata_device_capture_status(device, NULL, &status, &id));
    EXPECT_EQ(status, STRATA_CAPTURE_IMPLICIT);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_record(device, event, NULL));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_synchronise(device, NULL));
    ASSERT_OK(strata_device_capture_end(device, stream, &graph));
    EXPECT_OK(strata_device_graph_destroy(device, graph));
    EXPECT_OK(strata_device_event_destroy(device, event));
    EXPECT_OK(strata_device_stream_destroy(device, stream));
    strata_device_close(device);
}

TEST(gpu, graph_allocations_outlive_their_graph) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, capture);
    GPU_NEEDS(device, pools);
    strata_handle_t stream, graph;
    strata_address_t inside, left;
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_capture_begin(device, stream, STRATA_CAPTURE_RELAXED));
    ASSERT_OK(strata_device_malloc_async(device, NULL, 1 << 20, stream, &inside));
    ASSERT_OK(strata_device_fill(device, inside, 1, 1 << 20, stream));
    ASSERT_OK(strata_device_free_async(device, inside, stream));
    ASSERT_OK(strata_device_malloc_async(device, NULL, 1 << 20, stream, &left));
    ASSERT_OK(strata_device_fill(device, left, 2, 1 << 20, stream));
    ASSERT_OK(strata_device_capture_end(device, stream, &graph));
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_device_graph_launch(device, graph, stream));
    EXPECT_OK(strata_device_stream_synchronise(device, stream));
    EXPECT_OK(strata_device_graph_destroy(device, graph));
    EXPECT_OK(strata_device_fill(device, left, 3, 1 << 20, stream));
    EXPECT_OK(strata_device_free_async(device, left, stream));
    EXPECT_OK(strata_device_stream_synchronise(device, stream));
    EXPECT_OK(strata_device_pool_trim(device, NULL, 0));
    EXPECT_OK(strata_device_stream_destroy(device, stream));
    strata_device_close(device);
}

TEST(gpu, forked_child_is_told) {
    GPU_OR_SKIP(device);
    strata_address_t address;
    uint32_t count;
    int status = -1;
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
        _exit(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 64, &address) == STRATA_E_FORKED &&
                      strata_cuda_count(&count) == STRATA_E_FORKED
                  ? 0
                  : 1);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    strata_device_close(device);
}

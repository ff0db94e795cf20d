/* Many threads on one device: its own books hold. */
#include <pthread.h>

#include "tests/cuda/every_call.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

enum { THREADS = 4, ROUNDS = 200 };

typedef struct worker {
    strata_device_t *device;
    int failures;
} worker_t;

/* Events come and go, some recorded in a capture; the handles of one thread are soon another's. */
static void *work(void *argument) {
    worker_t *worker = argument;
    strata_device_t *device = worker->device;
    for (int round = 0; round < ROUNDS; round++) {
        strata_handle_t stream, events[3], graph = NULL;
        strata_address_t pinned;
        int failures = strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream) != STRATA_OK;
        for (int i = 0; i < 3; i++) failures += strata_device_event_create(device, &events[i]) != STRATA_OK;
        failures += strata_device_capture_begin(device, stream, STRATA_CAPTURE_RELAXED) != STRATA_OK;
        failures += strata_device_event_record(device, events[0], stream) != STRATA_OK;
        failures += strata_device_event_query(device, events[0]) != STRATA_E_CAPTURE;
        failures += strata_device_event_query(device, events[1]) != STRATA_OK;
        failures += strata_device_capture_end(device, stream, &graph) != STRATA_OK;
        failures += strata_device_graph_launch(device, graph, stream) != STRATA_OK;
        failures += strata_device_event_record(device, events[1], stream) != STRATA_OK;
        failures += strata_device_event_synchronise(device, events[1]) != STRATA_OK;
        failures += strata_device_event_query(device, events[1]) != STRATA_OK;
        failures += strata_device_host_alloc(device, STRATA_MEMORY_PINNED, 100, 4096, 0, &pinned) != STRATA_OK;
        failures += strata_device_host_free(device, STRATA_MEMORY_PINNED, pinned) != STRATA_OK;
        for (int i = 0; i < 3; i++) failures += strata_device_event_destroy(device, events[i]) != STRATA_OK;
        failures += strata_device_graph_destroy(device, graph) != STRATA_OK;
        failures += strata_device_stream_destroy(device, stream) != STRATA_OK;
        failures += fake_depth() != 0 || fake_mode() != CU_STREAM_CAPTURE_MODE_GLOBAL;
        worker->failures += failures;
    }
    return NULL;
}

TEST(cuda_threads, books_hold) {
    fake_reset();
    fake_options.pinned_alignment = 64; /* so that pins are moved up and remembered */
    strata_device_t *device;
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    ASSERT_OK(strata_cuda_open(0, &device));
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){device, 0};
        ASSERT_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_EQ(workers[i].failures, 0);
    }
    EXPECT_EQ(fake_live_objects(), 0);
    /* Nothing captured is left in the books: a wait is allowed again. */
    EXPECT_OK(strata_device_synchronise(device));
    strata_device_close(device);
    EXPECT_EQ(fake_retains(0), 0);
    fake_reset();
}

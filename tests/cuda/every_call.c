#include "tests/cuda/every_call.h"

#include <unistd.h>

#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

#define SENTINEL_HANDLE ((strata_handle_t)(uintptr_t)EVERY_SENTINEL)

int every_call_callbacks;

static void count_callback(void *context) { ++*(int *)context; }

void every_call_clear(every_call_t *things) {
    things->out = things->out2 = EVERY_SENTINEL;
    things->out_handle = SENTINEL_HANDLE;
    if (things->out_descriptor >= 0) close(things->out_descriptor);
    things->out_descriptor = -7;
}

bool every_call_answered(const every_call_t *things) {
    return things->out != EVERY_SENTINEL || things->out2 != EVERY_SENTINEL || things->out_handle != SENTINEL_HANDLE ||
           things->out_descriptor != -7;
}

static strata_status_t make_memory(every_call_t *t) {
    strata_device_t *d = t->device;
    strata_status_t s = strata_device_malloc(d, STRATA_MEMORY_DEVICE, 1 << 20, &t->address);
    if (!s) s = strata_device_malloc(d, STRATA_MEMORY_MANAGED, 1 << 20, &t->managed);
    if (!s) s = strata_device_host_alloc(d, STRATA_MEMORY_PINNED, 4096, 64, 0, &t->pinned);
    if (!s) s = strata_device_pool_create(d, 0, false, &t->pool);
    if (!s) s = strata_device_malloc_async(d, NULL, 4096, t->stream, &t->pool_address);
    return s;
}

static strata_status_t make_virtual(every_call_t *t) {
    strata_device_t *d = t->device;
    strata_status_t s = strata_device_reserve(d, 4 * FAKE_GRANULE, FAKE_GRANULE, &t->range);
    t->mapped = t->range + FAKE_GRANULE;
    if (!s) s = strata_device_reserve(d, FAKE_GRANULE, FAKE_GRANULE, &t->spare_range);
    if (!s) s = strata_device_create(d, FAKE_GRANULE, false, &t->handle);
    if (!s) s = strata_device_create(d, FAKE_GRANULE, false, &t->mapped_handle);
    if (!s) s = strata_device_create(d, FAKE_GRANULE, true, &t->shared_handle);
    if (!s) s = strata_device_map(d, t->mapped, FAKE_GRANULE, t->mapped_handle);
    if (!s) s = strata_device_set_access(d, t->mapped, FAKE_GRANULE, NULL, 0);
    if (!s) s = strata_device_export_memory(d, t->shared_handle, &t->descriptor);
    if (!s) close(t->descriptor); /* the fake knows it by its number */
    return s;
}

bool every_call_prepare(every_call_t *t, strata_device_call_t call) {
    *t = (every_call_t){.out_descriptor = -7};
    strata_status_t s = strata_cuda_open(0, &t->device);
    strata_device_t *d = t->device;
    if (!s) s = strata_device_stream_create(d, STRATA_STREAM_NON_BLOCKING, 0, &t->stream);
    if (!s) s = strata_device_stream_create(d, STRATA_STREAM_NON_BLOCKING, 0, &t->other_stream);
    if (!s) s = strata_device_event_create(d, &t->event);
    if (!s) s = make_memory(t);
    if (!s) s = make_virtual(t);
    if (!s) s = strata_device_capture_begin(d, t->stream, STRATA_CAPTURE_RELAXED);
    bool captured = call == STRATA_CALL_capture_end || call == STRATA_CALL_capture_status || call == STRATA_CALL_capture_follows ||
                    call == STRATA_CALL_graph_on_destroy;
    if (!s && !captured) s = strata_device_capture_end(d, t->stream, &t->graph);
    fake_run(NULL);
    every_call_clear(t);
    EXPECT_OK(s);
    return s == STRATA_OK;
}

bool every_call_releases(strata_device_call_t call) {
    switch ((int)call) {
    case STRATA_CALL_free:
    case STRATA_CALL_free_async:
    case STRATA_CALL_unmap:
    case STRATA_CALL_release:
    case STRATA_CALL_host_free:
    case STRATA_CALL_unreserve:
    case STRATA_CALL_event_destroy:
    case STRATA_CALL_stream_destroy:
    case STRATA_CALL_pool_destroy:
    case STRATA_CALL_graph_destroy: return true;
    default: return false;
    }
}

static strata_status_t make_memory_call(every_call_t *t, strata_device_call_t call) {
    strata_device_t *d = t->device;
    switch ((int)call) {
    case STRATA_CALL_malloc: return strata_device_malloc(d, STRATA_MEMORY_DEVICE, 1 << 20, &t->out);
    case STRATA_CALL_free: return strata_device_free(d, STRATA_MEMORY_DEVICE, t->address);
    case STRATA_CALL_malloc_async: return strata_device_malloc_async(d, NULL, 4096, t->stream, &t->out);
    case STRATA_CALL_free_async: return strata_device_free_async(d, t->pool_address, t->stream);
    case STRATA_CALL_host_alloc: return strata_device_host_alloc(d, STRATA_MEMORY_PINNED, 4096, 64, 0, &t->out);
    case STRATA_CALL_host_free: return strata_device_host_free(d, STRATA_MEMORY_PINNED, t->pinned);
    case STRATA_CALL_mem_info: return strata_device_mem_info(d, &t->out, &t->out2);
    case STRATA_CALL_pool_create: return strata_device_pool_create(d, 0, false, &t->out_handle);
    case STRATA_CALL_pool_destroy: return strata_device_pool_destroy(d, t->pool);
    case STRATA_CALL_pool_default: return strata_device_pool_default(d, &t->out_handle);
    case STRATA_CALL_pool_set: return strata_device_pool_set(d, t->pool, STRATA_POOL_RELEASE_THRESHOLD, 1 << 20);
    case STRATA_CALL_pool_get: return strata_device_pool_get(d, t->pool, STRATA_POOL_RELEASE_THRESHOLD, &t->out);
    case STRATA_CALL_pool_trim: return strata_device_pool_trim(d, NULL, 0);
    case STRATA_CALL_pool_set_access: return strata_device_pool_set_access(d, t->pool, 1);
    case STRATA_CALL_copy: return strata_device_copy(d, t->address, (void *)(uintptr_t)t->pinned, 4096, true, t->stream);
    case STRATA_CALL_fill: return strata_device_fill(d, t->address, 1, 4096, t->stream);
    case STRATA_CALL_prefetch: return strata_device_prefetch(d, t->managed, 4096, true, t->stream);
    case STRATA_CALL_advise: return strata_device_advise(d, t->managed, 4096, STRATA_ADVISE_SET_READ_MOSTLY, false);
    case STRATA_CALL_reserve: return strata_device_reserve(d, 4 * FAKE_GRANULE, FAKE_GRANULE, &t->out);
    case STRATA_CALL_unreserve: return strata_device_unreserve(d, t->spare_range, FAKE_GRANULE);
    case STRATA_CALL_create: return strata_device_create(d, FAKE_GRANULE, false, &t->out);
    case STRATA_CALL_release: return strata_device_release(d, t->handle);
    case STRATA_CALL_map: return strata_device_map(d, t->range, FAKE_GRANULE, t->handle);
    case STRATA_CALL_set_access: return strata_device_set_access(d, t->mapped, FAKE_GRANULE, (uint32_t[]){1}, 1);
    case STRATA_CALL_unmap: return strata_device_unmap(d, t->mapped, FAKE_GRANULE);
    case STRATA_CALL_export_memory: return strata_device_export_memory(d, t->shared_handle, &t->out_descriptor);
    case STRATA_CALL_import_memory: return strata_device_import_memory(d, t->descriptor, &t->out);
    default: FAIL_TEST("no such call: %s", strata_device_call_name(call)); return STRATA_E_INVALID;
    }
}

strata_status_t every_call_make(every_call_t *t, strata_device_call_t call) {
    strata_device_t *d = t->device;
    strata_capture_status_t status;
    bool can = false;
    strata_status_t answer;
    switch ((int)call) {
    case STRATA_CALL_event_record: return strata_device_event_record(d, t->event, t->stream);
    case STRATA_CALL_event_query: return strata_device_event_query(d, t->event);
    case STRATA_CALL_event_create: return strata_device_event_create(d, &t->out_handle);
    case STRATA_CALL_event_destroy: return strata_device_event_destroy(d, t->event);
    case STRATA_CALL_event_synchronise: return strata_device_event_synchronise(d, t->event);
    case STRATA_CALL_stream_wait: return strata_device_stream_wait(d, t->stream, t->event);
    case STRATA_CALL_stream_create: return strata_device_stream_create(d, STRATA_STREAM_BLOCKING, 0, &t->out_handle);
    case STRATA_CALL_stream_destroy: return strata_device_stream_destroy(d, t->other_stream);
    case STRATA_CALL_stream_query: return strata_device_stream_query(d, t->stream);
    case STRATA_CALL_stream_synchronise: return strata_device_stream_synchronise(d, t->stream);
    case STRATA_CALL_stream_id: return strata_device_stream_id(d, t->stream, &t->out);
    case STRATA_CALL_synchronise: return strata_device_synchronise(d);
    case STRATA_CALL_capture_begin: return strata_device_capture_begin(d, t->stream, STRATA_CAPTURE_RELAXED);
    case STRATA_CALL_capture_end: return strata_device_capture_end(d, t->stream, &t->out_handle);
    case STRATA_CALL_capture_status: return strata_device_capture_status(d, t->stream, &status, &t->out);
    case STRATA_CALL_capture_follows: return strata_device_capture_follows(d, t->stream, t->other_stream, &t->out);
    case STRATA_CALL_graph_on_destroy: return strata_device_graph_on_destroy(d, t->stream, count_callback, &every_call_callbacks);
    case STRATA_CALL_graph_launch: return strata_device_graph_launch(d, t->graph, t->stream);
    case STRATA_CALL_graph_destroy: return strata_device_graph_destroy(d, t->graph);
    case STRATA_CALL_can_access_peer:
        answer = strata_device_can_access_peer(d, 1, &can);
        if (can) t->out = 1;
        return answer;
    case STRATA_CALL_enable_peer: return strata_device_enable_peer(d, 1);
    case STRATA_CALL_work: return strata_device_work(d, t->stream, 1000, NULL, 0);
    default: return make_memory_call(t, call);
    }
}

/* Capture and graphs. */
#include "platform/cuda/cuda_device.h"
#include "platform/host/host_memory.h"

/* Live graphs of this process that have a callback. A capture begun by other code may be among them. */
static _Atomic uint64_t watched_graphs;

bool strata_cuda_capture_known(strata_cuda_device_t *device) {
    if (atomic_load(&device->open_captures)) return true;
    CUstreamCaptureStatus status;
    return device->driver->StreamIsCapturing(CU_STREAM_LEGACY, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

bool strata_cuda_capture_possible(strata_cuda_device_t *device) {
    return atomic_load(&watched_graphs) || strata_cuda_capture_known(device);
}

static uint64_t key_of(strata_handle_t handle) { return (uint64_t)(uintptr_t)handle; }

void strata_cuda_forget_capture(strata_cuda_device_t *device, strata_handle_t stream) {
    strata_lock(&device->lock);
    if (strata_cuda_table_remove(&device->captures, key_of(stream), NULL)) atomic_fetch_sub(&device->open_captures, 1);
    strata_unlock(&device->lock);
}

/* The capture is counted before it begins, because a wait by another thread in between would invalidate
 * it. A handle that is already in the table belongs to a stream that was destroyed without our
 * knowledge; it was counted. */
strata_status_t strata_cuda_capture_begin(strata_device_t *self, strata_handle_t stream, strata_capture_mode_t mode) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_PLAIN, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    if (!stream || stream == CU_STREAM_LEGACY)
        return strata_cuda_exit(&scope, strata_fail(STRATA_E_CAPTURE, 0, "the legacy stream cannot be captured"));
    status = strata_cuda_table_claim(&device->captures, &device->lock);
    if (status != STRATA_OK) return strata_cuda_exit(&scope, status);
    atomic_fetch_add(&device->open_captures, 1);
    status = STREAM_CALL(device, stream, StreamBeginCapture, (CUstream)stream, (CUstreamCaptureMode)mode);
    strata_lock(&device->lock);
    bool none_more = status != STRATA_OK || strata_cuda_table_find(&device->captures, key_of(stream));
    if (status == STRATA_OK) strata_cuda_table_insert(&device->captures, key_of(stream), true);
    else strata_cuda_table_unclaim(&device->captures);
    if (none_more) atomic_fetch_sub(&device->open_captures, 1);
    strata_unlock(&device->lock);
    return strata_cuda_exit(&scope, status);
}

/* The capture is over even if ending it fails, unless the stream is still captured afterwards (another
 * thread's capture). */
strata_status_t strata_cuda_capture_end(strata_device_t *self, strata_handle_t stream, strata_handle_t *graph) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_PLAIN, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    CUgraph made = NULL;
    status = STREAM_CALL(device, stream, StreamEndCapture, (CUstream)stream, &made);
    CUstreamCaptureStatus left = CU_STREAM_CAPTURE_STATUS_NONE;
    if (status != STRATA_OK && device->driver->StreamIsCapturing((CUstream)stream, &left) != CUDA_SUCCESS)
        left = CU_STREAM_CAPTURE_STATUS_NONE;
    if (left == CU_STREAM_CAPTURE_STATUS_NONE) strata_cuda_forget_capture(device, stream);
    if (status == STRATA_OK) *graph = made;
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_capture_status(strata_device_t *self, strata_handle_t stream, strata_capture_status_t *result,
                                           uint64_t *id) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_PLAIN, &scope);
    if (status != STRATA_OK) return status;
    if (!scope.device->driver->StreamGetCaptureInfo) return strata_cuda_exit(&scope, strata_cuda_missing("cuStreamGetCaptureInfo"));
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t found_id = 0;
    CUresult code = scope.device->driver->StreamGetCaptureInfo((CUstream)stream, &found, &found_id, NULL, NULL, NULL);
    if (code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
        *result = STRATA_CAPTURE_IMPLICIT;
        *id = 0;
        return strata_cuda_exit(&scope, STRATA_OK);
    }
    status = strata_cuda_check_stream(scope.device, stream, "cuStreamGetCaptureInfo", code);
    if (status == STRATA_OK) {
        *result = (strata_capture_status_t)found;
        *id = found == CU_STREAM_CAPTURE_STATUS_ACTIVE ? found_id : 0;
    }
    return strata_cuda_exit(&scope, status);
}

typedef struct watch {
    void (*callback)(void *);
    void *context;
} watch_t;

/* Runs on a thread of the driver, or on the one that drops the graph. No call of CUDA is allowed. */
static void on_graph_destroyed(void *self) {
    watch_t watch = *(watch_t *)self;
    strata_host_delete(self);
    atomic_fetch_sub(&watched_graphs, 1);
    if (watch.callback) watch.callback(watch.context);
}

static strata_status_t graph_of_capture(strata_cuda_device_t *device, CUstream stream, CUgraph *graph) {
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph captured = NULL;
    strata_status_t status = STREAM_CALL(device, stream, StreamGetCaptureInfo, stream, &found, NULL, &captured, NULL, NULL);
    if (status != STRATA_OK) return status;
    if (found != CU_STREAM_CAPTURE_STATUS_ACTIVE || !captured)
        return strata_fail(STRATA_E_INVALID, 0, "the stream is not being captured");
    *graph = captured;
    return STRATA_OK;
}

strata_status_t strata_cuda_graph_on_destroy(strata_device_t *self, strata_handle_t stream, void (*callback)(void *),
                                             void *context) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    CUgraph graph = NULL;
    CUuserObject object = NULL;
    status = graph_of_capture(device, (CUstream)stream, &graph);
    if (status != STRATA_OK) return strata_cuda_exit(&scope, status);
    watch_t *watch = strata_host_new(1, sizeof *watch);
    if (!watch) return strata_cuda_exit(&scope, STRATA_E_HOST_MEMORY);
    *watch = (watch_t){callback, context};
    atomic_fetch_add(&watched_graphs, 1);
    status = CUDA_CALL(device, UserObjectCreate, &object, watch, on_graph_destroyed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (status != STRATA_OK) {
        atomic_fetch_sub(&watched_graphs, 1);
        strata_host_delete(watch);
        return strata_cuda_exit(&scope, status);
    }
    status = CUDA_CALL(device, GraphRetainUserObject, graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (status != STRATA_OK) {
        watch->callback = NULL; /* its graph still exists */
        device->driver->UserObjectRelease(object, 1);
    }
    return strata_cuda_exit(&scope, status);
}

/* Called with slow_lock held. A launch frees the memory that the last one left allocated, because its
 * addresses are the same again. */
static strata_status_t instance_of(strata_cuda_device_t *device, CUgraph graph, CUgraphExec *instance) {
    uint64_t *found = strata_cuda_table_find(&device->graphs, key_of(graph));
    if (found) {
        *instance = (CUgraphExec)(uintptr_t)*found;
        strata_cuda_table_unclaim(&device->graphs);
        return STRATA_OK;
    }
    CUgraphExec made = NULL;
    strata_status_t status = CUDA_CALL(device, GraphInstantiateWithFlags, &made, graph,
                                       CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    if (status == STRATA_OK) {
        strata_cuda_table_insert(&device->graphs, key_of(graph), (uint64_t)(uintptr_t)made);
        *instance = made;
    } else {
        strata_cuda_table_unclaim(&device->graphs);
    }
    return status;
}

strata_status_t strata_cuda_graph_launch(strata_device_t *self, strata_handle_t graph, strata_handle_t stream) {
    if (!graph) return strata_fail(STRATA_E_INVALID, 0, "no graph");
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter_stream(self, STRATA_CUDA_RELAXED, stream, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    status = strata_cuda_table_claim(&device->graphs, &device->slow_lock);
    if (status != STRATA_OK) return strata_cuda_exit(&scope, status);
    CUgraphExec instance = NULL;
    strata_lock(&device->slow_lock);
    status = instance_of(device, (CUgraph)graph, &instance);
    if (status == STRATA_OK) status = STREAM_CALL(device, stream, GraphLaunch, instance, (CUstream)stream);
    strata_unlock(&device->slow_lock);
    return strata_cuda_exit(&scope, status);
}

/* No lock is held while the graph and its instance are destroyed, since the callback of
 * graph_on_destroy may run inside. */
strata_status_t strata_cuda_graph_destroy(strata_device_t *self, strata_handle_t graph) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    strata_cuda_device_t *device = scope.device;
    uint64_t instance = 0;
    strata_lock(&device->slow_lock);
    bool launched = strata_cuda_table_remove_claimed(&device->graphs, key_of(graph), &instance);
    strata_unlock(&device->slow_lock);
    if (launched) {
        status = CUDA_CALL(device, GraphExecDestroy, (CUgraphExec)(uintptr_t)instance);
        strata_lock(&device->slow_lock);
        if (status == STRATA_OK) strata_cuda_table_unclaim(&device->graphs);
        else strata_cuda_table_insert(&device->graphs, key_of(graph), instance);
        strata_unlock(&device->slow_lock);
    }
    if (status == STRATA_OK) status = CUDA_CALL(device, GraphDestroy, (CUgraph)graph);
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, status));
}

void strata_cuda_drop_graphs(strata_cuda_device_t *device) {
    for (uint64_t i = 0; i < device->graphs.capacity; i++)
        if (device->graphs.slots[i].key) device->driver->GraphExecDestroy((CUgraphExec)(uintptr_t)device->graphs.slots[i].value);
}

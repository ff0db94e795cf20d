/* Streams and events. */
#include "platform/cuda/cuda_device.h"

/* Checks a call on a single stream, where a handle that the driver does not recognize is an unknown stream. */
static strata_status_t check_stream(strata_status_t status) {
    if (status != STRATA_E_DEVICE || strata_last_error()->device_code != CUDA_ERROR_INVALID_HANDLE) return status;
    return strata_fail(STRATA_E_UNKNOWN_STREAM, CUDA_ERROR_INVALID_HANDLE, "%s", strata_last_error()->text);
}

/* Asking a captured stream for its progress, or waiting for it, would invalidate the capture. */
static strata_status_t refuse_captured(strata_cuda_device_t *device, strata_handle_t stream) {
    bool capturing;
    strata_status_t status = strata_cuda_capturing(device, (CUstream)stream, &capturing);
    if (status == STRATA_OK && capturing) return strata_fail(STRATA_E_CAPTURE, 0, "the stream is being captured");
    return status;
}

/* The driver clamps a priority to the device's range. */
strata_status_t strata_cuda_stream_create(strata_device_t *self, strata_stream_flags_t flags, int priority,
                                          strata_handle_t *stream) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    CUstream made = NULL;
    unsigned int kind = flags == STRATA_STREAM_NON_BLOCKING ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    status = CUDA_CALL(scope.device, StreamCreateWithPriority, &made, kind, priority);
    if (status == STRATA_OK) *stream = made;
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_stream_destroy(strata_device_t *self, strata_handle_t stream) {
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return strata_fail(STRATA_E_INVALID, 0, "a default stream cannot be destroyed");
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    strata_cuda_forget_capture(scope.device, stream);
    status = check_stream(STREAM_CALL(scope.device, stream, StreamDestroy, (CUstream)stream));
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, status));
}

/* "Not yet" is a result, not a failure. It sets no error text, which would cost more than the query. */
strata_status_t strata_cuda_stream_query(strata_device_t *self, strata_handle_t stream) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    status = refuse_captured(scope.device, stream);
    if (status == STRATA_OK) {
        CUresult code = scope.device->driver->StreamQuery((CUstream)stream);
        status = code == CUDA_ERROR_NOT_READY ? STRATA_E_NOT_READY
                                              : strata_cuda_check_stream(scope.device, stream, "cuStreamQuery", code);
    }
    return strata_cuda_exit(&scope, check_stream(status));
}

strata_status_t strata_cuda_stream_synchronise(strata_device_t *self, strata_handle_t stream) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    status = refuse_captured(scope.device, stream);
    if (status == STRATA_OK) status = STREAM_CALL(scope.device, stream, StreamSynchronize, (CUstream)stream);
    return strata_cuda_exit(&scope, check_stream(status));
}

strata_status_t strata_cuda_stream_wait(strata_device_t *self, strata_handle_t stream, strata_handle_t event) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter_stream(self, STRATA_CUDA_PLAIN, stream, &scope);
    if (status != STRATA_OK) return status;
    status = STREAM_CALL(scope.device, stream, StreamWaitEvent, (CUstream)stream, (CUevent)event, 0);
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_stream_id(strata_device_t *self, strata_handle_t stream, uint64_t *id) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_PLAIN, &scope);
    if (status != STRATA_OK) return status;
    unsigned long long got = 0;
    status = check_stream(STREAM_CALL(scope.device, stream, StreamGetId, (CUstream)stream, &got));
    if (status == STRATA_OK) *id = got;
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_synchronise(strata_device_t *self) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    status = strata_cuda_capture_known(scope.device)
                 ? strata_fail(STRATA_E_CAPTURE, 0, "waiting for gpu:%u would invalidate a capture", self->ordinal)
                 : CUDA_CALL(scope.device, CtxSynchronize);
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_event_create(strata_device_t *self, strata_handle_t *event) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    status = strata_cuda_table_claim(&device->events, &device->lock);
    if (status != STRATA_OK) return strata_cuda_exit(&scope, status);
    CUevent made = NULL;
    status = CUDA_CALL(device, EventCreate, &made, CU_EVENT_DISABLE_TIMING);
    strata_lock(&device->lock);
    if (status == STRATA_OK) {
        strata_cuda_table_insert(&device->events, (uint64_t)(uintptr_t)made, false);
        *event = made;
    } else {
        strata_cuda_table_unclaim(&device->events);
    }
    strata_unlock(&device->lock);
    return strata_cuda_exit(&scope, status);
}

/* The event leaves the table before it is destroyed, since its handle may right afterwards be another
 * thread's new event. */
strata_status_t strata_cuda_event_destroy(strata_device_t *self, strata_handle_t event) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    strata_cuda_device_t *device = scope.device;
    uint64_t key = (uint64_t)(uintptr_t)event, captured = 0;
    strata_lock(&device->lock);
    bool ours = strata_cuda_table_remove_claimed(&device->events, key, &captured);
    strata_unlock(&device->lock);
    status = CUDA_CALL(device, EventDestroy, (CUevent)event);
    if (ours) {
        strata_lock(&device->lock);
        if (status == STRATA_OK) {
            strata_cuda_table_unclaim(&device->events);
            if (captured) atomic_fetch_sub(&device->captured_events, 1);
        } else {
            strata_cuda_table_insert(&device->events, key, captured);
        }
        strata_unlock(&device->lock);
    }
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, status));
}

/* Sets the mark of an event created here. Returns the mark that it had. */
static bool mark_captured(strata_cuda_device_t *device, strata_handle_t event, bool captured) {
    strata_lock(&device->lock);
    uint64_t *mark = strata_cuda_table_find(&device->events, (uint64_t)(uintptr_t)event);
    bool was = mark && *mark;
    if (mark && was != captured) {
        *mark = captured;
        if (captured) atomic_fetch_add(&device->captured_events, 1);
        else atomic_fetch_sub(&device->captured_events, 1);
    }
    strata_unlock(&device->lock);
    return was;
}

/* The mark is set before the record, and removed after a record outside captures. So a query in between
 * errs on the safe side. */
strata_status_t strata_cuda_event_record(strata_device_t *self, strata_handle_t event, strata_handle_t stream) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_PLAIN, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    bool capturing, was = false;
    status = strata_cuda_capturing(device, (CUstream)stream, &capturing);
    if (status != STRATA_OK) return strata_cuda_exit(&scope, status);
    if (capturing) was = mark_captured(device, event, true);
    status = STREAM_CALL(device, stream, EventRecord, (CUevent)event, (CUstream)stream);
    if (capturing && status != STRATA_OK) mark_captured(device, event, was);
    if (!capturing && status == STRATA_OK && atomic_load(&device->captured_events)) mark_captured(device, event, false);
    return strata_cuda_exit(&scope, status);
}

static bool is_captured(strata_cuda_device_t *device, strata_handle_t event) {
    if (!atomic_load(&device->captured_events)) return false;
    strata_lock(&device->lock);
    uint64_t *mark = strata_cuda_table_find(&device->events, (uint64_t)(uintptr_t)event);
    bool captured = mark && *mark;
    strata_unlock(&device->lock);
    return captured;
}

bool strata_cuda_event_is_captured(strata_device_t *self, strata_handle_t event) {
    return is_captured(strata_cuda_of(self), event);
}

static strata_status_t refuse_captured_event(strata_cuda_device_t *device, strata_handle_t event) {
    if (!is_captured(device, event)) return STRATA_OK;
    return strata_fail(STRATA_E_CAPTURE, CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a capture");
}

strata_status_t strata_cuda_event_query(strata_device_t *self, strata_handle_t event) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    status = refuse_captured_event(scope.device, event);
    if (status == STRATA_OK) {
        CUresult code = scope.device->driver->EventQuery((CUevent)event);
        status = code == CUDA_ERROR_NOT_READY ? STRATA_E_NOT_READY : strata_cuda_check(scope.device, "cuEventQuery", code);
    }
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_event_synchronise(strata_device_t *self, strata_handle_t event) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    status = refuse_captured_event(scope.device, event);
    if (status == STRATA_OK) status = CUDA_CALL(scope.device, EventSynchronize, (CUevent)event);
    return strata_cuda_exit(&scope, status);
}

uint64_t strata_cuda_event_ready_at(strata_device_t *self, strata_handle_t event) {
    (void)self;
    (void)event;
    return STRATA_NEVER;
}

/* The begin and end of every driver call: context, capture mode, and the check of the result. */
#include "platform/cuda/cuda_device.h"

strata_status_t strata_cuda_missing(const char *call) { return strata_fail(STRATA_E_UNSUPPORTED, 0, "the driver has no %s", call); }

strata_status_t strata_cuda_check(strata_cuda_device_t *device, const char *call, CUresult code) {
    if (code == CUDA_SUCCESS) return STRATA_OK;
    strata_status_t status = strata_cuda_status(code);
    if (status == STRATA_E_SHUTDOWN) strata_cuda_note_shutdown();
    if (status == STRATA_E_DEVICE_LOST) atomic_store(&device->lost, (int)code);
    return strata_cuda_fail(device->driver, status, call, code);
}

/* Asks the default stream, which exists as long as its context. This is allowed during any capture. */
static bool context_lives(const strata_cuda_device_t *device) {
    CUstreamCaptureStatus status;
    CUresult code = device->driver->StreamIsCapturing(CU_STREAM_LEGACY, &status);
    return code == CUDA_SUCCESS || code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static bool can_be_destroyed(strata_handle_t stream) {
    return stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
}

/* For a destroyed stream's handle a driver may report a destroyed context. */
strata_status_t strata_cuda_check_stream(strata_cuda_device_t *device, strata_handle_t stream, const char *call, CUresult code) {
    if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED && can_be_destroyed(stream) && context_lives(device))
        return strata_cuda_fail(device->driver, STRATA_E_UNKNOWN_STREAM, call, code);
    return strata_cuda_check(device, call, code);
}

strata_status_t strata_cuda_usable(const strata_cuda_device_t *device) {
    if (device->generation != strata_cuda_generation())
        return strata_fail(STRATA_E_FORKED, 0, "gpu:%u was opened before this process was forked; the child cannot use it",
                           device->base.ordinal);
    if (strata_cuda_is_shut_down())
        return strata_fail(STRATA_E_SHUTDOWN, CUDA_ERROR_DEINITIALIZED, "gpu:%u: the driver is shutting down",
                           device->base.ordinal);
    int lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    if (lost)
        return strata_fail(STRATA_E_DEVICE_LOST, lost, "gpu:%u is lost since the driver returned %d", device->base.ordinal, lost);
    return STRATA_OK;
}

strata_status_t strata_cuda_enter(strata_device_t *self, strata_cuda_mode_t mode, strata_cuda_scope_t *scope) {
    strata_cuda_device_t *device = strata_cuda_of(self);
    *scope = (strata_cuda_scope_t){.device = device};
    strata_status_t status = strata_cuda_usable(device);
    if (status != STRATA_OK) return status;
    CUcontext current = NULL;
    status = CUDA_CALL(device, CtxGetCurrent, &current);
    if (status == STRATA_OK && current != device->context) {
        status = CUDA_CALL(device, CtxPushCurrent, device->context);
        scope->pushed = status == STRATA_OK;
    }
    if (status == STRATA_OK && mode == STRATA_CUDA_RELAXED) {
        scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        status = CUDA_CALL(device, ThreadExchangeStreamCaptureMode, &scope->mode);
        scope->exchanged = status == STRATA_OK;
    }
    return status == STRATA_OK ? STRATA_OK : strata_cuda_exit(scope, status);
}

strata_status_t strata_cuda_exit(strata_cuda_scope_t *scope, strata_status_t status) {
    const strata_cuda_driver_t *driver = scope->device->driver;
    if (strata_cuda_is_shut_down()) return status;
    /* Failures here are not reported. They would hide the call's own, and a sticky one is returned
     * again by the next call. */
    if (scope->exchanged) driver->ThreadExchangeStreamCaptureMode(&scope->mode);
    CUcontext popped;
    if (scope->pushed) driver->CtxPopCurrent(&popped);
    return status;
}

strata_status_t strata_cuda_capturing(strata_cuda_device_t *device, CUstream stream, bool *capturing) {
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    strata_status_t status = STREAM_CALL(device, stream, StreamIsCapturing, stream, &found);
    *capturing = status == STRATA_OK && found != CU_STREAM_CAPTURE_STATUS_NONE;
    return status;
}

strata_status_t strata_cuda_enter_stream(strata_device_t *self, strata_cuda_mode_t mode, strata_handle_t stream,
                                         strata_cuda_scope_t *scope) {
    strata_status_t status = strata_cuda_enter(self, mode, scope);
    if (status != STRATA_OK || (stream != NULL && stream != CU_STREAM_LEGACY)) return status;
    bool capturing;
    status = strata_cuda_capturing(scope->device, (CUstream)stream, &capturing);
    return status == STRATA_OK ? STRATA_OK : strata_cuda_exit(scope, status);
}

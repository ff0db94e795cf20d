/* The driver's codes, and the status of each. */
#include <stddef.h>

#include "platform/cuda/driver/cuda_api.h"

/* X(code, status, text). Unlisted codes are E_DEVICE. E_DEVICE_LOST means that the process must end
 * ("sticky"), or may as well. */
#define CODE_MAP(X)                                                                                                                \
    X(CUDA_ERROR_INVALID_VALUE, E_DEVICE, "invalid argument")                                                                      \
    X(CUDA_ERROR_OUT_OF_MEMORY, E_NO_MEMORY, "out of memory")                                                                      \
    X(CUDA_ERROR_NOT_INITIALIZED, E_DEVICE, "initialization error")                                                                \
    X(CUDA_ERROR_DEINITIALIZED, E_SHUTDOWN, "driver shutting down")                                                                \
    X(CUDA_ERROR_STUB_LIBRARY, E_DEVICE, "CUDA driver is a stub library")                                                          \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, E_DEVICE, "device is busy or unavailable")                                                    \
    X(CUDA_ERROR_NO_DEVICE, E_DEVICE, "no CUDA-capable device is detected")                                                        \
    X(CUDA_ERROR_INVALID_DEVICE, E_DEVICE, "invalid device ordinal")                                                               \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, E_DEVICE_LOST, "uncorrectable ECC error")                                                      \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, E_DEVICE_LOST, "uncorrectable NVLink error")                                                \
    X(CUDA_ERROR_CONTAINED, E_DEVICE_LOST, "contained memory error")                                                               \
    X(CUDA_ERROR_INVALID_HANDLE, E_DEVICE, "invalid resource handle")                                                              \
    X(CUDA_ERROR_NOT_FOUND, E_DEVICE, "named symbol not found")                                                                    \
    X(CUDA_ERROR_NOT_READY, E_NOT_READY, "device not ready")                                                                       \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, E_DEVICE_LOST, "an illegal memory access was made")                                              \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, E_DEVICE_LOST, "the launch timed out")                                                            \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, E_DEVICE_LOST, "context is destroyed")                                                      \
    X(CUDA_ERROR_ASSERT, E_DEVICE_LOST, "device-side assert")                                                                      \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, E_DEVICE_LOST, "hardware stack error")                                                      \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, E_DEVICE_LOST, "an illegal instruction was met")                                             \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, E_DEVICE_LOST, "misaligned address")                                                          \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, E_DEVICE_LOST, "operation not supported on this address space")                            \
    X(CUDA_ERROR_INVALID_PC, E_DEVICE_LOST, "invalid program counter")                                                             \
    X(CUDA_ERROR_LAUNCH_FAILED, E_DEVICE_LOST, "unspecified launch failure")                                                       \
    X(CUDA_ERROR_TENSOR_MEMORY_LEAK, E_DEVICE_LOST, "tensor memory was not given back")                                            \
    X(CUDA_ERROR_NOT_SUPPORTED, E_DEVICE, "operation not supported")                                                               \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, E_DEVICE, "display driver and CUDA driver do not match")                                  \
    X(CUDA_ERROR_MPS_CLIENT_TERMINATED, E_DEVICE_LOST, "the MPS client was terminated")                                            \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, E_CAPTURE, "not permitted while a stream is captured")                                \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, E_CAPTURE, "the capture was ended by an earlier error")                               \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, E_CAPTURE, "two captures would be merged")                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, E_CAPTURE, "the capture was begun on another stream")                                   \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, E_CAPTURE, "a forked stream was not joined")                                             \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, E_CAPTURE, "a dependency would cross the capture's border")                             \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, E_CAPTURE, "a dependency on a captured stream is implied")                               \
    X(CUDA_ERROR_CAPTURED_EVENT, E_CAPTURE, "the event was last recorded in a captured stream")                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, E_CAPTURE, "the capture was begun by another thread")                                \
    X(CUDA_ERROR_EXTERNAL_DEVICE, E_DEVICE_LOST, "an external device failed")                                                      \
    X(CUDA_ERROR_UNKNOWN, E_DEVICE_LOST, "unknown error")

typedef struct code_row {
    CUresult code;
    const char *name;
    strata_status_t status;
    const char *text;
} code_row_t;

static const code_row_t codes[] = {
#define CODE_ROW(code, status, text) {code, #code, STRATA_##status, text},
    CODE_MAP(CODE_ROW)
#undef CODE_ROW
};

static const code_row_t *row_of(CUresult code) {
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code) return &codes[i];
    return NULL;
}

strata_status_t strata_cuda_status(CUresult code) {
    if (code == CUDA_SUCCESS) return STRATA_OK;
    const code_row_t *row = row_of(code);
    return row ? row->status : STRATA_E_DEVICE;
}

strata_status_t strata_cuda_fail(const strata_cuda_driver_t *driver, strata_status_t status, const char *call, CUresult code) {
    const code_row_t *row = row_of(code);
    const char *name = NULL, *text = NULL;
    /* A driver that is shutting down is not even asked for a text. */
    if (driver && code != CUDA_ERROR_DEINITIALIZED && driver->GetErrorName && driver->GetErrorName(code, &name) != CUDA_SUCCESS)
        name = NULL;
    if (driver && code != CUDA_ERROR_DEINITIALIZED && driver->GetErrorString && driver->GetErrorString(code, &text) != CUDA_SUCCESS)
        text = NULL;
    if (!name) name = row ? row->name : "CUDA_ERROR_?";
    if (!text) text = row ? row->text : strata_status_text(status);
    return strata_fail(status, code, "%s: %s (%d): %s", call, name, (int)code, text);
}

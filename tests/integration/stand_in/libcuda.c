/* A library in the place of libcuda.so.1: the fake driver of tests/cuda behind the names that the driver exports. */
#include <stdlib.h>

#include "tests/cuda/fake_internal.h"

#define EXPORTED __attribute__((visibility("default")))

extern int stand_in_lost;

/* The fake lies here by itself: there is no device of Strata's whose table it could replace. */
void strata_cuda_set_table_for_tests(const strata_cuda_driver_t *driver) { (void)driver; }

__attribute__((constructor)) static void begin(void) {
    fake_reset();
    if (getenv("STAND_IN_CONTENTS")) fake_options.contents = true;
    if (getenv("STAND_IN_NO_VIRTUAL")) fake_options.no_virtual = true;
}

/* X(exported name, entry, arguments, the arguments' names) */
#define EXPORT_MAP(X)                                                                                                              \
    X(cuInit, Init, (unsigned int flags), (flags))                                                                                 \
    X(cuDeviceGet, DeviceGet, (CUdevice * device, int ordinal), (device, ordinal))                                                 \
    X(cuDevicePrimaryCtxRetain, DevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))                 \
    X(cuCtxGetCurrent, CtxGetCurrent, (CUcontext * context), (context))                                                            \
    X(cuCtxPushCurrent_v2, CtxPushCurrent, (CUcontext context), (context))                                                         \
    X(cuCtxPopCurrent_v2, CtxPopCurrent, (CUcontext * context), (context))                                                         \
    X(cuCtxSynchronize, CtxSynchronize, (void), ())                                                                                \
    X(cuMemAlloc_v2, MemAlloc, (CUdeviceptr * address, size_t size), (address, size))                                              \
    X(cuMemFree_v2, MemFree, (CUdeviceptr address), (address))                                                                     \
    X(cuMemAllocManaged, MemAllocManaged, (CUdeviceptr * address, size_t size, unsigned int flags), (address, size, flags))        \
    X(cuMemHostAlloc, MemHostAlloc, (void **address, size_t size, unsigned int flags), (address, size, flags))                     \
    X(cuMemFreeHost, MemFreeHost, (void *address), (address))                                                                      \
    X(cuMemGetInfo_v2, MemGetInfo, (size_t * unused, size_t * total), (unused, total))                                             \
    X(cuMemFreeAsync, MemFreeAsync, (CUdeviceptr address, CUstream stream), (address, stream))                                     \
    X(cuStreamCreateWithPriority, StreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),                 \
      (stream, flags, priority))                                                                                                   \
    X(cuStreamDestroy_v2, StreamDestroy, (CUstream stream), (stream))                                                              \
    X(cuMemCreate, MemCreate,                                                                                                      \
      (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *properties, unsigned long long flags),       \
      (handle, size, properties, flags))                                                                                           \
    X(cuStreamBeginCapture_v2, StreamBeginCapture, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))                    \
    X(cuStreamEndCapture, StreamEndCapture, (CUstream stream, CUgraph * graph), (stream, graph))                                   \
    X(cuMemRelease, MemRelease, (CUmemGenericAllocationHandle handle), (handle))

#define EXPORT(name, entry, arguments, passed)                                                                                     \
    EXPORTED CUresult name arguments;                                                                                              \
    CUresult name arguments { return fake_##entry passed; }
EXPORT_MAP(EXPORT)

EXPORTED CUresult cuGetProcAddress_v2 STRATA_CUDA_GET_PROC;
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *found) {
    return fake_get_proc(symbol, function, version, flags, found);
}

EXPORTED CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetDevice(CUdevice *device) {
    *device = fake_current_device();
    return *device < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
    for (size_t i = 0; i < FAKE_MANY; i++) {
        if (!fake.streams[i].used || (void *)stream != (void *)&fake.streams[i]) continue;
        *context = fake_context(fake.streams[i].device);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_HANDLE;
}

EXPORTED CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream);
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream) {
    CUmemoryPool pool;
    CUresult code = fake_DeviceGetDefaultMemPool(&pool, fake_current_device());
    return code == CUDA_SUCCESS ? fake_MemAllocFromPoolAsync(address, size, pool, stream) : code;
}

/* All memory of the primary context is gone, whoever holds it. */
EXPORTED CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    fake_wait_device(device);
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (fake.memory[i].used && fake.memory[i].device == device) stand_in_lost++;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuIpcGetMemHandle(void *handle, CUdeviceptr address);
CUresult cuIpcGetMemHandle(void *handle, CUdeviceptr address) {
    (void)handle;
    return fake_memory_at(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- for the program ---- */

EXPORTED int stand_in_lost;
EXPORTED void stand_in_submit(void *stream);
void stand_in_submit(void *stream) { fake_submit((CUstream)stream); }
EXPORTED unsigned long long stand_in_pending(int device);
unsigned long long stand_in_pending(int device) { return fake_pending(device); }
EXPORTED unsigned long long stand_in_used(int device);
unsigned long long stand_in_used(int device) { return fake_used(device); }
EXPORTED unsigned long long stand_in_calls(const char *name);
unsigned long long stand_in_calls(const char *name) { return fake_count(name); }

/* A library in the place of libcuda.so.1: the fake driver of tests/cuda behind the names that the driver exports. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake/fake_internal.h"

#define EXPORTED __attribute__((visibility("default")))

enum { STAND_IN_VALUES = 7 }; /* as in stand_in.h, which cannot be included because its prototypes differ */
extern int stand_in_lost;
EXPORTED int stand_in_see(const char *name, const unsigned long long values[STAND_IN_VALUES]);
EXPORTED unsigned long long stand_in_entered(const char *name), stand_in_value(const char *name, int i);
EXPORTED void stand_in_fail_next(const char *name, int code);

/* The fake lies here by itself: there is no device of Strata's whose table it could replace. */
void strata_cuda_set_table_for_tests(const strata_cuda_driver_t *driver) { (void)driver; }

__attribute__((constructor)) static void begin(void) {
    fake_reset();
    if (getenv("STAND_IN_CONTENTS")) fake_options.contents = true;
    if (getenv("STAND_IN_NO_VIRTUAL")) fake_options.no_virtual = true;
}

/* ---- calls of the program, by exported name ---- */

enum { SEEN = 64, NAME_ROOM = 48, ATTACH_HOST = 2 };
typedef struct seen {
    char name[NAME_ROOM];
    unsigned long long entered, values[STAND_IN_VALUES];
    int fail_code; /* result of the next call; 0: it works normally */
} seen_t;
static seen_t all_seen[SEEN];
static pthread_mutex_t seeing = PTHREAD_MUTEX_INITIALIZER;

static seen_t *seen_of(const char *name) {
    for (size_t i = 0; i < SEEN; i++) {
        if (!all_seen[i].name[0]) snprintf(all_seen[i].name, NAME_ROOM, "%s", name);
        if (strcmp(all_seen[i].name, name) == 0) return &all_seen[i];
    }
    abort();
}

int stand_in_see(const char *name, const unsigned long long values[STAND_IN_VALUES]) {
    pthread_mutex_lock(&seeing);
    seen_t *seen = seen_of(name);
    seen->entered++;
    memcpy(seen->values, values, sizeof seen->values);
    int code = seen->fail_code;
    seen->fail_code = 0;
    pthread_mutex_unlock(&seeing);
    return code;
}
unsigned long long stand_in_entered(const char *name) { return seen_of(name)->entered; }
unsigned long long stand_in_value(const char *name, int i) { return seen_of(name)->values[i]; }
void stand_in_fail_next(const char *name, int code) { seen_of(name)->fail_code = code; }

/* ---- the driver ---- */

/* X(exported name, entry, arguments, the arguments' names) */
#define EXPORT_MAP(X)                                                                                                              \
    X(cuInit, Init, (unsigned int flags), (flags))                                                                                 \
    X(cuDeviceGet, DeviceGet, (CUdevice * device, int ordinal), (device, ordinal))                                                 \
    X(cuDevicePrimaryCtxRetain, DevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))                 \
    X(cuCtxGetCurrent, CtxGetCurrent, (CUcontext * context), (context))                                                            \
    X(cuCtxPushCurrent_v2, CtxPushCurrent, (CUcontext context), (context))                                                         \
    X(cuCtxPopCurrent_v2, CtxPopCurrent, (CUcontext * context), (context))                                                         \
    X(cuCtxSynchronize, CtxSynchronize, (void), ())                                                                                \
    X(cuStreamCreateWithPriority, StreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),                 \
      (stream, flags, priority))                                                                                                   \
    X(cuMemRelease, MemRelease, (CUmemGenericAllocationHandle handle), (handle))

#define EXPORT(name, entry, arguments, passed)                                                                                     \
    EXPORTED CUresult name arguments;                                                                                              \
    CUresult name arguments { return fake_##entry passed; }
EXPORT_MAP(EXPORT)

/* Functions that the preloaded library intercepts. Each call is recorded with its arguments. */
#define SEEN_EXPORT(name, arguments, does, ...)                                                                                    \
    EXPORTED CUresult name arguments;                                                                                              \
    CUresult name arguments {                                                                                                      \
        int code = stand_in_see(#name, (const unsigned long long[STAND_IN_VALUES]){__VA_ARGS__});                                  \
        return code ? (CUresult)code : does;                                                                                       \
    }
#define WORD(value) (unsigned long long)(uintptr_t)(value)

static CUresult pool_alloc(CUdeviceptr *address, size_t size, CUstream stream) {
    CUmemoryPool pool;
    CUresult code = fake_DeviceGetDefaultMemPool(&pool, fake_current_device());
    return code == CUDA_SUCCESS ? fake_MemAllocFromPoolAsync(address, size, pool, stream) : code;
}
static CUstream own(CUstream stream) { return stream ? stream : CU_STREAM_PER_THREAD; }

SEEN_EXPORT(cuMemAlloc_v2, (CUdeviceptr * address, size_t size), fake_MemAlloc(address, size), WORD(address), size)
SEEN_EXPORT(cuMemFree_v2, (CUdeviceptr address), fake_MemFree(address), address)
SEEN_EXPORT(cuMemAllocManaged, (CUdeviceptr * address, size_t size, unsigned int flags),
            fake_MemAllocManaged(address, size, flags == ATTACH_HOST ? CU_MEM_ATTACH_GLOBAL : flags), WORD(address), size, flags)
SEEN_EXPORT(cuMemAllocHost_v2, (void **address, size_t size), fake_MemHostAlloc(address, size, 0), WORD(address), size)
SEEN_EXPORT(cuMemHostAlloc, (void **address, size_t size, unsigned int flags), fake_MemHostAlloc(address, size, flags),
            WORD(address), size, flags)
SEEN_EXPORT(cuMemFreeHost, (void *address), fake_MemFreeHost(address), WORD(address))
SEEN_EXPORT(cuMemGetInfo_v2, (size_t * unused, size_t *total),
            unused &&total ? fake_MemGetInfo(unused, total) : CUDA_ERROR_INVALID_VALUE, WORD(unused), WORD(total))
SEEN_EXPORT(cuMemAllocAsync, (CUdeviceptr * address, size_t size, CUstream stream), pool_alloc(address, size, stream),
            WORD(address), size, WORD(stream))
SEEN_EXPORT(cuMemAllocAsync_ptsz, (CUdeviceptr * address, size_t size, CUstream stream), pool_alloc(address, size, own(stream)),
            WORD(address), size, WORD(stream))
SEEN_EXPORT(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), fake_MemFreeAsync(address, stream), address, WORD(stream))
SEEN_EXPORT(cuMemFreeAsync_ptsz, (CUdeviceptr address, CUstream stream), fake_MemFreeAsync(address, own(stream)), address,
            WORD(stream))
SEEN_EXPORT(cuMemAllocFromPoolAsync, (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream),
            ((void)pool, fake_MemAlloc(address, size)), WORD(address), size, WORD(pool), WORD(stream))
SEEN_EXPORT(cuMemAllocFromPoolAsync_ptsz, (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream),
            ((void)pool, fake_MemAlloc(address, size)), WORD(address), size, WORD(pool), WORD(stream))
SEEN_EXPORT(cuStreamDestroy_v2, (CUstream stream), fake_StreamDestroy(stream), WORD(stream))
SEEN_EXPORT(cuMemCreate,
            (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *properties, unsigned long long flags),
            fake_MemCreate(handle, size, properties, flags), WORD(handle), size, WORD(properties), flags)
SEEN_EXPORT(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), fake_StreamBeginCapture(stream, mode),
            WORD(stream), mode)
SEEN_EXPORT(cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode), fake_StreamBeginCapture(own(stream), mode),
            WORD(stream), mode)
SEEN_EXPORT(cuStreamBeginCaptureToGraph,
            (CUstream stream, CUgraph graph, const void *nodes, const void *edges, size_t count, CUstreamCaptureMode mode),
            fake_StreamBeginCapture(stream, mode), WORD(stream), WORD(graph), WORD(nodes), WORD(edges), count, mode)
SEEN_EXPORT(cuStreamBeginCaptureToGraph_ptsz,
            (CUstream stream, CUgraph graph, const void *nodes, const void *edges, size_t count, CUstreamCaptureMode mode),
            fake_StreamBeginCapture(own(stream), mode), WORD(stream), WORD(graph), WORD(nodes), WORD(edges), count, mode)
SEEN_EXPORT(cuStreamEndCapture, (CUstream stream, CUgraph *graph), fake_StreamEndCapture(stream, graph), WORD(stream), WORD(graph))
SEEN_EXPORT(cuStreamEndCapture_ptsz, (CUstream stream, CUgraph *graph), fake_StreamEndCapture(own(stream), graph), WORD(stream),
            WORD(graph))
/* Arrays of any shape are plain memory. The first word of a descriptor is the size in bytes. */
SEEN_EXPORT(cuMemAllocPitch_v2, (CUdeviceptr * address, size_t *pitch, size_t width, size_t height, unsigned int element),
            (*pitch = width, fake_MemAlloc(address, width *height)), WORD(address), WORD(pitch), width, height, element)
SEEN_EXPORT(cuArrayCreate_v2, (CUdeviceptr * array, const size_t *bytes), fake_MemAlloc(array, *bytes), WORD(array), WORD(bytes))
SEEN_EXPORT(cuArray3DCreate_v2, (CUdeviceptr * array, const size_t *bytes), fake_MemAlloc(array, *bytes), WORD(array), WORD(bytes))
SEEN_EXPORT(cuMipmappedArrayCreate, (CUdeviceptr * array, const size_t *bytes, unsigned int levels), fake_MemAlloc(array, *bytes),
            WORD(array), WORD(bytes), levels)

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

/* All memory of the primary context is gone, whoever holds it. */
static CUresult reset(CUdevice device) {
    fake_wait_device(device);
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (fake.memory[i].used && fake.memory[i].device == device) stand_in_lost++;
    return CUDA_SUCCESS;
}
SEEN_EXPORT(cuDevicePrimaryCtxReset_v2, (CUdevice device), reset(device), (unsigned long long)device)
SEEN_EXPORT(cuIpcGetMemHandle, (void *handle, CUdeviceptr address),
            fake_memory_at(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, WORD(handle), address)

/* ---- for the program ---- */

EXPORTED int stand_in_lost;
EXPORTED void stand_in_submit(void *stream);
void stand_in_submit(void *stream) { fake_submit((CUstream)(void *)fake_stream_of((CUstream)stream)); }
EXPORTED unsigned long long stand_in_pending(int device);
unsigned long long stand_in_pending(int device) { return fake_pending(device); }
EXPORTED unsigned long long stand_in_used(int device);
unsigned long long stand_in_used(int device) { return fake_used(device); }
EXPORTED unsigned long long stand_in_calls(const char *name);
unsigned long long stand_in_calls(const char *name) { return fake_count(name); }

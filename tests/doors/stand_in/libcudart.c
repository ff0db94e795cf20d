/* A library in the place of libcudart.so.13. It finds the driver as the real one does, by dlopen and dlsym, so that nobody can stand
 * between the two; its names have versions, as the real one's have. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tests/doors/stand_in/stand_in.h"

#pragma GCC visibility push(default)

enum { DEVICES = 2, INVALID_VALUE = 1, INVALID_DEVICE = 101 };

static _Thread_local int device;
static _Thread_local void *current; /* the context that this thread has pushed */
static _Thread_local int last_error;
static _Atomic unsigned long long calls;

static void *driver(const char *name) {
    static void *_Atomic library;
    if (!atomic_load(&library)) atomic_store(&library, dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL));
    return dlsym(atomic_load(&library), name);
}

/* DRIVER(cuMemFree_v2, int (*)(unsigned long long))(address) */
#define DRIVER(name, type) ((type)(uintptr_t)driver(name))

/* The primary context of the thread's device becomes current, as at the first use of a real runtime. */
static void begin(void) {
    void *context = NULL;
    atomic_fetch_add(&calls, 1);
    DRIVER("cuInit", int (*)(unsigned int))(0);
    DRIVER("cuDevicePrimaryCtxRetain", int (*)(void **, int))(&context, device);
    if (context == current) return;
    DRIVER("cuCtxPushCurrent_v2", int (*)(void *))(context);
    current = context;
}

/* The last error is that of the last failed call; successful calls keep it. */
static int done(int code) {
    if (code) last_error = code;
    return code;
}
int cudaPeekAtLastError(void) { return last_error; }
int cudaGetLastError(void) {
    int code = last_error;
    last_error = 0;
    return code;
}

unsigned long long stand_in_runtime_calls(void) { return atomic_load(&calls); }

int cudaSetDevice(int wanted) {
    if (wanted < 0 || wanted >= DEVICES) return done(INVALID_DEVICE);
    device = wanted;
    begin();
    return 0;
}

int cudaGetDevice(int *asked) {
    *asked = device;
    return 0;
}

int cudaDeviceSynchronize(void) {
    begin();
    return done(DRIVER("cuCtxSynchronize", int (*)(void))());
}

int cudaStreamCreate(void **stream) {
    begin();
    return done(DRIVER("cuStreamCreateWithPriority", int (*)(void **, unsigned int, int))(stream, 0, 0));
}

/* ---- functions that the preloaded library intercepts: each call is recorded with its arguments ---- */

#define WORD(value) (unsigned long long)(uintptr_t)(value)
#define RUNTIME(name, arguments, does, ...)                                                                                        \
    int name arguments {                                                                                                           \
        begin();                                                                                                                   \
        int code = DRIVER("stand_in_see", int (*)(const char *, const unsigned long long *))(                                      \
            #name, (const unsigned long long[STAND_IN_VALUES]){__VA_ARGS__});                                                      \
        return done(code ? code : does);                                                                                           \
    }
/* Calls the driver's function by its plain name. Its recorded calls must be only those of programs that use the driver. */
#define GET(address, size)            DRIVER("cuMemAlloc_v2", int (*)(void **, size_t))(address, size)
#define GET_ON(address, size, stream) DRIVER("cuMemAllocAsync", int (*)(void **, size_t, void *))(address, size, stream)
#define BEGIN(stream, mode)           DRIVER("cuStreamBeginCapture_v2", int (*)(void *, int))(stream, mode)
#define END(stream, graph)            DRIVER("cuStreamEndCapture", int (*)(void *, void **))(stream, graph)
static void *own(void *stream) { return stream ? stream : (void *)2; }

RUNTIME(cudaMalloc, (void **address, size_t size), GET(address, size), WORD(address), size)
RUNTIME(cudaFree, (void *address), address ? DRIVER("cuMemFree_v2", int (*)(void *))(address) : 0, WORD(address))
RUNTIME(cudaMallocAsync, (void **address, size_t size, void *stream), GET_ON(address, size, stream), WORD(address), size,
        WORD(stream))
RUNTIME(cudaMallocAsync_ptsz, (void **address, size_t size, void *stream), GET_ON(address, size, own(stream)), WORD(address), size,
        WORD(stream))
RUNTIME(cudaFreeAsync, (void *address, void *stream), DRIVER("cuMemFreeAsync", int (*)(void *, void *))(address, stream),
        WORD(address), WORD(stream))
RUNTIME(cudaFreeAsync_ptsz, (void *address, void *stream), DRIVER("cuMemFreeAsync", int (*)(void *, void *))(address, own(stream)),
        WORD(address), WORD(stream))
RUNTIME(cudaMallocManaged, (void **address, size_t size, unsigned int flags),
        DRIVER("cuMemAllocManaged", int (*)(void **, size_t, unsigned int))(address, size, flags), WORD(address), size, flags)
RUNTIME(cudaMallocHost, (void **address, size_t size),
        DRIVER("cuMemHostAlloc", int (*)(void **, size_t, unsigned int))(address, size, 0), WORD(address), size)
RUNTIME(cudaHostAlloc, (void **address, size_t size, unsigned int flags),
        DRIVER("cuMemHostAlloc", int (*)(void **, size_t, unsigned int))(address, size, flags), WORD(address), size, flags)
RUNTIME(cudaFreeHost, (void *address), address ? DRIVER("cuMemFreeHost", int (*)(void *))(address) : 0, WORD(address))
RUNTIME(cudaMemGetInfo, (size_t * unused, size_t *total),
        unused &&total ? DRIVER("cuMemGetInfo_v2", int (*)(size_t *, size_t *))(unused, total) : INVALID_VALUE, WORD(unused),
        WORD(total))
RUNTIME(cudaStreamDestroy, (void *stream), DRIVER("cuStreamDestroy_v2", int (*)(void *))(stream), WORD(stream))
RUNTIME(cudaDeviceReset, (void), DRIVER("cuDevicePrimaryCtxReset_v2", int (*)(int))(device), (unsigned long long)device)
RUNTIME(cudaIpcGetMemHandle, (void *handle, void *address), DRIVER("cuIpcGetMemHandle", int (*)(void *, void *))(handle, address),
        WORD(handle), WORD(address))
RUNTIME(cudaStreamBeginCapture, (void *stream, int mode), BEGIN(stream, mode), WORD(stream), (unsigned)mode)
RUNTIME(cudaStreamBeginCapture_ptsz, (void *stream, int mode), BEGIN(own(stream), mode), WORD(stream), (unsigned)mode)
RUNTIME(cudaStreamBeginCaptureToGraph, (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode),
        BEGIN(stream, mode), WORD(stream), WORD(graph), WORD(nodes), WORD(edges), count, (unsigned)mode)
RUNTIME(cudaStreamBeginCaptureToGraph_ptsz,
        (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode), BEGIN(own(stream), mode),
        WORD(stream), WORD(graph), WORD(nodes), WORD(edges), count, (unsigned)mode)
RUNTIME(cudaStreamEndCapture, (void *stream, void **graph), END(stream, graph), WORD(stream), WORD(graph))
RUNTIME(cudaStreamEndCapture_ptsz, (void *stream, void **graph), END(own(stream), graph), WORD(stream), WORD(graph))
/* Arrays of any shape are plain memory. */
RUNTIME(cudaMallocPitch, (void **address, size_t *pitch, size_t width, size_t height),
        (*pitch = (width + 511) / 512 * 512, GET(address, *pitch *height)), WORD(address), WORD(pitch), width, height)
RUNTIME(cudaMalloc3D, (stand_in_pitched_t * pitched, stand_in_extent_t extent),
        (pitched->pitch = extent.width, GET(&pitched->address, extent.width *extent.height *extent.depth)), WORD(pitched),
        extent.width, extent.height, extent.depth)
RUNTIME(cudaMallocArray, (void **array, const void *format, size_t width, size_t height, unsigned int flags),
        GET(array, width *height), WORD(array), WORD(format), width, height, flags)
RUNTIME(cudaMalloc3DArray, (void **array, const void *format, stand_in_extent_t extent, unsigned int flags),
        GET(array, extent.width *extent.height *extent.depth), WORD(array), WORD(format), extent.width, extent.height, extent.depth,
        flags)
RUNTIME(cudaMallocMipmappedArray,
        (void **array, const void *format, stand_in_extent_t extent, unsigned int levels, unsigned int flags),
        GET(array, extent.width *extent.height *extent.depth), WORD(array), WORD(format), extent.width, extent.height, extent.depth,
        levels, flags)
RUNTIME(cudaMallocFromPoolAsync, (void **address, size_t size, void *pool, void *stream), GET(address, size), WORD(address), size,
        WORD(pool), WORD(stream))
RUNTIME(cudaMallocFromPoolAsync_ptsz, (void **address, size_t size, void *pool, void *stream), GET(address, size), WORD(address),
        size, WORD(pool), WORD(stream))

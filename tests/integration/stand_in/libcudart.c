/* A library in the place of libcudart.so.13. It finds the driver as the real one does, by dlopen and dlsym, so that nobody can stand
 * between the two; its names have versions, as the real one's have. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tests/integration/stand_in/stand_in.h"

#pragma GCC visibility push(default)

enum { DEVICES = 2, INVALID_DEVICE = 101 };

static _Thread_local int device;
static _Thread_local void *current; /* the context that this thread has pushed */
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

unsigned long long stand_in_runtime_calls(void) { return atomic_load(&calls); }

int cudaSetDevice(int wanted) {
    if (wanted < 0 || wanted >= DEVICES) return INVALID_DEVICE;
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
    return DRIVER("cuCtxSynchronize", int (*)(void))();
}

int cudaDeviceReset(void) {
    begin();
    return DRIVER("cuDevicePrimaryCtxReset_v2", int (*)(int))(device);
}

int cudaMalloc(void **address, size_t size) {
    begin();
    return DRIVER("cuMemAlloc_v2", int (*)(void **, size_t))(address, size);
}

int cudaFree(void *address) {
    begin();
    return address ? DRIVER("cuMemFree_v2", int (*)(void *))(address) : 0;
}

int cudaMallocAsync(void **address, size_t size, void *stream) {
    begin();
    return DRIVER("cuMemAllocAsync", int (*)(void **, size_t, void *))(address, size, stream);
}

int cudaFreeAsync(void *address, void *stream) {
    begin();
    return DRIVER("cuMemFreeAsync", int (*)(void *, void *))(address, stream);
}

int cudaMallocManaged(void **address, size_t size, unsigned int flags) {
    begin();
    return DRIVER("cuMemAllocManaged", int (*)(void **, size_t, unsigned int))(address, size, flags);
}

int cudaHostAlloc(void **address, size_t size, unsigned int flags) {
    begin();
    return DRIVER("cuMemHostAlloc", int (*)(void **, size_t, unsigned int))(address, size, flags);
}

int cudaMallocHost(void **address, size_t size) { return cudaHostAlloc(address, size, 0); }

int cudaFreeHost(void *address) {
    begin();
    return DRIVER("cuMemFreeHost", int (*)(void *))(address);
}

int cudaMemGetInfo(size_t *unused, size_t *total) {
    begin();
    return DRIVER("cuMemGetInfo_v2", int (*)(size_t *, size_t *))(unused, total);
}

int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    begin();
    return DRIVER("cuMemAlloc_v2", int (*)(void **, size_t))(address, *pitch * height);
}

int cudaStreamCreate(void **stream) {
    begin();
    return DRIVER("cuStreamCreateWithPriority", int (*)(void **, unsigned int, int))(stream, 0, 0);
}

int cudaStreamDestroy(void *stream) {
    begin();
    return DRIVER("cuStreamDestroy_v2", int (*)(void *))(stream);
}

int cudaIpcGetMemHandle(void *handle, void *address) {
    begin();
    return DRIVER("cuIpcGetMemHandle", int (*)(void *, void *))(handle, address);
}

int cudaStreamBeginCapture(void *stream, int mode) {
    begin();
    return DRIVER("cuStreamBeginCapture_v2", int (*)(void *, int))(stream, mode);
}

int cudaStreamEndCapture(void *stream, void **graph) {
    begin();
    return DRIVER("cuStreamEndCapture", int (*)(void *, void **))(stream, graph);
}

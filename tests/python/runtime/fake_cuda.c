/* A libcuda.so.1 for a real package that asks the driver for more than Strata does: the stand-in of tests/doors (in the folder
 * STRATA_STAND_INS) answers what it knows; copies are made here, where its memory holds bytes; and any other function answers 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address_t;
typedef void *stream_t;

static void *behind(const char *name) {
    static void *library;
    char path[4096];
    snprintf(path, sizeof path, "%s/libcuda.so.1", getenv("STRATA_STAND_INS"));
    if (!library) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}

/* BEHIND(cuInit, int (*)(unsigned))(0) */
#define BEHIND(name, type) ((type)(uintptr_t)behind(#name))

typedef int (*look_up_fn)(const char *name, void **function, int version, uint64_t flags, int *found);

static int nothing(void) { return 0; }

/* What the stand-in has under a name, which it knows with the one version that Strata asks for. A package may ask for another, or none. */
static void *function_behind(const char *name, int version) {
    const int versions[] = {version, 2000, 2020, 3020, 4000, 5050, 6000, 6050, 7000, 8000, 10000, 11000};
    void *found = NULL;
    char versioned[128];
    int told;
    look_up_fn look_up = BEHIND(cuGetProcAddress_v2, look_up_fn);
    for (size_t i = 0; !found && i < sizeof versions / sizeof *versions; i++) look_up(name, &found, versions[i], 0, &told);
    snprintf(versioned, sizeof versioned, "%s_v2", name);
    if (found || (found = behind(versioned)) || (found = behind(name))) return found;
    return (void *)(uintptr_t)nothing;
}

/* For functions that are exported here, and forwarded (numba_runtime.py). */
void *fake_cuda_behind(const char *name) { return function_behind(name, 0); }

static void *function_of(const char *name, int version) {
    static void *own;
    char versioned[128];
    void *found = NULL;
    if (!own) own = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    snprintf(versioned, sizeof versioned, "%s_v2", name);
    if ((found = dlsym(own, versioned)) || (found = dlsym(own, name))) return found;
    return function_behind(name, version);
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found) {
    (void)flags;
    *function = function_of(name, version);
    if (found) *found = 0;
    return 0;
}
int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

int cuInit(unsigned flags) { return BEHIND(cuInit, int (*)(unsigned))(flags); }

int cuCtxSetCurrent(void *context) {
    void *last;
    BEHIND(cuCtxPopCurrent_v2, int (*)(void **))(&last);
    return context ? BEHIND(cuCtxPushCurrent_v2, int (*)(void *))(context) : 0;
}

/* The stand-in knows what Strata asks; packages look whether the host's memory can be mapped, and whether addresses are all of one kind. */
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    enum { CAN_MAP_HOST_MEMORY = 19, UNIFIED_ADDRESSING = 41 };
    if (attribute == CAN_MAP_HOST_MEMORY || attribute == UNIFIED_ADDRESSING) return *value = 1, 0;
    return ((int (*)(int *, int, int))(uintptr_t)fake_cuda_behind("cuDeviceGetAttribute"))(value, attribute, device);
}

int cuStreamCreate(stream_t *stream, unsigned flags) {
    return BEHIND(cuStreamCreateWithPriority, int (*)(stream_t *, unsigned, int))(stream, flags, 0);
}

int cuMemHostGetDevicePointer_v2(address_t *address, void *host, unsigned flags) {
    return (void)flags, *address = (address_t)(uintptr_t)host, 0;
}

/* ---- copies: all memory is the host's ---- */

static int copy(address_t to, address_t from, size_t size) {
    if (getenv("STAND_IN_CONTENTS")) memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
    return 0;
}
#define COPY(name)                                                                                                                 \
    int name##_v2(address_t to, address_t from, size_t size) { return copy(to, from, size); }                                      \
    int name##Async_v2(address_t to, address_t from, size_t size, stream_t stream) { return (void)stream, copy(to, from, size); }
COPY(cuMemcpyHtoD)
COPY(cuMemcpyDtoH)
COPY(cuMemcpyDtoD)

int cuMemsetD8_v2(address_t to, unsigned char byte, size_t size) {
    if (getenv("STAND_IN_CONTENTS")) memset((void *)(uintptr_t)to, byte, size);
    return 0;
}

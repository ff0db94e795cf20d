/* A libcudart over the fake driver beside it, with the functions that the peers call. For the other functions
 * that their libraries name, scripts/bench-peers adds some that return 0. It uses no header of CUDA.
 * RUNTIME_MAJOR is the runtime's major version. */
#include <stdint.h>
#include <string.h>

#include "platform/cuda/driver/cuda_api.h"

#define EXPORTED __attribute__((visibility("default")))

extern const strata_cuda_driver_t *driver_table(void);
extern CUresult cuGetProcAddress_v2 STRATA_CUDA_GET_PROC;

static const strata_cuda_driver_t *driver;
__attribute__((constructor)) static void begin(void) { driver = driver_table(); }

/* X(name without "cuda", arguments, result) */
#define RUNTIME_MAP(X)                                                                                                             \
    X(GetDeviceCount, (int *count), (*count = 1, 0))                                                                               \
    X(GetDevice, (int *device), (*device = 0, 0))                                                                                  \
    X(SetDevice, (int device), device ? 101 : 0)                                                                                   \
    X(DriverGetVersion, (int *version), (*version = RUNTIME_MAJOR * 1000, 0))                                                      \
    X(RuntimeGetVersion, (int *version), (*version = RUNTIME_MAJOR * 1000, 0))                                                     \
    X(DeviceGetStreamPriorityRange, (int *least, int *greatest), (*least = 0, *greatest = -5, 0))                                  \
    X(DeviceGetAttribute, (int *value, int attribute, int device), ((void)attribute, (void)device, *value = 0, 0))                 \
    X(MemGetInfo, (size_t * unused, size_t * total), (int)driver->MemGetInfo(unused, total))                                       \
    X(StreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),                                                 \
      (int)driver->StreamCreateWithPriority(stream, flags, priority))                                                              \
    X(StreamCreateWithFlags, (CUstream * stream, unsigned flags), (int)driver->StreamCreateWithPriority(stream, flags, 0))         \
    X(StreamCreate, (CUstream * stream), (int)driver->StreamCreateWithPriority(stream, 0, 0))                                      \
    X(StreamIsCapturing, (CUstream stream, int *status), ((void)stream, *status = 0, 0))                                           \
    X(StreamGetCaptureInfo_v2, (CUstream stream, int *status), ((void)stream, *status = 0, 0))                                     \
    X(StreamGetId, (CUstream stream, unsigned long long *id), (int)driver->StreamGetId(stream, id))                                \
    X(StreamSynchronize, (CUstream stream), (int)driver->StreamSynchronize(stream))                                                \
    X(StreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), (int)driver->StreamWaitEvent(stream, event, flags))       \
    X(EventCreateWithFlags, (CUevent * event, unsigned flags), (int)driver->EventCreate(event, flags))                             \
    X(EventRecord, (CUevent event, CUstream stream), (int)driver->EventRecord(event, stream))                                      \
    X(EventQuery, (CUevent event), (int)driver->EventQuery(event))                                                                 \
    X(EventSynchronize, (CUevent event), (int)driver->EventSynchronize(event))                                                     \
    X(EventDestroy, (CUevent event), (int)driver->EventDestroy(event))                                                             \
    X(Malloc, (CUdeviceptr * address, size_t size), (int)driver->MemAlloc(address, size))                                          \
    X(Free, (CUdeviceptr address), address ? (int)driver->MemFree(address) : 0)

#define RUNTIME(name, arguments, answer)                                                                                           \
    EXPORTED int cuda##name arguments;                                                                                             \
    int cuda##name arguments { return answer; }
RUNTIME_MAP(RUNTIME)

EXPORTED const char *cudaGetErrorString(int code);
const char *cudaGetErrorString(int code) { return code == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "failed"; }
EXPORTED const char *cudaGetErrorName(int code);
const char *cudaGetErrorName(int code) { return cudaGetErrorString(code); }

/* The members of cudaDeviceProp that are read. Later members are left unchanged. */
struct properties {
    char name[256], uuid[16], luid[8];
    unsigned mask;
    size_t memory, shared;
    int registers, warp;
};
EXPORTED int cudaGetDeviceProperties_v2(struct properties *filled, int device);
int cudaGetDeviceProperties_v2(struct properties *filled, int device) {
    size_t unused;
    memset(filled, 0, sizeof *filled);
    strcpy(filled->name, "addresses");
    filled->warp = 32;
    return device ? 101 : (int)driver->MemGetInfo(&unused, &filled->memory);
}

/* An entry that the driver lacks returns 0, so that callers that look up all entries at once can continue. */
static int nothing(void) { return 0; }
static int entry_point(const char *symbol, void **function, int *found) {
    int (*none)(void) = nothing;
    if (cuGetProcAddress_v2(symbol, function, 0, 0, NULL) != CUDA_SUCCESS) memcpy(function, &none, sizeof *function);
    if (found) *found = 0;
    return 0;
}
EXPORTED int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *found);
int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *found) {
    (void)flags;
    return entry_point(symbol, function, found);
}
EXPORTED int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long flags,
                                              int *found);
int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long flags, int *found) {
    (void)version, (void)flags;
    return entry_point(symbol, function, found);
}

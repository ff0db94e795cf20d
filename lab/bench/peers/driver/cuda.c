/* A libcuda.so.1 for measurements. It has one device, with memory that is only addresses and work that is
 * done at once. Functions that are not here do not exist. Every peer gets its memory and events here, so none
 * pays for a driver that another does not have. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lab/bench/peers/driver/memory.h"
#include "platform/cuda/driver/cuda_api.h"

#define EXPORTED __attribute__((visibility("default")))

static _Atomic uint64_t next_object = 0x10000; /* for streams and events; only their identity matters */
static _Thread_local int depth; /* contexts that the thread has pushed */

static void *object(void) { return (void *)(uintptr_t)(atomic_fetch_add(&next_object, 16) + 16); }
#define CONTEXT ((CUcontext)(uintptr_t)0x8000)

static CUresult Init(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
static CUresult DriverGetVersion(int *version) { return *version = 12090, CUDA_SUCCESS; }
static CUresult DeviceGetCount(int *count) { return *count = 1, CUDA_SUCCESS; }
static CUresult DeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
static CUresult DeviceGetName(char *name, int capacity, CUdevice device) {
    (void)device;
    strncpy(name, "addresses", (size_t)capacity);
    return CUDA_SUCCESS;
}
static CUresult DeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    return CUDA_SUCCESS;
}
static CUresult DevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    (void)device;
    return *context = CONTEXT, CUDA_SUCCESS;
}
static CUresult DevicePrimaryCtxRelease(CUdevice device) { return (void)device, CUDA_SUCCESS; }
static CUresult CtxGetCurrent(CUcontext *context) { return *context = depth ? CONTEXT : NULL, CUDA_SUCCESS; }
static CUresult CtxPushCurrent(CUcontext context) { return (void)context, depth++, CUDA_SUCCESS; }
static CUresult CtxPopCurrent(CUcontext *context) { return depth--, *context = CONTEXT, CUDA_SUCCESS; }
static CUresult CtxSynchronize(void) { return CUDA_SUCCESS; }
static CUresult ThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) { return (void)mode, CUDA_SUCCESS; }

static CUresult MemAlloc(CUdeviceptr *address, size_t size) {
    *address = memory_allocate(size);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult MemFree(CUdeviceptr address) { return memory_free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
static CUresult MemHostAlloc(void **address, size_t size, unsigned int flags) {
    (void)flags;
    *address = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult MemFreeHost(void *address) { return free(address), CUDA_SUCCESS; }
static CUresult MemGetInfo(size_t *unused, size_t *total) {
    *unused = DEVICE_MEMORY - memory_counts().held;
    *total = DEVICE_MEMORY;
    return CUDA_SUCCESS;
}
static CUresult MemsetD8Async(CUdeviceptr address, unsigned char byte, size_t count, CUstream stream) {
    return (void)address, (void)byte, (void)count, (void)stream, CUDA_SUCCESS;
}
static CUresult MemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    return (void)to, (void)from, (void)size, (void)stream, CUDA_SUCCESS;
}
static CUresult MemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    return (void)to, (void)from, (void)size, (void)stream, CUDA_SUCCESS;
}
static CUresult PointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    return (void)value, (void)attribute, (void)address, CUDA_ERROR_INVALID_VALUE;
}

static CUresult StreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
    (void)flags, (void)priority;
    return *stream = object(), CUDA_SUCCESS;
}
static CUresult StreamDestroy(CUstream stream) { return (void)stream, CUDA_SUCCESS; }
static CUresult StreamQuery(CUstream stream) { return (void)stream, memory_count(), CUDA_SUCCESS; }
static CUresult StreamSynchronize(CUstream stream) { return (void)stream, memory_count(), CUDA_SUCCESS; }
static CUresult StreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    return (void)stream, (void)event, (void)flags, memory_count(), CUDA_SUCCESS;
}
static CUresult StreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    (void)stream;
    return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}
static CUresult StreamGetId(CUstream stream, unsigned long long *id) { return *id = (uintptr_t)stream, CUDA_SUCCESS; }
static CUresult EventCreate(CUevent *event, unsigned int flags) { return (void)flags, *event = object(), CUDA_SUCCESS; }
static CUresult EventDestroy(CUevent event) { return (void)event, CUDA_SUCCESS; }
static CUresult EventRecord(CUevent event, CUstream stream) { return (void)event, (void)stream, memory_count(), CUDA_SUCCESS; }
static CUresult EventQuery(CUevent event) { return (void)event, memory_count(), CUDA_SUCCESS; }
static CUresult EventSynchronize(CUevent event) { return (void)event, memory_count(), CUDA_SUCCESS; }

static CUresult MemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                            CUmemAllocationGranularity_flags which) {
    (void)properties, (void)which;
    return *granularity = DEVICE_GRANULE, CUDA_SUCCESS;
}
static CUresult MemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wanted,
                                  unsigned long long flags) {
    (void)alignment, (void)wanted, (void)flags;
    *address = memory_reserve(size);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult MemAddressFree(CUdeviceptr address, size_t size) { return (void)address, (void)size, memory_count(), CUDA_SUCCESS; }
static CUresult MemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                          unsigned long long flags) {
    (void)properties, (void)flags;
    *handle = memory_create(size);
    return *handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult MemRelease(CUmemGenericAllocationHandle handle) { return memory_drop(handle), CUDA_SUCCESS; }
static CUresult MemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags) {
    (void)size, (void)offset, (void)flags;
    return memory_map(address, handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult MemUnmap(CUdeviceptr address, size_t size) { return memory_unmap(address, size), CUDA_SUCCESS; }
static CUresult MemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count) {
    return (void)address, (void)size, (void)access, (void)count, memory_count(), CUDA_SUCCESS;
}

/* ---- lookup of functions ---- */

/* X(entry) */
#define KNOWN_MAP(X)                                                                                                               \
    X(Init)                                                                                                                        \
    X(DriverGetVersion)                                                                                                            \
    X(DeviceGetCount)                                                                                                              \
    X(DeviceGet)                                                                                                                   \
    X(DeviceGetName)                                                                                                               \
    X(DeviceGetAttribute)                                                                                                          \
    X(DevicePrimaryCtxRetain)                                                                                                      \
    X(DevicePrimaryCtxRelease)                                                                                                     \
    X(CtxGetCurrent)                                                                                                               \
    X(CtxPushCurrent)                                                                                                              \
    X(CtxPopCurrent)                                                                                                               \
    X(CtxSynchronize)                                                                                                              \
    X(ThreadExchangeStreamCaptureMode)                                                                                             \
    X(MemAlloc)                                                                                                                    \
    X(MemFree)                                                                                                                     \
    X(MemHostAlloc)                                                                                                                \
    X(MemFreeHost)                                                                                                                 \
    X(MemGetInfo)                                                                                                                  \
    X(MemsetD8Async)                                                                                                               \
    X(MemcpyDtoHAsync)                                                                                                             \
    X(MemcpyHtoDAsync)                                                                                                             \
    X(PointerGetAttribute)                                                                                                         \
    X(StreamCreateWithPriority)                                                                                                    \
    X(StreamDestroy)                                                                                                               \
    X(StreamQuery)                                                                                                                 \
    X(StreamSynchronize)                                                                                                           \
    X(StreamWaitEvent)                                                                                                             \
    X(StreamIsCapturing)                                                                                                           \
    X(StreamGetId)                                                                                                                 \
    X(EventCreate)                                                                                                                 \
    X(EventDestroy)                                                                                                                \
    X(EventRecord)                                                                                                                 \
    X(EventQuery)                                                                                                                  \
    X(EventSynchronize)                                                                                                            \
    X(MemGetAllocationGranularity)                                                                                                 \
    X(MemAddressReserve)                                                                                                           \
    X(MemAddressFree)                                                                                                              \
    X(MemCreate)                                                                                                                   \
    X(MemRelease)                                                                                                                  \
    X(MemMap)                                                                                                                      \
    X(MemUnmap)                                                                                                                    \
    X(MemSetAccess)

/* The table's declarations check these functions, so one of a wrong type does not compile. */
static const strata_cuda_driver_t driver = {
#define KNOWN_FIELD(entry) .entry = entry,
    KNOWN_MAP(KNOWN_FIELD)
#undef KNOWN_FIELD
};

EXPORTED CUresult cuGetProcAddress_v2 STRATA_CUDA_GET_PROC;
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *found) {
    (void)version, (void)flags;
    *function = NULL;
#define KNOWN_LOOK(entry)                                                                                                          \
    if (strcmp(symbol, "cu" #entry) == 0) memcpy(function, &driver.entry, sizeof *function);
    KNOWN_MAP(KNOWN_LOOK)
#undef KNOWN_LOOK
    if (found) *found = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORTED const strata_cuda_driver_t *driver_table(void);
const strata_cuda_driver_t *driver_table(void) { return &driver; }

EXPORTED driver_counts_t driver_counts(void);
driver_counts_t driver_counts(void) { return memory_counts(); }

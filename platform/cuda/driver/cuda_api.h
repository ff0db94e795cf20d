/* The driver's entry points: one table of function pointers, generated from one list. Every call to the driver goes through
 * it; tests put a fake in its place. Internal to platform/cuda and its tests. */
#ifndef STRATA_PLATFORM_CUDA_API_H
#define STRATA_PLATFORM_CUDA_API_H

/* A program built for per-thread default streams would silently get other entries here; the list below names the plain ones. */
#undef CUDA_API_PER_THREAD_DEFAULT_STREAM
#undef __CUDA_API_PER_THREAD_DEFAULT_STREAM
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/status.h"

/* What a set of entries is for. BASE is mandatory; without all entries of another group its capability is off. */
typedef enum strata_cuda_group {
    STRATA_CUDA_BASE,
    STRATA_CUDA_TEXT, /* names and texts of codes */
    STRATA_CUDA_MANAGED,
    STRATA_CUDA_POOLS,
    STRATA_CUDA_VIRTUAL,
    STRATA_CUDA_SHARE,
    STRATA_CUDA_CAPTURE,
    STRATA_CUDA_GRAPH_EDGES,
    STRATA_CUDA_GRAPH_MEMORY, /* trimming of graphs' own memory */
    STRATA_CUDA_IDS,
    STRATA_CUDA_PEERS,
    STRATA_CUDA_WORK,
    STRATA_CUDA_PREFETCH, /* place named by a device */
    STRATA_CUDA_REGISTER, /* pinning of memory that is already mapped */
    STRATA_CUDA_PREFETCH_AT, /* place named by a location: the newer form of the same two calls */
    STRATA_CUDA_GROUPS
} strata_cuda_group_t;

#if CUDA_VERSION >= 12020
#define STRATA_CUDA_ENTRY_MAP_12020(X)                                                                                             \
    X(MemPrefetchAsyncAt, MemPrefetchAsync, 12020, PREFETCH_AT)                                                                    \
    X(MemAdviseAt, MemAdvise, 12020, PREFETCH_AT)
#else
#define STRATA_CUDA_ENTRY_MAP_12020(X)
#endif

/* X(field, name without "cu", version, group). The version is the one asked of cuGetProcAddress and of the typedef. */
#define STRATA_CUDA_ENTRY_MAP(X)                                                                                                   \
    X(Init, Init, 2000, BASE)                                                                                                      \
    X(DriverGetVersion, DriverGetVersion, 2020, BASE)                                                                              \
    X(DeviceGetCount, DeviceGetCount, 2000, BASE)                                                                                  \
    X(DeviceGet, DeviceGet, 2000, BASE)                                                                                            \
    X(DeviceGetName, DeviceGetName, 2000, BASE)                                                                                    \
    X(DeviceGetAttribute, DeviceGetAttribute, 2000, BASE)                                                                          \
    X(DevicePrimaryCtxRetain, DevicePrimaryCtxRetain, 7000, BASE)                                                                  \
    X(DevicePrimaryCtxRelease, DevicePrimaryCtxRelease, 11000, BASE)                                                               \
    X(CtxGetCurrent, CtxGetCurrent, 4000, BASE)                                                                                    \
    X(CtxPushCurrent, CtxPushCurrent, 4000, BASE)                                                                                  \
    X(CtxPopCurrent, CtxPopCurrent, 4000, BASE)                                                                                    \
    X(CtxSynchronize, CtxSynchronize, 2000, BASE)                                                                                  \
    X(ThreadExchangeStreamCaptureMode, ThreadExchangeStreamCaptureMode, 10010, BASE)                                               \
    X(MemAlloc, MemAlloc, 3020, BASE)                                                                                              \
    X(MemFree, MemFree, 3020, BASE)                                                                                                \
    X(MemHostAlloc, MemHostAlloc, 2020, BASE)                                                                                      \
    X(MemFreeHost, MemFreeHost, 2000, BASE)                                                                                        \
    X(MemGetInfo, MemGetInfo, 3020, BASE)                                                                                          \
    X(MemsetD8Async, MemsetD8Async, 3020, BASE)                                                                                    \
    X(MemcpyDtoHAsync, MemcpyDtoHAsync, 3020, BASE)                                                                                \
    X(MemcpyHtoDAsync, MemcpyHtoDAsync, 3020, BASE)                                                                                \
    X(PointerGetAttribute, PointerGetAttribute, 4000, BASE)                                                                        \
    X(StreamCreateWithPriority, StreamCreateWithPriority, 5050, BASE)                                                              \
    X(StreamDestroy, StreamDestroy, 4000, BASE)                                                                                    \
    X(StreamQuery, StreamQuery, 2000, BASE)                                                                                        \
    X(StreamSynchronize, StreamSynchronize, 2000, BASE)                                                                            \
    X(StreamWaitEvent, StreamWaitEvent, 3020, BASE)                                                                                \
    X(StreamIsCapturing, StreamIsCapturing, 10000, BASE)                                                                           \
    X(EventCreate, EventCreate, 2000, BASE)                                                                                        \
    X(EventDestroy, EventDestroy, 4000, BASE)                                                                                      \
    X(EventRecord, EventRecord, 2000, BASE)                                                                                        \
    X(EventQuery, EventQuery, 2000, BASE)                                                                                          \
    X(EventSynchronize, EventSynchronize, 2000, BASE)                                                                              \
    X(GetErrorName, GetErrorName, 6000, TEXT)                                                                                      \
    X(GetErrorString, GetErrorString, 6000, TEXT)                                                                                  \
    X(MemAllocManaged, MemAllocManaged, 6000, MANAGED)                                                                             \
    X(MemAllocFromPoolAsync, MemAllocFromPoolAsync, 11020, POOLS)                                                                  \
    X(MemFreeAsync, MemFreeAsync, 11020, POOLS)                                                                                    \
    X(MemPoolCreate, MemPoolCreate, 11020, POOLS)                                                                                  \
    X(MemPoolDestroy, MemPoolDestroy, 11020, POOLS)                                                                                \
    X(MemPoolSetAttribute, MemPoolSetAttribute, 11020, POOLS)                                                                      \
    X(MemPoolGetAttribute, MemPoolGetAttribute, 11020, POOLS)                                                                      \
    X(MemPoolTrimTo, MemPoolTrimTo, 11020, POOLS)                                                                                  \
    X(MemPoolSetAccess, MemPoolSetAccess, 11020, POOLS)                                                                            \
    X(DeviceGetDefaultMemPool, DeviceGetDefaultMemPool, 11020, POOLS)                                                              \
    X(MemGetAllocationGranularity, MemGetAllocationGranularity, 10020, VIRTUAL)                                                    \
    X(MemAddressReserve, MemAddressReserve, 10020, VIRTUAL)                                                                        \
    X(MemAddressFree, MemAddressFree, 10020, VIRTUAL)                                                                              \
    X(MemCreate, MemCreate, 10020, VIRTUAL)                                                                                        \
    X(MemRelease, MemRelease, 10020, VIRTUAL)                                                                                      \
    X(MemMap, MemMap, 10020, VIRTUAL)                                                                                              \
    X(MemUnmap, MemUnmap, 10020, VIRTUAL)                                                                                          \
    X(MemSetAccess, MemSetAccess, 10020, VIRTUAL)                                                                                  \
    X(MemExportToShareableHandle, MemExportToShareableHandle, 10020, SHARE)                                                        \
    X(MemImportFromShareableHandle, MemImportFromShareableHandle, 10020, SHARE)                                                    \
    X(StreamBeginCapture, StreamBeginCapture, 10010, CAPTURE)                                                                      \
    X(StreamEndCapture, StreamEndCapture, 10000, CAPTURE)                                                                          \
    X(StreamGetCaptureInfo, StreamGetCaptureInfo, 11030, CAPTURE)                                                                  \
    X(UserObjectCreate, UserObjectCreate, 11030, CAPTURE)                                                                          \
    X(UserObjectRelease, UserObjectRelease, 11030, CAPTURE)                                                                        \
    X(GraphRetainUserObject, GraphRetainUserObject, 11030, CAPTURE)                                                                \
    X(GraphInstantiateWithFlags, GraphInstantiateWithFlags, 11040, CAPTURE)                                                        \
    X(GraphLaunch, GraphLaunch, 10000, CAPTURE)                                                                                    \
    X(GraphExecDestroy, GraphExecDestroy, 10000, CAPTURE)                                                                          \
    X(GraphDestroy, GraphDestroy, 10000, CAPTURE)                                                                                  \
    X(GraphNodeGetDependencies, GraphNodeGetDependencies, 10000, GRAPH_EDGES)                                                      \
    X(DeviceGraphMemTrim, DeviceGraphMemTrim, 11040, GRAPH_MEMORY)                                                                 \
    X(StreamGetId, StreamGetId, 12000, IDS)                                                                                        \
    X(DeviceCanAccessPeer, DeviceCanAccessPeer, 4000, PEERS)                                                                       \
    X(CtxEnablePeerAccess, CtxEnablePeerAccess, 4000, PEERS)                                                                       \
    X(ModuleLoadData, ModuleLoadData, 2000, WORK)                                                                                  \
    X(ModuleGetFunction, ModuleGetFunction, 2000, WORK)                                                                            \
    X(ModuleUnload, ModuleUnload, 2000, WORK)                                                                                      \
    X(LaunchKernel, LaunchKernel, 4000, WORK)                                                                                      \
    X(MemHostRegister, MemHostRegister, 6050, REGISTER)                                                                            \
    X(MemHostUnregister, MemHostUnregister, 4000, REGISTER)                                                                        \
    X(MemPrefetchAsync, MemPrefetchAsync, 8000, PREFETCH)                                                                          \
    X(MemAdvise, MemAdvise, 8000, PREFETCH)                                                                                        \
    STRATA_CUDA_ENTRY_MAP_12020(X)

typedef struct strata_cuda_driver {
#define STRATA_CUDA_FIELD(field, name, version, group) PFN_cu##name##_v##version field;
    STRATA_CUDA_ENTRY_MAP(STRATA_CUDA_FIELD)
#undef STRATA_CUDA_FIELD
} strata_cuda_driver_t;

/* The table of the driver, initialised (cuInit). E_NO_DEVICE: there is none, with the reason; E_FORKED in a child of the process
 * that initialised it; E_SHUTDOWN once it is shutting down, when no call is made. Any thread; the table lives for ever. */
strata_status_t strata_cuda_driver_get(const strata_cuda_driver_t **driver);
/* Whether all entries of `group` are there. */
bool strata_cuda_driver_has(const strata_cuda_driver_t *driver, strata_cuda_group_t group);
/* Fills the table by `get_proc` (cuGetProcAddress_v2). E_NO_DEVICE when an entry of BASE is missing. */
strata_status_t strata_cuda_driver_fill(PFN_cuGetProcAddress_v12000 get_proc, strata_cuda_driver_t *driver);

/* The number of this process, counted by forks since the driver was first asked for. */
uint32_t strata_cuda_generation(void);
/* The driver has said that it is shutting down: no more calls are made. */
bool strata_cuda_is_shut_down(void);
void strata_cuda_note_shutdown(void);

/* For tests: `driver` replaces the driver; NULL goes back to the real one. Fork and shutdown are forgotten. */
void strata_cuda_set_table_for_tests(const strata_cuda_driver_t *driver);

/* The status of a code once the device is open. */
strata_status_t strata_cuda_status(CUresult code);
/* Fails with "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory". `driver` may be NULL: the texts known here. */
strata_status_t strata_cuda_fail(const strata_cuda_driver_t *driver, strata_status_t status, const char *call, CUresult code);
/* The same while looking for a device: what would be E_DEVICE or E_DEVICE_LOST on an open device is E_NO_DEVICE. */
strata_status_t strata_cuda_fail_init(const strata_cuda_driver_t *driver, const char *call, CUresult code);

#endif

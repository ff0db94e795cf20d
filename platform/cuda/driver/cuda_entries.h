/* The driver's entry points in one list, with their names, requested versions and arguments. They are
 * from public documentation of the driver API. If the Toolkit's headers are found, cuda_toolkit.c
 * checks every row against them. This file has only macros. */
#ifndef STRATA_PLATFORM_CUDA_ENTRIES_H
#define STRATA_PLATFORM_CUDA_ENTRIES_H

/* X(field, name without "cu", version, group, arguments). The version is the one passed to
 * cuGetProcAddress. Every entry returns a CUresult. The list has the plain entries, also for a program
 * built for per-thread default streams. */
#define STRATA_CUDA_BASE_ENTRY_MAP(X)                                                                                              \
    X(Init, Init, 2000, BASE, (unsigned int flags))                                                                                \
    X(DriverGetVersion, DriverGetVersion, 2020, BASE, (int *version))                                                              \
    X(DeviceGetCount, DeviceGetCount, 2000, BASE, (int *count))                                                                    \
    X(DeviceGet, DeviceGet, 2000, BASE, (CUdevice * device, int ordinal))                                                          \
    X(DeviceGetName, DeviceGetName, 2000, BASE, (char *name, int capacity, CUdevice device))                                       \
    X(DeviceGetAttribute, DeviceGetAttribute, 2000, BASE, (int *value, CUdevice_attribute attribute, CUdevice device))             \
    X(DevicePrimaryCtxRetain, DevicePrimaryCtxRetain, 7000, BASE, (CUcontext * context, CUdevice device))                          \
    X(DevicePrimaryCtxRelease, DevicePrimaryCtxRelease, 11000, BASE, (CUdevice device))                                            \
    X(CtxGetCurrent, CtxGetCurrent, 4000, BASE, (CUcontext * context))                                                             \
    X(CtxPushCurrent, CtxPushCurrent, 4000, BASE, (CUcontext context))                                                             \
    X(CtxPopCurrent, CtxPopCurrent, 4000, BASE, (CUcontext * context))                                                             \
    X(CtxSynchronize, CtxSynchronize, 2000, BASE, (void))                                                                          \
    X(ThreadExchangeStreamCaptureMode, ThreadExchangeStreamCaptureMode, 10010, BASE, (CUstreamCaptureMode * mode))                 \
    X(MemAlloc, MemAlloc, 3020, BASE, (CUdeviceptr * address, size_t size))                                                        \
    X(MemFree, MemFree, 3020, BASE, (CUdeviceptr address))                                                                         \
    X(MemHostAlloc, MemHostAlloc, 2020, BASE, (void **address, size_t size, unsigned int flags))                                   \
    X(MemFreeHost, MemFreeHost, 2000, BASE, (void *address))                                                                       \
    X(MemGetInfo, MemGetInfo, 3020, BASE, (size_t * unused, size_t * total))                                                       \
    X(MemsetD8Async, MemsetD8Async, 3020, BASE, (CUdeviceptr address, unsigned char byte, size_t count, CUstream stream))          \
    X(MemcpyDtoHAsync, MemcpyDtoHAsync, 3020, BASE, (void *to, CUdeviceptr from, size_t size, CUstream stream))                    \
    X(MemcpyHtoDAsync, MemcpyHtoDAsync, 3020, BASE, (CUdeviceptr to, const void *from, size_t size, CUstream stream))              \
    X(PointerGetAttribute, PointerGetAttribute, 4000, BASE, (void *value, CUpointer_attribute attribute, CUdeviceptr address))     \
    X(StreamCreateWithPriority, StreamCreateWithPriority, 5050, BASE, (CUstream * stream, unsigned int flags, int priority))       \
    X(StreamDestroy, StreamDestroy, 4000, BASE, (CUstream stream))                                                                 \
    X(StreamQuery, StreamQuery, 2000, BASE, (CUstream stream))                                                                     \
    X(StreamSynchronize, StreamSynchronize, 2000, BASE, (CUstream stream))                                                         \
    X(StreamWaitEvent, StreamWaitEvent, 3020, BASE, (CUstream stream, CUevent event, unsigned int flags))                          \
    X(StreamIsCapturing, StreamIsCapturing, 10000, BASE, (CUstream stream, CUstreamCaptureStatus * status))                        \
    X(EventCreate, EventCreate, 2000, BASE, (CUevent * event, unsigned int flags))                                                 \
    X(EventDestroy, EventDestroy, 4000, BASE, (CUevent event))                                                                     \
    X(EventRecord, EventRecord, 2000, BASE, (CUevent event, CUstream stream))                                                      \
    X(EventQuery, EventQuery, 2000, BASE, (CUevent event))                                                                         \
    X(EventSynchronize, EventSynchronize, 2000, BASE, (CUevent event))                                                             \
    X(GetErrorName, GetErrorName, 6000, TEXT, (CUresult code, const char **name))                                                  \
    X(GetErrorString, GetErrorString, 6000, TEXT, (CUresult code, const char **text))                                              \
    X(MemAllocManaged, MemAllocManaged, 6000, MANAGED, (CUdeviceptr * address, size_t size, unsigned int flags))                   \
    X(MemAllocFromPoolAsync, MemAllocFromPoolAsync, 11020, POOLS,                                                                  \
      (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream))                                                    \
    X(MemFreeAsync, MemFreeAsync, 11020, POOLS, (CUdeviceptr address, CUstream stream))                                            \
    X(MemPoolCreate, MemPoolCreate, 11020, POOLS, (CUmemoryPool * pool, const CUmemPoolProps *properties))                         \
    X(MemPoolDestroy, MemPoolDestroy, 11020, POOLS, (CUmemoryPool pool))                                                           \
    X(MemPoolSetAttribute, MemPoolSetAttribute, 11020, POOLS, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))     \
    X(MemPoolGetAttribute, MemPoolGetAttribute, 11020, POOLS, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))     \
    X(MemPoolTrimTo, MemPoolTrimTo, 11020, POOLS, (CUmemoryPool pool, size_t kept))                                                \
    X(MemPoolSetAccess, MemPoolSetAccess, 11020, POOLS, (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count))          \
    X(DeviceGetDefaultMemPool, DeviceGetDefaultMemPool, 11020, POOLS, (CUmemoryPool * pool, CUdevice device))                      \
    X(MemGetAllocationGranularity, MemGetAllocationGranularity, 10020, VIRTUAL,                                                    \
      (size_t * granularity, const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags which))                       \
    X(MemAddressReserve, MemAddressReserve, 10020, VIRTUAL,                                                                        \
      (CUdeviceptr * address, size_t size, size_t alignment, CUdeviceptr wanted, unsigned long long flags))                        \
    X(MemAddressFree, MemAddressFree, 10020, VIRTUAL, (CUdeviceptr address, size_t size))                                          \
    X(MemCreate, MemCreate, 10020, VIRTUAL,                                                                                        \
      (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *properties, unsigned long long flags))       \
    X(MemRelease, MemRelease, 10020, VIRTUAL, (CUmemGenericAllocationHandle handle))                                               \
    X(MemMap, MemMap, 10020, VIRTUAL,                                                                                              \
      (CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags))            \
    X(MemUnmap, MemUnmap, 10020, VIRTUAL, (CUdeviceptr address, size_t size))                                                      \
    X(MemSetAccess, MemSetAccess, 10020, VIRTUAL, (CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count)) \
    X(MemExportToShareableHandle, MemExportToShareableHandle, 10020, SHARE,                                                        \
      (void *shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags))               \
    X(MemImportFromShareableHandle, MemImportFromShareableHandle, 10020, SHARE,                                                    \
      (CUmemGenericAllocationHandle * handle, void *shared, CUmemAllocationHandleType type))                                       \
    X(StreamBeginCapture, StreamBeginCapture, 10010, CAPTURE, (CUstream stream, CUstreamCaptureMode mode))                         \
    X(StreamEndCapture, StreamEndCapture, 10000, CAPTURE, (CUstream stream, CUgraph * graph))                                      \
    X(StreamGetCaptureInfo, StreamGetCaptureInfo, 11030, CAPTURE,                                                                  \
      (CUstream stream, CUstreamCaptureStatus * status, uint64_t * id, CUgraph * graph, const CUgraphNode **before,                \
       size_t *count))                                                                                                             \
    X(UserObjectCreate, UserObjectCreate, 11030, CAPTURE,                                                                          \
      (CUuserObject * object, void *value, CUhostFn destroy, unsigned int references, unsigned int flags))                         \
    X(UserObjectRelease, UserObjectRelease, 11030, CAPTURE, (CUuserObject object, unsigned int count))                             \
    X(GraphRetainUserObject, GraphRetainUserObject, 11030, CAPTURE,                                                                \
      (CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags))                                                \
    X(GraphInstantiateWithFlags, GraphInstantiateWithFlags, 11040, CAPTURE,                                                        \
      (CUgraphExec * instance, CUgraph graph, unsigned long long flags))                                                           \
    X(GraphLaunch, GraphLaunch, 10000, CAPTURE, (CUgraphExec instance, CUstream stream))                                           \
    X(GraphExecDestroy, GraphExecDestroy, 10000, CAPTURE, (CUgraphExec instance))                                                  \
    X(GraphDestroy, GraphDestroy, 10000, CAPTURE, (CUgraph graph))                                                                 \
    X(GraphNodeGetDependencies, GraphNodeGetDependencies, 10000, GRAPH_EDGES,                                                      \
      (CUgraphNode node, CUgraphNode * before, size_t * count))                                                                    \
    X(DeviceGraphMemTrim, DeviceGraphMemTrim, 11040, GRAPH_MEMORY, (CUdevice device))                                              \
    X(StreamGetId, StreamGetId, 12000, IDS, (CUstream stream, unsigned long long *id))                                             \
    X(DeviceCanAccessPeer, DeviceCanAccessPeer, 4000, PEERS, (int *can, CUdevice device, CUdevice peer))                           \
    X(CtxEnablePeerAccess, CtxEnablePeerAccess, 4000, PEERS, (CUcontext peer, unsigned int flags))                                 \
    X(ModuleLoadData, ModuleLoadData, 2000, WORK, (CUmodule * module, const void *image))                                          \
    X(ModuleGetFunction, ModuleGetFunction, 2000, WORK, (CUfunction * function, CUmodule module, const char *name))                \
    X(ModuleUnload, ModuleUnload, 2000, WORK, (CUmodule module))                                                                   \
    X(LaunchKernel, LaunchKernel, 4000, WORK,                                                                                      \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,                   \
       unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream, void **arguments, void **extra))          \
    X(MemHostRegister, MemHostRegister, 6050, REGISTER, (void *address, size_t size, unsigned int flags))                          \
    X(MemHostUnregister, MemHostUnregister, 4000, REGISTER, (void *address))                                                       \
    X(MemPrefetchAsync, MemPrefetchAsync, 8000, PREFETCH, (CUdeviceptr address, size_t size, CUdevice to, CUstream stream))        \
    X(MemAdvise, MemAdvise, 8000, PREFETCH, (CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice about))

/* Further entries, which the headers of 12.0 lack. */
#define STRATA_CUDA_LATER_ENTRY_MAP(X)                                                                                             \
    X(MemPrefetchAsyncAt, MemPrefetchAsync, 12020, PREFETCH_AT,                                                                    \
      (CUdeviceptr address, size_t size, CUmemLocation to, unsigned int flags, CUstream stream))                                   \
    X(MemAdviseAt, MemAdvise, 12020, PREFETCH_AT, (CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation about))

/* The arguments of cuGetProcAddress_v2, which finds all the other entries. */
#define STRATA_CUDA_GET_PROC                                                                                                       \
    (const char *symbol, void **function, int version, uint64_t flags, CUdriverProcAddressQueryResult *found)

#define STRATA_CUDA_ENTRY_MAP(X)                                                                                                   \
    STRATA_CUDA_BASE_ENTRY_MAP(X)                                                                                                  \
    STRATA_CUDA_LATER_ENTRY_MAP(X)

#endif

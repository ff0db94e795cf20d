/* The table of the functions of the CUDA runtime and driver that the preloaded library interposes, with the treatment of each.
 * docs/integrations.md shows it (`strata run --table`). Calls of all other functions of CUDA bypass the library.
 *
 *   SERVED     Strata serves the call. If it cannot (it is out of memory or closed, or the request is not for it), or if the
 *              address is not Strata's, the real function is called and the program gets its result.
 *   CORRECTED  The real function is called, and its result is corrected or its effect on Strata is recorded.
 *   RETRIED    The real function is called. If it is out of memory, Strata releases idle memory and calls it again.
 *   REFUSED    The call returns an error for Strata's memory. For other memory the real function is called. */
#ifndef STRATA_INTEGRATION_TABLE_H
#define STRATA_INTEGRATION_TABLE_H

#include <stddef.h>

/* Every handle and device address is one register wide. Codes are ints, and 0 is success in both libraries. */
typedef unsigned long long strata_cu_address_t;
typedef struct strata_cu_extent { /* cudaExtent */
    size_t width, height, depth;
} strata_cu_extent_t;

/* X(treatment, name, arguments, the arguments' names, a description of the treatment). */
#define STRATA_PRELOAD_RUNTIME_MAP(X)                                                                                              \
    X(SERVED, cudaMalloc, (void **address, size_t size), (address, size), "the place gpu, without a stream")                       \
    X(SERVED, cudaFree, (void *address), (address), "reused after a later wait for the device")                                    \
    X(SERVED, cudaMallocAsync, (void **address, size_t size, void *stream), (address, size, stream),                               \
      "the place gpu, in stream order")                                                                                            \
    X(SERVED, cudaMallocAsync_ptsz, (void **address, size_t size, void *stream), (address, size, stream),                          \
      "the same; NULL is the thread's own stream")                                                                                 \
    X(SERVED, cudaFreeAsync, (void *address, void *stream), (address, stream), "reused in the order of the stream")                \
    X(SERVED, cudaFreeAsync_ptsz, (void *address, void *stream), (address, stream), "the same; NULL is the thread's own stream")   \
    X(SERVED, cudaMallocManaged, (void **address, size_t size, unsigned int flags), (address, size, flags),                        \
      "the place managed, without a stream; memory attached to the host is left to the real function")                             \
    X(SERVED, cudaMallocHost, (void **address, size_t size), (address, size), "the place pinned, without a stream")                \
    X(SERVED, cudaHostAlloc, (void **address, size_t size, unsigned int flags), (address, size, flags),                            \
      "the same; write-combined memory is left to the real function")                                                              \
    X(SERVED, cudaFreeHost, (void *address), (address), "reused after a later wait for all devices")                               \
    X(CORRECTED, cudaMemGetInfo, (size_t * unused, size_t * total), (unused, total), "idle memory of Strata counts as free")       \
    X(CORRECTED, cudaStreamDestroy, (void *stream), (stream), "Strata forgets the stream first")                                   \
    X(CORRECTED, cudaStreamBeginCapture, (void *stream, int mode), (stream, mode),                                                 \
      "Strata waits for nothing while a stream is captured")                                                                       \
    X(CORRECTED, cudaStreamBeginCapture_ptsz, (void *stream, int mode), (stream, mode), "the same")                                \
    X(CORRECTED, cudaStreamBeginCaptureToGraph,                                                                                    \
      (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode),                                   \
      (stream, graph, nodes, edges, count, mode), "the same")                                                                      \
    X(CORRECTED, cudaStreamBeginCaptureToGraph_ptsz,                                                                               \
      (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode),                                   \
      (stream, graph, nodes, edges, count, mode), "the same")                                                                      \
    X(CORRECTED, cudaStreamEndCapture, (void *stream, void **graph), (stream, graph), "the same")                                  \
    X(CORRECTED, cudaStreamEndCapture_ptsz, (void *stream, void **graph), (stream, graph), "the same")                             \
    X(CORRECTED, cudaDeviceReset, (void), (),                                                                                      \
      "Strata closes first and opens again on demand; while other devices hold memory, it only waits for the device")              \
    X(RETRIED, cudaMallocPitch, (void **address, size_t *pitch, size_t width, size_t height), (address, pitch, width, height), "") \
    X(RETRIED, cudaMalloc3D, (void *pitched, strata_cu_extent_t extent), (pitched, extent), "")                                    \
    X(RETRIED, cudaMallocArray, (void **array, const void *format, size_t width, size_t height, unsigned int flags),               \
      (array, format, width, height, flags), "")                                                                                   \
    X(RETRIED, cudaMalloc3DArray, (void **array, const void *format, strata_cu_extent_t extent, unsigned int flags),               \
      (array, format, extent, flags), "")                                                                                          \
    X(RETRIED, cudaMallocMipmappedArray,                                                                                           \
      (void **array, const void *format, strata_cu_extent_t extent, unsigned int levels, unsigned int flags),                      \
      (array, format, extent, levels, flags), "")                                                                                  \
    X(RETRIED, cudaMallocFromPoolAsync, (void **address, size_t size, void *pool, void *stream), (address, size, pool, stream),    \
      "the program chose a pool of the driver")                                                                                    \
    X(RETRIED, cudaMallocFromPoolAsync_ptsz, (void **address, size_t size, void *pool, void *stream),                              \
      (address, size, pool, stream), "the same")                                                                                   \
    X(REFUSED, cudaIpcGetMemHandle, (void *handle, void *address), (handle, address),                                              \
      "memory that begins inside a device allocation: another process would open all of it (cudaErrorNotSupported)")

#define STRATA_PRELOAD_DRIVER_MAP(X)                                                                                               \
    X(SERVED, cuMemAlloc_v2, (strata_cu_address_t * address, size_t size), (address, size),                                        \
      "as cudaMalloc, where the primary context is current")                                                                       \
    X(SERVED, cuMemFree_v2, (strata_cu_address_t address), (address), "as cudaFree")                                               \
    X(SERVED, cuMemAllocAsync, (strata_cu_address_t * address, size_t size, void *stream), (address, size, stream),                \
      "as cudaMallocAsync")                                                                                                        \
    X(SERVED, cuMemAllocAsync_ptsz, (strata_cu_address_t * address, size_t size, void *stream), (address, size, stream),           \
      "the same; NULL is the thread's own stream")                                                                                 \
    X(SERVED, cuMemFreeAsync, (strata_cu_address_t address, void *stream), (address, stream), "as cudaFreeAsync")                  \
    X(SERVED, cuMemFreeAsync_ptsz, (strata_cu_address_t address, void *stream), (address, stream),                                 \
      "the same; NULL is the thread's own stream")                                                                                 \
    X(SERVED, cuMemAllocManaged, (strata_cu_address_t * address, size_t size, unsigned int flags), (address, size, flags),         \
      "as cudaMallocManaged")                                                                                                      \
    X(SERVED, cuMemAllocHost_v2, (void **address, size_t size), (address, size), "as cudaMallocHost")                              \
    X(SERVED, cuMemHostAlloc, (void **address, size_t size, unsigned int flags), (address, size, flags), "as cudaHostAlloc")       \
    X(SERVED, cuMemFreeHost, (void *address), (address), "as cudaFreeHost")                                                        \
    X(CORRECTED, cuMemGetInfo_v2, (size_t * unused, size_t * total), (unused, total), "as cudaMemGetInfo")                         \
    X(CORRECTED, cuStreamDestroy_v2, (void *stream), (stream), "as cudaStreamDestroy")                                             \
    X(CORRECTED, cuStreamBeginCapture_v2, (void *stream, int mode), (stream, mode),                                                \
      "Strata waits for nothing while a stream is captured")                                                                       \
    X(CORRECTED, cuStreamBeginCapture_v2_ptsz, (void *stream, int mode), (stream, mode), "the same")                               \
    X(CORRECTED, cuStreamBeginCaptureToGraph,                                                                                      \
      (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode),                                   \
      (stream, graph, nodes, edges, count, mode), "the same")                                                                      \
    X(CORRECTED, cuStreamBeginCaptureToGraph_ptsz,                                                                                 \
      (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode),                                   \
      (stream, graph, nodes, edges, count, mode), "the same")                                                                      \
    X(CORRECTED, cuStreamEndCapture, (void *stream, void **graph), (stream, graph), "the same")                                    \
    X(CORRECTED, cuStreamEndCapture_ptsz, (void *stream, void **graph), (stream, graph), "the same")                               \
    X(CORRECTED, cuDevicePrimaryCtxReset_v2, (int device), (device), "as cudaDeviceReset")                                         \
    X(RETRIED, cuMemAllocPitch_v2,                                                                                                 \
      (strata_cu_address_t * address, size_t * pitch, size_t width, size_t height, unsigned int element),                          \
      (address, pitch, width, height, element), "")                                                                                \
    X(RETRIED, cuArrayCreate_v2, (void **array, const void *description), (array, description), "")                                \
    X(RETRIED, cuArray3DCreate_v2, (void **array, const void *description), (array, description), "")                              \
    X(RETRIED, cuMipmappedArrayCreate, (void **array, const void *description, unsigned int levels), (array, description, levels), \
      "")                                                                                                                          \
    X(RETRIED, cuMemAllocFromPoolAsync, (strata_cu_address_t * address, size_t size, void *pool, void *stream),                    \
      (address, size, pool, stream), "the program chose a pool of the driver")                                                     \
    X(RETRIED, cuMemAllocFromPoolAsync_ptsz, (strata_cu_address_t * address, size_t size, void *pool, void *stream),               \
      (address, size, pool, stream), "the same")                                                                                   \
    X(RETRIED, cuMemCreate, (strata_cu_address_t * handle, size_t size, const void *properties, unsigned long long flags),         \
      (handle, size, properties, flags), "")                                                                                       \
    X(REFUSED, cuIpcGetMemHandle, (void *handle, strata_cu_address_t address), (handle, address), "as cudaIpcGetMemHandle")

#define STRATA_PRELOAD_MAP(X)                                                                                                      \
    STRATA_PRELOAD_RUNTIME_MAP(X)                                                                                                  \
    STRATA_PRELOAD_DRIVER_MAP(X)

typedef enum strata_treatment { STRATA_SERVED, STRATA_CORRECTED, STRATA_RETRIED, STRATA_REFUSED } strata_treatment_t;

#endif

/* What a test's program asks of the stand-ins for CUDA's libraries, and the functions of CUDA's that it uses. */
#ifndef STRATA_TESTS_INTEGRATION_STAND_IN_H
#define STRATA_TESTS_INTEGRATION_STAND_IN_H

#include <stddef.h>

/* libcuda: work on a stream that is under way until something waits for it, by device; physical bytes used; calls of an entry, "MemAlloc";
 * allocations that a reset has taken away from whoever had them. */
void stand_in_submit(void *stream);
unsigned long long stand_in_pending(int device);
unsigned long long stand_in_used(int device);
unsigned long long stand_in_calls(const char *name);
extern int stand_in_lost;
/* In both libraries, for functions that the preloaded library intercepts: the number of calls, the arguments of the last one, and a request
 * that the next call only returns `code`. */
enum { STAND_IN_VALUES = 7 };
int stand_in_see(const char *name, const unsigned long long values[STAND_IN_VALUES]);
unsigned long long stand_in_entered(const char *name);
unsigned long long stand_in_value(const char *name, int i);
void stand_in_fail_next(const char *name, int code);
/* libcudart: calls that have reached it. */
unsigned long long stand_in_runtime_calls(void);

/* cudaExtent and cudaPitchedPtr. */
typedef struct stand_in_extent {
    size_t width, height, depth;
} stand_in_extent_t;
typedef struct stand_in_pitched {
    void *address;
    size_t pitch, width, height;
} stand_in_pitched_t;

/* The CUDA runtime, as far as the stand-in has it. */
int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaMalloc(void **address, size_t size);
int cudaFree(void *address);
int cudaMallocAsync(void **address, size_t size, void *stream);
int cudaMallocAsync_ptsz(void **address, size_t size, void *stream);
int cudaFreeAsync(void *address, void *stream);
int cudaFreeAsync_ptsz(void *address, void *stream);
int cudaMallocManaged(void **address, size_t size, unsigned int flags);
int cudaMallocHost(void **address, size_t size);
int cudaHostAlloc(void **address, size_t size, unsigned int flags);
int cudaFreeHost(void *address);
int cudaMemGetInfo(size_t *unused, size_t *total);
int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height);
int cudaMalloc3D(stand_in_pitched_t *pitched, stand_in_extent_t extent);
int cudaMallocArray(void **array, const void *format, size_t width, size_t height, unsigned int flags);
int cudaMalloc3DArray(void **array, const void *format, stand_in_extent_t extent, unsigned int flags);
int cudaMallocMipmappedArray(void **array, const void *format, stand_in_extent_t extent, unsigned int levels, unsigned int flags);
int cudaMallocFromPoolAsync(void **address, size_t size, void *pool, void *stream);
int cudaMallocFromPoolAsync_ptsz(void **address, size_t size, void *pool, void *stream);
int cudaStreamCreate(void **stream);
int cudaStreamDestroy(void *stream);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamBeginCapture_ptsz(void *stream, int mode);
int cudaStreamBeginCaptureToGraph(void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode);
int cudaStreamBeginCaptureToGraph_ptsz(void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaStreamEndCapture_ptsz(void *stream, void **graph);
int cudaIpcGetMemHandle(void *handle, void *address);

/* And the driver. */
int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuCtxPushCurrent_v2(void *context);
int cuGetProcAddress_v2(const char *symbol, void **function, int version, unsigned long long flags, int *found);
int cuMemAlloc_v2(unsigned long long *address, size_t size);
int cuMemFree_v2(unsigned long long address);
int cuMemAllocAsync(unsigned long long *address, size_t size, void *stream);
int cuMemAllocAsync_ptsz(unsigned long long *address, size_t size, void *stream);
int cuMemFreeAsync(unsigned long long address, void *stream);
int cuMemFreeAsync_ptsz(unsigned long long address, void *stream);
int cuMemAllocManaged(unsigned long long *address, size_t size, unsigned int flags);
int cuMemAllocHost_v2(void **address, size_t size);
int cuMemHostAlloc(void **address, size_t size, unsigned int flags);
int cuMemFreeHost(void *address);
int cuMemGetInfo_v2(size_t *unused, size_t *total);
int cuMemCreate(unsigned long long *handle, size_t size, const void *properties, unsigned long long flags);
int cuMemAllocPitch_v2(unsigned long long *address, size_t *pitch, size_t width, size_t height, unsigned int element);
int cuArrayCreate_v2(void **array, const void *description);
int cuArray3DCreate_v2(void **array, const void *description);
int cuMipmappedArrayCreate(void **array, const void *description, unsigned int levels);
int cuMemAllocFromPoolAsync(unsigned long long *address, size_t size, void *pool, void *stream);
int cuMemAllocFromPoolAsync_ptsz(unsigned long long *address, size_t size, void *pool, void *stream);
int cuStreamDestroy_v2(void *stream);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCapture_v2_ptsz(void *stream, int mode);
int cuStreamBeginCaptureToGraph(void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode);
int cuStreamBeginCaptureToGraph_ptsz(void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuStreamEndCapture_ptsz(void *stream, void **graph);
int cuIpcGetMemHandle(void *handle, unsigned long long address);

#endif

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
/* libcudart: calls that have reached it. */
unsigned long long stand_in_runtime_calls(void);

/* The CUDA runtime, as far as the stand-in has it. */
int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);
int cudaMalloc(void **address, size_t size);
int cudaFree(void *address);
int cudaMallocAsync(void **address, size_t size, void *stream);
int cudaFreeAsync(void *address, void *stream);
int cudaMallocManaged(void **address, size_t size, unsigned int flags);
int cudaMallocHost(void **address, size_t size);
int cudaHostAlloc(void **address, size_t size, unsigned int flags);
int cudaFreeHost(void *address);
int cudaMemGetInfo(size_t *unused, size_t *total);
int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height);
int cudaStreamCreate(void **stream);
int cudaStreamDestroy(void *stream);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaIpcGetMemHandle(void *handle, void *address);

/* And the driver. */
int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxPushCurrent_v2(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t size);
int cuMemFree_v2(unsigned long long address);
int cuMemHostAlloc(void **address, size_t size, unsigned int flags);
int cuMemFreeHost(void *address);
int cuMemGetInfo_v2(size_t *unused, size_t *total);
int cuMemCreate(unsigned long long *handle, size_t size, const void *properties, unsigned long long flags);

#endif

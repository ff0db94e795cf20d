/* Defines the CUDA runtime's functions of the table (table.h). */
#include "doors/preload/serve.h"

#define EXPORTED                                          __attribute__((visibility("default")))
#define DECLARE(treatment, name, arguments, passed, text) EXPORTED int name arguments;
STRATA_PRELOAD_RUNTIME_MAP(DECLARE)
#undef DECLARE

enum { ATTACH_GLOBAL = 1, HOST_PORTABLE = 1, HOST_MAPPED = 2 };

/* ---- requests ---- */

int cudaMalloc(void **address, size_t size) {
    int code, device = strata_real_runtime_device();
    if (address && strata_serve(STRATA_ROW_cudaMalloc, STRATA_PLACE_GPU, device, size, address)) return 0;
    STRATA_PASS_ON(code, cudaMalloc, (address, size), false, device);
    return code;
}

int cudaMallocAsync(void **address, size_t size, void *stream) {
    int code, device = strata_real_runtime_device();
    if (address && strata_serve_on(STRATA_ROW_cudaMallocAsync, device, stream, size, address)) return 0;
    STRATA_PASS_ON(code, cudaMallocAsync, (address, size, stream), false, device);
    return code;
}

int cudaMallocAsync_ptsz(void **address, size_t size, void *stream) {
    int code, device = strata_real_runtime_device();
    if (address && strata_serve_on(STRATA_ROW_cudaMallocAsync_ptsz, device, strata_own_stream(stream), size, address)) return 0;
    STRATA_PASS_ON(code, cudaMallocAsync_ptsz, (address, size, stream), false, device);
    return code;
}

int cudaMallocManaged(void **address, size_t size, unsigned int flags) {
    int code, device = strata_real_runtime_device();
    size_t usual = flags == ATTACH_GLOBAL ? size : 0; /* Strata never serves a request of 0 bytes */
    if (address && strata_serve(STRATA_ROW_cudaMallocManaged, STRATA_PLACE_MANAGED, device, usual, address)) return 0;
    STRATA_PASS_ON(code, cudaMallocManaged, (address, size, flags), false, device);
    return code;
}

int cudaMallocHost(void **address, size_t size) {
    int code, device = strata_real_runtime_device();
    if (address && strata_serve(STRATA_ROW_cudaMallocHost, STRATA_PLACE_PINNED, device, size, address)) return 0;
    STRATA_PASS_ON(code, cudaMallocHost, (address, size), true, device);
    return code;
}

int cudaHostAlloc(void **address, size_t size, unsigned int flags) {
    int code, device = strata_real_runtime_device();
    size_t usual = flags & ~(unsigned)(HOST_PORTABLE | HOST_MAPPED) ? 0 : size;
    if (address && strata_serve(STRATA_ROW_cudaHostAlloc, STRATA_PLACE_PINNED, device, usual, address)) return 0;
    STRATA_PASS_ON(code, cudaHostAlloc, (address, size, flags), true, device);
    return code;
}

/* ---- frees ---- */

#define FREES(name, arguments, passed, served)                                                                                     \
    int name arguments {                                                                                                           \
        int code;                                                                                                                  \
        if (served) return 0;                                                                                                      \
        STRATA_PASS_ON(code, name, passed, false, -1);                                                                             \
        return code;                                                                                                               \
    }
FREES(cudaFree, (void *address), (address), strata_serve_free(STRATA_ROW_cudaFree, STRATA_DOOR_DEVICE, &address))
FREES(cudaFreeHost, (void *address), (address), strata_serve_free(STRATA_ROW_cudaFreeHost, STRATA_DOOR_HOST, &address))
FREES(cudaFreeAsync, (void *address, void *stream), (address, stream),
      strata_serve_free_on(STRATA_ROW_cudaFreeAsync, STRATA_DOOR_DEVICE, &address, stream))
FREES(cudaFreeAsync_ptsz, (void *address, void *stream), (address, stream),
      strata_serve_free_on(STRATA_ROW_cudaFreeAsync_ptsz, STRATA_DOOR_DEVICE, &address, strata_own_stream(stream)))

/* ---- corrected and refused ---- */

int cudaMemGetInfo(size_t *unused, size_t *total) {
    int code;
    STRATA_PASS_ON(code, cudaMemGetInfo, (unused, total), false, -1);
    if (code == 0 && unused && total)
        strata_serve_mem_info(STRATA_ROW_cudaMemGetInfo, strata_real_runtime_device(), unused, *total);
    return code;
}

int cudaStreamDestroy(void *stream) {
    int code;
    strata_serve_forget(STRATA_ROW_cudaStreamDestroy, stream);
    STRATA_PASS_ON(code, cudaStreamDestroy, (stream), false, -1);
    return code;
}

int cudaDeviceReset(void) {
    int code = 0;
    bool alone = strata_process_close_for_reset(strata_real_runtime_device());
    strata_process_count(STRATA_ROW_cudaDeviceReset, !alone);
    if (alone) STRATA_PASS_ON(code, cudaDeviceReset, (), false, -1);
    else code = strata_real_synchronise_runtime();
    return code;
}

int cudaIpcGetMemHandle(void *handle, void *address) {
    int code;
    if (strata_serve_is_inside(STRATA_ROW_cudaIpcGetMemHandle, address)) return STRATA_REAL_NOT_SUPPORTED;
    STRATA_PASS_ON(code, cudaIpcGetMemHandle, (handle, address), false, -1);
    return code;
}

/* ---- captures ---- */

STRATA_BEGINS_CAPTURE(cudaStreamBeginCapture, (void *stream, int mode), (stream, mode))
STRATA_BEGINS_CAPTURE(cudaStreamBeginCapture_ptsz, (void *stream, int mode), (stream, mode))
STRATA_BEGINS_CAPTURE(cudaStreamBeginCaptureToGraph,
                      (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode),
                      (stream, graph, nodes, edges, count, mode))
STRATA_BEGINS_CAPTURE(cudaStreamBeginCaptureToGraph_ptsz,
                      (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode),
                      (stream, graph, nodes, edges, count, mode))
STRATA_ENDS_CAPTURE(cudaStreamEndCapture, (void *stream, void **graph), (stream, graph))
STRATA_ENDS_CAPTURE(cudaStreamEndCapture_ptsz, (void *stream, void **graph), (stream, graph))

/* ---- passed on, with room made ---- */

#define RETRIES(treatment, name, arguments, passed, text) RETRIES_##treatment(name, arguments, passed)
#define RETRIES_SERVED(name, arguments, passed)
#define RETRIES_CORRECTED(name, arguments, passed)
#define RETRIES_REFUSED(name, arguments, passed)
#define RETRIES_RETRIED(name, arguments, passed)                                                                                   \
    int name arguments {                                                                                                           \
        int code;                                                                                                                  \
        STRATA_PASS_ON(code, name, passed, false, strata_real_runtime_device());                                                   \
        strata_process_count(STRATA_ROW_##name, false);                                                                            \
        return code;                                                                                                               \
    }
STRATA_PRELOAD_RUNTIME_MAP(RETRIES)

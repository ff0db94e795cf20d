/* Defines the driver's functions of the table (table.h). */
#include "doors/preload/serve.h"

#define EXPORTED                                          __attribute__((visibility("default")))
#define DECLARE(treatment, name, arguments, passed, text) EXPORTED int name arguments;
STRATA_PRELOAD_DRIVER_MAP(DECLARE)
#undef DECLARE

enum { ATTACH_GLOBAL = 1, HOST_PORTABLE = 1, HOST_MAPPED = 2 };

/* ---- requests ---- */

/* A program that uses the driver directly has a current context. Without one there is no device. */
static int device_of_context(void) { return strata_real_context() ? strata_real_driver_device() : -1; }

/* `served` stores the address in `got`. */
#define REQUESTS(name, arguments, passed, of_host, served)                                                                         \
    int name arguments {                                                                                                           \
        int code, device = device_of_context();                                                                                    \
        void *got = NULL;                                                                                                          \
        if (address && served) {                                                                                                   \
            *address = (__typeof__(*address))(uintptr_t)got;                                                                       \
            return 0;                                                                                                              \
        }                                                                                                                          \
        STRATA_PASS_ON(code, name, passed, of_host, device);                                                                       \
        return code;                                                                                                               \
    }
#define USUAL(flags) (!((flags) & ~(unsigned)(HOST_PORTABLE | HOST_MAPPED)))

REQUESTS(cuMemAlloc_v2, (strata_cu_address_t * address, size_t size), (address, size), false,
         strata_serve(STRATA_ROW_cuMemAlloc_v2, STRATA_PLACE_GPU, device, size, &got))
REQUESTS(cuMemAllocAsync, (strata_cu_address_t * address, size_t size, void *stream), (address, size, stream), false,
         strata_serve_on(STRATA_ROW_cuMemAllocAsync, device, stream, size, &got))
REQUESTS(cuMemAllocAsync_ptsz, (strata_cu_address_t * address, size_t size, void *stream), (address, size, stream), false,
         strata_serve_on(STRATA_ROW_cuMemAllocAsync_ptsz, device, strata_own_stream(stream), size, &got))
REQUESTS(cuMemAllocManaged, (strata_cu_address_t * address, size_t size, unsigned int flags), (address, size, flags), false,
         strata_serve(STRATA_ROW_cuMemAllocManaged, STRATA_PLACE_MANAGED, device, flags == ATTACH_GLOBAL ? size : 0, &got))
REQUESTS(cuMemAllocHost_v2, (void **address, size_t size), (address, size), true,
         strata_serve(STRATA_ROW_cuMemAllocHost_v2, STRATA_PLACE_PINNED, device, size, &got))
REQUESTS(cuMemHostAlloc, (void **address, size_t size, unsigned int flags), (address, size, flags), true,
         strata_serve(STRATA_ROW_cuMemHostAlloc, STRATA_PLACE_PINNED, device, USUAL(flags) ? size : 0, &got))

/* ---- frees ---- */

#define POINTER(address) ((void *)(uintptr_t)(address))
/* `served` may replace `freed`, the address that `passed` passes on. */
#define FREES(name, arguments, passed, served)                                                                                     \
    int name arguments {                                                                                                           \
        int code;                                                                                                                  \
        void *freed = POINTER(address);                                                                                            \
        if (served) return 0;                                                                                                      \
        STRATA_PASS_ON(code, name, passed, false, -1);                                                                             \
        return code;                                                                                                               \
    }

FREES(cuMemFree_v2, (strata_cu_address_t address), ((uintptr_t)freed),
      strata_serve_free(STRATA_ROW_cuMemFree_v2, STRATA_DOOR_DEVICE, &freed))
FREES(cuMemFreeHost, (void *address), (freed), strata_serve_free(STRATA_ROW_cuMemFreeHost, STRATA_DOOR_HOST, &freed))
FREES(cuMemFreeAsync, (strata_cu_address_t address, void *stream), ((uintptr_t)freed, stream),
      strata_serve_free_on(STRATA_ROW_cuMemFreeAsync, STRATA_DOOR_DEVICE, &freed, stream))
FREES(cuMemFreeAsync_ptsz, (strata_cu_address_t address, void *stream), ((uintptr_t)freed, stream),
      strata_serve_free_on(STRATA_ROW_cuMemFreeAsync_ptsz, STRATA_DOOR_DEVICE, &freed, strata_own_stream(stream)))

/* ---- corrected and refused ---- */

int cuMemGetInfo_v2(size_t *unused, size_t *total) {
    int code;
    STRATA_PASS_ON(code, cuMemGetInfo_v2, (unused, total), false, -1);
    if (code == 0 && unused && total) strata_serve_mem_info(STRATA_ROW_cuMemGetInfo_v2, device_of_context(), unused, *total);
    return code;
}

int cuStreamDestroy_v2(void *stream) {
    int code;
    strata_serve_forget(STRATA_ROW_cuStreamDestroy_v2, stream);
    STRATA_PASS_ON(code, cuStreamDestroy_v2, (stream), false, -1);
    return code;
}

int cuDevicePrimaryCtxReset_v2(int device) {
    int code = 0;
    bool alone = strata_process_close_for_reset(device);
    strata_process_count(STRATA_ROW_cuDevicePrimaryCtxReset_v2, !alone);
    if (alone) STRATA_PASS_ON(code, cuDevicePrimaryCtxReset_v2, (device), false, -1);
    else code = strata_real_synchronise_driver();
    return code;
}

int cuIpcGetMemHandle(void *handle, strata_cu_address_t address) {
    int code;
    if (strata_serve_is_inside(STRATA_ROW_cuIpcGetMemHandle, POINTER(address))) return STRATA_REAL_NOT_SUPPORTED;
    STRATA_PASS_ON(code, cuIpcGetMemHandle, (handle, address), false, -1);
    return code;
}

/* ---- captures ---- */

STRATA_BEGINS_CAPTURE(cuStreamBeginCapture_v2, (void *stream, int mode), (stream, mode))
STRATA_BEGINS_CAPTURE(cuStreamBeginCapture_v2_ptsz, (void *stream, int mode), (stream, mode))
STRATA_BEGINS_CAPTURE(cuStreamBeginCaptureToGraph,
                      (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode),
                      (stream, graph, nodes, edges, count, mode))
STRATA_BEGINS_CAPTURE(cuStreamBeginCaptureToGraph_ptsz,
                      (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode),
                      (stream, graph, nodes, edges, count, mode))
STRATA_ENDS_CAPTURE(cuStreamEndCapture, (void *stream, void **graph), (stream, graph))
STRATA_ENDS_CAPTURE(cuStreamEndCapture_ptsz, (void *stream, void **graph), (stream, graph))

/* ---- passed on, with room made ---- */

#define RETRIES(treatment, name, arguments, passed, text) RETRIES_##treatment(name, arguments, passed)
#define RETRIES_SERVED(name, arguments, passed)
#define RETRIES_CORRECTED(name, arguments, passed)
#define RETRIES_REFUSED(name, arguments, passed)
#define RETRIES_RETRIED(name, arguments, passed)                                                                                   \
    int name arguments {                                                                                                           \
        int code;                                                                                                                  \
        STRATA_PASS_ON(code, name, passed, false, device_of_context());                                                            \
        strata_process_count(STRATA_ROW_##name, false);                                                                            \
        return code;                                                                                                               \
    }
STRATA_PRELOAD_DRIVER_MAP(RETRIES)

/* Calls one function of the table, and its counterpart if there is one, and prints the results. The argument is the function's name. This
 * program does not use Strata; tests/doors/entries.c checks its output. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/doors/stand_in/stand_in.h"

static const size_t MiB = 1 << 20;
static void *const legacy = (void *)1, *const per_thread = (void *)2;

#define SAY(name, value) printf(name " %lld\n", (long long)(value))

typedef unsigned long long address_t;

/* Wrappers that take pointers like the runtime, because the driver's functions take addresses as numbers. */
static int driver_alloc(void **p, size_t size) { return cuMemAlloc_v2((address_t *)p, size); }
static int driver_free(void *p) { return cuMemFree_v2((uintptr_t)p); }
static int driver_alloc_async(void **p, size_t size, void *stream) { return cuMemAllocAsync((address_t *)p, size, stream); }
static int driver_alloc_async_own(void **p, size_t size, void *stream) {
    return cuMemAllocAsync_ptsz((address_t *)p, size, stream);
}
static int driver_free_async(void *p, void *stream) { return cuMemFreeAsync((uintptr_t)p, stream); }
static int driver_free_async_own(void *p, void *stream) { return cuMemFreeAsync_ptsz((uintptr_t)p, stream); }
static int driver_managed(void **p, size_t size, unsigned int flags) { return cuMemAllocManaged((address_t *)p, size, flags); }
static int driver_ipc(void *handle, void *p) { return cuIpcGetMemHandle(handle, (uintptr_t)p); }

/* Creates a current context without a call that the preloaded library intercepts. */
static void begin(int device) {
    void *context = NULL;
    cuInit(0);
    cudaSetDevice(device);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxPushCurrent_v2(context);
}

/* ---- memory without a stream ---- */

/* Allocates and frees, then frees again, for which CUDA reports an unknown address. */
static void request(const char *name, int code, void *address, int (*release)(void *), const char *free_name) {
    SAY("code", code);
    SAY("real", stand_in_entered(name));
    SAY("freed", release(address));
    SAY("real_frees", stand_in_entered(free_name));
    cudaGetLastError();
    SAY("again", release(address));
    SAY("last_error", cudaGetLastError());
    SAY("passed_on_as_it_is", stand_in_value(free_name, 0) == (uintptr_t)address);
    SAY("nothing", release(NULL));
}

/* A request that goes to CUDA is made once more if idle memory of its kind has gone back, and only then. */
#define SAY_ROOM(name, requested)                                                                                                  \
    for (int idle = 1; idle >= 0; idle--) {                                                                                        \
        unsigned long long before = stand_in_entered(name);                                                                        \
        stand_in_fail_next(name, 2);                                                                                               \
        printf("room %d\n", (requested));                                                                                          \
        printf("tries %llu\n", stand_in_entered(name) - before);                                                                   \
    }

static void plain(const char *name, int (*get)(void **, size_t), int (*release)(void *), const char *free_name) {
    void *address = NULL;
    int code = get(&address, MiB);
    request(name, code, address, release, free_name);
    SAY_ROOM(name, get(&address, 0) == 2) /* nothing is no request of Strata's */
}

/* First with flags that Strata serves, then with flags that are passed to CUDA. */
static void flagged(const char *name, int (*get)(void **, size_t, unsigned int), unsigned int served, unsigned int others,
                    int (*release)(void *), const char *free_name) {
    void *address = NULL, *foreign = NULL;
    int code = get(&address, MiB, served);
    request(name, code, address, release, free_name);
    SAY("foreign", get(&foreign, 2 * MiB, others));
    SAY("real", stand_in_entered(name));
    SAY("flags", stand_in_value(name, 2));
    SAY("foreign_freed", release(foreign));
    SAY("passed_on_as_it_is", stand_in_value(free_name, 0) == (uintptr_t)foreign);
    SAY_ROOM(name, get(&foreign, 2 * MiB, others))
}

/* Memory of the other kind, memory inside a block, memory of another device. */
static void frees(const char *name, int (*release)(void *), bool host) {
    void *mine = NULL, *other = NULL, *managed = NULL, *away = NULL;
    SAY("got",
        cudaMalloc(host ? &other : &mine, MiB) + cudaMallocHost(host ? &mine : &other, MiB) + cudaMallocManaged(&managed, MiB, 1));
    cudaSetDevice(1);
    SAY("away", host ? cudaMallocHost(&away, MiB) : cudaMalloc(&away, MiB));
    cudaSetDevice(0);
    SAY("other_kind", release(other));
    SAY("inside", release((char *)mine + 512));
    SAY("managed", release(managed));
    SAY("real", stand_in_entered(name));
    SAY("mine", release(mine));
    SAY("of_another_device", release(away));
    SAY("real", stand_in_entered(name));
    SAY("rest", host ? cudaFree(other) + cudaFree(managed) : cudaFreeHost(other));
}

/* ---- memory in the order of a stream ---- */

typedef int (*get_on_fn)(void **, size_t, void *);
typedef int (*free_on_fn)(void *, void *);

/* NULL means `own` here. Memory freed there is reused there at once, whatever work runs; the other default stream cannot get it. */
static void get_on(const char *name, get_on_fn get, void *own) {
    void *address = NULL, *again = NULL;
    SAY("code", get(&address, MiB, NULL));
    SAY("real", stand_in_entered(name));
    stand_in_submit(own);
    SAY("freed", cudaFreeAsync(address, own));
    SAY("again", cudaMallocAsync(&again, MiB, own));
    SAY("same", again == address);
    SAY("pending", stand_in_pending(0) > 0);
    SAY("last", cudaFreeAsync(again, own));
    void *stream = NULL;
    begin(1);
    cudaStreamCreate(&stream);
    begin(0);
    (void)get(&again, MiB, stream); /* a stream of another device is none of this one's */
    SAY("of_another_device", stand_in_entered(name));
}

/* First a block of `own` that was last used there, then one that was last used on another busy stream. */
static void free_on(const char *name, free_on_fn release, void *own) {
    void *other = own == legacy ? per_thread : legacy, *a = NULL, *b = NULL;
    cudaMallocAsync(&a, MiB, own);
    stand_in_submit(own);
    stand_in_submit(other);
    SAY("freed", release(a, NULL));
    SAY("real", stand_in_entered(name));
    cudaMallocAsync(&b, MiB, own);
    SAY("same", b == a);
    cudaGetLastError();
    SAY("freed", release(b, NULL));
    SAY("again", release(b, NULL));
    SAY("real", stand_in_entered(name));
    SAY("passed_on_as_it_is", stand_in_value(name, 0) == (uintptr_t)b);
    SAY("nothing", release(NULL, NULL) == 0);
    cudaMallocHost(&a, MiB);
    SAY("pinned", release(a, NULL));
    SAY("still_live", cudaFreeHost(a));
}

/* ---- figures ---- */

static size_t free_by(int (*ask)(size_t *, size_t *)) {
    size_t unused = 0, total = 0;
    SAY("code", ask(&unused, &total));
    SAY("total", total / MiB);
    return unused;
}

static void info(const char *name, int (*ask)(size_t *, size_t *)) {
    void *kept = NULL, *block = NULL, *host = NULL;
    size_t unused = 0, total = 0;
    cudaMalloc(&kept, 100 * MiB);
    cudaMalloc(&block, 200 * MiB);
    cudaMallocHost(&host, 50 * MiB);
    SAY("live_300", free_by(ask) / MiB);
    for (int i = 0; i < 4; i++) cudaFree(block);
    cudaFreeHost(host);
    SAY("live_100", free_by(ask) / MiB);
    begin(1);
    cudaMallocFromPoolAsync(&block, 100 * MiB, NULL, NULL); /* served by CUDA, because Strata caches nothing on this device */
    SAY("of_the_second_device", free_by(ask) / MiB);
    SAY("real", stand_in_entered(name));
    stand_in_fail_next(name, 999);
    SAY("failed", ask(&unused, &total));
    SAY("untouched", unused + total);
    SAY("refused", ask(NULL, &total) == ask(&unused, NULL));
}

/* ---- streams, captures ---- */

/* Its memory is reusable at once, because a destroyed stream is not waited for. */
static void destroy(const char *name, int (*end)(void *)) {
    void *stream, *a = NULL, *b = NULL, *next;
    cudaStreamCreate(&stream);
    cudaStreamCreate(&next);
    cudaMallocAsync(&a, 300 * MiB, stream);
    cudaFreeAsync(a, stream);
    SAY("code", end(stream));
    SAY("real", stand_in_entered(name));
    SAY("of_the_stream", stand_in_value(name, 0) == (uintptr_t)stream);
    SAY("next", cudaMallocAsync(&b, 300 * MiB, next));
    SAY("same", a == b);
    SAY("used", stand_in_used(0) / MiB);
}

typedef int (*begin_fn)(void *stream, void *graph, int mode);
static int to_graph(void *s, void *g, int m) { return cudaStreamBeginCaptureToGraph(s, g, (void *)3, (void *)4, 5, m); }
static int to_graph_own(void *s, void *g, int m) { return cudaStreamBeginCaptureToGraph_ptsz(s, g, (void *)3, (void *)4, 5, m); }
static int driver_to_graph(void *s, void *g, int m) { return cuStreamBeginCaptureToGraph(s, g, (void *)3, (void *)4, 5, m); }
static int driver_to_graph_own(void *s, void *g, int m) {
    return cuStreamBeginCaptureToGraph_ptsz(s, g, (void *)3, (void *)4, 5, m);
}
#define WITHOUT_GRAPH(name, does)                                                                                                  \
    static int name(void *s, void *g, int m) { return (void)g, does(s, m); }
WITHOUT_GRAPH(plainly, cudaStreamBeginCapture)
WITHOUT_GRAPH(plainly_own, cudaStreamBeginCapture_ptsz)
WITHOUT_GRAPH(driver_plainly, cuStreamBeginCapture_v2)
WITHOUT_GRAPH(driver_plainly_own, cuStreamBeginCapture_v2_ptsz)

/* During a capture the library does not wait for freed memory, so requests get other memory. Each request is larger than all before, so no idle
 * block fits. */
static bool is_served_again(void) {
    static size_t size = 12;
    void *block = NULL, *next = NULL;
    size += 4;
    cudaMalloc(&block, size * MiB);
    cudaFree(block);
    cudaMalloc(&next, size * MiB);
    cudaFree(next);
    return block == next;
}

static void capture(const char *name, begin_fn start, const char *end_name, int (*end)(void *, void **)) {
    void *stream, *graph = NULL;
    cudaStreamCreate(&stream);
    stand_in_fail_next(name, 900);
    SAY("refused", start(stream, NULL, 1));
    SAY("waited_for", is_served_again());
    for (int round = 0; round < 4; round++) {
        static const int codes[] = {0, 901, 904, 1}; /* the last one does not end the capture */
        SAY("begun", start(stream, (void *)7, 2));
        SAY("waited_for", is_served_again());
        if (codes[round]) stand_in_fail_next(end_name, codes[round]);
        SAY("ended", end(stream, &graph));
        cuStreamDestroy_v2(stream); /* together with its capture if the end failed */
        cudaStreamCreate(&stream);
        SAY("waited_for", is_served_again());
    }
    SAY("real", stand_in_entered(name));
    SAY("real_ends", stand_in_entered(end_name));
    for (int i = 1; i < 6; i++) SAY("argument", stand_in_value(name, i));
    SAY("graph", stand_in_value(end_name, 1) == (uintptr_t)&graph);
}

/* ---- resets, other processes ---- */

static int reset_runtime(void) { return cudaDeviceReset(); }
static int reset_driver(void) {
    int device;
    cudaGetDevice(&device);
    return cuDevicePrimaryCtxReset_v2(device);
}

static void reset(const char *name, int (*does)(void)) {
    void *block = NULL;
    cudaMalloc(&block, MiB);
    begin(1);
    SAY("while_the_other_device_is_used", does());
    SAY("real", stand_in_entered(name));
    begin(0);
    SAY("alone", does());
    SAY("real", stand_in_entered(name));
    SAY("device", stand_in_value(name, 0));
    SAY("lost", stand_in_lost);
    SAY("used", stand_in_used(0) / MiB);
    SAY("free_of_lost", cudaFree(block) != 0);
    SAY("again", cudaMalloc(&block, MiB));
}

static void ipc(const char *name, int (*share)(void *, void *)) {
    char handle[64];
    void *block = NULL, *beside = NULL, *foreign = NULL;
    cudaMalloc(&block, MiB);
    cudaMalloc(&beside, MiB);
    cudaMallocFromPoolAsync(&foreign, MiB, NULL, NULL);
    SAY("refused", (share(handle, block) == 801) + (share(handle, beside) == 801) > 0);
    unsigned long long before = stand_in_entered(name);
    SAY("foreign", share(handle, foreign));
    SAY("real", stand_in_entered(name) - before);
    SAY("of_the_address", stand_in_value(name, 1) == (uintptr_t)foreign && stand_in_value(name, 0) == (uintptr_t)handle);
}

/* ---- passed on after idle memory is released ---- */

static void *got;
static size_t pitch;
static stand_in_pitched_t pitched;
static const size_t description[] = {600u << 20};
static const stand_in_extent_t extent = {600, 1024, 1024};

#define RETRIED(name, ...)                                                                                                         \
    static int retried_##name(void) { return name(__VA_ARGS__); }
RETRIED(cudaMallocPitch, &got, &pitch, MiB, 600)
RETRIED(cudaMalloc3D, &pitched, extent)
RETRIED(cudaMallocArray, &got, description, MiB, 600, 5)
RETRIED(cudaMalloc3DArray, &got, description, extent, 5)
RETRIED(cudaMallocMipmappedArray, &got, description, extent, 6, 5)
RETRIED(cudaMallocFromPoolAsync, &got, 600 * MiB, (void *)3, (void *)4)
RETRIED(cudaMallocFromPoolAsync_ptsz, &got, 600 * MiB, (void *)3, (void *)4)
RETRIED(cuMemAllocPitch_v2, (address_t *)&got, &pitch, MiB, 600, 4)
RETRIED(cuArrayCreate_v2, &got, description)
RETRIED(cuArray3DCreate_v2, &got, description)
RETRIED(cuMipmappedArrayCreate, &got, description, 6)
RETRIED(cuMemAllocFromPoolAsync, (address_t *)&got, 600 * MiB, (void *)3, (void *)4)
RETRIED(cuMemAllocFromPoolAsync_ptsz, (address_t *)&got, 600 * MiB, (void *)3, (void *)4)
static int retried_cuMemCreate(void) {
    static const struct {
        int type, handles, location, id;
        char rest[16];
    } properties = {1, 0, 1, 0, {0}};
    return cuMemCreate((address_t *)&got, 600 * MiB, &properties, 0);
}

/* 700 MiB of 1 GiB are idle. The first internal try fails, and leaves no error. */
static void retried(const char *name, int (*does)(void)) {
    void *large = NULL;
    cudaMalloc(&large, 700 * MiB);
    cudaFree(large);
    cudaGetLastError();
    SAY("code", does());
    SAY("real", stand_in_entered(name));
    SAY("last_error", cudaGetLastError());
    SAY("used", stand_in_used(0) / MiB);
    for (int i = 1; i < STAND_IN_VALUES; i++) {
        unsigned long long value = stand_in_value(name, i);
        bool is_address = value == (uintptr_t)&pitch || value == (uintptr_t)description;
        SAY("argument", is_address ? -1 : value > UINT64_C(1) << 40 ? -2 : (long long)value);
    }
    cudaMalloc(&large, 300 * MiB);
    cudaFree(large);
    SAY("too_much", does()); /* fails even after the idle memory is released */
    SAY("used", stand_in_used(0) / MiB);
    SAY("last_error", cudaGetLastError());
}

/* ---- dlsym and driver tables ---- */

/* A global lookup finds Strata's function; a lookup by the library's handle or the driver's table finds CUDA's own. */
static void looked_up(void) {
    void *runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD), *address = NULL, *entry = NULL;
    int (*everywhere)(void **, size_t) = (int (*)(void **, size_t))(uintptr_t)dlsym(RTLD_DEFAULT, "cudaMalloc");
    int (*handled)(void **, size_t) = (int (*)(void **, size_t))(uintptr_t)dlsym(runtime, "cudaMalloc");
    int found = 0;
    SAY("everywhere", everywhere(&address, MiB));
    SAY("real", stand_in_entered("cudaMalloc"));
    SAY("freed", cudaFree(address));
    SAY("handled", handled(&address, MiB));
    SAY("real", stand_in_entered("cudaMalloc"));
    SAY("freed", cudaFree(address));
    SAY("real_frees", stand_in_entered("cudaFree"));
    SAY("asked", cuGetProcAddress_v2("cuMemAlloc", &entry, 3020, 0, &found));
    SAY("by_entry", ((int (*)(void **, size_t))(uintptr_t)entry)(&address, MiB));
    SAY("freed", cuMemFree_v2((uintptr_t)address));
    SAY("real_frees", stand_in_entered("cuMemFree_v2") - 1); /* one call came from the runtime */
}

int main(int argc, char **argv) {
    const char *name = argc == 2 ? argv[1] : "";
    begin(0);
#define CASE(entry, call)                                                                                                          \
    if (strcmp(name, #entry) == 0) return call, 0;
#define CASES_OF(entry, function, ...) CASE(entry, function(#entry, __VA_ARGS__))
    CASES_OF(cudaMalloc, plain, cudaMalloc, cudaFree, "cudaFree")
    CASES_OF(cudaMallocHost, plain, cudaMallocHost, cudaFreeHost, "cudaFreeHost")
    CASES_OF(cuMemAlloc_v2, plain, driver_alloc, driver_free, "cuMemFree_v2")
    CASES_OF(cuMemAllocHost_v2, plain, cuMemAllocHost_v2, cuMemFreeHost, "cuMemFreeHost")
    CASES_OF(cudaMallocManaged, flagged, cudaMallocManaged, 1, 2, cudaFree, "cudaFree")
    CASES_OF(cuMemAllocManaged, flagged, driver_managed, 1, 2, driver_free, "cuMemFree_v2")
    CASES_OF(cudaHostAlloc, flagged, cudaHostAlloc, 3, 4, cudaFreeHost, "cudaFreeHost")
    CASES_OF(cuMemHostAlloc, flagged, cuMemHostAlloc, 3, 4, cuMemFreeHost, "cuMemFreeHost")
    CASES_OF(cudaFree, frees, cudaFree, false)
    CASES_OF(cudaFreeHost, frees, cudaFreeHost, true)
    CASES_OF(cuMemFree_v2, frees, driver_free, false)
    CASES_OF(cuMemFreeHost, frees, cuMemFreeHost, true)
    CASES_OF(cudaMallocAsync, get_on, cudaMallocAsync, legacy)
    CASES_OF(cudaMallocAsync_ptsz, get_on, cudaMallocAsync_ptsz, per_thread)
    CASES_OF(cuMemAllocAsync, get_on, driver_alloc_async, legacy)
    CASES_OF(cuMemAllocAsync_ptsz, get_on, driver_alloc_async_own, per_thread)
    CASES_OF(cudaFreeAsync, free_on, cudaFreeAsync, legacy)
    CASES_OF(cudaFreeAsync_ptsz, free_on, cudaFreeAsync_ptsz, per_thread)
    CASES_OF(cuMemFreeAsync, free_on, driver_free_async, legacy)
    CASES_OF(cuMemFreeAsync_ptsz, free_on, driver_free_async_own, per_thread)
    CASES_OF(cudaMemGetInfo, info, cudaMemGetInfo)
    CASES_OF(cuMemGetInfo_v2, info, cuMemGetInfo_v2)
    CASES_OF(cudaStreamDestroy, destroy, cudaStreamDestroy)
    CASES_OF(cuStreamDestroy_v2, destroy, cuStreamDestroy_v2)
    CASES_OF(cudaStreamBeginCapture, capture, plainly, "cudaStreamEndCapture", cudaStreamEndCapture)
    CASES_OF(cudaStreamBeginCapture_ptsz, capture, plainly_own, "cudaStreamEndCapture_ptsz", cudaStreamEndCapture_ptsz)
    CASES_OF(cudaStreamBeginCaptureToGraph, capture, to_graph, "cudaStreamEndCapture", cudaStreamEndCapture)
    CASES_OF(cudaStreamBeginCaptureToGraph_ptsz, capture, to_graph_own, "cudaStreamEndCapture_ptsz", cudaStreamEndCapture_ptsz)
    CASES_OF(cuStreamBeginCapture_v2, capture, driver_plainly, "cuStreamEndCapture", cuStreamEndCapture)
    CASES_OF(cuStreamBeginCapture_v2_ptsz, capture, driver_plainly_own, "cuStreamEndCapture_ptsz", cuStreamEndCapture_ptsz)
    CASES_OF(cuStreamBeginCaptureToGraph, capture, driver_to_graph, "cuStreamEndCapture", cuStreamEndCapture)
    CASES_OF(cuStreamBeginCaptureToGraph_ptsz, capture, driver_to_graph_own, "cuStreamEndCapture_ptsz", cuStreamEndCapture_ptsz)
    CASES_OF(cudaDeviceReset, reset, reset_runtime)
    CASES_OF(cuDevicePrimaryCtxReset_v2, reset, reset_driver)
    CASES_OF(cudaIpcGetMemHandle, ipc, cudaIpcGetMemHandle)
    CASES_OF(cuIpcGetMemHandle, ipc, driver_ipc)
    CASE(looked_up, looked_up())
#define RETRIED_CASE(entry) CASES_OF(entry, retried, retried_##entry)
    RETRIED_CASE(cudaMallocPitch)
    RETRIED_CASE(cudaMalloc3D)
    RETRIED_CASE(cudaMallocArray)
    RETRIED_CASE(cudaMalloc3DArray)
    RETRIED_CASE(cudaMallocMipmappedArray)
    RETRIED_CASE(cudaMallocFromPoolAsync)
    RETRIED_CASE(cudaMallocFromPoolAsync_ptsz)
    RETRIED_CASE(cuMemAllocPitch_v2)
    RETRIED_CASE(cuArrayCreate_v2)
    RETRIED_CASE(cuArray3DCreate_v2)
    RETRIED_CASE(cuMipmappedArrayCreate)
    RETRIED_CASE(cuMemAllocFromPoolAsync)
    RETRIED_CASE(cuMemAllocFromPoolAsync_ptsz)
    RETRIED_CASE(cuMemCreate)
    return 2;
}

/* Stands in for libcudart, so that a real PyTorch, ONNX Runtime or CuPy runs where there is no GPU: devices of 80 GiB (one, or as many
 * as FAKE_CUDART_DEVICES says), no kernel does anything, and what is captured is known. Addresses of devices come from the allocator under
 * test, never from here. Where they hold bytes (FAKE_CUDART_CONTENTS), copies are made. Streams come from whoever says so
 * (fake_cudart_streams), because a simulated device of Strata's knows its own streams alone.
 * RUNTIME_MAJOR is the runtime's major version: 12 or 13. tests/python/runtime/torch_runtime.py adds the other functions, which answer 0. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void *stream_t;
typedef int (*stream_maker_fn)(int priority, stream_t *stream);

enum { MEMORY_ALLOCATION = 2, NONE = 0, ACTIVE = 1 };

static stream_maker_fn make_stream;
static struct {
    stream_t stream;
    unsigned long long id; /* counts the captures */
    int status;
} capture;
static uint64_t device_calls; /* allocations that were asked of the runtime itself */
static uint64_t host_calls; /* likewise of pinned memory */
static uintptr_t next_event = 0x1000;
static _Thread_local int current;
static unsigned peers; /* a bit for each device that was opened to another */
static int copies[2]; /* within a device or between peers; from device to device by the runtime */
static int kernels;
static int aside; /* copies and kernels that went to another stream than the default one */

void fake_cudart_streams(stream_maker_fn maker) { make_stream = maker; }
uint64_t fake_cudart_mallocs(void) { return device_calls; }
uint64_t fake_cudart_host_mallocs(void) { return host_calls; }
unsigned fake_cudart_peers(void) { return peers; }
int fake_cudart_copies(int between) { return copies[between]; }
int fake_cudart_kernels(void) { return kernels; }
int fake_cudart_aside(void) { return aside; }

/* ---- devices ---- */

static int devices(void) {
    const char *told = getenv("FAKE_CUDART_DEVICES");
    return told ? atoi(told) : 1;
}
int cudaGetDeviceCount(int *count) { return *count = devices(), 0; }
int cudaGetDevice(int *device) { return *device = current, 0; }
int cudaSetDevice(int device) { return device < devices() ? (current = device, 0) : 101; }
int cudaDeviceEnablePeerAccess(int peer, unsigned flags) { return (void)flags, peers |= 1u << peer, 0; }
int cudaDriverGetVersion(int *version) { return *version = RUNTIME_MAJOR * 1000, 0; }
int cudaRuntimeGetVersion(int *version) { return *version = RUNTIME_MAJOR * 1000, 0; }
int cudaDeviceCanAccessPeer(int *can, int device, int peer) { return *can = device != peer, 0; }
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, 0; }
int cudaMemGetInfo(size_t *free, size_t *total) { return *free = (size_t)79 << 30, *total = (size_t)80 << 30, 0; }

/* As much of cudaDeviceProp as PyTorch looks at; what comes later is left as it is. */
struct properties {
    char name[256], uuid[16], luid[8];
    unsigned mask;
    size_t memory, shared;
    int registers, warp;
    size_t pitch;
    int threads, sizes[6];
#if RUNTIME_MAJOR < 13
    int clock;
#endif
    size_t constant;
    int major, minor;
};
static int fill_properties(struct properties *filled) {
    memset(filled, 0, sizeof *filled);
    strcpy(filled->name, "fake");
    filled->memory = (size_t)80 << 30;
    filled->warp = 32;
    filled->threads = 1024;
    filled->major = 9;
    return 0;
}
int cudaDeviceGetAttribute(int *value, int attribute, int device) { return (void)attribute, (void)device, *value = 1, 0; }
int cudaGetDeviceProperties(struct properties *filled, int device) { return (void)device, fill_properties(filled); }
int cudaGetDeviceProperties_v2(struct properties *filled, int device) { return (void)device, fill_properties(filled); }

/* ---- streams, events, captures ---- */

int cudaStreamCreateWithPriority(stream_t *stream, unsigned flags, int priority) {
    (void)flags;
    return make_stream ? make_stream(priority, stream) : MEMORY_ALLOCATION;
}
int cudaStreamCreateWithFlags(stream_t *stream, unsigned flags) { return cudaStreamCreateWithPriority(stream, flags, 0); }
int cudaStreamCreate(stream_t *stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
int cudaLaunchHostFunc(stream_t stream, void (*function)(void *), void *data) { return (void)stream, function(data), 0; }
int cudaStreamIsCapturing(stream_t stream, int *status) {
    *status = capture.status && stream == capture.stream ? ACTIVE : NONE;
    return 0;
}
int cudaStreamGetCaptureInfo(stream_t stream, int *status, unsigned long long *id) {
    cudaStreamIsCapturing(stream, status);
    if (id) *id = capture.id;
    return 0;
}
int cudaStreamGetCaptureInfo_v2(stream_t stream, int *status, unsigned long long *id) {
    return cudaStreamGetCaptureInfo(stream, status, id);
}
int cudaStreamBeginCapture(stream_t stream, int mode) {
    (void)mode;
    capture.stream = stream;
    capture.status = ACTIVE;
    capture.id++;
    return 0;
}
int cudaStreamEndCapture(stream_t stream, void **graph) {
    (void)stream;
    capture.status = NONE;
    *graph = &capture;
    return 0;
}
int cudaGraphInstantiate(void **instance, void *graph) { return *instance = graph, 0; }
int cudaGraphInstantiateWithFlags(void **instance, void *graph) { return *instance = graph, 0; }
int cudaGraphGetNodes(void *graph, void **nodes, size_t *count) { return (void)graph, (void)nodes, *count = 1, 0; }
int cudaEventCreateWithFlags(void **event, unsigned flags) { return (void)flags, *event = (void *)(next_event += 16), 0; }

/* ---- kernels: what `<<<...>>>` calls before it launches one ---- */

struct sizes {
    unsigned x, y, z;
};
unsigned __cudaPushCallConfiguration(struct sizes grid, struct sizes block, size_t shared, stream_t stream) {
    return (void)grid, (void)block, (void)shared, kernels++, aside += stream != NULL, 0;
}

/* ---- memory: a device's is not to be had here ---- */

int cudaMalloc(void **pointer, size_t size) { return (void)size, device_calls++, *pointer = NULL, MEMORY_ALLOCATION; }
int cudaMallocAsync(void **pointer, size_t size, stream_t stream) { return (void)stream, cudaMalloc(pointer, size); }
int cudaMallocFromPoolAsync(void **pointer, size_t size, void *pool, stream_t stream) {
    return (void)pool, cudaMallocAsync(pointer, size, stream);
}

int cudaMallocHost(void **pointer, size_t size) { return host_calls++, (*pointer = malloc(size)) ? 0 : MEMORY_ALLOCATION; }
int cudaHostAlloc(void **pointer, size_t size, unsigned flags) { return (void)flags, cudaMallocHost(pointer, size); }
int cudaFreeHost(void *pointer) { return free(pointer), 0; }

int cudaMemcpy(void *to, const void *from, size_t size, int kind) {
    (void)kind;
    if (getenv("FAKE_CUDART_CONTENTS")) memmove(to, from, size);
    return copies[0]++, 0;
}
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, stream_t stream) {
    return aside += stream != NULL, cudaMemcpy(to, from, size, kind);
}
int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size, stream_t stream) {
    return (void)to, (void)to_device, (void)from, (void)from_device, (void)size, (void)stream, copies[1]++, 0;
}

/* ---- errors ---- */

const char *cudaGetErrorString(int code) { return code == MEMORY_ALLOCATION ? "out of memory" : "fake"; }
const char *cudaGetErrorName(int code) { return cudaGetErrorString(code); }

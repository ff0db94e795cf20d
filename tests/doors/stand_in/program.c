/* A CUDA program as others write them: it knows nothing of Strata. Its argument says what it does; it prints what it sees. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/doors/stand_in/stand_in.h"

static const size_t MiB = 1 << 20;

#define SAY(name, value) printf(name " %lld\n", (long long)(value))

static void *get(size_t size) {
    void *address = NULL;
    int code = cudaMalloc(&address, size);
    if (code) SAY("cudaMalloc", code);
    return address;
}

/* Requests and frees, all of which the allocator can serve from what it has. */
static void serve(void) {
    void *blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = get(MiB);
    SAY("differ", blocks[0] != blocks[1] && blocks[1] != blocks[2]);
    SAY("aligned", (uintptr_t)blocks[0] % 256 == 0);
    for (int i = 0; i < 3; i++) SAY("freed", cudaFree(blocks[i]));
    SAY("nothing", cudaFree(NULL));
    SAY("empty", cudaMalloc(&blocks[0], 0));
    SAY("real_mallocs", stand_in_calls("MemAlloc"));
}

/* A freed block is waited for when it is needed, not before. */
static void unordered(void) {
    void *stream, *first = get(8 * MiB), *other = get(8 * MiB);
    cudaStreamCreate(&stream);
    stand_in_submit(stream);
    cudaFree(first);
    SAY("pending_after_free", stand_in_pending(0));
    void *second = get(8 * MiB);
    SAY("pending_after_reuse", stand_in_pending(0));
    SAY("same", second == first);
    cudaFree(second);
    cudaFree(other);
}

/* Memory that came from the runtime behind Strata's back. */
static void foreign(void) {
    void *library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD), *address = NULL;
    int (*hidden)(void **, size_t) = (int (*)(void **, size_t))(uintptr_t)dlsym(library, "cudaMalloc");
    void *own = get(MiB);
    unsigned long long before = stand_in_calls("MemFree");
    hidden(&address, MiB);
    SAY("freed", cudaFree(address));
    SAY("real_frees", stand_in_calls("MemFree") - before);
    SAY("unknown", cudaFree((char *)own + 512) != 0);
    SAY("own", cudaFree(own));
}

/* What others ask of the device finds room that is kept idle: 1 GiB in all. */
static void budget(void) {
    size_t pitch;
    void *image = NULL, *large = get(700 * MiB);
    cudaFree(large);
    SAY("used", stand_in_used(0) / MiB >= 700);
    SAY("pitch", cudaMallocPitch(&image, &pitch, MiB, 600));
    SAY("served_beside", cudaMalloc(&large, 300 * MiB));
    SAY("too_much", cudaMallocPitch(&image, &pitch, MiB, 600));
    SAY("oom", cudaMalloc(&image, 2048 * MiB));
}

static void mem_info(void) {
    size_t before, total, after;
    void *block = get(MiB);
    cudaMemGetInfo(&before, &total);
    void *large = get(256 * MiB);
    cudaFree(large);
    cudaMemGetInfo(&after, &total);
    SAY("free_again", after == before);
    SAY("used", stand_in_used(0) / MiB >= 256);
    SAY("total", total / MiB);
    cudaFree(block);
}

static void streams(void) {
    void *stream, *a = NULL, *b = NULL;
    cudaStreamCreate(&stream);
    SAY("on", cudaMallocAsync(&a, MiB, stream));
    stand_in_submit(stream);
    SAY("freed_on", cudaFreeAsync(a, stream));
    SAY("again", cudaMallocAsync(&b, MiB, stream));
    SAY("in_order", a == b && stand_in_pending(0) > 0);
    SAY("freed_without", cudaFree(b));
    SAY("destroyed", cudaStreamDestroy(stream));
    SAY("legacy", cudaMallocAsync(&a, MiB, NULL));
    SAY("freed_on", cudaFreeAsync(a, NULL));
    SAY("pool_calls", stand_in_calls("MemAllocFromPoolAsync"));
    cudaSetDevice(1);
    cudaStreamCreate(&stream);
    cudaSetDevice(0);
    (void)cudaMallocAsync(&a, MiB, stream); /* of the second device: CUDA's own affair */
    SAY("pool_calls_of_another", stand_in_calls("MemAllocFromPoolAsync"));
}

static void host(void) {
    void *a = NULL, *b = NULL, *c = NULL, *managed = NULL;
    SAY("pinned", cudaMallocHost(&a, MiB));
    memset(a, 1, MiB);
    SAY("mapped", cudaHostAlloc(&b, MiB, 3));
    SAY("combined", cudaHostAlloc(&c, MiB, 4));
    SAY("managed", cudaMallocManaged(&managed, MiB, 1));
    SAY("freed", cudaFreeHost(a) + cudaFreeHost(b) + cudaFreeHost(c) + cudaFree(managed));
}

static void reset(void) {
    void *stream;
    get(MiB);
    cudaStreamCreate(&stream);
    SAY("reset", cudaDeviceReset());
    SAY("lost", stand_in_lost);
    SAY("again", get(MiB) != NULL);
    cudaSetDevice(1);
    void *second = get(MiB);
    SAY("second", second != NULL);
    cudaSetDevice(0);
    SAY("kept", cudaDeviceReset());
    SAY("lost", stand_in_lost);
    SAY("freed", cudaFree(second));
}

/* A stream is captured: whoever waited for the device would break that. */
static void capture(void) {
    void *stream, *graph = NULL, *block = get(8 * MiB);
    cudaStreamCreate(&stream);
    SAY("begun", cudaStreamBeginCapture(stream, 2));
    cudaFree(block);
    void *other = get(8 * MiB);
    SAY("elsewhere", other != block);
    SAY("ended", cudaStreamEndCapture(stream, &graph));
    SAY("after", get(8 * MiB) == block);
}

static void ipc(void) {
    char handle[64];
    void *a = get(MiB), *b = get(MiB);
    SAY("shared", (cudaIpcGetMemHandle(handle, a) == 0) + (cudaIpcGetMemHandle(handle, b) == 0));
    SAY("refused", (cudaIpcGetMemHandle(handle, a) == 801) + (cudaIpcGetMemHandle(handle, b) == 801));
}

static void driver(void) {
    unsigned long long a = 0, before;
    void *context, *pinned;
    size_t unused, total;
    SAY("without_context", cuMemAlloc_v2(&a, MiB) != 0);
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxPushCurrent_v2(context);
    before = stand_in_calls("MemAlloc");
    SAY("served", cuMemAlloc_v2(&a, MiB));
    SAY("real_mallocs", stand_in_calls("MemAlloc") - before);
    SAY("freed", cuMemFree_v2(a));
    SAY("pinned", cuMemHostAlloc(&pinned, MiB, 0) + cuMemFreeHost(pinned));
    SAY("info", cuMemGetInfo_v2(&unused, &total));
    SAY("runtime_calls", stand_in_runtime_calls());
    cuDevicePrimaryCtxRetain(&context, 1);
    cuCtxPushCurrent_v2(context); /* the runtime's device is still the first one */
    before = stand_in_calls("MemAlloc");
    get(MiB);
    SAY("in_another_context", stand_in_calls("MemAlloc") - before);
}

/* Uses CUDA by hand, as a runtime does that is linked statically. */
static void by_hand(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned int) = (int (*)(unsigned int))(uintptr_t)dlsym(library, "cuInit");
    SAY("init", init(0));
}

/* A child of fork(), in which CUDA refuses calls, and one that executes the program again. */
static void children(char *self) {
    get(MiB);
    fflush(stdout);
    pid_t forked = fork();
    if (forked == 0) {
        void *address = NULL;
        SAY("forked", cudaMalloc(&address, MiB) != 0);
        fflush(stdout);
        exit(0);
    }
    pid_t run = fork();
    if (run == 0) {
        execl(self, self, "serve", (char *)NULL);
        _exit(1);
    }
    waitpid(forked, NULL, 0);
    waitpid(run, NULL, 0);
    printf("processes %d %d %d\n", (int)getpid(), (int)forked, (int)run);
}

static void *churn(void *seed_of) {
    unsigned seed = (unsigned)(uintptr_t)seed_of, failures = 0;
    void *held[8] = {NULL};
    for (int i = 0; i < 2000; i++) {
        void **slot = &held[rand_r(&seed) % 8];
        if (*slot) failures += cudaFree(*slot) != 0;
        *slot = NULL;
        failures += rand_r(&seed) % 2 && cudaMalloc(slot, (size_t)(1 + rand_r(&seed) % 4096) * 1024) != 0;
    }
    for (int i = 0; i < 8; i++) failures += cudaFree(held[i]) != 0;
    return (void *)(uintptr_t)failures;
}

static void threads(void) {
    pthread_t all[4];
    uintptr_t failures = 0;
    for (size_t i = 0; i < 4; i++) pthread_create(&all[i], NULL, churn, (void *)(i + 1));
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        pthread_join(all[i], &failed);
        failures += (uintptr_t)failed;
    }
    SAY("failures", failures);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "children") == 0) return children(argv[0]), 0;
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"serve", serve},     {"unordered", unordered}, {"foreign", foreign}, {"budget", budget},   {"mem_info", mem_info},
               {"streams", streams}, {"host", host},           {"reset", reset},     {"capture", capture}, {"ipc", ipc},
               {"driver", driver},   {"by_hand", by_hand},     {"threads", threads}};
    for (size_t i = 0; argc == 2 && i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].name) == 0) return all[i].run(), 0;
    return 2;
}

/* The Toolkit's runtime beside the library, as a program has it: streams, memory and the last error are everybody's. */
#include <dlfcn.h>
#include <string.h>

#include "tests/gpu/gpu.h"

enum { TO_DEVICE = 1, TO_HOST = 2 }; /* cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost */

/* X(name without "cuda", arguments) of the runtime; every function answers a cudaError_t. */
#define RUNTIME_MAP(X)                                                                                                             \
    X(MemcpyAsync, (void *to, const void *from, size_t size, int kind, void *stream))                                              \
    X(StreamSynchronize, (void *stream))                                                                                           \
    X(StreamQuery, (void *stream))                                                                                                 \
    X(GetLastError, (void))                                                                                                        \
    X(Malloc, (void **address, size_t size))                                                                                       \
    X(Free, (void *address))

static struct {
    void *library;
#define RUNTIME_FIELD(name, arguments) int(*name) arguments;
    RUNTIME_MAP(RUNTIME_FIELD)
#undef RUNTIME_FIELD
} runtime;

static bool find(void *function, const char *name) {
    void *found = dlsym(runtime.library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* NULL, or why the runtime cannot be used. */
static const char *runtime_missing(void) {
    if (!*STRATA_CUDA_RUNTIME) return "CMake has found no CUDA Toolkit with a runtime";
    runtime.library = dlopen(STRATA_CUDA_RUNTIME, RTLD_NOW | RTLD_LOCAL);
    bool all = runtime.library != NULL;
#define RUNTIME_FIND(name, arguments) all = all && find(&runtime.name, "cuda" #name);
    RUNTIME_MAP(RUNTIME_FIND)
#undef RUNTIME_FIND
    return all ? NULL : "the CUDA Toolkit's runtime cannot be loaded";
}

#define RUNTIME_OR_SKIP()                                                                                                          \
    do {                                                                                                                           \
        const char *missing_ = runtime_missing();                                                                                  \
        if (missing_) TEST_SKIP(missing_);                                                                                         \
    } while (0)

TEST(gpu, runtime_uses_the_librarys_memory_and_streams) {
    GPU_OR_SKIP(device);
    RUNTIME_OR_SKIP();
    strata_handle_t stream;
    strata_address_t address;
    char given[256], got[256] = {0};
    memset(given, 7, sizeof given);
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, sizeof given, &address));
    EXPECT_EQ(runtime.MemcpyAsync((void *)(uintptr_t)address, given, sizeof given, TO_DEVICE, stream), 0);
    EXPECT_EQ(runtime.MemcpyAsync(got, (void *)(uintptr_t)address, sizeof got, TO_HOST, stream), 0);
    EXPECT_EQ(runtime.StreamSynchronize(stream), 0);
    EXPECT_EQ(memcmp(given, got, sizeof got), 0);
    EXPECT_EQ(runtime.StreamQuery(stream), 0);
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, address));
    EXPECT_OK(strata_device_stream_destroy(device, stream));
    strata_device_close(device);
}

TEST(gpu, failed_calls_leave_no_last_error_in_the_runtime) {
    GPU_OR_SKIP(device);
    RUNTIME_OR_SKIP();
    strata_address_t address;
    void *own = NULL;
    EXPECT_EQ(runtime.Malloc(&own, 4096), 0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(device, STRATA_MEMORY_DEVICE, UINT64_C(1) << 46, &address));
    EXPECT_EQ(runtime.GetLastError(), 0);
    EXPECT_EQ(runtime.Free(own), 0);
    strata_device_close(device);
}

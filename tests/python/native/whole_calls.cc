/* Calls of PyTorch's allocator that no Python function leads to, through libc10_cuda, as PyTorch's own C++ makes them. */
#include <c10/cuda/CUDACachingAllocator.h>

namespace ca = c10::cuda::CUDACachingAllocator;

#define CALL extern "C" __attribute__((visibility("default")))

/* What cudnn.benchmark asks. */
CALL size_t calls_cache_info(int device) {
    size_t largest = 0;
    ca::cacheInfo((c10::DeviceIndex)device, &largest);
    return largest;
}
CALL void *calls_base(void *pointer, size_t *size) { return ca::getBaseAllocation(pointer, size); }
CALL void calls_peer(int device, int other) { ca::enablePeerAccess((c10::DeviceIndex)device, (c10::DeviceIndex)other); }
CALL int calls_copy(void *to, int to_device, const void *from, int from_device, size_t size, int peers) {
    return (int)ca::memcpyAsync(to, to_device, from, from_device, size, nullptr, peers != 0);
}
CALL void calls_annotate(const char *name, const char *value) { ca::recordAnnotation({{name, value}}); }
CALL void calls_compile_context(const char *context) {
    std::string text = context ? context : "";
    if (context) ca::pushCompileContext(text);
    else ca::popCompileContext();
}

static int callbacks, traced;
namespace {
struct Freed final : c10::FreeMemoryCallback {
    bool Execute() override { return callbacks++, true; }
};
} // namespace
namespace c10 {
REGISTER_FREE_MEMORY_CALLBACK("strata_test", Freed)
}
CALL int calls_callbacks() { return callbacks; }
CALL void calls_track() {
    ca::attachAllocatorTraceTracker([](const ca::TraceEntry &) { traced++; });
}
CALL int calls_traced() { return traced; }

// The resources that CCCL takes, with the CCCL that CMake has found.
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE // for CCCL before 3.2
#include "strata/memory_resource.hpp"

#include <gtest/gtest.h>

#include "tests/cpp/simulated.hpp"

namespace mr = cuda::mr;

// The names of the concepts changed with CCCL 3.2.
#if CCCL_VERSION >= 3002000
template <class Resource, class... Properties> constexpr bool in_order = mr::resource_with<Resource, Properties...>;
template <class Resource, class... Properties> constexpr bool at_once = mr::synchronous_resource_with<Resource, Properties...>;
using any_device_ref = mr::resource_ref<mr::device_accessible>;
static void *get(any_device_ref ref, cuda::stream_ref stream, std::size_t size) { return ref.allocate(stream, size, 256); }
static void give(any_device_ref ref, cuda::stream_ref stream, void *ptr, std::size_t size) {
    ref.deallocate(stream, ptr, size, 256);
}
#else
template <class Resource, class... Properties> constexpr bool in_order = mr::async_resource_with<Resource, Properties...>;
template <class Resource, class... Properties> constexpr bool at_once = mr::resource_with<Resource, Properties...>;
using any_device_ref = mr::async_resource_ref<mr::device_accessible>;
static void *get(any_device_ref ref, cuda::stream_ref stream, std::size_t size) { return ref.allocate_async(size, 256, stream); }
static void give(any_device_ref ref, cuda::stream_ref stream, void *ptr, std::size_t size) {
    ref.deallocate_async(ptr, size, 256, stream);
}
#endif

static_assert(in_order<strata::device_memory_resource, mr::device_accessible>);
static_assert(!in_order<strata::device_memory_resource, mr::host_accessible>);
static_assert(in_order<strata::managed_memory_resource, mr::device_accessible, mr::host_accessible>);
static_assert(in_order<strata::pinned_memory_resource, mr::device_accessible, mr::host_accessible>);
static_assert(in_order<strata::host_memory_resource, mr::host_accessible>);
static_assert(!in_order<strata::host_memory_resource, mr::device_accessible>);
static_assert(at_once<strata::device_memory_resource, mr::device_accessible>);

TEST(cpp_cccl, resource_ref_serves_in_stream_order) {
    strata::facade facade(simulated("strata-malloc"));
    strata::device_memory_resource memory(facade, strata_gpu(0));
    strata::stream a = facade.create_stream(strata_gpu(0)), b = facade.create_stream(strata_gpu(0));
    cuda::stream_ref on_a(static_cast<cudaStream_t>(a.get())), on_b(static_cast<cudaStream_t>(b.get()));
    void *first = get(memory, on_a, 4 * MiB);
    EXPECT_NE(first, nullptr);
    EXPECT_EQ(live(facade), 1u);
    give(memory, on_a, first, 4 * MiB);
    EXPECT_EQ(get(memory, on_a, 4 * MiB), first);
    strata::check(strata_stream_work(facade.get(), strata_gpu(0), b, 1000000000, nullptr, 0));
    give(memory, on_b, first, 4 * MiB);
    EXPECT_EQ(live(facade), 0u);
    EXPECT_GE(deferred(facade), 4 * MiB);
}

TEST(cpp_cccl, copies_are_equal_and_free_each_others_memory) {
    strata::facade facade(simulated()), other(simulated());
    strata::device_memory_resource memory(facade, strata_gpu(0)), copy = memory, foreign(other, strata_gpu(0));
    EXPECT_TRUE(memory == copy && memory != foreign);
    copy.deallocate_sync(memory.allocate_sync(MiB), MiB);
    copy.deallocate(memory.allocate(MiB), MiB);
    EXPECT_EQ(live(facade), 0u);
    EXPECT_EQ(memory.place(), strata_gpu(0));
    EXPECT_EQ(memory.facade(), facade.get());
}

TEST(cpp_cccl, host_memory_is_served_too) {
    strata::facade facade(simulated());
    strata::host_memory_resource host(facade, strata_host());
    strata::pinned_memory_resource pinned(facade, strata_pinned());
    void *a = host.allocate_sync(MiB), *b = pinned.allocate_sync(MiB);
    EXPECT_NE(a, nullptr);
    EXPECT_EQ(live(facade, strata_pinned()), 1u);
    host.deallocate_sync(a, MiB);
    pinned.deallocate_sync(b, MiB);
    EXPECT_EQ(live(facade, strata_pinned()), 0u);
}

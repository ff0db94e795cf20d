// The resource that RMM takes, with the RMM that CMake has found.
#include "strata/rmm.hpp"

#include <rmm/cuda_stream_view.hpp>
#include <rmm/resource_ref.hpp>

#include <gtest/gtest.h>

#include "tests/cpp/simulated.hpp"

static void *get(rmm::device_async_resource_ref memory, strata_stream_t stream, std::size_t size) {
    return memory.allocate(cuda::stream_ref(static_cast<cudaStream_t>(stream)), size, 256);
}
static void give(rmm::device_async_resource_ref memory, strata_stream_t stream, void *address, std::size_t size) {
    memory.deallocate(cuda::stream_ref(static_cast<cudaStream_t>(stream)), address, size, 256);
}

TEST(cpp_rmm, resource_ref_serves_in_stream_order) {
    strata::facade facade(simulated("strata-malloc"));
    strata::rmm_resource memory(facade, strata_gpu(0));
    strata::stream a = facade.create_stream(strata_gpu(0)), b = facade.create_stream(strata_gpu(0));
    EXPECT_EQ(get(memory, a, 0), nullptr);
    void *first = get(memory, a, 4 * MiB);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0u);
    give(memory, a, first, 4 * MiB);
    EXPECT_EQ(get(memory, a, 4 * MiB), first);
    strata::check(strata_stream_work(facade.get(), strata_gpu(0), b, 1000000000, nullptr, 0));
    give(memory, b, first, 4 * MiB);
    EXPECT_EQ(live(facade), 0u);
    EXPECT_GE(deferred(facade), 4 * MiB);
}

TEST(cpp_rmm, memory_without_a_stream) {
    strata::facade facade(simulated());
    strata::rmm_resource memory(facade, strata_gpu(0));
    void *address = memory.allocate_sync(MiB);
    EXPECT_EQ(live(facade), 1u);
    memory.deallocate_sync(address, MiB);
    EXPECT_EQ(live(facade), 0u);
}

// A petabyte is out of memory by RMM's type, and its text says so.
TEST(cpp_rmm, failures_are_of_rmms_types) {
    strata::facade facade(simulated());
    strata::rmm_resource memory(facade, strata_gpu(0));
    try {
        get(memory, nullptr, std::size_t(1) << 47);
        FAIL() << "128 TiB of 80 GiB";
    } catch (const rmm::out_of_memory &full) {
        EXPECT_NE(std::string(full.what()).find("out of memory"), std::string::npos) << full.what();
    }
    facade.close();
    try {
        get(memory, nullptr, MiB);
        FAIL() << "memory of a closed facade";
    } catch (const rmm::out_of_memory &full) { FAIL() << full.what(); } catch (const rmm::bad_alloc &closed) {
        EXPECT_STRNE(closed.what(), "");
    }
}

TEST(cpp_rmm, resources_of_one_place_are_equal) {
    strata::facade facade(simulated()), foreign(simulated());
    strata::rmm_resource memory(facade, strata_gpu(0)), same(facade, strata_gpu(0)), other(foreign, strata_gpu(0));
    EXPECT_TRUE(memory == same);
    EXPECT_TRUE(memory != other);
    void *address = get(memory, nullptr, MiB);
    give(same, nullptr, address, MiB);
    EXPECT_EQ(live(facade), 0u);
}

// The objects of strata.hpp on the simulated device: who owns what, what is thrown, and when memory goes back.
#include <gtest/gtest.h>

#include <type_traits>

#include "tests/cpp/simulated.hpp"

static_assert(!std::is_copy_constructible_v<strata::facade> && std::is_nothrow_move_constructible_v<strata::facade>);
static_assert(!std::is_copy_constructible_v<strata::block> && std::is_nothrow_move_assignable_v<strata::block>);
static_assert(!std::is_copy_constructible_v<strata::stream> && std::is_nothrow_move_constructible_v<strata::stream>);
static_assert(std::is_nothrow_copy_constructible_v<strata::error> && std::is_nothrow_copy_constructible_v<strata::out_of_memory>);
static_assert(std::is_trivially_copyable_v<strata::allocator> && std::is_trivially_copyable_v<strata::resource>);

// The status that `call` throws; OK: nothing.
template <class Error, class Call> static strata_status_t thrown(Call call) {
    try {
        call();
    } catch (const Error &caught) {
        EXPECT_STRNE(caught.what(), "");
        return caught.status();
    }
    return STRATA_OK;
}

TEST(cpp, block_frees_at_the_end_of_its_scope) {
    strata::facade facade(simulated());
    {
        strata::block block = facade.allocate(strata_gpu(0), nullptr, 3 * MiB);
        EXPECT_TRUE(block);
        EXPECT_NE(block.ptr(), nullptr);
        EXPECT_EQ(block.as<char>(), block.ptr());
        EXPECT_GE(block.size(), 3 * MiB);
        EXPECT_EQ(live(facade), 1u);
    }
    EXPECT_EQ(live(facade), 0u);
    EXPECT_GT(facade.release(strata_gpu(0)), 0u);
    EXPECT_EQ(facade.statistics(strata_gpu(0)).reserved_bytes, 0u);
}

TEST(cpp, block_is_moved_and_owned_once) {
    strata::facade facade(simulated());
    strata::block first = facade.allocate(strata_gpu(0), nullptr, MiB), second = facade.allocate(strata_gpu(0), nullptr, MiB);
    strata_ref_t ref = first.ref();
    second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_EQ(second.ref(), ref);
    EXPECT_EQ(live(facade), 1u);
    strata::block &itself = second;
    second = std::move(itself);
    EXPECT_EQ(second.ref(), ref);
    strata_block_t mine = second.release();
    EXPECT_FALSE(second);
    EXPECT_EQ(live(facade), 1u);
    strata::block(facade.get(), mine).free();
    EXPECT_EQ(live(facade), 0u);
    EXPECT_EQ(thrown<strata::error>([&] { strata::block(facade.get(), mine).free(); }), STRATA_E_STALE);
}

TEST(cpp, block_of_no_bytes_is_owned_too) {
    strata::facade facade(simulated());
    {
        strata::block nothing = facade.allocate(strata_gpu(0), nullptr, std::size_t(0));
        EXPECT_TRUE(nothing);
        EXPECT_EQ(nothing.ptr(), nullptr);
        EXPECT_EQ(live(facade), 1u);
    }
    EXPECT_EQ(live(facade), 0u);
}

TEST(cpp, shared_block_lives_until_its_last_owner) {
    strata::facade facade(simulated());
    strata::block one = facade.allocate(strata_gpu(0), nullptr, MiB), other = one.share();
    EXPECT_EQ(one.ptr(), other.ptr());
    one.free();
    EXPECT_FALSE(one);
    EXPECT_EQ(live(facade), 1u);
    other.reset();
    EXPECT_EQ(live(facade), 0u);
}

TEST(cpp, borrowed_block_waits_for_its_borrower) {
    strata::facade facade(simulated("strata-malloc"));
    strata::stream copy = facade.create_stream(strata_gpu(0));
    strata::block block = facade.allocate(strata_gpu(0), nullptr, 4 * MiB),
                  erased = facade.allocate(strata_gpu(0), nullptr, 4 * MiB);
    strata::check(strata_stream_work(facade.get(), strata_gpu(0), copy, 1000000000, nullptr, 0));
    block.record_stream(copy);
    erased.record_stream(copy);
    erased.erase_stream(copy);
    erased.free();
    EXPECT_EQ(deferred(facade), 0u);
    block.free();
    EXPECT_GE(deferred(facade), 4 * MiB);
    copy.synchronize();
}

TEST(cpp, block_freed_on_another_stream_waits_for_it) {
    strata::facade facade(simulated("strata-malloc"));
    strata::stream copy = facade.create_stream(strata_gpu(0), -1);
    strata::block block = facade.allocate(strata_gpu(0), nullptr, 4 * MiB);
    strata::check(strata_stream_work(facade.get(), strata_gpu(0), copy, 1000000000, nullptr, 0));
    block.free_on(copy);
    EXPECT_FALSE(block);
    EXPECT_GE(deferred(facade), 4 * MiB);
}

TEST(cpp, stream_is_forgotten_wherever_it_was_used) {
    strata::facade facade(simulated());
    strata_stream_t handle;
    {
        strata::stream used = facade.create_stream(strata_gpu(0)), moved = std::move(used);
        EXPECT_EQ(used.get(), nullptr);
        handle = moved;
        facade.allocate(strata_gpu(0), moved, MiB).free();
        facade.allocate(strata_managed(0), moved, MiB).free();
        facade.allocate(strata_pinned(), moved, MiB).free();
    }
    EXPECT_EQ(thrown<strata::error>([&] { strata::check(strata_stream_synchronize(facade.get(), strata_gpu(0), handle)); }),
              STRATA_E_UNKNOWN_STREAM);
    strata_statistics_t figures = {};
    figures.struct_size = sizeof figures;
    strata::check(strata_statistics(facade.get(), strata_gpu(0), handle, &figures));
    EXPECT_EQ(figures.allocations, 0u);
}

TEST(cpp, out_of_memory_is_a_bad_alloc_with_the_report) {
    strata::facade facade(simulated());
    strata::block most = facade.allocate(strata_gpu(0), nullptr, 60 * GiB);
    try {
        facade.allocate(strata_gpu(0), nullptr, 60 * GiB);
        FAIL() << "60 GiB twice on 80";
    } catch (const std::bad_alloc &full) {
        EXPECT_NE(std::string(full.what()).find("requested 60GiB"), std::string::npos) << full.what();
    }
    EXPECT_EQ(thrown<strata::out_of_memory>([&] { facade.allocate(strata_gpu(0), nullptr, 60 * GiB); }), STRATA_E_NO_MEMORY);
    strata::request request;
    request.size = 60 * GiB;
    request.flags = STRATA_NO_RETRY | STRATA_NO_REPORT;
    EXPECT_FALSE(facade.try_allocate(strata_gpu(0), nullptr, request));
    request.size = MiB;
    EXPECT_TRUE(facade.try_allocate(strata_gpu(0), nullptr, request));
    request.flags = UINT32_MAX;
    EXPECT_EQ(thrown<strata::error>([&] { (void)facade.try_allocate(strata_gpu(0), nullptr, request); }), STRATA_E_INVALID);
}

TEST(cpp, wrong_strategy_is_an_error_with_its_place) {
    strata::options options = simulated();
    options.preset.clear();
    options.text = "version: 1\nstrategy: wrong\nstack:\n  - auto_grow: {}\n";
    try {
        strata::facade facade(options);
        FAIL() << "a strategy with a layer that there is not";
    } catch (const std::runtime_error &wrong) {
        EXPECT_NE(std::string(wrong.what()).find(":4:"), std::string::npos) << wrong.what();
    }
    EXPECT_EQ(thrown<strata::error>([&] { strata::facade facade(options); }), STRATA_E_STRATEGY);
}

TEST(cpp, options_reach_the_strategy) {
    strata::options options = simulated("paddle");
    options.set = {"auto_growth.chunk_size=20MiB", "stream_safe.event=free"};
    strata::facade facade(options);
    std::string explained = facade.explain();
    EXPECT_NE(explained.find("20MiB"), std::string::npos);
    EXPECT_EQ(explained.find('\0'), std::string::npos);
    facade.allocate(strata_gpu(0), nullptr, 1).free();
    EXPECT_NE(facade.statistics_json().find("\"places\""), std::string::npos);
    EXPECT_EQ(facade.statistics(strata_gpu(0)).reserved_bytes, 20 * MiB);
}

TEST(cpp, facade_is_closed_once_and_by_force_at_the_end) {
    strata_t handle;
    strata::block outlives;
    {
        strata::facade facade(simulated()), other;
        EXPECT_FALSE(other);
        outlives = facade.allocate(strata_gpu(0), nullptr, MiB);
        EXPECT_EQ(thrown<strata::error>([&] { facade.close(); }), STRATA_E_BUSY);
        EXPECT_TRUE(facade);
        other = std::move(facade);
        EXPECT_FALSE(facade);
        handle = other.get();
        EXPECT_EQ(live(other), 1u);
    }
    EXPECT_EQ(thrown<strata::error>([&] { strata::check(strata_validate(handle)); }), STRATA_E_STALE);
    outlives.reset();
    strata::facade facade(simulated());
    facade.close();
    EXPECT_FALSE(facade);
    strata::facade kept(simulated());
    strata_t detached = kept.detach();
    EXPECT_FALSE(kept);
    EXPECT_EQ(strata_close(detached, STRATA_CLOSE_WAIT, nullptr, nullptr), STRATA_OK);
}

TEST(cpp, limit_and_caches_are_those_of_the_place) {
    strata::facade facade(simulated());
    facade.allocate(strata_gpu(0), nullptr, 64 * MiB).free();
    EXPECT_GE(facade.mem_info(strata_gpu(0)).cached, 64 * MiB);
    facade.trim(strata_gpu(0), 0);
    EXPECT_EQ(facade.mem_info(strata_gpu(0)).cached, 0u);
    facade.set_limit(strata_gpu(0), 32 * MiB);
    EXPECT_EQ(facade.mem_info(strata_gpu(0)).limit, 32 * MiB);
    EXPECT_EQ(thrown<strata::out_of_memory>([&] { facade.allocate(strata_gpu(0), nullptr, 64 * MiB); }), STRATA_E_NO_MEMORY);
}

TEST(cpp, allocator_object_serves_its_pool) {
    strata::options options = simulated();
    options.preset.clear();
    options
        .text = "version: 1\nstrategy: pools\nextends: strata\npools: {weights: {stack: [stream_safe: {}, auto_growth: {}, system: "
                "{}]}}\n";
    strata::facade facade(options);
    std::uint64_t weights = facade.pool("weights"), found = 0;
    strata::allocator allocator = facade.allocator(strata_gpu(0), nullptr, weights), copy = allocator;
    strata::block block = copy.allocate(MiB);
    strata::check(strata_pool_of(facade.get(), block.ref(), &found));
    EXPECT_EQ(found, weights);
    EXPECT_EQ(allocator.statistics().live_allocations, 1u);
    strata::request request;
    request.size = MiB;
    request.flags = STRATA_ZERO;
    EXPECT_TRUE(allocator.allocate(request));
    block.free();
    EXPECT_GT(allocator.release(), 0u);
    strata::block inside, outside;
    {
        strata::pool_scope scope(facade, strata_gpu(0), weights);
        inside = facade.allocate(strata_gpu(0), nullptr, MiB);
    }
    outside = facade.allocate(strata_gpu(0), nullptr, MiB);
    strata::check(strata_pool_of(facade.get(), inside.ref(), &found));
    EXPECT_EQ(found, weights);
    strata::check(strata_pool_of(facade.get(), outside.ref(), &found));
    EXPECT_EQ(found, STRATA_POOL_ORDINARY);
    EXPECT_EQ(thrown<strata::error>([&] { facade.pool("wights"); }), STRATA_E_INVALID);
}

TEST(cpp, resource_serves_addresses) {
    strata::facade facade(simulated("strata-malloc"));
    strata::resource memory(facade, strata_gpu(0)), copy = memory, other(facade, strata_managed(0));
    EXPECT_TRUE(memory == copy && memory != other);
    strata::stream a = facade.create_stream(strata_gpu(0)), b = facade.create_stream(strata_gpu(0));
    EXPECT_EQ(memory.allocate(a, 0, 256), nullptr);
    memory.deallocate(a, nullptr);
    void *first = memory.allocate(a, 4 * MiB, 256);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0u);
    copy.deallocate(a, first);
    EXPECT_EQ(live(facade), 0u);
    EXPECT_EQ(memory.allocate(a, 4 * MiB, 256), first);
    strata::check(strata_stream_work(facade.get(), strata_gpu(0), b, 1000000000, nullptr, 0));
    memory.deallocate(b, first);
    EXPECT_GE(deferred(facade), 4 * MiB);
    EXPECT_EQ(thrown<strata::out_of_memory>([&] { memory.allocate(a, 200 * GiB, 256); }), STRATA_E_NO_MEMORY);
    EXPECT_EQ(thrown<strata::error>([&] { memory.allocate(a, MiB, 64 * MiB); }), STRATA_E_UNSUPPORTED);
}

TEST(cpp, memory_without_a_stream_is_ready_for_any) {
    strata::options options = simulated("paddle");
    options.set = {"auto_growth.chunk_size=4MiB"};
    strata::facade facade(options);
    strata::resource memory(facade, strata_gpu(0));
    strata::stream other = facade.create_stream(strata_gpu(0));
    strata::block used = facade.allocate(strata_gpu(0), other, 4 * MiB);
    void *address = used.ptr();
    strata::check(strata_stream_work(facade.get(), strata_gpu(0), nullptr, 1000000000, nullptr, 0));
    used.record_stream(nullptr);
    used.free();
    strata::request cached;
    cached.size = 4 * MiB;
    cached.flags = STRATA_NO_GROW | STRATA_NO_REPORT;
    EXPECT_FALSE(facade.try_allocate(strata_gpu(0), other, cached));
    memory.deallocate_sync(memory.allocate_sync(4 * MiB, 256)); // waits for what the default stream has begun
    std::optional<strata::block> again = facade.try_allocate(strata_gpu(0), other, cached);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->ptr(), address);
}

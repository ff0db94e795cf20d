/* What a tool that records NVTX sees of growth, waits, release and out-of-memory. */
#include "platform/ranges/ranges.h"

#include "tests/facade/support/fixture.h"
#include "tests/ranges/tool.h"

#define WITHOUT_NVTX "built without NVTX's headers"

TEST(ranges, a_growth_is_one_with_its_bytes_and_a_hit_is_none) {
    if (!strata_ranges_are_built()) TEST_SKIP(WITHOUT_NVTX);
    RIG_STACK(rig, "auto_growth: {chunk_size: 20MiB}, system", 0);
    tool_clear();
    strata_block_t a = rig_allocate(&rig, NULL, 1000), b;
    EXPECT_EQ(tool_count("growth"), 1);
    EXPECT_EQ(tool_first("growth")->bytes, 20 * MIB);
    EXPECT_STREQ(tool_domain(), "strata");
    tool_clear();
    b = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(tool_count("growth"), 0);
    RIG_FREE(&rig, a, b);
    EXPECT_EQ(tool_count("allocate") + tool_count("free"), 0);
    EXPECT_EQ(tool_open(), 0);
}

TEST(ranges, a_release_is_one) {
    if (!strata_ranges_are_built()) TEST_SKIP(WITHOUT_NVTX);
    RIG_STACK(rig, "auto_growth, system", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    RIG_FREE(&rig, a);
    tool_clear();
    (void)rig_release(&rig);
    EXPECT_EQ(tool_count("release"), 1);
    EXPECT_EQ(tool_open(), 0);
}

/* The ladder releases on its way. */
TEST(ranges, out_of_memory_is_one_around_what_is_done_about_it) {
    if (!strata_ranges_are_built()) TEST_SKIP(WITHOUT_NVTX);
    RIG_STACK(rig, "auto_growth, system", 64 * MIB);
    tool_clear();
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 100 * MIB));
    EXPECT_EQ(tool_count("out of memory"), 1);
    EXPECT_EQ(tool_first("out of memory")->bytes, 100 * MIB);
    ASSERT_NE(tool_first("release"), NULL);
    EXPECT_GT(tool_first("release")->depth, tool_first("out of memory")->depth);
    EXPECT_EQ(tool_open(), 0);
}

/* No layer handles the borrow, so the free waits on the host. */
TEST(ranges, a_wait_on_the_host_is_one) {
    if (!strata_ranges_are_built()) TEST_SKIP(WITHOUT_NVTX);
    RIG_STACK(rig, "auto_growth, system", 0);
    strata_stream_t other = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    rig_borrow(&rig, a.ref, other, 1000000);
    tool_clear();
    RIG_FREE(&rig, a);
    EXPECT_EQ(tool_count("wait"), 1);
    EXPECT_EQ(tool_open(), 0);
}

/* ---- the layer nvtx ---- */

/* Wherever it stands, hits too. */
TEST(ranges, each_request_and_each_free_is_one_where_nvtx_stands) {
    static const char *const stacks[] = {"nvtx, stream_safe, auto_growth: {chunk_size: 20MiB}, system",
                                         "stream_safe, nvtx, auto_growth: {chunk_size: 20MiB}, system",
                                         "stat, nvtx, auto_growth: {chunk_size: 20MiB}, system"};
    if (!strata_ranges_are_built()) TEST_SKIP(WITHOUT_NVTX);
    for (size_t i = 0; i < COUNT(stacks); i++) {
        RIG_STACK(rig, stacks[i], 0);
        tool_clear();
        strata_block_t a = rig_allocate(&rig, NULL, 2048);
        EXPECT_EQ(tool_count("allocate"), 1);
        EXPECT_EQ(tool_first("allocate")->bytes, 2048);
        EXPECT_GT(tool_first("growth")->depth, tool_first("allocate")->depth);
        EXPECT_EQ(tool_open(), 0);
        strata_block_t b = rig_allocate(&rig, NULL, 1024);
        EXPECT_EQ(tool_count("allocate"), 2);
        EXPECT_EQ(tool_count("free"), 0);
        RIG_FREE(&rig, b);
        EXPECT_EQ(tool_count("free"), 1);
        EXPECT_EQ(tool_first("free")->bytes, 1024);
        RIG_FREE(&rig, a);
        EXPECT_EQ(tool_count("free"), 2);
        EXPECT_EQ(tool_open(), 0);
    }
}

TEST(ranges, a_request_that_fails_ends_its_range) {
    if (!strata_ranges_are_built()) TEST_SKIP(WITHOUT_NVTX);
    RIG_STACK(rig, "nvtx, auto_growth, system", 64 * MIB);
    tool_clear();
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 100 * MIB));
    EXPECT_GT(tool_count("allocate"), 0);
    EXPECT_EQ(tool_open(), 0);
}

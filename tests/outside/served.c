/* A loaded layer in a facade's stack: seen in the path of its allocations, in explain, and at work. */
#include "strata/strata.h"
#include "tests/harness/test.h"

static const char yaml[] = "load: [" STRATA_BINARY_DIR "/modules/my_layer.so, " STRATA_BINARY_DIR "/modules/sources.so]\n"
                           "stack: [retry, my_quota: {most: 1MiB}, stream_safe, auto_growth, filled_source]\n";

static strata_status_t open_it(uint32_t flags, strata_t *s) {
    strata_open_options_t options = {.struct_size = sizeof options, .text = yaml, .devices = "sim",
                                     .flags = flags | STRATA_OPEN_IGNORE_ENVIRONMENT};
    return strata_open(&options, s);
}

TEST(served, opening_loads_code_by_its_flag_alone) {
    strata_t s = 0;
    EXPECT_STATUS(STRATA_E_STRATEGY, open_it(0, &s));
    EXPECT_CONTAINS(strata_last_error()->text, "<text>:1:1: ");
    EXPECT_CONTAINS(strata_last_error()->text, "STRATA_OPEN_ALLOW_CODE");
    ASSERT_OK(open_it(STRATA_OPEN_ALLOW_CODE, &s));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_BUSY, NULL, NULL));
}

TEST(served, a_loaded_layer_takes_part) {
    strata_t s = 0;
    strata_block_t a, b;
    static char text[16384];
    ASSERT_OK(open_it(STRATA_OPEN_ALLOW_CODE, &s));
    ASSERT_OK(strata_allocate(s, strata_gpu(0), NULL, 700000, &a));
    EXPECT_OK(strata_allocation_path(s, a.ref, text, sizeof text));
    EXPECT_STREQ(text, "retry > my_quota > stream_safe > auto_growth | filled_source");
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 700000, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(s, strata_gpu(0), NULL, &options, &b));
    EXPECT_OK(strata_free(s, a.ref));
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, 700000, &a));
    EXPECT_OK(strata_free(s, a.ref));
    EXPECT_OK(strata_explain(s, text, sizeof text, NULL));
    EXPECT_CONTAINS(text, "my_quota: decorator of scope stream");
    EXPECT_OK(strata_validate(s));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

/* What a source from outside has from the device is counted, and counted off when it gives it back. */
TEST(served, its_memory_is_counted) {
    strata_t s = 0;
    strata_block_t a;
    strata_statistics_t f = {.struct_size = sizeof f};
    ASSERT_OK(open_it(STRATA_OPEN_ALLOW_CODE, &s));
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(strata_allocate(s, strata_gpu(0), NULL, 700000, &a));
        EXPECT_OK(strata_statistics_all(s, strata_gpu(0), &f));
        EXPECT_GE(f.reserved_bytes, 700000);
        EXPECT_EQ(f.peak_reserved_bytes, f.reserved_bytes);
        EXPECT_OK(strata_free(s, a.ref));
        EXPECT_OK(strata_release(s, strata_gpu(0), NULL));
        EXPECT_OK(strata_statistics_all(s, strata_gpu(0), &f));
        EXPECT_EQ(f.reserved_bytes, 0);
    }
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

TEST(served, what_is_live_goes_back_at_a_forced_close) {
    strata_t s = 0;
    strata_block_t a;
    ASSERT_OK(open_it(STRATA_OPEN_ALLOW_CODE, &s));
    ASSERT_OK(strata_allocate(s, strata_gpu(0), NULL, 4096, &a));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(s, a.ref));
}

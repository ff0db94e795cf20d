/* A loaded layer in a facade's stack: seen in the path of its allocations, in explain, and at work. */
#include "strata/strata.h"
#include "tests/harness/test.h"
#include "tests/paths.h"

static const char yaml[] = "load: [" STRATA_BINARY_DIR "/modules/my_layer.so, " STRATA_BINARY_DIR "/modules/sources.so]\n"
                           "stack: [retry, my_quota: {most: 1MiB}, stream_safe, auto_growth, filled_source]\n";

static strata_status_t open_it(uint32_t flags, strata_t *s) {
    strata_open_options_t options = {
        .struct_size = sizeof options, .text = yaml, .devices = "sim", .flags = flags | STRATA_OPEN_IGNORE_ENVIRONMENT};
    return strata_open(&options, s);
}

TEST(served, opening_loads_code_by_its_flag_alone) {
    strata_t s = 0;
    EXPECT_SAYS(STRATA_E_STRATEGY, open_it(0, &s), "<text>:1:1: ");
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
    EXPECT_OK(strata_allocation_route(s, a.ref, text, sizeof text));
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

static strata_status_t open_text(const char *text, strata_t *s) {
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .text = text,
                                     .devices = "sim",
                                     .flags = STRATA_OPEN_ALLOW_CODE | STRATA_OPEN_IGNORE_ENVIRONMENT};
    return strata_open(&options, s);
}

/* A decorator from outside that hands out records of its own: refs, borrows, pointers and shared ownership go by them. */
TEST(served, a_record_of_an_outside_decorator) {
    static const char text[] = "load: [" STRATA_BINARY_DIR "/modules/fenced.so]\n"
                               "stack: [retry, fenced, stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n"
                               "places: {host: [fenced, auto_growth: {alignment: 64}, system]}\n";
    strata_t s = 0;
    strata_stream_t other;
    strata_block_t a, b, found;
    char path[128];
    ASSERT_OK(open_text(text, &s));
    ASSERT_OK(strata_stream_create(s, strata_gpu(0), 0, &other));
    ASSERT_OK(strata_allocate(s, strata_gpu(0), NULL, 1000, &a));
    EXPECT_EQ(a.size, 1000);
    EXPECT_OK(strata_allocation_route(s, a.ref, path, sizeof path));
    EXPECT_STREQ(path, "retry > fenced > stream_safe > auto_growth | system");
    EXPECT_OK(strata_base_pointer(s, (char *)a.ptr + 999, &found));
    EXPECT_EQ(found.ref, a.ref);
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_base_pointer(s, (char *)a.ptr + 1000, &found));
    EXPECT_OK(strata_record_stream(s, a.ref, other));
    EXPECT_OK(strata_retain(s, a.ref));
    EXPECT_OK(strata_free_pointer(s, a.ptr));
    EXPECT_OK(strata_free(s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(s, a.ref));
    /* The host's memory can be seen: a write after a block is found, and validate() says so. */
    ASSERT_OK(strata_allocate(s, strata_host(), NULL, 100, &b));
    ((char *)b.ptr)[99] = 1;
    EXPECT_OK(strata_free(s, b.ref));
    EXPECT_OK(strata_validate(s));
    ASSERT_OK(strata_allocate(s, strata_host(), NULL, 100, &b));
    ((char *)b.ptr)[100] = 1;
    EXPECT_OK(strata_free(s, b.ref));
    EXPECT_SAYS(STRATA_E_CORRUPT, strata_validate(s), "fenced: somebody wrote a fence");
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

/* The way that a request took is told, and its free goes back by it. */
TEST(served, an_outside_router_tells_which_way) {
    static const char text[] = "load: [" STRATA_BINARY_DIR "/modules/routers.so]\n"
                               "stack:\n  - retry\n  - stream_safe\n  - by_pages:\n      routes:\n"
                               "        - {most: 2, stack: [auto_growth: {chunk_size: 1MiB}, system]}\n"
                               "        - {stack: [turns: {stacks: [[buffered, system], [system]]}]}\n";
    static const struct {
        size_t size;
        const char *path;
    } rows[] = {{8192, "retry > stream_safe > by_pages > auto_growth | system"},
                {8193, "retry > stream_safe > by_pages > turns > buffered | system"},
                {8193, "retry > stream_safe > by_pages > turns > system"},
                {1, "retry > stream_safe > by_pages > auto_growth | system"}};
    strata_t s = 0;
    strata_block_t blocks[4];
    char path[128];
    ASSERT_OK(open_text(text, &s));
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(strata_allocate(s, strata_gpu(0), NULL, rows[i].size, &blocks[i]));
        EXPECT_OK(strata_allocation_route(s, blocks[i].ref, path, sizeof path));
        EXPECT_STREQ(path, rows[i].path);
    }
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(s, blocks[i].ref));
    EXPECT_OK(strata_validate(s));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_SAYS(STRATA_E_STRATEGY,
                open_text("load: [" STRATA_BINARY_DIR "/modules/routers.so]\nstack:\n  - by_pages:\n      routes:\n"
                          "        - {mots: 2, stack: [system]}\n        - {stack: [system]}\n",
                          &s),
                "<text>:5:12: a route of \"by_pages\" has no \"mots\"; write most");
}

/* The outermost layer drops the alignment of a request, so the second block of a chunk is misaligned. */
TEST(served, an_address_that_a_layer_moved_is_not_handed_out_as_aligned) {
    static const char text[] = "load: [" STRATA_BINARY_DIR "/modules/misasked.so]\n"
                               "stack: [at_place_alignment, aligned: {from: 1GiB}, auto_growth, system]\n";
    strata_open_options_t open = {.struct_size = sizeof open,
                                  .text = text,
                                  .devices = "sim",
                                  .flags = STRATA_OPEN_ALLOW_CODE | STRATA_OPEN_IGNORE_ENVIRONMENT};
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 1000, .alignment = 4096};
    strata_statistics_t f = {.struct_size = sizeof f};
    strata_block_t first, block = {.ref = 3};
    strata_t s = 0;
    ASSERT_OK(strata_open(&open, &s));
    ASSERT_OK(strata_allocate(s, strata_gpu(0), NULL, 1000, &first));
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_allocate_with(s, strata_gpu(0), NULL, &options, &block),
                "a layer of the stack shifts addresses");
    EXPECT_EQ(block.ref, 3);
    EXPECT_OK(strata_statistics_all(s, strata_gpu(0), &f));
    EXPECT_EQ(f.live_allocations, 1);
    EXPECT_OK(strata_free(s, first.ref));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

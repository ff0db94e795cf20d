/* binning and fallback over the test's source: which way a request takes, and that it goes back by it. */
#include "tests/allocation/bench.h"

static strata_layer_t *layer_at(const bench_t *bench, uint8_t number) { return bench->stack->layers[number]; }

/* router 1 > { counter 2 > source 3 | counter 4 > source 5 | counter 6 > source 7 }. */
static void open_three(bench_t *bench, const char *router, const char *const *options) {
    bench_begin(bench);
    uint8_t top = bench_node(bench, strata_layer_find(router), options);
    for (int i = 0; i < 3; i++) {
        uint8_t counter = bench_node(bench, &test_counter_type, NULL), source = bench_node(bench, &test_source_type, NULL);
        bench_link(bench, top, counter);
        bench_link(bench, counter, source);
    }
    bench_open(bench, 0);
}

static int way_of(const strata_record_t *record) { return (int)(record->route >> STRATA_ROUTE_BITS & STRATA_ROUTE_MASK); }

TEST(binning, goes_by_size) {
    OPENED(bench_t, bench, bench_close, open_three(&bench, "binning", (const char *const[]){"up_to_1=512", "up_to_2=64KiB", NULL}));
    static const struct {
        size_t size;
        int way;
    } rows[] = {{1, 2}, {512, 2}, {513, 4}, {65536, 4}, {65537, 6}, {9 * MIB, 6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_record_t *record = bench_allocate(&bench, rows[i].size);
        EXPECT_EQ(way_of(record), rows[i].way);
        test_log.count = 0;
        bench_free(&bench, record);
        EXPECT_EQ(test_log.count, 1);
        EXPECT_EQ(test_log.seen[0], -rows[i].way);
    }
}

/* The look-up is not made again at the free, as other libraries do: the record knows. */
TEST(binning, a_free_goes_by_the_record_whatever_the_limits_say_now) {
    OPENED(bench_t, bench, bench_close, open_three(&bench, "binning", (const char *const[]){"up_to_1=512", "up_to_2=64KiB", NULL}));
    strata_record_t *small = bench_allocate(&bench, 300);
    uint64_t *limits = (uint64_t *)(uintptr_t)layer_at(&bench, 1)->options;
    limits[0] = 16;
    strata_record_t *now = bench_allocate(&bench, 300);
    EXPECT_EQ(way_of(now), 4);
    test_log.count = 0;
    bench_free(&bench, small);
    EXPECT_EQ(test_log.seen[0], -2);
    bench_free(&bench, now);
    EXPECT_EQ(test_log.seen[1], -4);
}

TEST(binning, a_way_without_memory_has_no_other) {
    strata_record_t *record = NULL;
    OPENED(bench_t, bench, bench_close, open_three(&bench, "binning", (const char *const[]){"up_to_1=512", "up_to_2=64KiB", NULL}));
    test_source_fail(1, true, STRATA_E_NO_MEMORY);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, bench_try(&bench, 100, &record));
    test_source_fail(0, false, STRATA_OK);
    EXPECT_EQ(test_source_live(), 0);
}

TEST(fallback, asks_the_next_when_one_has_none) {
    OPENED(bench_t, bench, bench_close, open_three(&bench, "fallback", NULL));
    strata_record_t *records[3];
    records[0] = bench_allocate(&bench, 4096);
    test_source_fail(1, false, STRATA_E_NO_MEMORY);
    records[1] = bench_allocate(&bench, 4096);
    test_source_fail(0, false, STRATA_OK);
    records[2] = bench_allocate(&bench, 4096);
    EXPECT_EQ(way_of(records[0]), 2);
    EXPECT_EQ(way_of(records[1]), 4);
    EXPECT_EQ(way_of(records[2]), 2);
    const strata_layer_t *layer = layer_at(&bench, 1);
    const strata_stat_row_t *row = layer->type->stats;
    EXPECT_STREQ(row->name, "fell_back");
    EXPECT_EQ(*(const uint64_t *)((const unsigned char *)layer + row->offset), 1);
    test_log.count = 0;
    for (int i = 0; i < 3; i++) bench_free(&bench, records[i]);
    EXPECT_EQ(test_log.seen[0], -2);
    EXPECT_EQ(test_log.seen[1], -4);
    EXPECT_EQ(test_log.seen[2], -2);
}

TEST(fallback, all_without_memory_is_out_of_memory) {
    strata_record_t *record = NULL;
    OPENED(bench_t, bench, bench_close, open_three(&bench, "fallback", NULL));
    uint64_t asked = test_source_calls();
    test_source_fail(1, true, STRATA_E_NO_MEMORY);
    strata_call_t call = {.stack = bench.stack};
    strata_request_t request = {
        .struct_size = sizeof request, .size = 4096, .alignment = 256, .call = &call, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_layer_allocate(bench.stack->top, &request, &record));
    EXPECT_EQ(test_source_calls() - asked, 3);
    EXPECT_CONTAINS(strata_last_error()->text, "none of the 3 stacks can serve 4096 bytes");
    test_source_fail(0, false, STRATA_OK);
}

/* Only want of memory leads on: a broken device is told at once. */
TEST(fallback, another_failure_is_told) {
    strata_record_t *record = NULL;
    OPENED(bench_t, bench, bench_close, open_three(&bench, "fallback", NULL));
    uint64_t asked = test_source_calls();
    test_source_fail(1, false, STRATA_E_DEVICE);
    EXPECT_STATUS(STRATA_E_DEVICE, bench_try(&bench, 4096, &record));
    EXPECT_EQ(test_source_calls() - asked, 1);
    test_source_fail(0, false, STRATA_OK);
}

TEST(fallback, where_growing_is_forbidden_only_the_first_is_asked) {
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    uint8_t top = bench_node(&bench, strata_layer_find("fallback"), NULL);
    for (int i = 0; i < 2; i++) {
        uint8_t cache = bench_node(&bench, strata_layer_find("buffered"), NULL);
        uint8_t source = bench_node(&bench, &test_source_type, NULL);
        bench_link(&bench, top, cache);
        bench_link(&bench, cache, source);
    }
    bench_open(&bench, 0);
    test_source_fail(1, false, STRATA_E_NO_MEMORY);
    strata_record_t *second = bench_allocate(&bench, 4096), *record = NULL;
    test_source_fail(0, false, STRATA_OK);
    EXPECT_EQ(way_of(second), 4);
    bench_free(&bench, second);
    strata_request_t serve = {.size = 4096, .alignment = 256, .flags = STRATA_NO_GROW};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_stack_serve(bench.stack, &serve, &record));
    /* The first is asked for new memory before the second's kept block is taken. */
    record = bench_allocate(&bench, 4096);
    EXPECT_EQ(way_of(record), 2);
    bench_free(&bench, record);
    EXPECT_EQ(strata_stack_release(bench.stack), 2 * 4096);
}

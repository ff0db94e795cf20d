/* The decorator stack: pushed on the way up, popped and freed in exactly the reverse order, whatever way a request took. */
#include "allocation/call/figures.h"
#include "tests/allocation/bench.h"

/* counter 1 > router 2 > { counter 3 > source 5 | counter 4 > counter 6 > source 7 }. */
static void open_routed(bench_t *bench) {
    bench_begin(bench);
    uint8_t top = bench_node(bench, &test_counter_type, NULL), router = bench_node(bench, &test_router_type, NULL);
    uint8_t left = bench_node(bench, &test_counter_type, NULL), right = bench_node(bench, &test_counter_type, NULL);
    uint8_t left_source = bench_node(bench, &test_source_type, NULL), deep = bench_node(bench, &test_counter_type, NULL);
    uint8_t right_source = bench_node(bench, &test_source_type, NULL);
    bench_link(bench, top, router);
    bench_link(bench, router, left);
    bench_link(bench, router, right);
    bench_link(bench, left, left_source);
    bench_link(bench, right, deep);
    bench_link(bench, deep, right_source);
    bench_open(bench, 0);
}

static void expect_log(const int *wanted, uint32_t count) {
    EXPECT_EQ(test_log.count, count);
    for (uint32_t i = 0; i < count && i < test_log.count; i++)
        if (test_log.seen[i] != wanted[i]) FAIL_TEST("step %u is of layer %d, not %d", i, test_log.seen[i], wanted[i]);
    test_log.count = 0;
}

TEST(allocation_walk, each_allocation_goes_back_by_its_own_path) {
    OPENED(bench_t, bench, bench_close, open_routed(&bench));
    strata_record_t *even = bench_allocate(&bench, 512), *odd = bench_allocate(&bench, 256);
    expect_log((int[]){3, 2, 1, 6, 4, 2, 1}, 7);
    char text[128];
    strata_route_text(bench.stack, even->route, text, sizeof text);
    EXPECT_STREQ(text, "test_counter > test_router > test_counter > test_source");
    strata_route_text(bench.stack, odd->route, text, sizeof text);
    EXPECT_STREQ(text, "test_counter > test_router > test_counter > test_counter > test_source");
    bench_free(&bench, odd);
    expect_log((int[]){-1, -2, -4, -6}, 4);
    bench_free(&bench, even);
    expect_log((int[]){-1, -2, -3}, 3);
    EXPECT_EQ(test_source_live(), 0);
}

TEST(allocation_walk, a_thousand_random_paths_go_back_in_reverse) {
    OPENED(bench_t, bench, bench_close, open_routed(&bench));
    strata_record_t *records[32] = {NULL};
    uint64_t random = 1;
    for (int i = 0; i < 1000; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        strata_record_t **record = &records[random >> 59];
        test_log.count = 0;
        if (!*record) {
            *record = bench_allocate(&bench, 1 + (size_t)(random >> 40) % 5000);
            continue;
        }
        int down[8];
        uint32_t depth = 0;
        /* The source's own number is in the path; its free notes nothing. */
        for (uint64_t route = (*record)->route; route >> STRATA_ROUTE_BITS; route >>= STRATA_ROUTE_BITS)
            down[depth++] = -(int)(route & STRATA_ROUTE_MASK);
        bench_free(&bench, *record);
        *record = NULL;
        expect_log(down, depth);
    }
    for (int i = 0; i < 32; i++)
        if (records[i]) bench_free(&bench, records[i]);
    EXPECT_EQ(test_source_live(), 0);
}

TEST(allocation_walk, a_cache_is_a_boundary) {
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    const strata_layer_type_t *types[] = {&test_counter_type, strata_layer_find("auto_growth"), &test_counter_type,
                                          &test_source_type, NULL};
    bench_straight(&bench, types, (const char *const[]){"chunk_size=1MiB", NULL});
    bench_open(&bench, 0);
    strata_record_t *a = bench_allocate(&bench, 1000), *b = bench_allocate(&bench, 1000);
    /* The chunk came through the lower counter alone, once. */
    expect_log((int[]){3, 1, 1}, 3);
    char text[128];
    strata_record_describe(bench.stack, b, text, sizeof text);
    EXPECT_STREQ(text, "test_counter > auto_growth | test_counter > test_source");
    bench_free(&bench, a);
    bench_free(&bench, b);
    expect_log((int[]){-1, -1}, 2);
    EXPECT_EQ(strata_stack_release(bench.stack), MIB);
    expect_log((int[]){-3}, 1);
}

TEST(allocation_walk, a_chunk_of_a_cache_may_be_a_block_of_another) {
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    const strata_layer_type_t *cache = strata_layer_find("auto_growth");
    uint8_t upper = bench_node(&bench, cache, (const char *const[]){"chunk_size=64KiB", NULL});
    uint8_t lower = bench_node(&bench, cache, (const char *const[]){"chunk_size=1MiB", NULL});
    bench_link(&bench, upper, lower);
    bench_link(&bench, lower, bench_node(&bench, &test_source_type, NULL));
    bench_open(&bench, 0);
    strata_record_t *records[100];
    for (int i = 0; i < 100; i++) records[i] = bench_allocate(&bench, 4096);
    EXPECT_EQ(test_source_live(), 1);
    for (int i = 0; i < 100; i++) bench_free(&bench, records[(i * 37) % 100]);
    (void)strata_stack_release(bench.stack);
    EXPECT_EQ(test_source_live(), 0);
}

static void a_failing_middle_leaves_nothing(const strata_layer_type_t *const *types, size_t size) {
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    bench_straight(&bench, types, (const char *const[]){"chunk_size=1MiB", NULL});
    bench_open(&bench, 0);
    strata_record_t *kept = bench_allocate(&bench, 4096), *record = NULL;
    uint64_t live = test_source_live(), held = bench_held(&bench);
    strata_statistics_t before = bench.stack->figures;
    test_failing_armed = true;
    for (int i = 0; i < 10; i++) {
        EXPECT_STATUS(STRATA_E_NO_MEMORY, bench_try(&bench, size, &record));
        EXPECT_EQ(record, NULL);
        EXPECT_EQ(bench.stack->figures.allocated_bytes, before.allocated_bytes);
        EXPECT_EQ(bench.stack->figures.allocations, before.allocations);
        EXPECT_OK(strata_stack_validate(bench.stack));
    }
    test_failing_armed = false;
    EXPECT_EQ(test_source_live(), live);
    EXPECT_EQ(bench_held(&bench), held);
    record = bench_allocate(&bench, size);
    bench_free(&bench, record);
    bench_free(&bench, kept);
}

TEST(allocation_walk, a_failing_middle_layer_leaves_nothing_after) {
    const strata_layer_type_t *cache = strata_layer_find("auto_growth"), *safe = strata_layer_find("stream_safe");
    const strata_layer_type_t *top = &test_counter_type, *middle = &test_failing_type, *source = &test_source_type;
    a_failing_middle_leaves_nothing((const strata_layer_type_t *[]){top, middle, source, NULL}, 5000);
    a_failing_middle_leaves_nothing((const strata_layer_type_t *[]){top, middle, cache, source, NULL}, 5000);
    a_failing_middle_leaves_nothing((const strata_layer_type_t *[]){safe, middle, safe, cache, source, NULL}, 5000);
    /* Below the cache: only what it has no room for comes there. */
    a_failing_middle_leaves_nothing((const strata_layer_type_t *[]){top, cache, middle, source, NULL}, 5 * MIB);
}

TEST(allocation_walk, an_idle_layer_stands_in_the_stack_even_where_it_was_left_out) {
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    const strata_layer_type_t *types[] = {strata_layer_find("retry"), strata_layer_find("stream_safe"),
                                          strata_layer_find("auto_growth"), &test_source_type, NULL};
    bench_straight(&bench, types, NULL);
    bench_open(&bench, 0);
    strata_record_t *walked = bench_allocate(&bench, 1000);
    EXPECT_EQ(walked->route, bench.stack->route);
    EXPECT_EQ(bench.stack->route, (3 << STRATA_ROUTE_BITS | 2) << STRATA_ROUTE_BITS | 1);
    bench_free(&bench, walked);
}

TEST(allocation_walk, a_cache_over_a_cache_cuts_its_chunks_from_the_other) {
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    const strata_layer_type_t *cache = strata_layer_find("auto_growth");
    uint8_t small = bench_node(&bench, cache, (const char *const[]){"chunk_size=64KiB", NULL});
    uint8_t large = bench_node(&bench, cache, (const char *const[]){"chunk_size=1MiB", NULL});
    uint8_t source = bench_node(&bench, &test_source_type, NULL);
    bench_link(&bench, small, large);
    bench_link(&bench, large, source);
    bench_open(&bench, 0);
    strata_record_t *blocks[40];
    for (int i = 0; i < 40; i++) blocks[i] = bench_allocate(&bench, 8192);
    EXPECT_OK(strata_stack_validate(bench.stack));
    /* Five small chunks in one large one: what is reserved counts once. */
    EXPECT_EQ(bench.stack->figures.chunks, 6);
    EXPECT_EQ(bench.stack->figures.reserved_bytes, MIB);
    for (int i = 0; i < 40; i += 2) bench_free(&bench, blocks[i]);
    EXPECT_OK(strata_stack_validate(bench.stack));
    for (int i = 1; i < 40; i += 2) bench_free(&bench, blocks[i]);
    EXPECT_EQ(strata_stack_release(bench.stack), 5 * 65536 + MIB);
    EXPECT_EQ(bench.stack->figures.reserved_bytes, 0);
    EXPECT_TRUE(strata_stack_is_empty(bench.stack));
    EXPECT_OK(strata_stack_validate(bench.stack));
}

static uint64_t kept;

static uint64_t idle_kept(strata_layer_t *self) {
    (void)self;
    return kept;
}

static uint64_t release_kept(strata_layer_t *self, strata_call_t *call) {
    uint64_t released = kept;
    (void)self;
    (void)call;
    kept = 0;
    return released;
}

/* A trim asks layers that tell what is idle, by their release where they have no trim; others that release it passes by. */
TEST(allocation_walk, a_trim_asks_only_those_that_tell_what_is_idle) {
    strata_layer_type_t keeping = test_counter_type, releasing = test_counter_type;
    keeping.idle_bytes = idle_kept;
    keeping.release = releasing.release = release_kept;
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    const strata_layer_type_t *types[] = {&keeping, &releasing, strata_layer_find("auto_growth"), &test_source_type, NULL};
    bench_straight(&bench, types, (const char *const[]){"chunk_size=1MiB", NULL});
    bench_open(&bench, 64 * MIB);
    bench_free(&bench, bench_allocate(&bench, 1000));
    kept = 4096;
    /* What graphs use stays, whoever asks. */
    atomic_store(&bench.stack->group->pinned, true);
    EXPECT_EQ(strata_stack_trim(bench.stack, 0), 0);
    atomic_store(&bench.stack->group->pinned, false);
    EXPECT_EQ(strata_stack_trim(bench.stack, 0), MIB + 4096);
    EXPECT_EQ(kept, 0);
    EXPECT_EQ(test_source_live(), 0);
}

static void never(strata_layer_t *self, strata_notice_t *notice, strata_call_t *call) {
    (void)self, (void)notice, (void)call;
    FAIL_TEST("what comes after an older struct is not its own");
}

TEST(allocation_walk, a_layer_of_an_older_header_has_no_peaks) {
    strata_layer_type_t older = test_counter_type;
    older.struct_size = offsetof(strata_layer_type_t, notify);
    older.notices = 1u << STRATA_NOTICE_PEAKS;
    older.notify = never;
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    bench_straight(&bench, (const strata_layer_type_t *[]){&older, &test_source_type, NULL}, NULL);
    bench_open(&bench, 0);
    bench_free(&bench, bench_allocate(&bench, 1000));
    strata_domain_reset_peaks(bench.domain);
    EXPECT_EQ(bench.stack->figures.peak_allocated_bytes, 0);
}

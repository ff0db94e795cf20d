/* aligned: larger alignments, by a record of its own that holds the one below. */
#include <stdio.h>

#include "tests/allocation/bench.h"
#include "tests/decorators/decorators.h"

static void open_over_source(bench_t *bench, const char *const *options) {
    const strata_layer_type_t *types[] = {strata_layer_find("aligned"), &test_source_type, NULL};
    bench_begin(bench);
    bench_straight(bench, types, options);
    bench_open(bench, 0);
}

/* What was asked below for a request, the request freed again. */
static uint64_t asked_for(bench_t *bench, size_t size, uint64_t alignment) {
    strata_record_t *record = bench_allocate(bench, size);
    const strata_record_t *inner = strata_record_inner(record);
    uint64_t asked = inner ? inner->size : record->size;
    EXPECT_EQ(record->ptr % alignment, 0);
    EXPECT_GE(record->size, size);
    EXPECT_EQ(strata_record_requested(record), size);
    if (inner) EXPECT_LE(record->ptr + record->size, inner->ptr + inner->size);
    bench_free(bench, record);
    return asked;
}

/* Paddle's test_aligned::both: alignment 1024; sizes 1345, 200, 3021 are aligned, with 1, 0, 2, 0 live below; 1024, 1023 and
 * 1025 round to 1024, 1024, 2048. Strata rounds and then adds what may be missing (the place gives 256); with `always` it asks
 * for the peer's size + alignment. */
TEST(aligned, paddle_test_aligned_both) {
    bench_t bench;
    open_over_source(&bench, (const char *const[]){"alignment=1024", NULL});
    strata_record_t *a = bench_allocate(&bench, 1345);
    EXPECT_EQ(a->ptr % 1024, 0);
    EXPECT_EQ(test_source_live(), 1);
    bench_free(&bench, a);
    EXPECT_EQ(test_source_live(), 0);
    a = bench_allocate(&bench, 200);
    strata_record_t *b = bench_allocate(&bench, 3021);
    EXPECT_EQ(a->ptr % 1024 + b->ptr % 1024, 0);
    EXPECT_EQ(test_source_live(), 2);
    bench_free(&bench, a);
    bench_free(&bench, b);
    EXPECT_EQ(test_source_live(), 0);
    EXPECT_EQ(asked_for(&bench, 1024, 1024), 1024 + 768);
    EXPECT_EQ(asked_for(&bench, 1023, 1024), 1024 + 768);
    EXPECT_EQ(asked_for(&bench, 1025, 1024), 2048 + 768);
    bench_close(&bench);
    open_over_source(&bench, (const char *const[]){"alignment=1024", "always=true", NULL});
    EXPECT_EQ(asked_for(&bench, 1025, 1024), 1025 + 1024);
    bench_close(&bench);
}

/* RMM's aligned resource: alignment 4096 from 65536 bytes on; smaller requests and alignments that the place gives pass. */
TEST(aligned, rmm_threshold) {
    bench_t bench;
    open_over_source(&bench, (const char *const[]){"alignment=4096", "from=65536", NULL});
    EXPECT_EQ(asked_for(&bench, 65536, 4096), 69376);
    EXPECT_EQ(asked_for(&bench, 73728, 4096), 77568);
    EXPECT_EQ(asked_for(&bench, 77800, 4096), 81664);
    EXPECT_EQ(asked_for(&bench, 65528, 256), 65528);
    bench_close(&bench);
    for (unsigned given = 64; given <= 256; given *= 2) {
        char option[32];
        snprintf(option, sizeof option, "alignment=%u", given);
        open_over_source(&bench, (const char *const[]){option, NULL});
        EXPECT_EQ(asked_for(&bench, 1000, 256), 1000);
        bench_close(&bench);
    }
}

/* ---- Paddle's caches over it; the options of one name go to every layer that has them ---- */

/* AG::free_idle_chunk: v1(4096) over aligned(4096), four pairs of flags, 10 x {alloc 8192, free, release}: 12288 bytes are live
 * below; after the free none with free_idle_chunk, else 12288. */
TEST(aligned, paddle_ag_free_idle_chunk) {
    const strata_layer_type_t *types[] = {strata_layer_find("auto_growth"), strata_layer_find("aligned"), &test_source_type, NULL};
    for (int pair = 0; pair < 4; pair++) {
        OPENED(bench_t, bench, bench_close, bench_begin(&bench));
        bench_straight(&bench, types,
                       (const char *const[]){"alignment=4096", "always=true",
                                             pair & 1 ? "free_idle_chunk=true" : "free_idle_chunk=false",
                                             pair & 2 ? "free_when_no_cache_hit=true" : "free_when_no_cache_hit=false", NULL});
        bench_open(&bench, 0);
        for (int i = 0; i < 10; i++) {
            strata_record_t *record = bench_allocate(&bench, 8192);
            EXPECT_EQ(record->ptr % 4096, 0);
            EXPECT_EQ(strata_domain_reserved(bench.domain), 12288);
            bench_free(&bench, record);
            EXPECT_EQ(strata_domain_reserved(bench.domain), pair & 1 ? 0 : 12288);
            (void)strata_stack_release(bench.stack);
            EXPECT_EQ(strata_domain_reserved(bench.domain), 0);
        }
    }
}

/* AG::free_when_no_cache_hit: v1(256) over aligned(256), capacity 11264; alloc and free 4096, 4608, 5120: held 4352; then 4864
 * with the flag or 9216 without; then 5376. The capacity is a `limit`. */
TEST(aligned, paddle_ag_free_when_no_cache_hit) {
    const strata_layer_type_t *types[] = {strata_layer_find("auto_growth"), strata_layer_find("aligned"),
                                          strata_layer_find("limit"), &test_source_type, NULL};
    static const size_t sizes[] = {4096, 4608, 5120};
    static const uint64_t held[2][3] = {{4352, 9216, 5376}, {4352, 4864, 5376}};
    for (int flag = 0; flag < 2; flag++) {
        OPENED(bench_t, bench, bench_close, bench_begin(&bench));
        bench_straight(&bench, types,
                       (const char *const[]){"alignment=256", "always=true", "bytes=11264",
                                             flag ? "free_when_no_cache_hit=true" : "free_when_no_cache_hit=false", NULL});
        bench_open(&bench, 0);
        for (int i = 0; i < 3; i++) {
            bench_free(&bench, bench_allocate(&bench, sizes[i]));
            EXPECT_EQ(strata_domain_reserved(bench.domain), held[flag][i]);
        }
    }
}

/* ---- the record of its own ---- */

TEST(aligned, borrows_reach_the_layer_below_that_knows_them) {
    DECORATED(rig, "[{aligned: {alignment: 64KiB}}, stream_safe, auto_growth, system]", 0);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 50000);
    char text[128];
    EXPECT_OK(strata_allocation_route(rig.s, a.ref, text, sizeof text));
    EXPECT_STREQ(text, "aligned > stream_safe > auto_growth | system");
    EXPECT_OK(strata_record_stream(rig.s, a.ref, borrower));
    EXPECT_OK(strata_erase_stream(rig.s, a.ref, borrower));
    rig_borrow(&rig, a.ref, borrower, 1000 * 1000);
    uint64_t done = strata_sim_stream_end(rig.devices[0], borrower);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_GT(rig_figures(&rig).deferred_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).host_waits, 0);
    strata_block_t b = rig_allocate(&rig, owner, 50000);
    EXPECT_TRUE(b.ptr != a.ptr || strata_sim_now(rig.world) >= done);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free_pointer(rig.s, b.ptr));
}

TEST(aligned, what_it_holds_has_no_ref) {
    strata_call_t call;
    strata_record_t *found;
    OPENED(bench_t, bench, bench_close, open_over_source(&bench, NULL));
    strata_record_t *record = bench_allocate(&bench, 1000);
    EXPECT_STATUS(STRATA_E_STALE, strata_record_find(BENCH_FACADE, strata_ref_of(strata_record_inner(record)), &call, &found));
    bench_free(&bench, record);
}

/* No slot for the outer record: what came from below goes back. */
TEST(aligned, a_full_slab_leaves_nothing_after) {
    strata_record_t *record;
    OPENED(bench_t, bench, bench_close, open_over_source(&bench, NULL));
    uint32_t capacity = bench.stack->slab.capacity;
    bench.stack->slab.capacity = bench.stack->slab.used;
    EXPECT_STATUS(STRATA_E_LIMIT, bench_try(&bench, 1000, &record));
    EXPECT_EQ(test_source_live(), 0);
    EXPECT_EQ(bench_held(&bench), 0);
    bench.stack->slab.capacity = capacity;
    bench_free(&bench, bench_allocate(&bench, 1000));
}

/* One in another: what each holds is of the one below. */
TEST(aligned, one_over_another) {
    DECORATED(rig, "[{aligned: {alignment: 2MiB}}, {limit: {bytes: 64MiB}}, {aligned: {alignment: 4KiB}}, system]", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 100), b = rig_allocate(&rig, NULL, 3 * MIB);
    char text[128];
    EXPECT_EQ((uintptr_t)a.ptr % (2 * MIB) + (uintptr_t)b.ptr % (2 * MIB), 0);
    EXPECT_OK(strata_allocation_route(rig.s, a.ref, text, sizeof text));
    EXPECT_STREQ(text, "aligned > limit > aligned > system");
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "limit", "used_bytes"), 2 * MIB + 4 * MIB + 2 * (2 * MIB - 256));
    RIG_FREE(&rig, a, b);
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "limit", "used_bytes"), 0);
}

TEST(aligned, a_number_that_is_no_alignment_is_refused) {
    strata_strategy_t *strategy = NULL;
    strata_config_request_t request = {.text = "version: 1\nstrategy: s\ndevices: sim\nstack:\n"
                                               "  - aligned: {alignment: 5000}\n  - system\n"};
    strata_status_t status = strata_config_load(&request, &strategy);
    strata_plan_t plan;
    if (status == STRATA_OK) status = strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan);
    EXPECT_SAYS(STRATA_E_STRATEGY, status, "aligned.alignment: 5000 is not a power of two");
    if (strategy) strata_strategy_delete(strategy);
}

/* What it holds is of a chunk that is counted already: nothing is counted twice. */
TEST(aligned, between_two_caches_it_reserves_nothing_more) {
    DECORATED(rig, "[{auto_growth: {chunk_size: 1MiB}}, {aligned: {alignment: 4KiB}}, {auto_growth: {chunk_size: 8MiB}}, system]",
              0);
    strata_block_t a = rig_allocate(&rig, NULL, 1000), b = rig_allocate(&rig, NULL, 2 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
    EXPECT_EQ(rig_stack(&rig, NULL)->figures.reserved_bytes, 8 * MIB);
    RIG_FREE(&rig, a, b);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

/* A cache of larger alignment over memory that does not come so: chunk by chunk of odd sizes. */
TEST(aligned, under_a_cache_that_cuts_at_larger_multiples) {
    static const char *const stacks[] = {"[{auto_growth: {alignment: 1KiB}}, aligned, system]",
                                         "[{auto_growth: {alignment: 1KiB}}, aligned, cuda_malloc_async]",
                                         "[{auto_growth: {alignment: 1KiB}}, bfc, system]",
                                         "[{auto_growth: {alignment: 1KiB}}, buffered, {aligned: {from: 1GiB}}, system]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        strata_block_t blocks[8];
        DECORATED(rig, stacks[i], 0);
        for (int b = 0; b < 8; b++) {
            blocks[b] = rig_allocate(&rig, NULL, 1000 + 1300 * (size_t)b);
            EXPECT_EQ((uintptr_t)blocks[b].ptr % 1024, 0);
        }
        for (int b = 0; b < 8; b++) EXPECT_OK(strata_free(rig.s, blocks[b].ref));
    }
}

/* What is kept below is more than 4 GiB larger than the request: the piece ends where a record can tell. */
TEST(aligned, tells_what_was_asked_for_of_a_piece_far_larger) {
    DECORATED(rig, "[{aligned: {alignment: 1GiB}}, {buffered: {reuse_below: 4}}, system]", 0);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 9 * (GIB / 2)).ref));
    strata_block_t small = rig_allocate(&rig, NULL, GIB + 256);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, rig_figures(&rig).peak_reserved_bytes); /* it is the one that was kept */
    EXPECT_GT(rig_figures(&rig).reserved_bytes, 5 * GIB + GIB / 2);
    EXPECT_GE(small.size, 4 * GIB);
    EXPECT_EQ(rig_figures(&rig).requested_bytes, GIB + 256);
    EXPECT_OK(strata_free(rig.s, small.ref));
}

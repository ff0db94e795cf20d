/* auto_growth: the peer's own tests, growth, and what validate finds; its order of blocks: tests/chunked/rules.c. */
#include "allocation/cache/policies/auto_growth/auto_growth_state.h"
#include "tests/allocation/planted.h"

static uint64_t reserved(const bench_t *bench) { return strata_domain_reserved(bench->domain); }

/* ---- the peer's tests ---- */

/* Paddle's AG::free_idle_chunk: v1(4096), four pairs of flags, 10 x {alloc 8192, free, release}. There it stands over
 * aligned(4096), which asks for 4096 bytes more than it hands out: so 12288 are held where here 8192 are (over `aligned`:
 * aligned.paddle_ag_free_idle_chunk). */
TEST(auto_growth, free_idle_chunk) {
    for (int flags = 0; flags < 4; flags++) {
        const char *options[] = {"alignment=4KiB", flags & 1 ? "free_idle_chunk=true" : "free_idle_chunk=false",
                                 flags & 2 ? "free_when_no_cache_hit=true" : "free_when_no_cache_hit=false", NULL};
        OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, options));
        for (int i = 0; i < 10; i++) {
            strata_record_t *record = bench_allocate(&bench, 8192);
            EXPECT_EQ(reserved(&bench), 8192);
            bench_free(&bench, record);
            EXPECT_EQ(reserved(&bench), flags & 1 ? 0 : 8192);
            EXPECT_EQ(strata_stack_release(bench.stack), flags & 1 ? 0 : 8192);
            EXPECT_EQ(reserved(&bench), 0);
        }
    }
}

/* Paddle's AG::free_when_no_cache_hit, with room for 26 MiB in place of 11264 bytes, since the simulated device gives granules (in
 * the peer's sizes over `aligned`: aligned.paddle_ag_free_when_no_cache_hit): the second miss keeps the first chunk or not; the third
 * gives all back, the one first, the other when the device has no more. */
TEST(auto_growth, free_when_no_cache_hit) {
    for (int on = 0; on < 2; on++) {
        const char *options[] = {on ? "free_when_no_cache_hit=true" : "free_when_no_cache_hit=false", NULL};
        OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 26 * MIB, options));
        const uint64_t held[2][3] = {{8 * MIB, 18 * MIB, 12 * MIB}, {8 * MIB, 10 * MIB, 12 * MIB}};
        for (size_t i = 0; i < 3; i++) {
            bench_free(&bench, bench_allocate(&bench, (8 + 2 * i) * MIB));
            EXPECT_EQ(reserved(&bench), held[on][i]);
        }
    }
}

/* Paddle's AG::release_stats_identify_mixed_chunk: align 256, chunk 1024, alloc 512: half of the chunk is stranded, release gives 0;
 * after the free it gives 1024. */
TEST(auto_growth, release_stats_identify_mixed_chunk) {
    OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, (const char *const[]){"chunk_size=1KiB", NULL}));
    strata_record_t *record = bench_allocate(&bench, 512);
    EXPECT_EQ(bench.stack->figures.allocated_bytes, 512);
    EXPECT_EQ(strata_stack_idle_bytes(bench.stack), 512);
    EXPECT_EQ(strata_stack_release(bench.stack), 0);
    EXPECT_EQ(reserved(&bench), 1024);
    bench_free(&bench, record);
    EXPECT_EQ(strata_stack_release(bench.stack), 1024);
    EXPECT_EQ(reserved(&bench), 0);
    EXPECT_EQ(test_source_live(), 0);
}

/* ---- growth ---- */

TEST(auto_growth, a_chunk_is_the_larger_of_request_and_chunk_size) {
    static const struct {
        const char *chunk_size;
        size_t size;
        uint64_t grown;
    } cases[] = {
        {"chunk_size=0", 1, 256},      {"chunk_size=0", 5000, 5120},  {"chunk_size=1000", 256, 1024},
        {"chunk_size=1MiB", 256, MIB}, {"chunk_size=1MiB", MIB, MIB}, {"chunk_size=1MiB", MIB + 1, MIB + 256},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, (const char *const[]){cases[i].chunk_size, NULL}));
        strata_record_t *record = bench_allocate(&bench, cases[i].size);
        EXPECT_EQ(reserved(&bench), cases[i].grown);
        bench_free(&bench, record);
    }
}

TEST(auto_growth, out_of_memory_is_asked_for_again_once_and_no_smaller) {
    for (int on = 0; on < 2; on++) {
        const char *options[] = {"chunk_size=1MiB", on ? "free_when_no_cache_hit=true" : "free_when_no_cache_hit=false", NULL};
        OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, options));
        strata_record_t *live = bench_allocate(&bench, MIB), *record = NULL;
        bench_free(&bench, bench_allocate(&bench, 2 * MIB));
        uint64_t calls = test_source_calls();
        test_source_fail(1, true, STRATA_E_NO_MEMORY);
        strata_request_t serve = {.size = 4 * MIB, .alignment = 256, .flags = STRATA_NO_RETRY};
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_stack_serve(bench.stack, &serve, &record));
        EXPECT_EQ(test_source_calls() - calls, on ? 1 : 2);
        EXPECT_EQ(reserved(&bench), MIB);
        /* Once failing stops between the two, the second serves. */
        test_source_fail(1, false, STRATA_E_NO_MEMORY);
        strata_status_t status = strata_stack_serve(bench.stack, &serve, &record);
        EXPECT_EQ(status, on ? STRATA_E_NO_MEMORY : STRATA_OK);
        if (status == STRATA_OK) bench_free(&bench, record);
        test_source_fail(0, false, STRATA_OK);
        bench_free(&bench, live);
    }
}

TEST(auto_growth, under_the_ladder_it_asks_once_and_keeps_what_it_has) {
    OPENED(bench_t, bench, bench_close,
           bench_open_cache(&bench, 0, (const char *const[]){"chunk_size=1MiB", "reclaim=ladder", "smaller_growth=true", NULL}));
    strata_record_t *record = NULL;
    bench_free(&bench, bench_allocate(&bench, MIB));
    uint64_t calls = test_source_calls();
    test_source_fail(1, true, STRATA_E_NO_MEMORY);
    strata_request_t serve = {.size = 2 * MIB, .alignment = 256, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_stack_serve(bench.stack, &serve, &record));
    EXPECT_EQ(test_source_calls() - calls, 1);
    EXPECT_EQ(reserved(&bench), MIB);
    test_source_fail(0, false, STRATA_OK);
}

TEST(auto_growth, larger_alignments_than_its_own_are_refused) {
    OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, (const char *const[]){"alignment=512", NULL}));
    strata_record_t *a = bench_allocate(&bench, 1), *record = NULL;
    EXPECT_EQ(a->size, 512);
    EXPECT_EQ(a->slack, 511);
    strata_request_t serve = {.size = 512, .alignment = 1024};
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_stack_serve(bench.stack, &serve, &record));
    bench_free(&bench, a);
}

/* ---- validate ---- */

static void finds_planted_faults(const char *order) {
    OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, (const char *const[]){"chunk_size=1MiB", order, NULL}));
    strata_record_t *blocks[8];
    for (int i = 0; i < 8; i++) blocks[i] = bench_allocate(&bench, 4096 * (size_t)(i + 1));
    strata_record_t *hole = blocks[3], *other = blocks[5], *live = blocks[4];
    bench_free(&bench, hole);
    bench_free(&bench, other);
    /* In the index and live, free and not in it, another place in it. */
    EXPECT_FOUND(live->state, STRATA_RECORD_FREE);
    EXPECT_FOUND(hole->state, STRATA_RECORD_LIVE);
    EXPECT_FOUND(hole->bin_next, hole->bin_next ? 0 : strata_slab_slot(&bench.stack->slab, other));
    /* Other rules than the options'. */
    auto_growth_t *layer = (auto_growth_t *)bench.stack->top;
    EXPECT_FOUND(layer->first_up_to, 4096);
    EXPECT_FOUND(layer->spills, true);
    EXPECT_FOUND(layer->warming_up, true);
    EXPECT_FOUND(layer->hit_mode, layer->hit_mode + 1);
    for (int i = 0; i < 8; i++)
        if (i != 3 && i != 5) bench_free(&bench, blocks[i]);
}

/* During a warm-up every hit takes the same road, and pools that nothing is in are no fault of their own. */
TEST(auto_growth, validate_finds_other_pools_than_the_options_say) {
    OPENED(bench_t, bench, bench_close,
           bench_open_cache(&bench, 0, (const char *const[]){"chunk_size=1MiB", "warm_up_steps=1", NULL}));
    auto_growth_t *layer = (auto_growth_t *)bench.stack->top;
    EXPECT_FOUND(layer->first_up_to, 4096);
    EXPECT_CONTAINS(strata_last_error()->text, "the chunks are not divided as the options require");
}

TEST(auto_growth, validate_finds_planted_faults_by_address) { finds_planted_faults("order=address"); }
TEST(auto_growth, validate_finds_planted_faults_in_any_order) { finds_planted_faults("order=any"); }

TEST(auto_growth, stream_safe_validate_finds_planted_faults) {
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    const strata_layer_type_t *types[] = {strata_layer_find("stream_safe"), strata_layer_find("auto_growth"), &test_source_type,
                                          NULL};
    bench_straight(&bench, types, NULL);
    bench_open(&bench, 0);
    strata_handle_t stream;
    ASSERT_OK(strata_device_stream_create(bench.device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_work(bench.device, stream, 1000 * 1000, NULL, 0));
    strata_record_t *a = bench_allocate(&bench, 4096), *b = bench_allocate(&bench, 8192);
    for (int i = 0; i < 2; i++) {
        strata_call_t call;
        strata_record_t *record;
        ASSERT_OK(strata_record_find(BENCH_FACADE, strata_ref_of(i ? b : a), &call, &record));
        EXPECT_OK(strata_record_borrow(&call, record, stream));
        strata_record_free(&call, record);
    }
    EXPECT_EQ(a->state, STRATA_RECORD_DEFERRED);
    EXPECT_FOUND(a->state, STRATA_RECORD_LIVE);
    EXPECT_FOUND(a->borrows, 0);
    EXPECT_FOUND(b->borrows, 4000);
    EXPECT_FOUND(a->borrows, b->borrows);
    EXPECT_FOUND(b->size, 4096);
    EXPECT_FOUND(bench.stack->figures.deferred_bytes, 4096);
    EXPECT_FOUND(bench.stack->attention_allocate, 0);
    ASSERT_OK(strata_device_synchronise(bench.device));
    strata_record_t *again = bench_allocate(&bench, 4096);
    EXPECT_EQ(again->ptr, a->ptr);
    EXPECT_EQ(bench.stack->figures.deferred_bytes, 0);
    bench_free(&bench, again);
    EXPECT_OK(strata_device_stream_destroy(bench.device, stream));
}

/* Paddle's extra_padding_size: 256 asked with 256 after it are 512, and so they stay for hits. */
TEST(auto_growth, pads_every_block) {
    OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, (const char *const[]){"padding=256", NULL}));
    strata_record_t *record = NULL;
    for (int i = 0; i < 2; i++) {
        record = bench_allocate(&bench, 256);
        ASSERT_NE(record, NULL);
        EXPECT_EQ(record->size, 512);
        EXPECT_EQ(strata_record_requested(record), 256);
        bench_free(&bench, record);
    }
    record = bench_allocate(&bench, 257);
    EXPECT_EQ(record->size, 768);
    bench_free(&bench, record);
}

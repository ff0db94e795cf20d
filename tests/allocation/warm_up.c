/* auto_growth's warm-up: exact chunks until the program's first steps have ended. The peer has one flag a process, which the
 * program clears; here each stack counts the program's steps. */
#include "allocation/cache/policies/auto_growth/auto_growth_state.h"
#include "tests/allocation/planted.h"
#include "tests/facade/support/fixture.h"

static uint64_t reserved(const bench_t *bench) { return strata_domain_reserved(bench->domain); }

static void expect_figures(const bench_t *bench, uint64_t growths, uint64_t hits) {
    EXPECT_EQ(bench->stack->figures.growths, growths);
    EXPECT_EQ(bench->stack->figures.cache_hits, hits);
}

/* Paddle's auto_growth_best_fit_allocator_v2_test, both forms: align 512, chunk 64 MiB; the first allocation is a miss and no hit,
 * in the warm-up and after it. Strata goes on: what was freed is found again, in both. The peer's own test says that its v2
 * finds nothing again, for what is freed goes into other indices than its search reads. */
TEST(auto_growth_warm_up, paddle_v2_first_allocation_misses) {
    static const char *const orders[] = {"order=address", "order=any"};
    for (int form = 0; form < 4; form++) {
        bool after = form & 1;
        OPENED(
            bench_t, bench, bench_close,
            bench_open_cache(
                &bench, 0, (const char *const[]){"alignment=512", "chunk_size=64MiB", "warm_up_steps=1", orders[form / 2], NULL}));
        if (after) strata_stack_notify(bench.stack, &(strata_notice_t){.kind = STRATA_NOTICE_STEP});
        strata_record_t *record = bench_allocate(&bench, 1000);
        EXPECT_EQ(record->size, 1024);
        expect_figures(&bench, 1, 0);
        EXPECT_EQ(reserved(&bench), after ? 64 * MIB : 1024);
        uint64_t address = record->ptr;
        bench_free(&bench, record);
        record = bench_allocate(&bench, 900);
        EXPECT_EQ(record->ptr, address);
        expect_figures(&bench, 1, 1);
        bench_free(&bench, record);
        EXPECT_OK(strata_stack_validate(bench.stack));
    }
}

TEST(auto_growth_warm_up, a_free_block_serves_its_own_size_alone) {
    OPENED(bench_t, bench, bench_close,
           bench_open_cache(&bench, 0, (const char *const[]){"chunk_size=1MiB", "warm_up_steps=2", NULL}));
    bench_free(&bench, bench_allocate(&bench, 8192));
    strata_record_t *less = bench_allocate(&bench, 4096), *same = bench_allocate(&bench, 8000);
    expect_figures(&bench, 2, 1);
    EXPECT_EQ(reserved(&bench), 8192 + 4096);
    bench_free(&bench, less);
    bench_free(&bench, same);
    /* The first of two steps changes nothing. */
    strata_stack_notify(bench.stack, &(strata_notice_t){.kind = STRATA_NOTICE_STEP});
    bench_free(&bench, bench_allocate(&bench, 4000));
    EXPECT_EQ(reserved(&bench), 8192 + 4096);
    /* The second ends it: idle chunks go back, what is live stays where it is. */
    same = bench_allocate(&bench, 8192);
    strata_stack_notify(bench.stack, &(strata_notice_t){.kind = STRATA_NOTICE_STEP});
    EXPECT_EQ(reserved(&bench), 8192);
    less = bench_allocate(&bench, 4096);
    EXPECT_EQ(reserved(&bench), 8192 + MIB);
    bench_free(&bench, same);
    strata_record_t *cut = bench_allocate(&bench, 512);
    EXPECT_EQ(cut->chunk, same->chunk);
    /* Later steps are nothing to it. */
    strata_stack_notify(bench.stack, &(strata_notice_t){.kind = STRATA_NOTICE_STEP});
    EXPECT_EQ(reserved(&bench), 8192 + MIB);
    EXPECT_OK(strata_stack_validate(bench.stack));
    bench_free(&bench, less);
    bench_free(&bench, cut);
}

/* What waits for other streams at the end of the warm-up is no idle chunk yet: it is cut later as any other. */
TEST(auto_growth_warm_up, a_step_waits_for_nobody) {
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    const strata_layer_type_t *types[] = {strata_layer_find("stream_safe"), strata_layer_find("auto_growth"), &test_source_type,
                                          NULL};
    bench_straight(&bench, types, (const char *const[]){"chunk_size=1MiB", "warm_up_steps=1", NULL});
    bench_open(&bench, 0);
    strata_handle_t stream;
    ASSERT_OK(strata_device_stream_create(bench.device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_work(bench.device, stream, 1000 * 1000, NULL, 0));
    strata_record_t *record = bench_allocate(&bench, 4096), *found;
    uint64_t address = record->ptr;
    strata_call_t call;
    ASSERT_OK(strata_record_find(BENCH_FACADE, strata_ref_of(record), &call, &found));
    EXPECT_OK(strata_record_borrow(&call, record, stream));
    strata_record_free(&call, record);
    strata_stack_notify(bench.stack, &(strata_notice_t){.kind = STRATA_NOTICE_STEP});
    EXPECT_EQ(reserved(&bench), 4096);
    ASSERT_OK(strata_device_synchronise(bench.device));
    record = bench_allocate(&bench, 256);
    EXPECT_EQ(record->ptr, address + 4096 - 256);
    bench_free(&bench, record);
    EXPECT_OK(strata_device_stream_destroy(bench.device, stream));
}

/* The layer below may grant more than was asked, as `buffered` does: the chunk serves the request that it came for. */
TEST(auto_growth_warm_up, a_chunk_larger_than_asked_serves_its_request) {
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    const strata_layer_type_t *types[] = {strata_layer_find("auto_growth"), strata_layer_find("buffered"), &test_source_type, NULL};
    bench_straight(&bench, types, (const char *const[]){"warm_up_steps=1", "free_idle_chunk=true", NULL});
    bench_open(&bench, 0);
    bench_free(&bench, bench_allocate(&bench, 8192));
    strata_record_t *record = bench_allocate(&bench, 6144);
    EXPECT_EQ(test_source_live(), 1);
    EXPECT_EQ(record->size, 6144);
    expect_figures(&bench, 3, 1); /* of both caches: the one grows twice, the other once and hits once */
    EXPECT_OK(strata_stack_validate(bench.stack));
    bench_free(&bench, record);
}

/* The peer asks the device how much is free before each miss, and tries once; here the refusal has idle chunks freed. */
TEST(auto_growth_warm_up, out_of_memory_frees_idle_chunks_and_asks_once_more) {
    OPENED(bench_t, bench, bench_close,
           bench_open_cache(&bench, 8 * MIB, (const char *const[]){"chunk_size=64MiB", "warm_up_steps=1", NULL}));
    bench_free(&bench, bench_allocate(&bench, 6 * MIB));
    strata_record_t *record = bench_allocate(&bench, 4 * MIB);
    EXPECT_EQ(reserved(&bench), 4 * MIB);
    bench_free(&bench, record);
}

TEST(auto_growth_warm_up, validate_finds_planted_faults) {
    OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, (const char *const[]){"order=any", "warm_up_steps=2", NULL}));
    auto_growth_t *self = (auto_growth_t *)bench.stack->cache;
    strata_record_t *record = bench_allocate(&bench, 4096);
    EXPECT_FOUND(self->steps, 2);
    EXPECT_FOUND(self->warming_up, false);
    EXPECT_FOUND(self->hit_mode, STRATA_AUTO_GROWTH_PLAIN);
    EXPECT_FOUND(self->spills, true);
    EXPECT_FOUND(self->first_up_to, MIB);
    bench_free(&bench, record);
}

/* The short way to a hit keeps the rule too. */
TEST(auto_growth_warm_up, a_free_block_serves_its_own_size_alone_through_the_facade) {
    RIG(rig, "version: 1\nstack:\n  - auto_growth: {warm_up_steps: 1, order: any}\n  - system\n", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 8192);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t less = rig_allocate(&rig, NULL, 7936), same = rig_allocate(&rig, NULL, 8000);
    EXPECT_EQ(same.ptr, a.ptr);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8192 + 7936);
    RIG_FREE(&rig, less, same);
}

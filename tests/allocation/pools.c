/* auto_growth with its chunks divided: small and large pools, preallocation, a split by chunk_size. */
#include <stdio.h>

#include "allocation/cache/policies/auto_growth/auto_growth_state.h"
#include "tests/allocation/planted.h"

static uint64_t reserved(const bench_t *bench) { return strata_domain_reserved(bench->domain); }

static void free_all(bench_t *bench, strata_record_t **records, size_t count) {
    for (size_t i = 0; i < count; i++) bench_free(bench, records[i]);
}

/* ---- small and large ---- */

/* Paddle's PY::memory_pool_flags: small <= 1 MiB, chunks 2 and 16 MiB, preallocated 2 and 20 MiB; 7 x 0.5 MiB: reserved 22, then
 * 24 MiB, allocated 3.5. What is ignored there as soon as there is a small pool, the chunk size, is the large pool's here. */
TEST(auto_growth_pools, paddle_py_memory_pool_flags) {
    static const char *const orders[] = {"order=address", "order=any"};
    for (int order = 0; order < 2; order++) {
        strata_record_t *records[8];
        OPENED(bench_t, bench, bench_close,
               bench_open_cache(&bench, 0,
                                (const char *const[]){orders[order], "small_pool_size=1MiB", "small_chunk_size=2MiB",
                                                      "chunk_size=16MiB", "small_preallocate=2MiB", "preallocate=20MiB", NULL}));
        EXPECT_EQ(reserved(&bench), 22 * MIB);
        EXPECT_EQ(bench.stack->figures.allocated_bytes, 0);
        for (int i = 0; i < 7; i++) records[i] = bench_allocate(&bench, MIB / 2);
        EXPECT_EQ(reserved(&bench), 24 * MIB);
        EXPECT_EQ(bench.stack->figures.allocated_bytes, 7 * MIB / 2);
        EXPECT_EQ(bench.stack->figures.peak_reserved_bytes, 24 * MIB);
        /* The 20 MiB stand ready for the larger ones alone. */
        records[7] = bench_allocate(&bench, 17 * MIB);
        EXPECT_EQ(reserved(&bench), 24 * MIB);
        EXPECT_EQ(bench.stack->figures.cache_hits, 7);
        EXPECT_OK(strata_stack_validate(bench.stack));
        free_all(&bench, records, 8);
        EXPECT_EQ(strata_stack_release(bench.stack), 24 * MIB);
    }
}

/* Paddle's PY::single_pool: no small pool, chunks of 10 MiB; 0.5, then 10 MiB: allocated 0.5, 10.5, reserved 10, 20. */
TEST(auto_growth_pools, paddle_py_single_pool) {
    strata_record_t *records[2];
    OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, (const char *const[]){"chunk_size=10MiB", NULL}));
    EXPECT_EQ(reserved(&bench), 0);
    records[0] = bench_allocate(&bench, MIB / 2);
    EXPECT_EQ(reserved(&bench), 10 * MIB);
    EXPECT_EQ(bench.stack->figures.allocated_bytes, MIB / 2);
    records[1] = bench_allocate(&bench, 10 * MIB);
    EXPECT_EQ(reserved(&bench), 20 * MIB);
    EXPECT_EQ(bench.stack->figures.allocated_bytes, 21 * MIB / 2);
    free_all(&bench, records, 2);
}

/* Paddle's multi_scale_allocator_test: preallocated small/large 10/0, 0/20, 5/15, 0/0 MiB, small <= 20 MiB, then 10 and 30 MiB.
 * The peer's is over virtual memory, where growth is roundup(size + 256, 2 MiB): 12, 22, 22, 0 and at last 44; these are
 * cudaMallocs of what is asked: 10, 20, 20, 0 and at last 40. There, too, what is preallocated serves the requests of its own pool. */
TEST(auto_growth_pools, paddle_multi_scale_allocator) {
    static const struct {
        const char *small, *large;
        uint64_t before, after;
    } cases[] = {
        {"small_preallocate=10MiB", "preallocate=0", 10 * MIB, 40 * MIB},
        {"small_preallocate=0", "preallocate=20MiB", 20 * MIB, 60 * MIB},
        {"small_preallocate=5MiB", "preallocate=15MiB", 20 * MIB, 60 * MIB},
        {"small_preallocate=0", "preallocate=0", 0, 40 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strata_record_t *records[2];
        OPENED(bench_t, bench, bench_close,
               bench_open_cache(&bench, 0, (const char *const[]){"small_pool_size=20MiB", cases[i].small, cases[i].large, NULL}));
        EXPECT_EQ(reserved(&bench), cases[i].before);
        records[0] = bench_allocate(&bench, 10 * MIB);
        records[1] = bench_allocate(&bench, 30 * MIB);
        EXPECT_EQ(reserved(&bench), cases[i].after);
        free_all(&bench, records, 2);
    }
}

TEST(auto_growth_pools, a_rounded_size_decides) {
    strata_record_t *records[3];
    OPENED(bench_t, bench, bench_close,
           bench_open_cache(&bench, 0,
                            (const char *const[]){"small_pool_size=1000", "small_chunk_size=8KiB", "chunk_size=1MiB", NULL}));
    records[0] = bench_allocate(&bench, 768);
    EXPECT_EQ(reserved(&bench), 8192);
    records[1] = bench_allocate(&bench, 769); /* 1024, rounded */
    EXPECT_EQ(reserved(&bench), 8192 + MIB);
    /* Neither pool helps the other out. */
    records[2] = bench_allocate(&bench, MIB - 1024);
    EXPECT_EQ(reserved(&bench), 8192 + MIB);
    free_all(&bench, &records[1], 2);
    strata_record_t *again = bench_allocate(&bench, 7 * 1024), *small[32];
    for (int i = 0; i < 32; i++) small[i] = bench_allocate(&bench, 256);
    EXPECT_EQ(reserved(&bench), 2 * 8192 + MIB);
    EXPECT_OK(strata_stack_validate(bench.stack));
    free_all(&bench, small, 32);
    bench_free(&bench, again);
    bench_free(&bench, records[0]);
}

/* ---- preallocation ---- */

TEST(auto_growth_pools, the_default_stream_alone_preallocates) {
    strata_handle_t stream;
    strata_stack_t *other;
    OPENED(bench_t, bench, bench_close,
           bench_open_cache(&bench, 0, (const char *const[]){"chunk_size=2MiB", "preallocate=64MiB", NULL}));
    EXPECT_EQ(reserved(&bench), 64 * MIB);
    ASSERT_OK(strata_device_stream_create(bench.device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_stack_create(&bench.domain->ordinary, &(strata_stack_for_t){.stream = stream}, &other));
    EXPECT_EQ(reserved(&bench), 64 * MIB);
    /* It is idle memory as any other. */
    EXPECT_EQ(strata_stack_idle_bytes(bench.stack), 64 * MIB);
    strata_record_t *record = bench_allocate(&bench, 100);
    EXPECT_EQ(bench.stack->figures.growths, 1);
    EXPECT_EQ(strata_stack_release(bench.stack), 0);
    bench_free(&bench, record);
    EXPECT_EQ(strata_stack_release(bench.stack), 64 * MIB);
    EXPECT_EQ(reserved(&bench), 0);
    strata_domain_remove_stack(bench.domain, other);
    strata_stack_destroy(other);
    EXPECT_OK(strata_device_stream_destroy(bench.device, stream));
}

/* The second chunk fails: the first goes back, and the text says which option asked for what. */
TEST(auto_growth_pools, what_cannot_be_preallocated_fails_the_stack) {
    static const char *const options[] = {"small_pool_size=1MiB", "small_preallocate=2MiB", "preallocate=20MiB", NULL};
    static const char *const names[] = {"auto_growth.small_preallocate: 2MiB: ", "auto_growth.preallocate: 20MiB: "};
    for (uint64_t k = 1; k <= 2; k++) {
        strata_stack_t *stack = NULL;
        OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, options));
        strata_domain_remove_stack(bench.domain, bench.stack);
        strata_stack_destroy(bench.stack);
        EXPECT_EQ(test_source_live(), 0);
        test_source_fail(k, false, STRATA_E_NO_MEMORY);
        EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_stack_create(&bench.domain->ordinary, &(strata_stack_for_t){.stream = NULL}, &stack),
                    names[k - 1]);
        test_source_fail(0, false, STRATA_OK);
        EXPECT_EQ(test_source_live(), 0);
        EXPECT_EQ(reserved(&bench), 0);
    }
}

/* ---- split by chunk_size ---- */

/* 1 MiB of an ordinary chunk is used and 3 are free; of a chunk of 8 MiB 6 are used and 2 are free. */
TEST(auto_growth_pools, a_split_keeps_the_holes_of_large_chunks) {
    static const char *const orders[] = {"order=address", "order=any"};
    for (int i = 0; i < 4; i++) {
        bool on = i & 1;
        strata_record_t *records[4];
        OPENED(bench_t, bench, bench_close,
               bench_open_cache(
                   &bench, 0,
                   (const char *const[]){"chunk_size=4MiB", orders[i / 2], on ? "split_pools=true" : "split_pools=false", NULL}));
        records[0] = bench_allocate(&bench, MIB);
        bench_free(&bench, bench_allocate(&bench, 8 * MIB));
        records[1] = bench_allocate(&bench, 6 * MIB);
        EXPECT_EQ(reserved(&bench), 12 * MIB);
        /* Best fit takes the 2 MiB; the split takes what only small requests can use. */
        records[2] = bench_allocate(&bench, 3 * MIB / 2);
        EXPECT_EQ(records[2]->chunk, on ? records[0]->chunk : records[1]->chunk);
        /* Before it grows, it takes the other. */
        records[3] = bench_allocate(&bench, 7 * MIB / 4);
        EXPECT_EQ(records[3]->chunk, on ? records[1]->chunk : records[0]->chunk);
        EXPECT_EQ(reserved(&bench), 12 * MIB);
        EXPECT_OK(strata_stack_validate(bench.stack));
        free_all(&bench, records, 4);
        EXPECT_OK(strata_stack_validate(bench.stack));
        EXPECT_EQ(strata_stack_release(bench.stack), 12 * MIB);
    }
}

/* Out of memory, a small request's chunk may be smaller than chunk_size: it is one for small requests all the same. */
TEST(auto_growth_pools, a_smaller_growth_is_no_large_chunk) {
    strata_record_t *small = NULL, *large = NULL;
    OPENED(bench_t, bench, bench_close,
           bench_open_cache(&bench, 0, (const char *const[]){"chunk_size=4MiB", "split_pools=true", "smaller_growth=true", NULL}));
    strata_request_t serve = {.size = MIB, .alignment = 256, .flags = STRATA_SMALL_GROWTH};
    ASSERT_OK(strata_stack_serve(bench.stack, &serve, &small));
    EXPECT_EQ(reserved(&bench), MIB);
    large = bench_allocate(&bench, 5 * MIB);
    EXPECT_EQ(small->pool, 0);
    EXPECT_EQ(large->pool, 1);
    EXPECT_OK(strata_stack_validate(bench.stack));
    bench_free(&bench, small);
    bench_free(&bench, large);
}

/* 1,000 live blocks of 512 x 2^(17u) bytes, a random one freed and another allocated: highest reserved over highest requested. */
static double working_set(const char *option, uint64_t seed) {
    enum { LIVE = 1000, TURNS = 150000 };
    static strata_record_t *live[LIVE];
    bench_t bench;
    uint64_t random = seed;
    bench_open_cache(&bench, STRATA_SIM_UNLIMITED, (const char *const[]){"chunk_size=20MiB", "order=any", option, NULL});
    for (int i = 0; i < LIVE + TURNS; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        strata_record_t **slot = &live[i < LIVE ? (uint64_t)i : (random >> 33) % LIVE];
        if (i >= LIVE) bench_free(&bench, *slot);
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        *slot = bench_allocate(&bench, (size_t)(512 * __builtin_exp2(17.0 * (double)(random >> 11) / 9007199254740992.0)));
    }
    const strata_statistics_t *f = &bench.stack->figures;
    double ratio = (double)f->peak_reserved_bytes / (double)f->peak_requested_bytes;
    EXPECT_OK(strata_stack_validate(bench.stack));
    free_all(&bench, live, LIVE);
    bench_close(&bench);
    return ratio;
}

TEST(auto_growth_pools, a_split_reserves_less_for_many_sizes) {
    double without = 0, with = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        without += working_set("split_pools=false", seed) / 4;
        with += working_set("split_pools=true", seed) / 4;
    }
    printf("reserved over requested, 1,000 live blocks: %.3f, split %.3f\n", without, with);
    EXPECT_LE(with, 1.25);
    EXPECT_LE(with, without - 0.05);
}

/* ---- validate ---- */

static void finds_planted_faults(const char *const *options) {
    strata_record_t *records[6];
    OPENED(bench_t, bench, bench_close, bench_open_cache(&bench, 0, options));
    auto_growth_t *self = (auto_growth_t *)bench.stack->cache;
    for (size_t i = 0; i < 6; i++) records[i] = bench_allocate(&bench, i < 3 ? 4096 : 2 * MIB);
    strata_record_t *hole = records[1], *live = records[2], *large_hole = records[4], *large = records[5];
    bench_free(&bench, hole);
    bench_free(&bench, large_hole);
    EXPECT_NE(live->pool, large->pool);
    /* A block that would go back into the other pool's index; one that lies in the wrong one. */
    EXPECT_FOUND(live->pool, 1 - live->pool);
    EXPECT_FOUND(large->pool, 7);
    EXPECT_FOUND(hole->pool, 1 - hole->pool);
    auto_growth_pool_t first = self->pools[0];
    self->pools[0] = self->pools[1];
    self->pools[1] = first;
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_stack_validate(bench.stack));
    self->pools[1] = self->pools[0];
    self->pools[0] = first;
    /* The chunks' list. */
    EXPECT_FOUND(strata_chunk_at(&self->chunks, large->chunk)->prev, 0);
    EXPECT_FOUND(self->chunks.last, live->chunk);
    /* The rules: not those of the options. */
    EXPECT_FOUND(self->first_up_to, UINT64_MAX);
    EXPECT_FOUND(self->spills, !self->spills);
    EXPECT_FOUND(self->warming_up, true);
    EXPECT_FOUND(self->hit_mode, STRATA_AUTO_GROWTH_PLAIN);
    EXPECT_FOUND(self->used_bytes, self->used_bytes + 256);
    for (size_t i = 0; i < 6; i++)
        if (i != 1 && i != 4) bench_free(&bench, records[i]);
}

TEST(auto_growth_pools, validate_finds_planted_faults_of_small_and_large) {
    finds_planted_faults((const char *const[]){"small_pool_size=1MiB", "small_chunk_size=1MiB", "chunk_size=8MiB", NULL});
    finds_planted_faults(
        (const char *const[]){"small_pool_size=1MiB", "small_chunk_size=1MiB", "chunk_size=8MiB", "order=any", NULL});
}

TEST(auto_growth_pools, validate_finds_planted_faults_of_a_split) {
    finds_planted_faults((const char *const[]){"chunk_size=1MiB", "split_pools=true", NULL});
    finds_planted_faults((const char *const[]){"chunk_size=1MiB", "split_pools=true", "order=any", NULL});
}

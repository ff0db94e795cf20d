/* Tests the exact figures of a place after each step of a small program, on every kind of stack. */
#include "tests/facade/support/fixture.h"

#define CAPACITY (64 * MIB)
#define CONTEXT  (500 * MIB) /* in the profile: the part of `total` that no program can allocate */

typedef struct stack_row {
    const char *name, *text;
    uint64_t chunk; /* bytes from the device for the first request of 4 MiB */
    bool caches; /* keeps freed blocks */
    bool pooled; /* uses the driver's pool */
    bool climbs; /* the ladder of the core runs, because the layer has no own steps */
} stack_row_t;

static const stack_row_t stacks[] = {
    {"system", "stack: [system]\n", 4 * MIB, false, false, true},
    {"auto_growth", "stack: [auto_growth: {chunk_size: 8MiB}, system]\n", 8 * MIB, true, false, true},
    {"under_stream_safe", "stack: [stream_safe, auto_growth: {chunk_size: 8MiB}, system]\n", 8 * MIB, true, false, true},
    {"over_handles", "stack: [auto_growth: {chunk_size: 8MiB}, vmm]\n", 8 * MIB, true, false, true},
    {"auto_growth_vmm", "stack: [auto_growth_vmm, vmm]\n", 4 * MIB, true, false, true},
    {"caching", "stack: [caching, system]\n", 20 * MIB, true, false, false},
    {"bfc", "stack: [bfc: {initial_region: 16MiB}, system]\n", 16 * MIB, true, false, false},
    {"cuda_malloc_async", "stack: [cuda_malloc_async]\n", 4 * MIB, false, true, true},
};

static strata_mem_info_t mem_info(rig_t *rig) {
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_mem_info(rig->s, rig->gpu, &info));
    return info;
}

static uint64_t used(rig_t *rig) {
    strata_sim_figures_t figures;
    strata_sim_figures(rig->devices[0], &figures);
    return figures.used_bytes;
}

/* Checks live, reserved and cached bytes together with the device's own figures. */
static void expect_place(rig_t *rig, uint64_t live, uint64_t reserved, uint64_t cached) {
    strata_statistics_t f = rig_figures(rig);
    strata_mem_info_t info = mem_info(rig);
    EXPECT_EQ(f.requested_bytes, live);
    EXPECT_EQ(f.allocated_bytes, live);
    EXPECT_EQ(f.reserved_bytes, reserved);
    EXPECT_EQ(f.deferred_bytes + f.quarantined_bytes + f.paused_bytes, 0);
    EXPECT_EQ(f.live_allocations, f.allocations - f.frees);
    EXPECT_EQ(info.cached, cached);
    EXPECT_EQ(info.total, CAPACITY + CONTEXT);
    EXPECT_EQ(info.free, CAPACITY - used(rig));
    EXPECT_EQ(info.limit, STRATA_UNLIMITED);
}

TEST_EACH(exact_figures, after_each_step, stack_row_t, stacks) {
    RIG(rig, row->text, CAPACITY);
    expect_place(&rig, 0, 0, 0);
    strata_block_t a = rig_allocate(&rig, NULL, 4 * MIB);
    expect_place(&rig, 4 * MIB, row->chunk, row->chunk - 4 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    uint64_t kept = row->caches ? row->chunk : 0;
    expect_place(&rig, 0, kept, kept);
    a = rig_allocate(&rig, NULL, 4 * MIB);
    expect_place(&rig, 4 * MIB, row->chunk, row->chunk - 4 * MIB);
    strata_statistics_t f = rig_figures(&rig);
    EXPECT_EQ(f.allocations, 2);
    EXPECT_EQ(f.frees, 1);
    EXPECT_EQ(f.cache_hits, row->caches);
    EXPECT_EQ(f.growths, row->caches);
    EXPECT_EQ(f.chunks, row->caches);
    EXPECT_EQ(f.peak_requested_bytes, 4 * MIB);
    EXPECT_EQ(f.peak_allocated_bytes, 4 * MIB);
    EXPECT_EQ(f.peak_reserved_bytes, row->chunk);
    /* A failed request changes only its counts and the memory that its ladder released. */
    uint64_t before = used(&rig);
    EXPECT_EQ(rig_try(&rig, NULL, 2 * CAPACITY), STRATA_E_NO_MEMORY);
    expect_place(&rig, 4 * MIB, row->chunk, row->chunk - 4 * MIB);
    EXPECT_EQ(used(&rig), before);
    f = rig_figures(&rig);
    EXPECT_EQ(f.out_of_memory, 1);
    EXPECT_EQ(f.recoveries, row->climbs);
    EXPECT_EQ(f.allocations, 2);
    EXPECT_EQ(f.cache_hits, row->caches);
    EXPECT_EQ(f.growths, row->caches);
    EXPECT_EQ(f.peak_requested_bytes, 4 * MIB);
    EXPECT_EQ(f.peak_reserved_bytes, row->chunk);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_release(&rig), row->pooled ? before : kept);
    EXPECT_EQ(rig_release(&rig), 0);
    expect_place(&rig, 0, 0, 0);
    EXPECT_EQ(used(&rig), 0);
    EXPECT_EQ(rig_figures(&rig).chunks, 0);
    EXPECT_EQ(rig_figures(&rig).frees, 2);
}

/* Three chunks of 8 MiB are idle. A trim releases as few as possible to get down to the limit. */
TEST(exact_figures, a_trim_releases_as_little_as_possible) {
    static const struct {
        uint64_t keep, given;
    } rows[] = {{24 * MIB, 0}, {24 * MIB - 1, 8 * MIB}, {16 * MIB, 8 * MIB}, {16 * MIB - 1, 16 * MIB}, {1, 24 * MIB},
                {0, 24 * MIB}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        RIG(rig, "stack: [auto_growth: {chunk_size: 8MiB}, system]\n", CAPACITY);
        strata_block_t blocks[3];
        for (int k = 0; k < 3; k++) blocks[k] = rig_allocate(&rig, NULL, 8 * MIB);
        RIG_FREE(&rig, blocks[0], blocks[1], blocks[2]);
        EXPECT_EQ(rig_trim(&rig, rows[i].keep), rows[i].given);
        expect_place(&rig, 0, 24 * MIB - rows[i].given, 24 * MIB - rows[i].given);
        EXPECT_EQ(rig_figures(&rig).chunks, 3 - rows[i].given / (8 * MIB));
        EXPECT_EQ(rig_figures(&rig).peak_reserved_bytes, 24 * MIB);
        EXPECT_EQ(rig_trim(&rig, rows[i].keep), 0);
    }
}

/* A limit is reported as it was set, and exactly that much can be reserved. */
TEST_RIG(exact_figures, a_limit_is_exact, CAPACITY, "stack: [system]\n") {
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 10 * MIB));
    EXPECT_EQ(mem_info(rig).limit, 10 * MIB);
    strata_block_t a = rig_allocate(rig, NULL, 8 * MIB), b = rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_EQ(rig_try(rig, NULL, 1), STRATA_E_NO_MEMORY);
    EXPECT_EQ(rig_figures(rig).out_of_memory, 1);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 10 * MIB);
    EXPECT_OK(strata_free(rig->s, b.ref));
    EXPECT_EQ(rig_try(rig, NULL, 2 * MIB + 1), STRATA_E_NO_MEMORY);
    EXPECT_EQ(rig_try(rig, NULL, 2 * MIB), STRATA_OK);
    EXPECT_EQ(rig_figures(rig).peak_reserved_bytes, 10 * MIB);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, STRATA_UNLIMITED));
    EXPECT_EQ(mem_info(rig).limit, STRATA_UNLIMITED);
    EXPECT_OK(strata_free(rig->s, a.ref));
}

/* Failing requests in two pools and outside: each group counts its own ladders, and the place has the sum. */
TEST_RIG(exact_figures, the_place_has_the_sum_of_its_pools, CAPACITY,
         "stack: [system]\npools: {one: {stack: [system]}, two: {stack: [system]}}\n") {
    static const char *const names[] = {"one", "two"};
    strata_statistics_t f = {.struct_size = sizeof f};
    strata_block_t blocks[2];
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t pool;
        strata_block_t none = {.ref = 7};
        ASSERT_OK(strata_pool(rig->s, names[i], &pool));
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = (i + 1) * MIB, .pool = pool};
        blocks[i] = rig_allocate_with(rig, NULL, &options);
        options.size = 2 * CAPACITY;
        for (uint64_t k = 0; k <= i; k++)
            EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &none));
        EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, pool, &f));
        EXPECT_EQ(f.out_of_memory, i + 1);
        EXPECT_EQ(f.recoveries, i + 1);
        EXPECT_EQ(f.reserved_bytes, (i + 1) * MIB);
        EXPECT_EQ(f.peak_reserved_bytes, (i + 1) * MIB);
        EXPECT_EQ(f.live_allocations, 1);
    }
    EXPECT_EQ(rig_try(rig, NULL, 2 * CAPACITY), STRATA_E_NO_MEMORY);
    f = rig_figures(rig);
    EXPECT_EQ(f.out_of_memory, 4);
    EXPECT_EQ(f.recoveries, 4);
    EXPECT_EQ(f.reserved_bytes, 3 * MIB);
    EXPECT_EQ(f.peak_reserved_bytes, 3 * MIB);
    RIG_FREE(rig, blocks[0], blocks[1]);
    expect_place(rig, 0, 0, 0);
}

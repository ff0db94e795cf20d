/* Programs from public reports about GPU allocators, with the memory that they need under the default. Captures into one pool
 * are in tests/graphs/handed_over.c, buffers that grow in growth_budget.c and growth_moves.c, partial releases in trims.c. The
 * driver's pool is in tests/async/report.c, what never fits in never_fits.c. */
#include "platform/sim/checker/checker.h"
#include "tests/facade/support/fixture.h"

/* Bytes beyond the need that one growth may leave. */
#define PAGE (4 * MIB)

static uint64_t peak(rig_t *rig) { return rig_figures(rig).peak_reserved_bytes; }

static void free_all(rig_t *rig, strata_block_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

static void allocate_all(rig_t *rig, strata_block_t *blocks, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) blocks[i] = rig_allocate(rig, NULL, size);
}

/* PyTorch's notes on its allocator, 2026-06-01. */
TEST_RIG_WAYS(facade_reported, blocks_of_half_or_twice_the_size_use_the_same_memory, larger_first, 2, 0, "strata") {
    strata_block_t blocks[8];
    for (int half = 0; half < 2; half++) {
        bool large = half == !larger_first;
        allocate_all(rig, blocks, large ? 4 : 8, large ? 32 * MIB : 16 * MIB);
        free_all(rig, blocks, large ? 4 : 8);
    }
    EXPECT_LE(peak(rig), 128 * MIB + PAGE);
}

/* The same notes. */
TEST_RIG(facade_reported, two_free_blocks_apart_serve_one_of_twice_the_size, 0, "strata") {
    strata_block_t blocks[4];
    allocate_all(rig, blocks, 4, 16 * MIB);
    EXPECT_OK(strata_free(rig->s, blocks[0].ref));
    EXPECT_OK(strata_free(rig->s, blocks[2].ref));
    blocks[0] = rig_allocate(rig, NULL, 32 * MIB);
    EXPECT_LE(peak(rig), 64 * MIB + PAGE);
    EXPECT_OK(strata_free(rig->s, blocks[0].ref));
    EXPECT_OK(strata_free(rig->s, blocks[1].ref));
    EXPECT_OK(strata_free(rig->s, blocks[3].ref));
}

/* torchrec#4584: an embedding table is moved between rounds, and other libraries need the rest of the card. */
TEST_RIG(facade_reported, rounds_of_large_tables_do_not_grow, 96 * GIB, "strata") {
    enum { ROUNDS = 10, PARTS = 11, LEFT = 2, FOREIGN = 4 };
    for (int round = 0; round < ROUNDS; round++) {
        strata_block_t parts[PARTS], first = rig_allocate(rig, NULL, 16 * GIB), table = rig_allocate(rig, NULL, 33 * GIB);
        EXPECT_OK(strata_free(rig->s, first.ref));
        allocate_all(rig, parts, PARTS, 4 * GIB);
        free_all(rig, parts + LEFT, PARTS - LEFT);
        first = rig_allocate(rig, NULL, 16 * GIB);
        EXPECT_OK(strata_free(rig->s, first.ref));
        EXPECT_OK(strata_free(rig->s, table.ref));
        free_all(rig, parts, LEFT);
        EXPECT_LE(peak(rig), 77 * GIB + PAGE);
    }
    strata_address_t foreign[FOREIGN];
    for (int i = 0; i < FOREIGN; i++) EXPECT_OK(strata_device_malloc(rig->devices[0], STRATA_MEMORY_DEVICE, 4 * GIB, &foreign[i]));
    for (int i = 0; i < FOREIGN; i++) EXPECT_OK(strata_device_free(rig->devices[0], STRATA_MEMORY_DEVICE, foreign[i]));
}

/* pytorch#123548: in each round a small block stays between large ones. */
TEST_RIG(facade_reported, small_blocks_that_stay_do_not_split_the_memory_of_large_ones, 0, "strata") {
    enum { ROUNDS = 33 };
    strata_block_t kept[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        strata_block_t large[2] = {rig_allocate(rig, NULL, 160 * MIB)};
        kept[round] = rig_allocate(rig, NULL, 2 * MIB);
        large[1] = rig_allocate(rig, NULL, 80 * MIB);
        free_all(rig, large, 2);
    }
    EXPECT_LE(peak(rig), 306 * MIB + 306 * MIB / 50 + PAGE);
    free_all(rig, kept, ROUNDS);
}

/* NULL if a page of it is not mapped. */
static uint64_t *words_of(rig_t *rig, const strata_block_t *block) {
    return strata_device_host_view(rig->devices[0], (uint64_t)(uintptr_t)block->ptr, block->size);
}

/* Writes one word of each 64 KiB; a device unmaps 2 MiB at least. */
enum { WORDS_APART = 8192 };

static void write_marks(rig_t *rig, const strata_block_t *block) {
    uint64_t *words = words_of(rig, block);
    ASSERT_NE(words, NULL);
    for (size_t i = 0; i < block->size / sizeof *words; i += WORDS_APART) words[i] = block->ref ^ i;
}

static void expect_marks(rig_t *rig, const strata_block_t *block) {
    const uint64_t *words = words_of(rig, block);
    size_t lost = 0;
    ASSERT_NE(words, NULL);
    for (size_t i = 0; i < block->size / sizeof *words; i += WORDS_APART) lost += words[i] != (block->ref ^ i);
    EXPECT_EQ(lost, 0);
}

/* A block with its marks, or false if the card is full. */
static bool try_marked(rig_t *rig, size_t size, strata_block_t *block) {
    strata_status_t status = strata_allocate(rig->s, rig->gpu, NULL, size, block);
    if (status == STRATA_OK) write_marks(rig, block);
    else EXPECT_EQ(status, STRATA_E_NO_MEMORY);
    return status == STRATA_OK;
}

static void end_marked(rig_t *rig, const strata_block_t *block) {
    expect_marks(rig, block);
    EXPECT_OK(strata_free(rig->s, block->ref));
}

/* The program of pytorch#123548 with a block that is written once, on a card that the small blocks fill. Then every second one
 * of these is freed. */
static void keep_what_is_written_once(const char *strategy, const char *const *set, size_t count) {
    enum { ROUNDS = 80 };
    rig_t rig CLOSED_BY(rig_finish);
    const strata_sim_options_t options = {.capacity = 416 * MIB, .contents = true};
    rig_open_on(&rig, rig_strategy(strategy, set, count), &options, 0);
    rig.borrowed_strategy = false;
    strata_checker_t *checker;
    strata_block_t kept[ROUNDS], large[2], once;
    size_t kept_count = 0, full = 0;
    ASSERT_OK(strata_checker_begin(rig.world, STRATA_CHECKER_LIFETIMES, &checker));
    ASSERT_TRUE(try_marked(&rig, 64 * MIB, &once));
    for (size_t round = 0; round < ROUNDS; round++) {
        bool first = try_marked(&rig, round % 2 ? 80 * MIB : 160 * MIB, &large[0]);
        kept_count += try_marked(&rig, 2 * MIB, &kept[kept_count]);
        bool second = try_marked(&rig, round % 2 ? 160 * MIB : 80 * MIB, &large[1]);
        expect_marks(&rig, &once);
        if (first) end_marked(&rig, &large[0]);
        if (second) end_marked(&rig, &large[1]);
        full += !first || !second;
        if (first && second) continue;
        for (size_t i = 0; i < kept_count; i += 2) end_marked(&rig, &kept[i]);
        for (size_t i = 1; i < kept_count; i += 2) kept[i / 2] = kept[i];
        kept_count /= 2;
    }
    EXPECT_GT(full, 0);
    for (size_t i = 0; i < kept_count; i++) end_marked(&rig, &kept[i]);
    end_marked(&rig, &once);
    EXPECT_GT(rig_calls(&rig, STRATA_CALL_unmap), 0);
    EXPECT_EQ(strata_checker_hazards(checker), 0);
    strata_checker_end(checker);
    if (strata_test_has_failed()) FAIL_TEST("so far with %s, %s", strategy, count ? set[0] : "no settings");
}

/* A ROCm build report of 2026-08: the block read as zeros after the end of the card was reached. Idle pages between live ones go
 * back here and are mapped again, but each live block keeps its own. */
TEST(facade_reported, a_block_that_is_written_once_keeps_its_pages) {
    static const char *const split[] = {"caching_vmm.max_split_size=128MiB"};
    static const char *const little[] = {"caching_vmm.max_split_size=20MiB"};
    keep_what_is_written_once("pytorch-expandable", NULL, 0);
    keep_what_is_written_once("pytorch-expandable", split, 1);
    keep_what_is_written_once("pytorch-expandable", little, 1);
    keep_what_is_written_once("strata", NULL, 0);
}

/* cupy#4676: millions of pairs of odd sizes, then a block of a fifth of the card. */
TEST_RIG(facade_reported, a_large_block_is_served_after_many_odd_sizes, 32 * GIB, "strata") {
    enum { PAIRS = 100 * 1000, OLD = 64 };
    strata_block_t old[OLD] = {{.ref = 0}};
    uint64_t state = 1;
    for (int i = 0; i < PAIRS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t drawn = (uint32_t)(state >> 33);
        size_t size = drawn % 997 == 0 ? 1 + drawn % (83 * MIB) : 1 + drawn % (256 << 10);
        strata_block_t *block = &old[i % OLD];
        if (block->ref) EXPECT_OK(strata_free(rig->s, block->ref));
        *block = rig_allocate(rig, NULL, size | 1);
    }
    free_all(rig, old, OLD);
    uint64_t held = rig_figures(rig).reserved_bytes;
    strata_block_t large = rig_allocate(rig, NULL, 6280ull * 1000 * 1000);
    EXPECT_LE((double)rig_figures(rig).reserved_bytes, 1.1 * (double)large.size);
    EXPECT_LT(held, large.size);
    EXPECT_OK(strata_free(rig->s, large.ref));
}

/* vllm#48680: weights are replaced layer by layer, the new one before the old one is freed, on a card with little more. */
TEST_RIG(facade_reported, weights_are_replaced_layer_by_layer_in_a_pool, 10 * GIB + 512 * MIB,
         "extends: strata\npools: {weights: }\n") {
    enum { LAYERS = 48 };
    const uint64_t other = 9298 * MIB - 4844 * MIB, before = 4844 * MIB / LAYERS, after = 5386 * MIB / LAYERS;
    uint64_t pool;
    strata_block_t layers[LAYERS], rest;
    ASSERT_OK(strata_pool(rig->s, "weights", &pool));
    const strata_allocate_options_t options[] = {
        {.struct_size = sizeof *options, .size = other, .pool = pool},
        {.struct_size = sizeof *options, .size = before, .pool = pool},
        {.struct_size = sizeof *options, .size = after, .pool = pool},
    };
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, NULL, &options[0], &rest));
    for (int i = 0; i < LAYERS; i++) EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, NULL, &options[1], &layers[i]));
    for (int i = 0; i < LAYERS; i++) {
        strata_block_t old = layers[i];
        EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, NULL, &options[2], &layers[i]));
        EXPECT_OK(strata_free(rig->s, old.ref));
    }
    EXPECT_LE((double)peak(rig), 1.03 * (double)(other + LAYERS * after + after));
    EXPECT_OK(strata_free(rig->s, rest.ref));
    free_all(rig, layers, LAYERS);
}

/* pytorch#188008, #191076: a growth of several handles fails at one of them. A handle has at most 512 MiB here. */
TEST(facade_reported, a_growth_that_fails_at_any_handle_is_undone) {
    static const strata_device_call_t kinds[] = {STRATA_CALL_create, STRATA_CALL_map, STRATA_CALL_set_access};
    enum { BLOCKS = 4, HANDLES = 8 };
    for (size_t kind = 0; kind < COUNT(kinds); kind++)
        for (uint64_t number = 1; number <= HANDLES && !strata_test_has_failed(); number++) {
            RIG(rig, "strata", 0);
            strata_block_t blocks[BLOCKS], block = {0};
            allocate_all(&rig, blocks, BLOCKS, 30 * MIB);
            uint64_t before = rig_figures(&rig).reserved_bytes;
            EXPECT_OK(strata_sim_fail(rig.devices[0], kinds[kind], number, true, STRATA_E_NO_MEMORY));
            EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 5 * GIB, &block));
            strata_sim_clear_faults(rig.devices[0]);
            EXPECT_LE(rig_figures(&rig).reserved_bytes, before);
            EXPECT_OK(strata_validate(rig.s));
            uint64_t created = rig_calls(&rig, STRATA_CALL_create);
            block = rig_allocate(&rig, NULL, 4 * GIB);
            EXPECT_GE(rig_calls(&rig, STRATA_CALL_create) - created, HANDLES);
            EXPECT_OK(strata_free(rig.s, block.ref));
            free_all(&rig, blocks, BLOCKS);
            if (strata_test_has_failed()) FAIL_TEST("call kind %d, number %d", (int)kind, (int)number);
        }
}

/* llama.cpp#22107: two temporaries of a step are always a little larger than those of the step before. */
TEST_RIG(facade_reported, temporaries_that_grow_need_the_two_largest, 0, "strata") {
    enum { ROUNDS = 400 };
    uint64_t calls = 0;
    for (size_t round = 1; round <= ROUNDS; round++) {
        strata_block_t two[2];
        for (size_t i = 0; i < 2; i++) two[i] = rig_allocate(rig, NULL, 32 * MIB + round * (i + 1) * 4096);
        free_all(rig, two, 2);
        if (round == ROUNDS / 10) calls = rig_calls(rig, STRATA_CALL_map) + rig_calls(rig, STRATA_CALL_create);
    }
    EXPECT_LE(peak(rig), 64 * MIB + 3 * ROUNDS * 4096 + PAGE);
    EXPECT_LE(rig_calls(rig, STRATA_CALL_map) + rig_calls(rig, STRATA_CALL_create) - calls, 8);
}

/* mlx#4019: caches of a model grow by one row per token. */
TEST_RIG(facade_reported, caches_that_grow_by_a_row_need_few_calls, 0, "strata") {
    enum { CACHES = 20, ROWS = 2000 };
    strata_block_t caches[CACHES];
    allocate_all(rig, caches, CACHES, 4096);
    for (size_t row = 2; row <= ROWS; row++)
        for (size_t i = 0; i < CACHES; i++) {
            strata_block_t larger = rig_allocate(rig, NULL, row * 4096);
            EXPECT_OK(strata_free(rig->s, caches[i].ref));
            caches[i] = larger;
        }
    double ratio = (double)peak(rig) / (double)rig_figures(rig).peak_requested_bytes;
    double calls = (double)(rig_calls(rig, STRATA_CALL_map) + rig_calls(rig, STRATA_CALL_unmap)) / (CACHES * ROWS);
    printf("reserved over requested: %.4f; mappings for each request: %.4f\n", ratio, calls);
    EXPECT_LE(ratio, 1.1);
    EXPECT_LE(calls, 0.05);
    free_all(rig, caches, CACHES);
}

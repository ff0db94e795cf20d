/* What lies beside a block, and whom to give up, over every cache: judged by what a snapshot shows. */
#include <stdio.h>

#include "tests/facade/pools/pooled.h"
#include "tests/facade/support/program.h"

enum { BLOCKS = 60, ROWS = 4096, VICTIMS = 64, ROUNDS = 6 };

typedef struct seen {
    strata_snapshot_row_t rows[ROWS];
    size_t count;
} seen_t;
static seen_t seen;

static void see(const strata_snapshot_row_t *row, void *pool) {
    uint64_t only = *(const uint64_t *)pool; /* 0: any */
    ASSERT_LT(seen.count, ROWS);
    if (!only || row->pool == (only == STRATA_POOL_ORDINARY ? 0 : only)) seen.rows[seen.count++] = *row;
}

static void look(rig_t *rig, uint64_t pool) {
    seen.count = 0;
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, see, &pool));
}

/* ---- the judges ---- */

static bool touch(size_t low) {
    return seen.rows[low].chunk == seen.rows[low + 1].chunk &&
           (char *)seen.rows[low].block.ptr + seen.rows[low].block.size == (char *)seen.rows[low + 1].block.ptr;
}

static void expect_neighbours(rig_t *rig) {
    for (size_t i = 0; i < seen.count; i++) {
        const strata_snapshot_row_t *row = &seen.rows[i];
        strata_neighbours_t n = {.struct_size = sizeof n};
        if (row->state != 1) continue;
        bool before = i > 0 && touch(i - 1) && row[-1].state == 0, after = i + 1 < seen.count && touch(i) && row[1].state == 0;
        EXPECT_OK(strata_neighbours(rig->s, row->block.ref, &n));
        EXPECT_EQ(n.block.ptr, row->block.ptr);
        EXPECT_EQ(n.block.size, row->block.size);
        EXPECT_EQ(n.block.ref, row->block.ref);
        EXPECT_EQ(n.free_before, before ? row[-1].block.size : 0);
        EXPECT_EQ(n.free_after, after ? row[1].block.size : 0);
        EXPECT_EQ(n.run, n.free_before + row->block.size + n.free_after);
    }
}

typedef struct price {
    uint64_t bytes;
    size_t blocks;
} price_t;

/* Every run of every chunk; false: none is large enough. */
static bool cheapest(uint64_t size, price_t *best) {
    bool any = false;
    for (size_t first = 0; first < seen.count; first++) {
        uint64_t bytes = 0;
        price_t price = {0};
        for (size_t i = first; i < seen.count && seen.rows[i].state != 2 && (i == first || touch(i - 1)); i++) {
            bytes += seen.rows[i].block.size;
            price.bytes += seen.rows[i].state ? seen.rows[i].block.size : 0;
            price.blocks += seen.rows[i].state != 0;
            if (bytes < size) continue;
            bool less = price.bytes < best->bytes || (price.bytes == best->bytes && price.blocks < best->blocks);
            if (!any || less) *best = price;
            any = true;
            break;
        }
    }
    return any;
}

static uint64_t size_of(strata_ref_t ref) {
    for (size_t i = 0; i < seen.count; i++)
        if (seen.rows[i].block.ref == ref) return seen.rows[i].block.size;
    FAIL_TEST("a victim is no live block");
    return 0;
}

/* How many victims there are. */
static size_t expect_victims(rig_t *rig, uint64_t size, strata_ref_t victims[VICTIMS]) {
    price_t best = {0};
    size_t count = 77;
    uint64_t bytes = 0;
    strata_status_t status = strata_best_victims(rig->s, rig->gpu, size, victims, VICTIMS, &count);
    if (!cheapest(size, &best)) {
        EXPECT_STATUS(STRATA_E_NO_MEMORY, status);
        return 0;
    }
    EXPECT_OK(status);
    EXPECT_EQ(count, best.blocks);
    for (size_t i = 0; i < count && i < VICTIMS; i++) bytes += size_of(victims[i]);
    EXPECT_EQ(bytes, best.bytes);
    return count;
}

/* ---- programs ---- */

typedef struct program_of {
    rig_t rig;
    uint64_t random;
    uint64_t pool; /* whose blocks are asked for and looked at; ORDINARY: those of none */
    strata_stream_t streams[2];
    strata_block_t blocks[BLOCKS];
} program_of_t;

static uint64_t below(program_of_t *p, uint64_t bound) {
    p->random = p->random * 6364136223846793005ull + 1442695040888963407ull;
    return (p->random >> 33) % bound;
}

static size_t some_size(program_of_t *p) {
    uint64_t most = (uint64_t[]){4096, 300 * 1000, 3 * MIB}[below(p, 3)];
    return 1 + (size_t)below(p, most);
}

/* Some slots are filled, some emptied; now and then another stream still uses what is freed. */
static void go_on(program_of_t *p) {
    for (int i = 0; i < BLOCKS; i++) {
        strata_block_t *block = &p->blocks[below(p, BLOCKS)];
        if (!block->ref) {
            *block = get_from(&p->rig, p->pool, p->streams[below(p, 2)], some_size(p));
        } else {
            strata_stream_t borrower = below(p, 4) == 0 ? p->streams[below(p, 2)] : NULL;
            if (borrower && strata_record_stream(p->rig.s, block->ref, borrower) == STRATA_OK)
                rig_work(&p->rig, borrower, 1000 * 1000, block->ref);
            EXPECT_OK(strata_free(p->rig.s, block->ref));
            block->ref = 0;
        }
    }
}

static void free_block(program_of_t *p, strata_ref_t ref) {
    EXPECT_OK(strata_free(p->rig.s, ref));
    for (int i = 0; i < BLOCKS; i++)
        if (p->blocks[i].ref == ref) p->blocks[i].ref = 0;
}

/* Everything that waits has passed, so that freed victims are free at once. */
static void settle(program_of_t *p) {
    rig_advance(&p->rig, 1000 * 1000 * 1000);
    for (int i = 0; i < 2; i++) {
        strata_block_t block = get_from(&p->rig, p->pool, p->streams[i], 1);
        EXPECT_OK(strata_free(p->rig.s, block.ref));
    }
}

static void ask(program_of_t *p) {
    strata_ref_t victims[VICTIMS];
    look(&p->rig, p->pool);
    EXPECT_GT(seen.count, 0);
    expect_neighbours(&p->rig);
    for (int i = 0; i < 8; i++) (void)expect_victims(&p->rig, some_size(p), victims);
    (void)expect_victims(&p->rig, GIB, victims);
    settle(p);
    look(&p->rig, p->pool);
    uint64_t size = MIB / 4 + below(p, MIB);
    size_t count = expect_victims(&p->rig, size, victims);
    uint64_t reserved = rig_figures(&p->rig).reserved_bytes;
    for (size_t i = 0; i < count && i < VICTIMS; i++) free_block(p, victims[i]);
    look(&p->rig, p->pool);
    if (count == 0 || count > VICTIMS) return;
    /* The run is there, or the device has it. */
    bool went_back = rig_figures(&p->rig).reserved_bytes + size <= reserved;
    if (!went_back) EXPECT_EQ(expect_victims(&p->rig, size, victims), 0);
}

static void run_program(const char *strategy, const char *pool) {
    program_of_t p = {.random = 7};
    rig_open(&p.rig, strategy, NULL, 0, 0, 1);
    p.pool = pool ? pool_of(&p.rig, pool) : STRATA_POOL_ORDINARY;
    for (int i = 0; i < 2; i++) p.streams[i] = rig_stream(&p.rig);
    EXPECT_OK(strata_pool_begin(p.rig.s, p.rig.gpu, p.pool));
    for (int round = 0; round < ROUNDS && !strata_test_has_failed(); round++) {
        go_on(&p);
        ask(&p);
    }
    if (strata_test_has_failed()) FAIL_TEST("under %s", strategy);
    for (int i = 0; i < BLOCKS; i++)
        if (p.blocks[i].ref) EXPECT_OK(strata_free(p.rig.s, p.blocks[i].ref));
    EXPECT_OK(strata_pool_end(p.rig.s, p.rig.gpu));
    rig_close(&p.rig);
}

TEST(facade_eviction, answers_are_those_of_a_snapshot_under_every_preset) {
    const char *name;
    for (size_t i = 0; (name = strata_strategy_name(i)) != NULL; i++) run_program(name, NULL);
}

TEST(facade_eviction, answers_are_those_of_a_snapshot_where_ways_part) {
    run_program(PROGRAM_POOLED, NULL);
    run_program(PROGRAM_SPLIT, NULL);
    run_program("stack: [stream_safe, buffered, auto_growth: {chunk_size: 4MiB}, system]", NULL);
    run_program(
        "stack: [stream_safe, binning: {routes: [{up_to: 64KiB, stack: [auto_growth, system]}, {stack: [buffered, system]}]}]",
        NULL);
}

TEST(facade_eviction, answers_are_those_of_a_snapshot_in_pools) {
    run_program(POOLED, "weights");
    run_program(POOLED, "same");
    run_program("stack: [caching, system]\npools:\n  weights: {stack: [caching, system]}\n  same:\n", "weights");
    run_program("stack: [caching, system]\npools:\n  same:\n", "same");
}

/* Victims are of one pool: a run of two pools' blocks would be nobody's. */
TEST_RIG(facade_eviction, victims_are_the_current_pools_alone, 0, POOLED) {
    uint64_t weights = pool_of(rig, "weights");
    strata_block_t w = get_from(rig, weights, NULL, 8 * MIB), o = rig_allocate(rig, NULL, 2 * MIB);
    strata_ref_t victim = 0;
    size_t count = 9;
    EXPECT_OK(strata_best_victims(rig->s, rig->gpu, MIB, &victim, 1, &count));
    EXPECT_EQ(count, 1);
    EXPECT_EQ(victim, o.ref);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_best_victims(rig->s, rig->gpu, 8 * MIB, &victim, 1, &count));
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, weights));
    EXPECT_OK(strata_best_victims(rig->s, rig->gpu, MIB, &victim, 1, &count));
    EXPECT_EQ(victim, w.ref);
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
}

/* A guard's zones lie between the block and its neighbours: they are free with it. */
TEST_RIG(facade_eviction, what_a_decorator_laid_around_a_block_counts, 0,
         "stack: [guard: {quarantine: 0}, auto_growth: {chunk_size: 1MiB}, system]") {
    strata_block_t blocks[3];
    strata_neighbours_t n = {.struct_size = sizeof n};
    for (int i = 0; i < 3; i++) blocks[i] = rig_allocate(rig, NULL, 10000);
    EXPECT_OK(strata_free(rig->s, blocks[0].ref));
    EXPECT_OK(strata_neighbours(rig->s, blocks[1].ref, &n));
    EXPECT_EQ(n.block.ptr, blocks[1].ptr);
    EXPECT_EQ(n.block.size, blocks[1].size);
    EXPECT_EQ((n.free_before > 0) + (n.free_after > 0), 1);
    EXPECT_GT(n.run, n.free_before + n.block.size + n.free_after);
    EXPECT_OK(strata_free(rig->s, blocks[2].ref));
    EXPECT_OK(strata_neighbours(rig->s, blocks[1].ref, &n));
    EXPECT_TRUE(n.free_before > 0 && n.free_after > 0);
    EXPECT_EQ(n.run, MIB);
}

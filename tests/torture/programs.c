/* Programs as they are drawn, made lawful, and run. */
#include <stdio.h>
#include <string.h>

#include "lab/conform/rig/rig.h"
#include "lab/torture/campaign.h"
#include "lab/torture/draw.h"
#include "platform/host/host_memory.h"
#include "tests/harness/test.h"

enum { PROGRAMS = 500, PARTS = 10, STACKS = 100, DRAWN_EACH = 1 };

/* ---- all strategies ---- */

/* Sanitizers make a run ten times slower: there every tenth program is taken. */
static void expect_well_formed_programs_pass(const void *first) {
    static torture_failure_t failure;
    torture_strategies_t list = {0};
    torture_sum_t sum;
    EXPECT_OK(torture_add_presets(&list));
    EXPECT_OK(torture_add_drawn(&list, 1, STACKS, NULL, NULL));
    torture_campaign_t campaign = {
        .strategies = &list, .seed = 1, .first = *(const uint64_t *)first, .drawn_each = DRAWN_EACH, .few_threads = true};
    campaign.programs = STRIDE > 1 ? PROGRAMS / PARTS / 10 : PROGRAMS / PARTS;
    if (torture_run_here(&campaign, &sum, &failure, 1)) {
        FAIL_TEST("program %llu under %s", (unsigned long long)failure.run.number, list.all[failure.run.strategy].name);
        EXPECT_OK(torture_report_failure(stdout, &campaign, &failure, false));
    }
    EXPECT_EQ(sum.failed, 0);
    EXPECT_EQ(sum.hazards, 0);
    EXPECT_GE(sum.runs[STRATA_TORTURE_INTERLEAVED], campaign.programs * (list.count - list.drawn + DRAWN_EACH));
    EXPECT_GT(sum.runs[STRATA_TORTURE_TURNS], 0);
    EXPECT_GT(sum.runs[STRATA_TORTURE_AT_ONCE], 0);
    EXPECT_GT(sum.recycled, 0);
    /* Where memory is short requests are refused; a layer that refused ever after would be seen. */
    EXPECT_GT(sum.served, 9 * sum.refused);
    EXPECT_EQ(sum.unopened, 0);
    EXPECT_GT(sum.captures, 2 * campaign.programs);
    if (STRIDE == 1) EXPECT_GT(sum.launches, sum.captures / 4);
    torture_strategies_delete(&list);
}

__attribute__((constructor)) static void register_parts(void) {
    static uint64_t firsts[PARTS];
    char name[40];
    for (int i = 0; i < PARTS; i++) {
        firsts[i] = (uint64_t)i * (PROGRAMS / PARTS);
        snprintf(name, sizeof name, "programs_%03d_to_%03d", i * (PROGRAMS / PARTS), (i + 1) * (PROGRAMS / PARTS) - 1);
        strata_test_register_of("torture_every_strategy", name, __FILE__, __LINE__, expect_well_formed_programs_pass, &firsts[i]);
    }
}

/* ---- what programs are ---- */

static torture_program_t *well_formed(uint64_t seed, torture_dialect_t dialect) {
    static torture_program_t program;
    EXPECT_TRUE(torture_draw(&program, seed, 0));
    EXPECT_TRUE(torture_make_well_formed(&program, dialect));
    return &program;
}

static bool is_same_op(const torture_op_t *a, const torture_op_t *b) {
    return a->kind == b->kind && a->thread == b->thread && a->place == b->place && a->stream == b->stream && a->other == b->other &&
           a->how == b->how && a->by_pointer == b->by_pointer && a->refused == b->refused && a->count == b->count &&
           a->writes == b->writes && a->graph == b->graph && a->pool == b->pool && a->flags == b->flags &&
           a->alignment == b->alignment && a->us == b->us && a->size == b->size && a->tag == b->tag &&
           memcmp(a->blocks, b->blocks, a->count * sizeof *a->blocks) == 0;
}

static bool are_needs_equal(const torture_needs_t *a, const torture_needs_t *b) {
    return a->waits == b->waits && a->owner_waits == b->owner_waits && a->syncs == b->syncs && a->borrows == b->borrows &&
           a->uses == b->uses && a->stream_changes == b->stream_changes && a->lent == b->lent && a->pool == b->pool &&
           a->ended_pool == b->ended_pool && a->owned == b->owned && a->owner == b->owner && a->last == b->last &&
           a->touch_begin == b->touch_begin && a->touch_count == b->touch_count &&
           memcmp(a->required, b->required, sizeof a->required) == 0;
}

static bool is_same(const torture_program_t *a, const torture_program_t *b) {
    bool same = a->count == b->count && a->touched_count == b->touched_count &&
                memcmp(a->touched, b->touched, a->touched_count * sizeof *a->touched) == 0;
    for (uint32_t i = 0; i < a->count && same; i++)
        same = is_same_op(&a->ops[i], &b->ops[i]) && are_needs_equal(&a->all_needs[i], &b->all_needs[i]);
    return same;
}

#define ALL_GRAPHS (TORTURE_GRAPHS_GPU | TORTURE_GRAPHS_MANAGED | TORTURE_CAPTURES_UNANNOUNCED)

TEST(torture_programs, a_seed_says_all) {
    torture_program_t copy = {0};
    for (uint64_t seed = 1; seed < 50; seed++) {
        EXPECT_TRUE(torture_program_copy(&copy, well_formed(seed, TORTURE_FREE_COVERS)));
        EXPECT_TRUE(torture_make_well_formed(&copy, TORTURE_FREE_COVERS));
        if (!is_same(&copy, well_formed(seed, TORTURE_FREE_COVERS))) FAIL_TEST("seed %llu", (unsigned long long)seed);
    }
    torture_program_delete(&copy);
}

TEST(torture_programs, a_lawful_program_stays_as_it_is) {
    torture_program_t copy = {0};
    for (uint64_t seed = 1; seed < 300; seed++) {
        torture_dialect_t dialect = (torture_dialect_t)(seed % TORTURE_DIALECTS);
        const torture_program_t *program = well_formed(seed, dialect);
        EXPECT_TRUE(torture_program_copy(&copy, program));
        EXPECT_TRUE(torture_make_well_formed(&copy, dialect));
        if (!is_same(&copy, program)) FAIL_TEST("seed %llu", (unsigned long long)seed);
    }
    torture_program_delete(&copy);
}

/* A program of a length is nearly all on one cache, which serves thousands of blocks. */
TEST(torture_programs, a_length_says_how_many_operations_one_cache_serves) {
    torture_program_t program = {0};
    EXPECT_TRUE(torture_draw(&program, 5, 6000));
    EXPECT_TRUE(torture_make_well_formed(&program, TORTURE_FREE_COVERS));
    uint32_t served = 0, by_one = 0;
    for (uint32_t i = 0; i < program.count; i++) {
        const torture_op_t *op = &program.ops[i];
        served += op->kind == STRATA_TORTURE_ALLOCATE;
        by_one += op->kind == STRATA_TORTURE_ALLOCATE && op->place == STRATA_TORTURE_GPU && op->stream == TORTURE_STREAMS_EACH - 1;
    }
    EXPECT_GT(served, 2000);
    EXPECT_GT(by_one, served * 3 / 4);
    torture_program_delete(&program);
}

/* In how many ways blocks are freed. */
typedef struct frees {
    uint32_t covers[STRATA_TORTURE_COVERS];
    uint32_t by_another_thread, by_pointer, refused, by_one_of_several;
} frees_t;

static void count_free(frees_t *frees, const torture_op_t *op, const torture_needs_t *needs, const uint8_t *served_by) {
    frees->covers[op->how]++;
    frees->by_another_thread += op->thread != served_by[op->blocks[0]];
    frees->by_pointer += op->by_pointer;
    frees->refused += op->refused;
    frees->by_one_of_several += !needs->last;
}

TEST(torture_programs, hold_every_operation_and_free_every_block) {
    uint32_t kinds[STRATA_TORTURE_KINDS] = {0}, two_devices = 0, threads = 0, checked = 0, places[STRATA_TORTURE_PLACES] = {0};
    uint8_t served_by[64] = {0};
    frees_t frees = {.by_pointer = 0};
    for (uint64_t seed = 1; seed < 300; seed++) {
        const torture_program_t *program = well_formed(seed, ALL_GRAPHS);
        uint32_t served = 0, ended = 0;
        for (uint32_t i = 0; i < program->count; i++) {
            const torture_op_t *op = &program->ops[i];
            kinds[op->kind]++;
            served += op->kind == STRATA_TORTURE_ALLOCATE;
            ended += op->kind == STRATA_TORTURE_FREE && program->all_needs[i].last;
            if (op->kind == STRATA_TORTURE_FREE) count_free(&frees, op, &program->all_needs[i], served_by);
            if (op->kind != STRATA_TORTURE_ALLOCATE) continue;
            served_by[op->blocks[0]] = op->thread;
            places[op->place]++;
        }
        EXPECT_EQ(served, ended);
        two_devices += program->devices == 2;
        threads += program->threads > 1;
        checked += program->check_stream_ids;
    }
    for (int i = 0; i < STRATA_TORTURE_KINDS; i++) EXPECT_GT(kinds[i], 20);
    for (int i = 0; i < STRATA_TORTURE_COVERS; i++) EXPECT_GT(frees.covers[i], 50);
    EXPECT_GT(frees.by_another_thread, 500);
    EXPECT_GT(frees.by_pointer, 100);
    EXPECT_GT(frees.refused, 20);
    EXPECT_GT(frees.by_one_of_several, 60);
    for (int i = 0; i < STRATA_TORTURE_PLACES; i++) EXPECT_GT(places[i], 20);
    EXPECT_GT(two_devices, 40);
    EXPECT_GT(threads, 80);
    EXPECT_GT(checked, 80);
}

/* Whoever starts with what came before can go on: no operation waits for one after it, and none of its own thread's. */
TEST(torture_programs, threads_wait_for_what_is_before_them_alone) {
    for (uint64_t seed = 1; seed < 300; seed++) {
        const torture_program_t *program = well_formed(seed, ALL_GRAPHS);
        uint32_t done[TORTURE_THREADS] = {0};
        for (uint32_t i = 0; i < program->count; i++) {
            const torture_op_t *op = &program->ops[i];
            for (uint32_t t = 0; t < TORTURE_THREADS; t++) EXPECT_LE(program->all_needs[i].required[t], done[t]);
            done[op->thread]++;
        }
    }
}

/* ---- captures ---- */

typedef struct graphs {
    uint32_t begun, ended, launched, destroyed, holds, shared, outside_owned, late;
} graphs_t;

static void count_graph_op(graphs_t *graphs, const torture_op_t *op, const torture_needs_t *needs, uint32_t pools_seen) {
    graphs->begun += op->kind == STRATA_TORTURE_CAPTURE;
    graphs->late += op->kind == STRATA_TORTURE_CAPTURE && needs->pool == 0;
    graphs->ended += op->kind == STRATA_TORTURE_END_CAPTURE;
    graphs->launched += op->kind == STRATA_TORTURE_LAUNCH;
    graphs->destroyed += op->kind == STRATA_TORTURE_DESTROY;
    graphs->holds += op->kind == STRATA_TORTURE_POOL_BEGIN;
    graphs->holds -= op->kind == STRATA_TORTURE_POOL_REMOVE;
    graphs->shared += op->kind == STRATA_TORTURE_POOL_BEGIN && (pools_seen >> op->pool & 1u);
    graphs->outside_owned += op->kind == STRATA_TORTURE_FREE && needs->owned != 0;
}

TEST(torture_programs, capture_in_every_way_and_end_what_they_began) {
    graphs_t graphs = {.begun = 0};
    for (uint64_t seed = 1; seed < 300; seed++) {
        const torture_program_t *program = well_formed(seed, ALL_GRAPHS);
        uint32_t pools = 0;
        for (uint32_t i = 0; i < program->count; i++) {
            const torture_op_t *op = &program->ops[i];
            count_graph_op(&graphs, op, &program->all_needs[i], pools);
            if (op->kind == STRATA_TORTURE_POOL_BEGIN) pools |= UINT32_C(1) << op->pool;
        }
        EXPECT_EQ(graphs.begun, graphs.ended);
        EXPECT_EQ(graphs.begun, graphs.destroyed);
        EXPECT_EQ(graphs.holds, 0);
    }
    EXPECT_GT(graphs.begun, 300);
    EXPECT_GT(graphs.launched, 200);
    EXPECT_GT(graphs.shared, 30);
    EXPECT_GT(graphs.outside_owned, 30);
    EXPECT_GT(graphs.late, 10);
}

TEST(torture_programs, do_not_capture_where_nobody_serves_it) {
    for (uint64_t seed = 1; seed < 100; seed++) {
        const torture_program_t *program = well_formed(seed, TORTURE_FREE_COVERS);
        for (uint32_t i = 0; i < program->count; i++) EXPECT_LT(program->ops[i].kind, STRATA_TORTURE_POOL_BEGIN);
    }
}

/* A block that a graph uses, and that its pool neither served nor owns, ends its launches with its free. */
TEST(torture_programs, launch_no_graph_over_what_was_given_back) {
    static const torture_op_t ops[] = {
        {.kind = STRATA_TORTURE_ALLOCATE, .stream = 2, .count = 1, .size = 4096},
        {.kind = STRATA_TORTURE_ALLOCATE, .stream = 3, .count = 1, .blocks = {1}, .size = 4096},
        {.kind = STRATA_TORTURE_POOL_BEGIN, .stream = 2},
        {.kind = STRATA_TORTURE_CAPTURE, .stream = 2},
        {.kind = STRATA_TORTURE_WORK, .stream = 2, .count = 2, .blocks = {0, 1}, .us = 1},
        {.kind = STRATA_TORTURE_FREE, .count = 1},
        {.kind = STRATA_TORTURE_END_CAPTURE},
        {.kind = STRATA_TORTURE_LAUNCH, .stream = 3},
        {.kind = STRATA_TORTURE_FREE, .count = 1, .blocks = {1}},
        {.kind = STRATA_TORTURE_LAUNCH, .stream = 3},
    };
    torture_program_t program = {.devices = 1, .threads = 1, .count = sizeof ops / sizeof *ops};
    uint32_t launches = 0;
    ASSERT_TRUE(torture_program_reserve(&program, program.count));
    memcpy(program.ops, ops, sizeof ops);
    EXPECT_TRUE(torture_make_well_formed(&program, ALL_GRAPHS));
    for (uint32_t i = 0; i < program.count; i++) launches += program.ops[i].kind == STRATA_TORTURE_LAUNCH;
    EXPECT_EQ(launches, 1);
    torture_program_delete(&program);
}

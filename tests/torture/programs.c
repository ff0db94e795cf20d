/* Programs as they are drawn, made lawful, and run. */
#include <stdio.h>
#include <string.h>

#include "conform/rig.h"
#include "platform/host/host_memory.h"
#include "tests/harness/test.h"
#include "torture/campaign.h"

enum { PROGRAMS = 500, PARTS = 10, STACKS = 100, DRAWN_EACH = 1 };

/* ---- all strategies ---- */

/* Sanitizers make a run ten times slower: there every tenth program is taken. */
static void expect_lawful_programs_pass(uint64_t first) {
    static torture_failure_t failure;
    torture_strategies_t list = {0};
    torture_sum_t sum;
    EXPECT_OK(torture_add_presets(&list));
    EXPECT_OK(torture_add_drawn(&list, 1, STACKS, NULL));
    torture_campaign_t campaign = {.strategies = &list, .seed = 1, .first = first, .drawn_each = DRAWN_EACH, .few_threads = true};
    campaign.programs = STRIDE > 1 ? PROGRAMS / PARTS / 10 : PROGRAMS / PARTS;
    if (torture_run_here(&campaign, &sum, &failure, 1)) {
        FAIL_TEST("program %llu under %s", (unsigned long long)failure.run.number, list.all[failure.run.strategy].name);
        EXPECT_OK(torture_tell(stdout, &campaign, &failure, false));
    }
    EXPECT_EQ(sum.failed, 0);
    EXPECT_EQ(sum.hazards, 0);
    EXPECT_GE(sum.runs[TORTURE_INTERLEAVED], campaign.programs * (list.count - list.drawn + DRAWN_EACH));
    EXPECT_GT(sum.runs[TORTURE_TURNS], 0);
    EXPECT_GT(sum.runs[TORTURE_AT_ONCE], 0);
    EXPECT_GT(sum.recycled, 0);
    /* Where memory is short requests are refused; a layer that refused ever after would be seen. */
    EXPECT_GT(sum.served, 9 * sum.refused);
    EXPECT_EQ(sum.unopened, 0);
    torture_strategies_delete(&list);
}

#define EACH_PART(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
#define PART(n)                                                                                                                    \
    static void programs_##n(void) { expect_lawful_programs_pass(n *(PROGRAMS / PARTS)); }
EACH_PART(PART)
#define ENTRY(n) programs_##n,
static const strata_test_fn parts[PARTS] = {EACH_PART(ENTRY)};

__attribute__((constructor)) static void register_parts(void) {
    static char names[PARTS][32];
    for (int i = 0; i < PARTS; i++) {
        snprintf(names[i], sizeof names[i], "programs_%03d_to_%03d", i * (PROGRAMS / PARTS), (i + 1) * (PROGRAMS / PARTS) - 1);
        strata_test_register("torture_every_strategy", names[i], __FILE__, __LINE__, parts[i]);
    }
}

/* ---- what programs are ---- */

static torture_program_t *lawful(uint64_t seed, torture_dialect_t dialect) {
    static torture_program_t program;
    torture_draw(&program, seed);
    torture_law(&program, dialect);
    return &program;
}

TEST(torture_programs, a_seed_says_all) {
    torture_program_t *copy = strata_host_new(1, sizeof *copy);
    for (uint64_t seed = 1; seed < 50; seed++) {
        *copy = *lawful(seed, TORTURE_FREE_COVERS);
        const torture_program_t *again = lawful(seed, TORTURE_FREE_COVERS);
        EXPECT_EQ(copy->count, again->count);
        EXPECT_TRUE(memcmp(copy->ops, again->ops, copy->count * sizeof *copy->ops) == 0);
    }
    strata_host_delete(copy);
}

static bool is_same(const torture_op_t *a, const torture_op_t *b) {
    return a->kind == b->kind && a->stream == b->stream && a->how == b->how && a->waits == b->waits && a->syncs == b->syncs &&
           a->owner_waits == b->owner_waits && a->borrows == b->borrows && a->count == b->count && a->last == b->last &&
           a->touches == b->touches && a->uses == b->uses && memcmp(a->need, b->need, sizeof a->need) == 0;
}

TEST(torture_programs, a_lawful_program_stays_as_it_is) {
    torture_program_t *copy = strata_host_new(1, sizeof *copy);
    for (uint64_t seed = 1; seed < 300; seed++) {
        const torture_program_t *program = lawful(seed, seed % 2 ? TORTURE_FREE_COVERS : TORTURE_USE_COVERS);
        *copy = *program;
        torture_law(copy, seed % 2 ? TORTURE_FREE_COVERS : TORTURE_USE_COVERS);
        EXPECT_EQ(copy->count, program->count);
        for (uint32_t i = 0; i < copy->count; i++) EXPECT_TRUE(is_same(&copy->ops[i], &program->ops[i]));
    }
    strata_host_delete(copy);
}

/* In how many ways blocks are freed. */
typedef struct frees {
    uint32_t covers[TORTURE_COVERS];
    uint32_t by_another_thread, by_pointer, refused, by_one_of_several;
} frees_t;

static void count_free(frees_t *frees, const torture_op_t *op, const uint8_t *served_by) {
    frees->covers[op->how]++;
    frees->by_another_thread += op->thread != served_by[op->blocks[0]];
    frees->by_pointer += op->by_pointer;
    frees->refused += op->refused;
    frees->by_one_of_several += !op->last;
}

TEST(torture_programs, hold_every_operation_and_free_every_block) {
    uint32_t kinds[TORTURE_KINDS] = {0}, two_devices = 0, threads = 0, checked = 0, places[TORTURE_PLACES] = {0};
    uint8_t served_by[TORTURE_BLOCKS] = {0};
    frees_t frees = {.by_pointer = 0};
    for (uint64_t seed = 1; seed < 300; seed++) {
        const torture_program_t *program = lawful(seed, TORTURE_FREE_COVERS);
        uint32_t served = 0, ended = 0;
        for (uint32_t i = 0; i < program->count; i++) {
            const torture_op_t *op = &program->ops[i];
            kinds[op->kind]++;
            served += op->kind == TORTURE_ALLOCATE;
            ended += op->kind == TORTURE_FREE && op->last;
            if (op->kind == TORTURE_FREE) count_free(&frees, op, served_by);
            if (op->kind != TORTURE_ALLOCATE) continue;
            served_by[op->blocks[0]] = op->thread;
            places[op->place]++;
        }
        EXPECT_EQ(served, ended);
        two_devices += program->devices == 2;
        threads += program->threads > 1;
        checked += program->check_stream_ids;
    }
    for (int i = 0; i < TORTURE_KINDS; i++) EXPECT_GT(kinds[i], 20);
    for (int i = 0; i < TORTURE_COVERS; i++) EXPECT_GT(frees.covers[i], 50);
    EXPECT_GT(frees.by_another_thread, 500);
    EXPECT_GT(frees.by_pointer, 100);
    EXPECT_GT(frees.refused, 20);
    EXPECT_GT(frees.by_one_of_several, 100);
    for (int i = 0; i < TORTURE_PLACES; i++) EXPECT_GT(places[i], 20);
    EXPECT_GT(two_devices, 40);
    EXPECT_GT(threads, 80);
    EXPECT_GT(checked, 80);
}

/* Whoever starts with what came before can go on: no operation waits for one behind it, and none of its own thread's. */
TEST(torture_programs, threads_wait_for_what_is_before_them_alone) {
    for (uint64_t seed = 1; seed < 300; seed++) {
        const torture_program_t *program = lawful(seed, TORTURE_FREE_COVERS);
        uint16_t done[TORTURE_THREADS] = {0};
        for (uint32_t i = 0; i < program->count; i++) {
            const torture_op_t *op = &program->ops[i];
            for (uint32_t t = 0; t < TORTURE_THREADS; t++) EXPECT_LE(op->need[t], done[t]);
            done[op->thread]++;
        }
    }
}

/* strata_torture_run(): programs by hand, against the public header alone. */
#include <string.h>

#include "strata/torture.h"
#include "strategy/model.h"
#include "tests/harness/test.h"

#define STACK "stack: [stream_safe, auto_growth, system]\n"

static strata_status_t run_ops(const char *strategy, const strata_torture_op_t *ops, size_t count, char *report, size_t size) {
    strata_torture_program_t program = {
        .struct_size = sizeof program, .strategy = strategy, .ops = ops, .count = count, .threads = 2};
    return strata_torture_run(&program, report, size);
}

static const strata_torture_op_t lent[] = {
    {.kind = STRATA_TORTURE_ALLOCATE, .stream = 2, .count = 1, .blocks = {70000}, .size = 5000},
    {.kind = STRATA_TORTURE_WORK, .stream = 2, .count = 1, .blocks = {70000}, .writes = 1, .us = 20},
    {.kind = STRATA_TORTURE_WORK, .stream = 3, .count = 1, .blocks = {70000}, .us = 300, .thread = 1},
    {.kind = STRATA_TORTURE_FREE, .count = 1, .blocks = {70000}},
    {.kind = STRATA_TORTURE_FREE, .count = 1, .blocks = {70000}}, /* cannot be done, and is left out */
};

TEST(torture_run, finds_nothing_where_nothing_is_wrong) {
    char report[100] = "before";
    EXPECT_OK(run_ops(STACK, NULL, 0, report, sizeof report));
    EXPECT_STREQ(report, "");
    EXPECT_OK(run_ops(STACK, lent, sizeof lent / sizeof *lent, report, sizeof report));
    EXPECT_STREQ(report, "");
}

static void lose(strata_layer_t *self, strata_record_t *record, strata_call_t *call) { (void)self, (void)record, (void)call; }

static const strata_layer_type_t losing = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_loses",
    .doc = "keeps what it gets back",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = strata_below_allocate,
    .free = lose,
};

/* In as many letters as there is room for. */
TEST(torture_run, says_what_is_wrong) {
    static const char strategy[] = "stack: [test_loses, auto_growth, system]\n";
    const strata_layer_type_t *type = &losing;
    char report[200], cut[20];
    EXPECT_OK(strata_layers_register(&type, 1, true));
    EXPECT_STATUS(STRATA_E_CORRUPT, run_ops(strategy, lent, 4, report, sizeof report));
    EXPECT_CONTAINS(report, "not all memory went back to a device: ");
    EXPECT_STATUS(STRATA_E_CORRUPT, run_ops(strategy, lent, 4, cut, sizeof cut));
    EXPECT_EQ(strlen(cut), sizeof cut - 1);
    EXPECT_STATUS(STRATA_E_CORRUPT, run_ops(strategy, lent, 4, NULL, 0));
}

static void expect_refused(strata_torture_op_t op, const char *what) {
    char report[100];
    EXPECT_SAYS(STRATA_E_INVALID, run_ops(STACK, &op, 1, report, sizeof report), what);
}

TEST(torture_run, refuses_what_there_is_not) {
    char report[100];
    expect_refused((strata_torture_op_t){.kind = STRATA_TORTURE_KINDS}, "operation 0 names an unknown kind");
    expect_refused((strata_torture_op_t){.place = STRATA_TORTURE_PLACES}, "an unknown place");
    expect_refused((strata_torture_op_t){.stream = STRATA_TORTURE_NO_STREAM + 1}, "an unknown stream");
    expect_refused((strata_torture_op_t){.how = STRATA_TORTURE_COVERS}, "an unknown way to free");
    expect_refused((strata_torture_op_t){.count = STRATA_TORTURE_NAMED + 1}, "too many blocks");
    expect_refused((strata_torture_op_t){.kind = STRATA_TORTURE_ALLOCATE}, "no block to serve");
    expect_refused((strata_torture_op_t){.count = 1, .blocks = {STRATA_TORTURE_BLOCKS}}, "too large");
    expect_refused((strata_torture_op_t){.graph = STRATA_TORTURE_GRAPHS}, "a graph number that is too large");
    expect_refused((strata_torture_op_t){.pool = STRATA_TORTURE_POOLS}, "a pool number that is too large");
    EXPECT_STATUS(STRATA_E_STRATEGY, run_ops("stack: [no_such_layer]\n", NULL, 0, report, sizeof report));
    EXPECT_STATUS(STRATA_E_INVALID, run_ops(NULL, NULL, 0, report, sizeof report));
    EXPECT_STATUS(STRATA_E_INVALID, run_ops(STACK, NULL, 1, report, sizeof report));
    EXPECT_STATUS(STRATA_E_INVALID, strata_torture_run(NULL, report, sizeof report));
    strata_torture_program_t shorter = {.struct_size = 8, .strategy = STACK};
    EXPECT_STATUS(STRATA_E_INVALID, strata_torture_run(&shorter, report, sizeof report));
}

/* Programs as C: what is printed compiles, and fails as the program did. The pages stand beside this file and are compiled here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/torture/report/print.h"
#include "lab/torture/strategies.h"
#include "strata/strata.h"
#include "tests/checker/mutant_safe.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/mutated/pages.h"
#include "tests/paths.h"

#define STACK                                                                                                                      \
    "strategy: \"mutant\"\nstack: # a borrow \\ is noted\n  - mutant_safe\n  - auto_growth: {chunk_size: 2MiB}\n"                  \
    "  - system\n"

/* Every kind of operation, and a borrow that a faulty layer does not note. */
static const torture_op_t every_kind[] = {
    {.kind = STRATA_TORTURE_ALLOCATE,
     .stream = 3,
     .count = 1,
     .size = 4096,
     .flags = STRATA_ZERO,
     .alignment = 256,
     .tag = "weights"},
    {.kind = STRATA_TORTURE_WORK, .stream = 3, .count = 1, .us = 20, .writes = 1},
    {.kind = STRATA_TORTURE_BORROW, .stream = 2, .count = 1},
    {.kind = STRATA_TORTURE_WORK, .stream = 2, .count = 1, .us = 300},
    {.kind = STRATA_TORTURE_FILL, .stream = 3, .count = 1},
    {.kind = STRATA_TORTURE_CHECK, .stream = 3, .count = 1},
    {.kind = STRATA_TORTURE_RETAIN, .stream = 3, .count = 1},
    {.kind = STRATA_TORTURE_ERASE, .stream = 2, .count = 1, .how = STRATA_TORTURE_COVER_OWNER},
    {.kind = STRATA_TORTURE_FREE, .stream = 2, .count = 1, .how = STRATA_TORTURE_COVER_FREE_ON},
    {.kind = STRATA_TORTURE_ALLOCATE,
     .place = STRATA_TORTURE_PINNED,
     .stream = STRATA_TORTURE_NO_STREAM,
     .count = 1,
     .blocks = {1},
     .size = 100},
    {.kind = STRATA_TORTURE_HOST_ACCESS, .count = 1, .blocks = {1}, .writes = 1},
    {.kind = STRATA_TORTURE_WORK, .stream = 3, .count = 2, .blocks = {0, 1}, .us = 20, .writes = 2},
    {.kind = STRATA_TORTURE_ORDER, .stream = 2, .other = 3},
    {.kind = STRATA_TORTURE_SYNCHRONISE, .stream = 3},
    {.kind = STRATA_TORTURE_LOOK, .place = STRATA_TORTURE_GPU},
    {.kind = STRATA_TORTURE_LOOK, .count = 1},
    {.kind = STRATA_TORTURE_PASS, .us = 30},
    {.kind = STRATA_TORTURE_RELEASE, .place = STRATA_TORTURE_HOST},
    {.kind = STRATA_TORTURE_TRIM, .place = STRATA_TORTURE_MANAGED, .size = 1000},
    {.kind = STRATA_TORTURE_RENEW, .stream = 1, .other = 3, .how = STRATA_TORTURE_COVER_OWNER},
    {.kind = STRATA_TORTURE_FREE, .count = 1, .blocks = {1}, .refused = true, .by_pointer = true},
    {.kind = STRATA_TORTURE_POOL_BEGIN, .stream = 2, .pool = 3},
    {.kind = STRATA_TORTURE_CAPTURE, .stream = 2, .graph = 5},
    {.kind = STRATA_TORTURE_ALLOCATE, .stream = 2, .count = 1, .blocks = {3}, .size = 4096},
    {.kind = STRATA_TORTURE_WORK, .stream = 2, .count = 1, .blocks = {3}, .us = 20, .writes = 1},
    {.kind = STRATA_TORTURE_FREE, .count = 1, .blocks = {3}},
    {.kind = STRATA_TORTURE_END_CAPTURE, .stream = 2, .graph = 5},
    {.kind = STRATA_TORTURE_POOL_END, .pool = 3},
    {.kind = STRATA_TORTURE_LAUNCH, .stream = 3, .graph = 5},
    {.kind = STRATA_TORTURE_DESTROY, .graph = 5},
    {.kind = STRATA_TORTURE_POOL_REMOVE, .pool = 3},
    {.kind = STRATA_TORTURE_BORROW, .stream = 2, .count = 1},
    {.kind = STRATA_TORTURE_WORK, .stream = 2, .count = 1, .us = 300},
    {.kind = STRATA_TORTURE_FREE, .count = 1},
    {.kind = STRATA_TORTURE_ALLOCATE, .stream = 3, .count = 1, .blocks = {2}, .size = 4096},
    {.kind = STRATA_TORTURE_WORK, .stream = 3, .count = 1, .blocks = {2}, .us = 20, .writes = 1},
};

static const torture_page_t page_of_one = {.strategy = STACK, .about = "every kind of operation"};
static const torture_page_t page_of_turns = {.strategy = STACK, .about = "by two threads", .mode = STRATA_TORTURE_TURNS};

static torture_program_t *program_of(uint32_t threads) {
    static torture_program_t program;
    uint32_t count = sizeof every_kind / sizeof *every_kind;
    EXPECT_TRUE(torture_program_reserve(&program, count));
    program.devices = 1;
    program.threads = threads;
    program.count = count;
    program.check_stream_ids = true;
    memcpy(program.ops, every_kind, sizeof every_kind);
    /* What frees the block asks for it again: no thread comes between. */
    for (uint32_t i = 0; i < count; i++) program.ops[i].thread = (uint8_t)(i + 4 < count ? i % threads : 0);
    EXPECT_TRUE(torture_make_well_formed(&program, TORTURE_GRAPHS_GPU));
    return &program;
}

static char *text_of_file(const char *path) {
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    if (file) fclose(file);
    return text;
}

static void expect_page(const torture_program_t *program, const torture_page_t *page, const char *path) {
    char *printed CLOSED_BY(text_cleanup) = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&printed, &length);
    ASSERT_TRUE(out);
    torture_print(out, program, page);
    fclose(out);
    EXPECT_STREQ(printed, text_of_file(path));
}

/* To write the pages anew: copy what this test says is printed. */
TEST(torture_printed, pages_are_what_is_printed) {
    expect_page(program_of(1), &page_of_one, STRATA_SOURCE_DIR "/tests/mutated/printed_one.inc");
    expect_page(program_of(2), &page_of_turns, STRATA_SOURCE_DIR "/tests/mutated/printed_turns.inc");
}

static int run_page(mutation_t mutation, int (*page)(void)) {
    mutant_choose(mutation);
    return page();
}

TEST(torture_printed, pages_fail_as_their_programs_do) {
    EXPECT_EQ(run_page(MUTATION_NONE, page_one), 0);
    EXPECT_EQ(run_page(MUTATION_NO_BORROW, page_one), 1);
    EXPECT_EQ(run_page(MUTATION_NONE, page_turns), 0);
    EXPECT_EQ(run_page(MUTATION_NO_BORROW, page_turns), 1);
}

/* Threads and turns are as good as one thread to find it, and say the same. */
TEST(torture_printed, every_mode_finds_it) {
    static torture_verdict_t verdicts[STRATA_TORTURE_MODES];
    torture_strategies_t list = {0};
    mutant_choose(MUTATION_NO_BORROW);
    ASSERT_OK(torture_add_text(&list, "mutant", STACK));
    for (int mode = 0; mode < STRATA_TORTURE_MODES; mode++) {
        torture_play(program_of(2), list.all[0].strategy, false, (strata_torture_mode_t)mode, &verdicts[mode]);
        EXPECT_EQ(verdicts[mode].fault, TORTURE_FAULT_HAZARD);
        EXPECT_EQ(verdicts[mode].detail, STRATA_HAZARD_NEW_OWNER);
    }
    torture_strategies_delete(&list);
}

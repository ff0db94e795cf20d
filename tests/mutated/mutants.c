/* Planted faults: a copy of a layer with one thing wrong must be found by the programs, and a found program be made small. */

#include "lab/torture/campaign.h"
#include "lab/torture/report/shrink.h"
#include "tests/checker/mutant_safe.h"
#include "tests/harness/test.h"

#define STACK(layer)                                                                                                               \
    "strategy: mutant\nstack:\n  - " layer "\n  - auto_growth: {chunk_size: 2MiB}\n  - system\n"                                   \
    "places:\n  pinned:\n    - " layer "\n    - auto_growth: {chunk_size: 2MiB}\n    - system: {memory: pinned}\n"
#define ASYNC "strategy: mutant\nstack: [mutant_async]\n"

enum { MOST = 600, WITHOUT = 60 };

typedef struct search {
    void (*choose)(int mutation); /* before each run: some faults remember the handles of a world */
    int mutation;
    torture_strategies_t list;
    torture_failure_t failure;
} search_t;

static void choose_safe(int mutation) { mutant_choose((mutation_t)mutation); }

static void choose_async(int mutation) { mutant_async_choose((mutant_async_t)mutation); }

static bool run_chosen(void *context, const torture_run_t *run, const torture_program_t *well_formed) {
    search_t *search = context;
    const torture_strategy_t *strategy = &search->list.all[run->strategy];
    search->choose(search->mutation);
    torture_play(well_formed, strategy->strategy, strategy->may_refuse, run->mode, &search->failure.verdict);
    search->failure.run = *run;
    return search->failure.verdict.fault == TORTURE_FAULT_NONE;
}

/* Programs until the first that fails; 0: none of `most` does. */
static uint64_t programs_until_found(search_t *search, uint64_t most) {
    torture_campaign_t campaign = {.strategies = &search->list, .seed = 1};
    for (uint64_t i = 0; i < most; i++) {
        torture_each_run(&campaign, i, run_chosen, search);
        if (search->failure.verdict.fault) return i + 1;
    }
    return 0;
}

static search_t *search_new(void (*choose)(int), int mutation, const char *text) {
    static search_t search;
    search = (search_t){.choose = choose, .mutation = mutation};
    choose(mutation);
    EXPECT_OK(torture_add_text(&search.list, "mutant", text));
    /* The programs of a layer that covers all work before the free, though this one does not. */
    torture_dialect_t graphs = TORTURE_GRAPHS_GPU | TORTURE_GRAPHS_MANAGED | TORTURE_CAPTURES_UNANNOUNCED;
    search.list.all[0].dialect &= graphs;
    return &search;
}

TEST(torture_mutants, every_mutation_of_stream_safe_is_found) {
    for (int i = MUTATION_NONE + 1; i < MUTATIONS; i++) {
        search_t *search = search_new(choose_safe, i,
                                      i == MUTATION_EVENT_AT_BORROW ? STACK("mutant_safe: {event: use}") : STACK("mutant_safe"));
        uint64_t found = programs_until_found(search, MOST);
        printf("%3llu programs: %s: %s\n", (unsigned long long)found, mutation_what((mutation_t)i),
               torture_fault_text(search->failure.verdict.fault));
        if (found == 0) FAIL_TEST("not found: %s", mutation_what((mutation_t)i));
        torture_strategies_delete(&search->list);
    }
}

TEST(torture_mutants, every_mutation_of_cuda_malloc_async_is_found) {
    for (int i = MUTANT_ASYNC_NONE + 1; i < MUTANTS_ASYNC; i++) {
        search_t *search = search_new(choose_async, i, ASYNC);
        EXPECT_GT(programs_until_found(search, MOST), 0);
        EXPECT_EQ(search->failure.verdict.fault, TORTURE_FAULT_HAZARD);
        torture_strategies_delete(&search->list);
    }
}

TEST(torture_mutants, copies_without_a_mutation_pass) {
    search_t *search = search_new(choose_safe, MUTATION_NONE, STACK("mutant_safe"));
    EXPECT_EQ(programs_until_found(search, WITHOUT), 0);
    torture_strategies_delete(&search->list);
    search = search_new(choose_async, MUTANT_ASYNC_NONE, ASYNC);
    EXPECT_EQ(programs_until_found(search, WITHOUT), 0);
    torture_strategies_delete(&search->list);
}

/* ---- made small ---- */

static void attempt_chosen(void *context, const torture_program_t *program, torture_verdict_t *verdict) {
    search_t *search = context;
    search->choose(search->mutation);
    torture_play(program, search->list.all[0].strategy, false, search->failure.run.mode, verdict);
}

static void expect_small(mutation_t mutation, uint32_t most) {
    static torture_verdict_t verdict;
    torture_program_t program = {0};
    search_t *search = search_new(choose_safe, (int)mutation, STACK("mutant_safe"));
    EXPECT_GT(programs_until_found(search, MOST), 0);
    EXPECT_TRUE(torture_campaign_draw(&(torture_campaign_t){.seed = 1}, search->failure.run.number, &program));
    torture_dialect_t dialect = search->list.all[0].dialect;
    EXPECT_TRUE(torture_make_well_formed(&program, dialect));
    uint32_t before = program.count;
    uint32_t attempts = torture_shrink(&program, dialect, &search->failure.verdict, attempt_chosen, search, 2000);
    attempt_chosen(search, &program, &verdict);
    EXPECT_TRUE(torture_same_fault(&verdict, &search->failure.verdict));
    EXPECT_LE(program.count, most);
    EXPECT_EQ(program.devices, 1);
    printf("%u operations from %u in %u attempts: %s\n", program.count, before, attempts, mutation_what(mutation));
    torture_strategies_delete(&search->list);
    torture_program_delete(&program);
}

/* Served, lent, freed and served again: what no program of the fault can do without. */
TEST(torture_mutants, a_forgotten_borrow_is_made_small) { expect_small(MUTATION_NO_BORROW, 8); }

TEST(torture_mutants, a_forgotten_second_borrow_is_made_small) { expect_small(MUTATION_FORGETS_SECOND, 10); }

TEST(torture_mutants, a_destroyed_borrower_is_made_small) { expect_small(MUTATION_GONE_FORGOTTEN, 10); }

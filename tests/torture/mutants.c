/* Planted faults: a copy of a layer with one thing wrong must be found by the programs. */
#include <stdlib.h>

#include "tests/checker/mutant_safe.h"
#include "tests/harness/test.h"
#include "torture/campaign.h"

#define STACK(layer)                                                                              \
    "strategy: mutant\nstack:\n  - " layer "\n  - auto_growth: {chunk_size: 2MiB}\n  - system\n"  \
    "places:\n  pinned:\n    - " layer "\n    - auto_growth: {chunk_size: 2MiB}\n    - system: {memory: pinned}\n"

enum { MOST = 400 };

typedef struct search {
    void (*choose)(int mutation); /* before each run: some faults remember handles of a world */
    int mutation;
    const torture_strategies_t *list;
    uint64_t most;
    torture_failure_t failure;
} search_t;

static bool run_chosen(void *context, const torture_run_t *run, const torture_program_t *lawful) {
    search_t *search = context;
    const torture_strategy_t *strategy = &search->list->all[run->strategy];
    search->choose(search->mutation);
    torture_play(lawful, strategy->strategy, strategy->may_refuse, run->mode, &search->failure.verdict);
    search->failure.run = *run;
    return search->failure.verdict.fault == TORTURE_FAULT_NONE;
}

/* Programs until the first that fails; their number, or 0. */
static uint64_t programs_until_found(search_t *search) {
    torture_campaign_t campaign = {.strategies = search->list, .seed = 1};
    for (uint64_t i = 0; i < search->most; i++) {
        torture_each_run(&campaign, i, run_chosen, search);
        if (search->failure.verdict.fault) return i + 1;
    }
    return 0;
}

static void choose_safe(int mutation) {
    mutant_choose((mutation_t)mutation);
}

static void choose_async(int mutation) {
    mutant_async_choose((mutant_async_t)mutation);
}

TEST(torture_mutants, try_all) {
    static search_t search;
    mutant_choose(MUTATION_NONE); mutant_async_choose(MUTANT_ASYNC_NONE);
    for (int i = 0; i < MUTATIONS; i++) {
        torture_strategies_t list = {0};
        EXPECT_OK(torture_add_text(&list, "mutant", i == MUTATION_EVENT_AT_BORROW ? STACK("mutant_safe: {event: use}") : STACK("mutant_safe")));
        list.all[0].dialect = TORTURE_FREE_COVERS;
        search = (search_t){.choose = choose_safe, .mutation = i, .list = &list, .most = MOST};
        uint64_t found = programs_until_found(&search);
        printf("%d %s: %llu %s\n", i, mutation_what((mutation_t)i), (unsigned long long)found, found ? torture_fault_text(search.failure.verdict.fault) : "");
    }
    for (int i = 0; i < MUTANTS_ASYNC; i++) {
        torture_strategies_t list = {0};
        EXPECT_OK(torture_add_text(&list, "mutant", "strategy: mutant\nstack: [mutant_async]\n"));
        search = (search_t){.choose = choose_async, .mutation = i, .list = &list, .most = MOST};
        uint64_t found = programs_until_found(&search);
        printf("async %d: %llu\n", i, (unsigned long long)found);
    }
}

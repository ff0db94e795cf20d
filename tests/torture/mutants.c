/* Planted faults: a copy of a layer with one thing wrong must be found by the programs. */
#include <stdlib.h>

#include "tests/checker/mutant_safe.h"
#include "tests/harness/test.h"
#include "torture/campaign.h"

#define STACK(layer)                                                                              \
    "strategy: mutant\nstack:\n  - " layer "\n  - auto_growth: {chunk_size: 2MiB}\n  - system\n"  \
    "places:\n  pinned:\n    - " layer "\n    - auto_growth: {chunk_size: 2MiB}\n    - system: {memory: pinned}\n"

enum { MOST = 400 };

static torture_failure_t failure;

/* Programs until the first that fails; their number, or 0. */
static uint64_t found_within(const torture_strategies_t *list, uint64_t most) {
    torture_sum_t sum;
    for (uint64_t i = 0; i < most; i++) {
        torture_campaign_t campaign = {.strategies = list, .seed = 1, .first = i, .programs = 1};
        if (torture_run_here(&campaign, &sum, &failure, 1)) return i + 1;
    }
    return 0;
}

static uint64_t found_with(const char *text, uint64_t most) {
    torture_strategies_t list = {0};
    EXPECT_OK(torture_add_text(&list, "mutant", text));
    uint64_t found = found_within(&list, most);
    torture_strategies_delete(&list);
    return found;
}

TEST(torture_mutants, try_all) {
    for (int i = 0; i < MUTATIONS; i++) {
        mutant_choose((mutation_t)i);
        uint64_t found = found_with(i == MUTATION_EVENT_AT_BORROW ? STACK("mutant_safe: {event: use}") : STACK("mutant_safe"), MOST);
        printf("%d %s: %llu %s\n", i, mutation_what((mutation_t)i), (unsigned long long)found, found ? torture_fault_text(failure.verdict.fault) : "");
    }
    for (int i = 0; i < MUTANTS_ASYNC; i++) {
        mutant_async_choose((mutant_async_t)i);
        printf("async %d: %llu\n", i, (unsigned long long)found_with("strategy: mutant\nstack: [mutant_async]\n", MOST));
    }
}

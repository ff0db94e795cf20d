/* The best plan so far. */
#ifndef STRATA_PLANNING_FOUND_H
#define STRATA_PLANNING_FOUND_H

#include <string.h>

#include "planning/problem/problem.h"

typedef struct strata_found {
    uint64_t *offsets; /* by item */
    uint64_t peak; /* of the caller's sizes; UINT64_MAX before the first plan */
    uint64_t bound; /* no plan has a lower peak; from the problem's bound or a search */
    uint32_t pools; /* used by `tree` */
} strata_found_t;

static inline bool strata_found_is_optimal(const strata_found_t *found) { return found->peak <= found->bound; }

/* Takes over a better plan. */
static inline void strata_found_update(const strata_problem_t *problem, strata_found_t *found, const uint64_t *offsets) {
    uint64_t peak = strata_problem_peak(problem, offsets);
    if (peak >= found->peak) return;
    found->peak = peak;
    memcpy(found->offsets, offsets, problem->item_count * sizeof *offsets);
}

#endif

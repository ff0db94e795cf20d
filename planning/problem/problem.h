/* A planning problem as the planners see it: checked, with small numbers for times, in program order. */
#ifndef STRATA_PLANNING_PROBLEM_H
#define STRATA_PLANNING_PROBLEM_H

#include "planning/problem/sort.h"
#include "strata/plan.h"

#define STRATA_ANYWHERE UINT64_MAX

/* A buffer that takes memory. */
typedef struct strata_item {
    uint64_t size; /* rounded up to the problem's unit */
    uint64_t alignment; /* at least the unit */
    uint64_t fixed; /* STRATA_ANYWHERE: not fixed */
    uint32_t lower, upper; /* places of its times among all times */
    uint32_t buffer; /* index of the caller's */
    uint64_t slack; /* what rounding added */
    uint32_t fork, branch;
} strata_item_t;

/* A fork's items may meet whenever one of them lives: from the first moment to the last. */
typedef struct strata_fork {
    uint32_t lower, upper;
} strata_fork_t;

typedef struct strata_problem {
    const strata_plan_buffer_t *buffers;
    size_t count;
    strata_item_t *items; /* by lower, then as the caller's array has them */
    uint32_t item_count;
    uint32_t moments; /* different times */
    uint64_t unit; /* the least alignment: every offset is a multiple */
    uint64_t slack; /* the most that rounding added */
    strata_fork_t *forks; /* items have the index of their fork, plus 1; 0: none */
    uint32_t fork_count;
    bool fixed; /* some items are */
    uint64_t bound; /* no plan has a lower peak */
    uint64_t deadline; /* of strata_real_now() */
} strata_problem_t;

/* Checks, and makes the problem; `budget` from now on is its time. On failure nothing is left. E_INVALID, E_LIMIT,
 * E_HOST_MEMORY. */
strata_status_t strata_problem_make(strata_problem_t *problem, const strata_plan_buffer_t *buffers, size_t count, uint64_t budget);
void strata_problem_delete(strata_problem_t *problem);

bool strata_problem_time_is_up(const strata_problem_t *problem);
/* The peak of offsets by item; sizes are those of the caller, not rounded. */
uint64_t strata_problem_peak(const strata_problem_t *problem, const uint64_t *offsets);

static inline uint64_t strata_align_up(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

static inline bool strata_items_meet(const strata_item_t *a, const strata_item_t *b) {
    if (a->lower < b->upper && b->lower < a->upper) return true;
    return a->fork && a->fork == b->fork && a->branch != b->branch;
}

/* planning/problem/bound.c: the lower bound of a problem whose items stand. E_HOST_MEMORY. */
strata_status_t strata_problem_bound(const strata_problem_t *problem, uint64_t *bound);

#endif

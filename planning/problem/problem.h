/* A planning problem for the planners: checked, with small numbers for times, in program order. */
#ifndef STRATA_PLANNING_PROBLEM_H
#define STRATA_PLANNING_PROBLEM_H

#include "planning/problem/sort.h"
#include "strata/plan.h"

#define STRATA_ANYWHERE UINT64_MAX

/* A buffer that needs memory. */
typedef struct strata_item {
    uint64_t size; /* rounded up to the problem's unit */
    uint64_t alignment; /* at least the unit */
    uint64_t fixed; /* STRATA_ANYWHERE if not fixed */
    uint32_t lower, upper; /* ranks of its times among all times */
    uint32_t buffer; /* index in the caller's array */
    uint64_t slack; /* bytes added by rounding */
    uint32_t fork, branch;
} strata_item_t;

/* Items of a fork may be live together at any time from the fork's first moment to its last. */
typedef struct strata_fork {
    uint32_t lower, upper;
} strata_fork_t;

typedef struct strata_problem {
    const strata_plan_buffer_t *buffers;
    size_t count;
    strata_item_t *items; /* by `lower`, then in the order of the caller's array */
    uint32_t item_count;
    uint32_t moments; /* number of distinct times */
    uint64_t unit; /* the smallest alignment; every offset is a multiple of it */
    uint64_t slack; /* max bytes added by rounding */
    strata_fork_t *forks; /* items have the index of their fork plus 1, or 0 for none */
    uint32_t fork_count;
    bool fixed; /* true if some items are fixed */
    uint64_t bound; /* no plan has a lower peak */
    uint64_t deadline; /* by strata_real_now() */
} strata_problem_t;

/* Checks the buffers and makes the problem; its deadline is `budget` from now. Returns E_INVALID, E_LIMIT
 * or E_HOST_MEMORY, with nothing allocated. */
strata_status_t strata_problem_make(strata_problem_t *problem, const strata_plan_buffer_t *buffers, size_t count, uint64_t budget);
void strata_problem_delete(strata_problem_t *problem);

bool strata_problem_time_is_up(const strata_problem_t *problem);
/* Returns the peak of offsets by item, with the caller's sizes, not rounded. */
uint64_t strata_problem_peak(const strata_problem_t *problem, const uint64_t *offsets);

static inline uint64_t strata_align_up(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

static inline bool strata_items_overlap(const strata_item_t *a, const strata_item_t *b) {
    if (a->lower < b->upper && b->lower < a->upper) return true;
    return a->fork && a->fork == b->fork && a->branch != b->branch;
}

/* planning/problem/bound.c: Computes the lower bound of a problem with complete items. Returns
 * E_HOST_MEMORY if out of memory. */
strata_status_t strata_problem_bound(const strata_problem_t *problem, uint64_t *bound);

#endif

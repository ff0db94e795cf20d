/* Every branch of every fork in program order, in a stretch of addresses of its own: what branches may do, since they share
 * nothing. */
#ifndef STRATA_PLANNING_BRANCHES_H
#define STRATA_PLANNING_BRANCHES_H

#include "planning/problem/problem.h"

/* `offsets` by item. Nothing is fixed. O(n log n). E_HOST_MEMORY. */
strata_status_t strata_branches_place(const strata_problem_t *problem, uint64_t *offsets);

#endif

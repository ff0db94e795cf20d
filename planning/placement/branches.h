/* Places every branch of every fork in program order, each branch in its own address range. Branches may
 * always do so, since they share nothing. */
#ifndef STRATA_PLANNING_BRANCHES_H
#define STRATA_PLANNING_BRANCHES_H

#include "planning/problem/problem.h"

/* Fills `offsets` by item. Requires a problem without fixed items. O(n log n). Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_branches_place(const strata_problem_t *problem, uint64_t *offsets);

#endif

/* Places items on top of each other, largest first, and fills no gaps. The plan is bad, but it needs no
 * pairs and always works. */
#ifndef STRATA_PLANNING_STACK_H
#define STRATA_PLANNING_STACK_H

#include "planning/problem/problem.h"

/* Fills `offsets` by item. O(n log n). Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_stack_place(const strata_problem_t *problem, uint64_t *offsets);

#endif

/* Items placed one upon another, largest first, with nothing put into gaps: bad, but it needs no pairs and can always be done. */
#ifndef STRATA_PLANNING_STACK_H
#define STRATA_PLANNING_STACK_H

#include "planning/problem/problem.h"

/* `offsets` by item. O(n log n). E_HOST_MEMORY. */
strata_status_t strata_stack_place(const strata_problem_t *problem, uint64_t *offsets);

#endif

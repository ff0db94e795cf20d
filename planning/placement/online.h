/* Items placed in program order, or backwards, as an allocator would serve them that knows the size alone: the smallest gap that
 * fits, or the top. O(n log n) whatever meets what. No forks, nothing fixed. */
#ifndef STRATA_PLANNING_ONLINE_H
#define STRATA_PLANNING_ONLINE_H

#include "planning/problem/problem.h"

/* `offsets` by item. Backwards: as if time ran the other way. *peak is of rounded sizes. E_HOST_MEMORY. */
strata_status_t strata_online_place(const strata_problem_t *problem, bool backwards, uint64_t *offsets, uint64_t *peak);

#endif

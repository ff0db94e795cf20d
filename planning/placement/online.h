/* Places items in program order, or backwards, like an allocator that sees only the size: into the
 * smallest gap that fits, or at the top. Takes O(n log n) for any overlaps. Requires a problem without
 * forks and fixed items. */
#ifndef STRATA_PLANNING_ONLINE_H
#define STRATA_PLANNING_ONLINE_H

#include "planning/problem/problem.h"

/* Fills `offsets` by item. With `backwards`, time is reversed. *peak is of rounded sizes. Returns
 * E_HOST_MEMORY if out of memory. */
strata_status_t strata_online_place(const strata_problem_t *problem, bool backwards, uint64_t *offsets, uint64_t *peak);

#endif

/* Local search over a plan. Removes items above the bound and some that are live beside them, and
 * reinserts them in another order. */
#ifndef STRATA_PLANNING_IMPROVE_H
#define STRATA_PLANNING_IMPROVE_H

#include "planning/planners/found.h"

/* Searches until `until`, or until no better plan is possible. Draws the same numbers every time. Returns
 * E_HOST_MEMORY if out of memory. */
strata_status_t strata_improve(const strata_problem_t *problem, strata_found_t *found, uint64_t until);

#endif

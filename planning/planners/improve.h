/* Local search over a plan: what stands above the bound is taken out, with some of what lives beside it, and put back in another
 * order. */
#ifndef STRATA_PLANNING_IMPROVE_H
#define STRATA_PLANNING_IMPROVE_H

#include "planning/planners/found.h"

/* Until `until`, or until nothing better is possible. Draws the same numbers every time. E_HOST_MEMORY. */
strata_status_t strata_improve(const strata_problem_t *problem, strata_found_t *found, uint64_t until);

#endif

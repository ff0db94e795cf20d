/* The planner `exact`. */
#ifndef STRATA_PLANNING_EXACT_H
#define STRATA_PLANNING_EXACT_H

#include "planning/planners/found.h"

/* Whether a search can make anything of the problem: it has no forks, and not too many items. */
bool strata_exact_can(const strata_problem_t *problem);
/* Makes `found`, which has a plan, better, and its bound, until both meet or `until`. A plan of `capacity` is searched for first if
 * there is none; 0: none is wanted. E_HOST_MEMORY. */
strata_status_t strata_exact(const strata_problem_t *problem, strata_found_t *found, uint64_t capacity, uint64_t until);

#endif

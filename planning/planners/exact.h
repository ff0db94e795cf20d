/* The planner `exact`. */
#ifndef STRATA_PLANNING_EXACT_H
#define STRATA_PLANNING_EXACT_H

#include "planning/planners/found.h"

/* Returns true if the search can handle the problem: it has no forks and not too many items. */
bool strata_exact_supports(const strata_problem_t *problem);
/* Improves `found`, which has a plan, and its bound, until both meet or `until`. First searches for a
 * plan of `capacity` if there is none yet; 0 means no capacity. Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_exact(const strata_problem_t *problem, strata_found_t *found, uint64_t capacity, uint64_t until);

#endif

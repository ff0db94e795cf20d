/* The planner `greedy`. */
#ifndef STRATA_PLANNING_GREEDY_H
#define STRATA_PLANNING_GREEDY_H

#include "planning/planners/found.h"

/* Tries every order once. The result does not depend on time, except for problems so large that orders
 * are skipped when time is up. `found` has a plan afterwards. Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_greedy_start(const strata_problem_t *problem, strata_found_t *found);
#endif

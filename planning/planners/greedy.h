/* The planner `greedy`. */
#ifndef STRATA_PLANNING_GREEDY_H
#define STRATA_PLANNING_GREEDY_H

#include "planning/planners/found.h"

/* Every order once: what does not depend on time, but for problems so large that orders are left out when time is up. A plan is
 * there afterwards. E_HOST_MEMORY. */
strata_status_t strata_greedy_start(const strata_problem_t *problem, strata_found_t *found);
#endif

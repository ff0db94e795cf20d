/* A plan that depends on nothing but the buffers: `greedy` without the search that takes what time there is, and no longer than until the
 * peak is within about a hundredth of the bound. */
#ifndef STRATA_PLANNING_STEADY_H
#define STRATA_PLANNING_STEADY_H

#include "strata/plan.h"

/* offsets[i] is that of buffers[i]. Errors as strata_plan_make(). Any thread, no lock is held. */
strata_status_t strata_plan_steady(const strata_plan_buffer_t *buffers, size_t count, uint64_t *offsets);

#endif

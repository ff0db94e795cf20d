/* The planners behind one interface. To add one, add a row to STRATA_PLANNER_MAP in strata/plan.h and its
 * function here. */
#ifndef STRATA_PLANNING_PLANNERS_H
#define STRATA_PLANNING_PLANNERS_H

#include "planning/planners/found.h"

typedef struct strata_planning {
    const strata_problem_t *problem;
    const strata_plan_options_t *options;
    uint64_t begin, budget; /* by strata_real_now() */
} strata_planning_t;

/* Fills `found`, which has no plan yet. Returns E_HOST_MEMORY, or E_UNSUPPORTED for a problem that the
 * planner cannot handle. */
typedef strata_status_t (*strata_planner_fn)(const strata_planning_t *planning, strata_found_t *found);

#define STRATA_PLANNER_DECLARE(name, what)                                                                                         \
    strata_status_t strata_planner_##name(const strata_planning_t *planning, strata_found_t *found);
STRATA_PLANNER_MAP(STRATA_PLANNER_DECLARE)
#undef STRATA_PLANNER_DECLARE

/* Converts the caller's options to this version of the struct. Returns E_INVALID for invalid ones. */
strata_status_t strata_planner_options(const strata_plan_options_t *given, const char *function, strata_plan_options_t *options);

/* Return the planner by index, or NULL after the last. */
const char *strata_planner_name(size_t index);
const char *strata_planner_summary(size_t index);

#endif

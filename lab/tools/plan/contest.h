/* `strata plan --compare`: all planners on one input. */
#ifndef STRATA_TOOLS_PLAN_CONTEST_H
#define STRATA_TOOLS_PLAN_CONTEST_H

#include <stdio.h>

#include "lab/tools/plan/input.h"

/* Makes a plan with each planner, and enters the file's own plan if it has one. Prints tables of the peaks,
 * the differences from the best plan, and the memory that passes from one branch to another. Fails with
 * E_HOST_MEMORY. */
strata_status_t strata_plan_contest(FILE *out, const strata_plan_input_t *input, const strata_plan_options_t *options);

#endif

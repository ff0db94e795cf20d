/* `strata plan --compare`: all planners on one input. */
#ifndef STRATA_TOOLS_PLAN_CONTEST_H
#define STRATA_TOOLS_PLAN_CONTEST_H

#include <stdio.h>

#include "lab/tools/plan/input.h"

/* Makes a plan with each planner, beside the one that the file is if it is one, and prints a table of them, how they differ from
 * the best one, and what they pass from one branch to another. E_HOST_MEMORY. */
strata_status_t strata_plan_contest(FILE *out, const strata_plan_input_t *input, const strata_plan_options_t *options);

#endif

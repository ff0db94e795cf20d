/* While a plan is looked for, a line on the terminal that standard error is. */
#ifndef STRATA_TOOLS_PLAN_PROGRESS_H
#define STRATA_TOOLS_PLAN_PROGRESS_H

#include <stdint.h>

#include "platform/status.h"

/* Shows the time that has passed since now, of `time_ns`, until strata_plan_progress_end(). Shows nothing if standard error is no
 * terminal, or if there is no thread to be had for it. One at a time. */
void strata_plan_progress_begin(const char *what, uint64_t time_ns);
void strata_plan_progress_end(void);

#endif

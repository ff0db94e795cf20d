/* Shows a progress line while a plan is searched, if standard error is a terminal. */
#ifndef STRATA_TOOLS_PLAN_PROGRESS_H
#define STRATA_TOOLS_PLAN_PROGRESS_H

#include <stdint.h>

#include "platform/status.h"

/* Shows the time elapsed since this call, out of `time_ns`, until strata_plan_progress_end(). Shows nothing
 * if standard error is not a terminal or no thread can be created. Only one may be active. */
void strata_plan_progress_begin(const char *what, uint64_t time_ns);
void strata_plan_progress_end(void);

#endif

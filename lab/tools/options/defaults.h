/* The strategies that are compared by default. */
#ifndef STRATA_TOOLS_DEFAULTS_H
#define STRATA_TOOLS_DEFAULTS_H

#include "lab/tools/options/arguments.h"

/* If no strategy is named, adds the presets that matter for a record of this format (strata_trace_t's). The
 * first one is nearest to the allocator that was recorded. */
void strata_arguments_default(strata_arguments_t *arguments, const char *format);

#endif

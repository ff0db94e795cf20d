/* What is compared where nobody has said it. */
#ifndef STRATA_TOOLS_DEFAULTS_H
#define STRATA_TOOLS_DEFAULTS_H

#include "lab/tools/options/arguments.h"

/* If no strategy is named: the presets that matter for a record of this format (strata_trace_t's), the one that is nearest to what
 * recorded it first. */
void strata_arguments_default(strata_arguments_t *arguments, const char *format);

#endif

/* What a comparison found, in words: which strategy held least, which failed, what it costs in time, and what to try next. */
#ifndef STRATA_TOOLS_VERDICT_H
#define STRATA_TOOLS_VERDICT_H

#include <stdio.h>

#include "replay/run/figures.h"
#include "trace/trace.h"

/* The runs of one trace, at least 2, the first of which the others are held against, in `width` letters a line; 0: as many as a page has. */
void strata_verdict_print(FILE *out, size_t width, const strata_trace_t *trace, const strata_figures_t *runs, size_t count);

#endif

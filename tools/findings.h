/* The end of a comparison: verdicts, the command to run next, and the provenance of the figures. */
#ifndef STRATA_TOOLS_FINDINGS_H
#define STRATA_TOOLS_FINDINGS_H

#include "replay/compare/findings.h"
#include "tools/options/contenders.h"

/* After the comparison. `results` and `findings->runs` are trace by trace. Fills in the rest; strata_findings_end() ends it.
 * E_HOST_MEMORY. */
strata_status_t strata_findings_make(const strata_arguments_t *arguments, const strata_contenders_t *contenders,
                                     strata_trace_t *const *traces, const strata_run_result_t *results,
                                     strata_findings_t *findings);
/* Adds where the strategies and traces come from; every regular file is read once more. E_HOST_MEMORY. */
strata_status_t strata_findings_trace_back(const strata_arguments_t *arguments, const strata_contenders_t *contenders,
                                           const char *command, strata_findings_t *findings);
void strata_findings_end(strata_findings_t *findings);

#endif

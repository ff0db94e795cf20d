/* The end of a comparison: verdicts, the command to run next, and the provenance of the figures. */
#ifndef STRATA_TOOLS_FINDINGS_H
#define STRATA_TOOLS_FINDINGS_H

#include "lab/replay/compare/findings.h"
#include "lab/tools/options/candidates.h"

/* Fills in the findings after the comparison. `results` and `findings->runs` are ordered by trace. Release
 * with strata_findings_end(). Fails with E_HOST_MEMORY. */
strata_status_t strata_findings_make(const strata_arguments_t *arguments, const strata_candidates_t *candidates,
                                     strata_trace_t *const *traces, const strata_run_result_t *results,
                                     strata_findings_t *findings);
/* Adds the provenance of strategies and traces, for which it reads every regular file again. Fails with E_HOST_MEMORY. */
strata_status_t strata_findings_add_provenance(const strata_arguments_t *arguments, const strata_candidates_t *candidates,
                                               const char *command, strata_findings_t *findings);
void strata_findings_end(strata_findings_t *findings);

#endif

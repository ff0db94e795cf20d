/* The page of a comparison: its file, and the data of its runs. */
#ifndef STRATA_TOOLS_PAGE_H
#define STRATA_TOOLS_PAGE_H

#include "lab/replay/report/report.h"
#include "lab/tools/options/candidates.h"

typedef struct strata_page_file {
    strata_output_t *out; /* NULL if no page is requested, or it is written */
    strata_page_t page;
} strata_page_file_t;

/* Opens the page. Call before the first replay, since a comparison may take hours. Does nothing without
 * --report. Fails with E_INVALID if another file has that name, or if the page would show too many runs. */
strata_status_t strata_page_file_open(strata_page_file_t *file, const strata_arguments_t *arguments, size_t candidates);
/* Replays every run again up to its peak and writes the page. Writes none if all traces were left out.
 * `results` is ordered by trace, as in the findings. */
strata_status_t strata_page_file_write(strata_page_file_t *file, const strata_arguments_t *arguments,
                                       const strata_candidates_t *candidates, const strata_run_result_t *results,
                                       const strata_findings_t *findings);
/* Releases the page, written or not. */
void strata_page_file_end(strata_page_file_t *file);

#endif

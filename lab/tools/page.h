/* The page of a comparison: its file, and what its runs leave for it. */
#ifndef STRATA_TOOLS_PAGE_H
#define STRATA_TOOLS_PAGE_H

#include "lab/replay/report/report.h"
#include "lab/tools/options/contenders.h"

typedef struct strata_page_file {
    strata_output_t *out; /* NULL: no page is asked for, or it is written */
    strata_page_t page;
} strata_page_file_t;

/* Before the first replay, since a comparison may take hours. Without --report nothing happens. E_INVALID: something else stands under
 * that name, or the page would show too much. */
strata_status_t strata_page_file_open(strata_page_file_t *file, const strata_arguments_t *arguments, size_t contenders);
/* Replays every run again up to its peak and writes the page. Writes none if all traces were left out. `results` is ordered by trace, as in
 * the findings. */
strata_status_t strata_page_file_write(strata_page_file_t *file, const strata_arguments_t *arguments,
                                       const strata_contenders_t *contenders, const strata_run_result_t *results,
                                       const strata_findings_t *findings);
/* Ends it, written or not. */
void strata_page_file_end(strata_page_file_t *file);

#endif

#include "lab/tools/page.h"

#include "lab/tools/draw.h"
#include "lab/tools/screen/report_file.h"

strata_status_t strata_page_file_open(strata_page_file_t *file, const strata_arguments_t *arguments, size_t candidates) {
    if (!arguments->report) return STRATA_OK;
    if (arguments->trace_count == 0) return strata_fail(STRATA_E_INVALID, 0, "this shard has no trace, so the page would be empty");
    strata_status_t status = strata_page_begin(&file->page, arguments->trace_count, candidates);
    return status == STRATA_OK ? strata_marked_open(arguments->report, "the page", STRATA_PAGE_MARK, &file->out) : status;
}

static strata_status_t run_maps(strata_page_file_t *file, const strata_arguments_t *arguments,
                                const strata_candidates_t *candidates, const strata_run_result_t *results) {
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < file->page.count && status == STRATA_OK; i++) {
        strata_page_run_t *run = &file->page.runs[i];
        run->result = &results[i];
        status = strata_run_map(arguments, &candidates->all[i % candidates->count], run->trace, results[i].peak_row, &run->map);
    }
    return status;
}

strata_status_t strata_page_file_write(strata_page_file_t *file, const strata_arguments_t *arguments,
                                       const strata_candidates_t *candidates, const strata_run_result_t *results,
                                       const strata_findings_t *findings) {
    if (!file->out) return STRATA_OK;
    if (file->page.count == 0) return STRATA_OK; /* all traces were left out */
    strata_status_t status = run_maps(file, arguments, candidates, results);
    if (status == STRATA_OK) status = strata_page_write(file->out, &file->page, findings);
    if (status != STRATA_OK) return status;
    strata_output_t *out = file->out;
    file->out = NULL;
    return strata_output_finish(out);
}

void strata_page_file_end(strata_page_file_t *file) {
    strata_output_abandon(file->out);
    strata_page_end(&file->page);
}

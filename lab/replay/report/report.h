/* Writes a comparison as one page of HTML: curves, blocks at the peaks, device calls, out-of-memory reports
 * and streams. The page needs nothing from a network and runs no code but its own. */
#ifndef STRATA_REPLAY_REPORT_H
#define STRATA_REPLAY_REPORT_H

#include "lab/replay/compare/findings.h"
#include "lab/replay/draw/map.h"

enum {
    STRATA_PAGE_RUNS = 256, /* max traces times candidates of a page */
    STRATA_PAGE_REFUSALS = 8 /* max kept of each run; all are counted */
};
/* The first bytes of every page. A file that begins otherwise was not written by this command. */
#define STRATA_PAGE_MARK "<!doctype html>\n<!-- A report of strata."

/* A request that finally failed for memory. */
typedef struct strata_page_refusal {
    size_t row;
    uint64_t time_ns;
    uint64_t size;
    uint32_t line; /* of the trace's file */
    uint16_t stream, tag; /* indices of the trace */
    char *text; /* the report */
} strata_page_refusal_t;

typedef struct strata_page_run {
    const strata_trace_t *trace;
    const strata_run_result_t *result;
    strata_series_t series;
    strata_page_refusal_t refusals[STRATA_PAGE_REFUSALS];
    size_t refusal_count, refusal_room; /* bytes of reports that the page still has room for */
    strata_map_t map; /* at the peak of reserved memory */
} strata_page_run_t;

/* Runs are ordered by trace, then by candidate. */
typedef struct strata_page {
    strata_page_run_t *runs;
    strata_run_follow_t *follows;
    size_t count, candidates; /* shown runs */
    size_t room; /* capacity in runs */
    size_t columns, around; /* sizes of each run's series */
} strata_page_t;

/* Makes room for `traces` times `candidates` runs. Fails with E_INVALID if these exceed STRATA_PAGE_RUNS, or
 * with E_HOST_MEMORY. */
strata_status_t strata_page_begin(strata_page_t *page, size_t traces, size_t candidates);
void strata_page_end(strata_page_t *page);
/* Call before a trace is compared. Returns one follower for each of its candidates. */
const strata_run_follow_t *strata_page_follow(strata_page_t *page, size_t index, const strata_trace_t *trace);
/* Drops the trace of a failed comparison. The next trace reuses its number. Fails with E_HOST_MEMORY. */
strata_status_t strata_page_drop_trace(strata_page_t *page, size_t index);
/* Writes the page. Call after all comparisons. Fails with E_HOST_MEMORY. Errors of the output stay in the output. */
strata_status_t strata_page_write(strata_output_t *out, strata_page_t *page, const strata_findings_t *findings);

#endif

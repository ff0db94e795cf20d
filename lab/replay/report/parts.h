/* The parts of a page's data, each one value of JSON. */
#ifndef STRATA_REPLAY_REPORT_PARTS_H
#define STRATA_REPLAY_REPORT_PARTS_H

#include "lab/replay/report/report.h"

/* Whole numbers as differences: each is written as what it is more than the one before, the first as it is. */
typedef struct strata_deltas {
    strata_output_t *out;
    uint64_t last;
    bool begun;
} strata_deltas_t;
/* Begins an array under a name. */
strata_deltas_t strata_deltas_begin(strata_output_t *out, const char *name);
void strata_deltas_put(strata_deltas_t *deltas, uint64_t value);
void strata_deltas_end(strata_deltas_t *deltas);

/* What each of `count` runs or traces has of `all` that a page has room for: at least `least`, at most `most`. */
size_t strata_page_share(size_t all, size_t least, size_t most, size_t count);
enum { STRATA_PAGE_TAG = 81 }; /* bytes of a tag on the page */

/* Everything; one object. E_HOST_MEMORY. */
strata_status_t strata_page_data(strata_output_t *out, strata_page_t *page, const strata_findings_t *findings);
/* The columns, the peaks and what is around them: several members of an object. */
void strata_page_curves(strata_output_t *out, strata_series_t *series);
/* What the contents of the chunks may take at most. */
typedef struct strata_page_room {
    size_t rows, tags, holders;
} strata_page_room_t;
/* Of one of `runs` runs. */
strata_page_room_t strata_page_room(size_t runs);
/* The contents of the chunks: what is small is put together. E_HOST_MEMORY. */
strata_status_t strata_page_blocks(strata_output_t *out, const strata_page_run_t *run, const strata_page_room_t *room);
/* What each stream of one of `traces` traces asked for. E_HOST_MEMORY. */
strata_status_t strata_page_streams(strata_output_t *out, const strata_trace_t *trace, size_t traces);
/* What each kind of device call cost. */
void strata_page_calls(strata_output_t *out, const strata_page_run_t *run);

/* The page around the data, compiled in from page/ by cmake/StrataPage.cmake: up to the table for readers without scripts, from there to
 * the data, and the rest. */
extern const char strata_page_head[], strata_page_middle[], strata_page_tail[];

#endif

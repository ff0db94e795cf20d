/* The parts of a page's data, each one JSON value. */
#ifndef STRATA_REPLAY_REPORT_PARTS_H
#define STRATA_REPLAY_REPORT_PARTS_H

#include "lab/replay/report/report.h"

/* An array of whole numbers, each written as its difference from the number before. The first is written as it is. */
typedef struct strata_deltas {
    strata_output_t *out;
    uint64_t last;
    bool begun;
} strata_deltas_t;
/* Begins an array under a name. */
strata_deltas_t strata_deltas_begin(strata_output_t *out, const char *name);
void strata_deltas_put(strata_deltas_t *deltas, uint64_t value);
void strata_deltas_end(strata_deltas_t *deltas);

/* Returns the share of each of `count` runs or traces in a page's room of `all`. It is at least `least` and at most `most`. */
size_t strata_page_share(size_t all, size_t least, size_t most, size_t count);
enum { STRATA_PAGE_TAG = 81 }; /* bytes of a tag on the page */

/* Writes everything as one object. Fails with E_HOST_MEMORY. */
strata_status_t strata_page_data(strata_output_t *out, strata_page_t *page, const strata_findings_t *findings);
/* Writes the columns, the peaks and the samples around them as several members of an object. */
void strata_page_curves(strata_output_t *out, strata_series_t *series);
/* The limits for the contents of the chunks. */
typedef struct strata_page_room {
    size_t rows, tags, holders;
} strata_page_room_t;
/* Returns the limits for one of `runs` runs. */
strata_page_room_t strata_page_room(size_t runs);
/* Writes the contents of the chunks. Small blocks are grouped. Fails with E_HOST_MEMORY. */
strata_status_t strata_page_blocks(strata_output_t *out, const strata_page_run_t *run, const strata_page_room_t *room);
/* Writes the requests of each stream of one of `traces` traces. Fails with E_HOST_MEMORY. */
strata_status_t strata_page_streams(strata_output_t *out, const strata_trace_t *trace, size_t traces);
/* Writes the cost of each kind of device call. */
void strata_page_calls(strata_output_t *out, const strata_page_run_t *run);

/* The page around the data, compiled in from page/ by cmake/StrataPage.cmake. The first part ends at the
 * table for readers without scripts, and the middle ends at the data. */
extern const char strata_page_head[], strata_page_middle[], strata_page_tail[];

#endif

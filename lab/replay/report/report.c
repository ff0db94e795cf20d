#include "lab/replay/report/report.h"

#include <string.h>

#include "lab/replay/report/parts.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

/* Limits for all runs of a page together, so that it stays below 3 MB whatever their number. */
enum {
    ALL_COLUMNS = 20000,
    MAX_COLUMNS = 4096,
    MIN_COLUMNS = 64,
    ALL_AROUND = 1600, /* samples on one side of a peak */
    MAX_AROUND = 256,
    MIN_AROUND = 4,
    ALL_REFUSALS = 200000, /* bytes of reports */
    MIN_REFUSAL = 600, /* of one run */
    REFUSAL_BYTES = 4096 /* of one report */
};

size_t strata_page_share(size_t all, size_t least, size_t most, size_t count) {
    return (size_t)strata_max(least, strata_min(most, all / strata_max(count, 1)));
}

/* ---- data kept during a run ---- */

static void keep_row(void *context, const strata_series_sample_t *sample) {
    strata_page_run_t *run = context;
    strata_series_add(&run->series, sample);
}

/* If there is no memory for a report, its text stays empty. The request is counted in any case. */
static void keep_refusal(void *context, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text) {
    strata_page_run_t *run = context;
    if (run->refusal_count == STRATA_PAGE_REFUSALS || run->refusal_room < MIN_REFUSAL) return;
    size_t length = strata_min(strlen(text), strata_min(REFUSAL_BYTES, run->refusal_room) - 1);
    run->refusal_room -= length;
    char *kept = strata_host_new(length + 1, 1);
    if (kept) memcpy(kept, text, length);
    run->refusals[run->refusal_count++] = (strata_page_refusal_t){.row = row,
                                                                  .time_ns = time_ns,
                                                                  .size = event->value,
                                                                  .line = event->line,
                                                                  .stream = event->stream,
                                                                  .tag = event->tag,
                                                                  .text = kept};
}

static strata_status_t begin_run(strata_page_t *page, size_t i) {
    strata_page_run_t *run = &page->runs[i];
    run->refusal_room = strata_page_share(ALL_REFUSALS, MIN_REFUSAL, STRATA_PAGE_REFUSALS * REFUSAL_BYTES, page->room);
    page->follows[i] = (strata_run_follow_t){.row = keep_row, .refused = keep_refusal, .context = run};
    return strata_series_init(&run->series, page->columns, page->around);
}

strata_status_t strata_page_begin(strata_page_t *page, size_t traces, size_t candidates) {
    *page = (strata_page_t){.count = traces * candidates, .candidates = candidates};
    if (page->count > STRATA_PAGE_RUNS)
        return strata_fail(STRATA_E_INVALID, 0,
                           "a page shows at most %d runs (traces times strategies), not %zu; give fewer traces", STRATA_PAGE_RUNS,
                           page->count);
    page->room = page->count;
    page->columns = strata_page_share(ALL_COLUMNS, MIN_COLUMNS, MAX_COLUMNS, page->count);
    page->around = strata_page_share(ALL_AROUND, MIN_AROUND, MAX_AROUND, page->count);
    page->runs = strata_host_new(page->count, sizeof *page->runs);
    page->follows = strata_host_new(page->count, sizeof *page->follows);
    strata_status_t status = page->runs && page->follows ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < page->count && status == STRATA_OK; i++) status = begin_run(page, i);
    if (status != STRATA_OK) strata_page_end(page);
    return status;
}

static void end_run(strata_page_run_t *run) {
    for (size_t i = 0; i < run->refusal_count; i++) strata_host_delete(run->refusals[i].text);
    strata_series_destroy(&run->series);
    strata_map_delete(&run->map);
    *run = (strata_page_run_t){.trace = NULL};
}

void strata_page_end(strata_page_t *page) {
    for (size_t i = 0; i < page->room && page->runs; i++) end_run(&page->runs[i]);
    strata_host_delete(page->runs);
    strata_host_delete(page->follows);
    *page = (strata_page_t){.runs = NULL};
}

const strata_run_follow_t *strata_page_follow(strata_page_t *page, size_t index, const strata_trace_t *trace) {
    for (size_t i = 0; i < page->candidates; i++) page->runs[index * page->candidates + i].trace = trace;
    return page->follows + index * page->candidates;
}

strata_status_t strata_page_drop_trace(strata_page_t *page, size_t index) {
    strata_status_t status = STRATA_OK;
    page->count -= page->candidates;
    for (size_t i = 0; i < page->candidates && status == STRATA_OK; i++) {
        end_run(&page->runs[index * page->candidates + i]);
        status = begin_run(page, index * page->candidates + i);
    }
    return status;
}

/* Prints the state of a run at one moment: every place, stream and layer, and on demand every block. */
#ifndef STRATA_REPLAY_STATS_H
#define STRATA_REPLAY_STATS_H

#include "facade/figures/changes.h"
#include "lab/replay/run/run.h"
#include "trace/text/output.h"

typedef enum strata_stats_form { STRATA_STATS_TABLE, STRATA_STATS_JSON, STRATA_STATS_PROMETHEUS } strata_stats_form_t;

typedef struct strata_stats {
    strata_stats_form_t form;
    bool blocks; /* also print the chunks and blocks; not for Prometheus */
    size_t width; /* of the table, or 0 for the width of six streams */
    char *refused; /* the first request that failed for memory, with its report, from strata_stats_refused(); NULL if none failed */
    uint64_t steps; /* if not 0, first print a line for each row, with the changed metrics after every `steps` rows */
    strata_series_sample_t sample; /* of the current row */
    strata_changes_t changes;
    strata_output_t *out;
    strata_status_t status; /* of the output: E_HOST_MEMORY, E_IO */
} strata_stats_t;

/* A strata_run_inspect_fn. The context is a strata_stats_t. */
void strata_stats_write(void *stats, const strata_run_moment_t *moment);
/* A callback of strata_run_follow_t that keeps the first report for the table. The context is a
 * strata_stats_t. The caller owns its `refused` and frees it with strata_host_delete(). */
void strata_stats_refused(void *stats, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text);

/* Callbacks of strata_run_follow_t that print the lines of rows. The context is a strata_stats_t with `steps`. */
void strata_stats_sample(void *stats, const strata_series_sample_t *sample);
void strata_stats_step(void *stats, const strata_run_moment_t *moment, bool chunks);

enum { STRATA_STATS_NAME = 32 };
/* Sets `name` to the stream's name in the table, such as "stream 7", with the trace's number. */
void strata_stats_stream_name(const strata_run_moment_t *moment, strata_place_t place, strata_stream_t stream,
                              char name[STRATA_STATS_NAME]);
/* Prints the table for people, in several parts if the streams do not fit into the width. */
strata_status_t strata_stats_table(const strata_stats_t *stats, const strata_run_moment_t *moment);

#endif

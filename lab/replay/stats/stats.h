/* What a run holds at one moment: every place, stream and layer, and on demand every block. */
#ifndef STRATA_REPLAY_STATS_H
#define STRATA_REPLAY_STATS_H

#include "facade/figures/changes.h"
#include "lab/replay/run/run.h"
#include "trace/text/output.h"

typedef enum strata_stats_form { STRATA_STATS_TABLE, STRATA_STATS_JSON, STRATA_STATS_PROMETHEUS } strata_stats_form_t;

typedef struct strata_stats {
    strata_stats_form_t form;
    bool blocks; /* the chunks and blocks too; not for Prometheus */
    size_t width; /* of the table; 0: enough for six streams */
    char *refused; /* the first request that failed for memory, with its report, as strata_stats_refused() keeps it; NULL: none did */
    uint64_t steps; /* a line for each row first, with the figures that changed in every so many; 0: none */
    strata_series_sample_t sample; /* of the row under way */
    strata_changes_t changes;
    strata_output_t *out;
    strata_status_t status; /* of the writing: E_HOST_MEMORY, E_IO */
} strata_stats_t;

/* strata_run_look_fn; the context is a strata_stats_t. */
void strata_stats_write(void *stats, const strata_run_moment_t *moment);
/* For strata_run_follow_t: keeps the first report for the table. The context is a strata_stats_t, whose `refused` belongs to the caller,
 * by strata_host_delete(). */
void strata_stats_refused(void *stats, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text);

/* For strata_run_follow_t: the lines of rows. The context is a strata_stats_t with `steps`. */
void strata_stats_sample(void *stats, const strata_series_sample_t *sample);
void strata_stats_step(void *stats, const strata_run_moment_t *moment, bool chunks);

enum { STRATA_STATS_NAME = 32 };
/* The name of a stream in the table: "stream 7", as in the trace. */
void strata_stats_stream_name(const strata_run_moment_t *moment, strata_place_t place, strata_stream_t stream,
                              char name[STRATA_STATS_NAME]);
/* For people; as several tables if the streams do not fit into the width. */
strata_status_t strata_stats_table(const strata_stats_t *stats, const strata_run_moment_t *moment);

#endif

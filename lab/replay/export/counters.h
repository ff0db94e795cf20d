/* Exports a run over time. For Chrome and Perfetto, it writes one counter for each curve of held memory and
 * for each layer metric in bytes. The other form is CSV. */
#ifndef STRATA_REPLAY_COUNTERS_H
#define STRATA_REPLAY_COUNTERS_H

#include "lab/replay/run/run.h"
#include "trace/text/output.h"

typedef enum strata_counters_form { STRATA_COUNTERS_CHROME, STRATA_COUNTERS_CSV } strata_counters_form_t;

enum { STRATA_COUNTERS_TRACKS = 64, STRATA_COUNTERS_NAME = 128 };

/* A metric of a place's layers, summed over its streams. */
typedef struct strata_counters_track {
    char name[STRATA_COUNTERS_NAME];
    uint64_t value;
} strata_counters_track_t;

typedef struct strata_counters {
    strata_counters_form_t form;
    strata_output_t *out;
    const char *label; /* of the run */
    size_t every; /* rows between two samples, at least 1; rows that change reserved memory are always written */
    strata_series_sample_t latest;
    uint64_t written[STRATA_SERIES_CURVES]; /* the values written last */
    strata_counters_track_t written_tracks[STRATA_COUNTERS_TRACKS];
    size_t written_count;
    bool begun;
    strata_status_t status;
} strata_counters_t;

/* Callbacks of strata_run_follow_t with the counters as context. For each row, row() is called before moment(). */
void strata_counters_row(void *counters, const strata_series_sample_t *sample);
void strata_counters_moment(void *counters, const strata_run_moment_t *moment, bool chunks);
void strata_counters_refused(void *counters, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text);
/* Ends the output. Call after the last row. */
void strata_counters_finish(strata_counters_t *counters);

#endif

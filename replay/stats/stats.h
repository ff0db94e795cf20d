/* What a run holds at one moment: every place, stream and layer, and on demand every block. */
#ifndef STRATA_REPLAY_STATS_H
#define STRATA_REPLAY_STATS_H

#include "replay/run/run.h"
#include "trace/text/output.h"

typedef enum strata_stats_form { STRATA_STATS_TABLE, STRATA_STATS_JSON, STRATA_STATS_PROMETHEUS } strata_stats_form_t;

typedef struct strata_stats {
    strata_stats_form_t form;
    bool blocks; /* the chunks and blocks too; not for Prometheus */
    size_t width; /* of the table; 0: enough for six streams */
    strata_output_t *out;
    strata_status_t status; /* of the writing: E_HOST_MEMORY, E_IO */
} strata_stats_t;

/* strata_run_look_fn; the context is a strata_stats_t. */
void strata_stats_write(void *stats, const strata_run_moment_t *moment);

enum { STRATA_STATS_NAME = 32 };
/* The name of a stream in the table: "stream 7", as in the trace. */
void strata_stats_stream_name(const strata_run_moment_t *moment, strata_place_t place, strata_stream_t stream,
                              char name[STRATA_STATS_NAME]);
/* For people; as several tables if the streams do not fit into `width` letters. 0: six streams per table. */
strata_status_t strata_stats_table(strata_output_t *out, const strata_run_moment_t *moment, bool blocks, size_t width);

#endif

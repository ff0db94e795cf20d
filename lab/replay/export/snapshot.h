/* A run as a memory snapshot of PyTorch: what its memory_viz draws, and what the reader of snapshots reads again. */
#ifndef STRATA_REPLAY_SNAPSHOT_H
#define STRATA_REPLAY_SNAPSHOT_H

#include "lab/replay/export/entries.h"
#include "trace/text/output.h"

typedef struct strata_snapshot_file {
    strata_entries_t entries;
    strata_output_t *out;
    const char *strategy; /* told among the settings */
    strata_status_t status;
} strata_snapshot_file_t;

/* strata_run_look_fn, at the end of a run that the entries followed: writes all. The context is a strata_snapshot_file_t. */
void strata_snapshot_write(void *file, const strata_run_moment_t *moment);

#endif

/* Writes a run as a PyTorch memory snapshot, which memory_viz can draw and the reader of snapshots can read. */
#ifndef STRATA_REPLAY_SNAPSHOT_H
#define STRATA_REPLAY_SNAPSHOT_H

#include "lab/replay/export/entries.h"
#include "trace/text/output.h"

typedef struct strata_snapshot_file {
    strata_entries_t entries;
    strata_output_t *out;
    const char *strategy; /* written among the settings */
    strata_status_t status;
} strata_snapshot_file_t;

/* A strata_run_inspect_fn for the end of a run that the entries followed. It writes the whole file. The context
 * is a strata_snapshot_file_t. */
void strata_snapshot_write(void *file, const strata_run_moment_t *moment);

#endif

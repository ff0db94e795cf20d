/* The state of a run, shared by its parts. */
#ifndef STRATA_REPLAY_RUN_STATE_H
#define STRATA_REPLAY_RUN_STATE_H

#include "lab/replay/run/borrows.h"
#include "lab/replay/run/measure.h"
#include "lab/replay/run/steps.h"
#include "lab/replay/run/watch.h"

/* A block that the facade served for an alloc. */
typedef struct strata_served {
    strata_ref_t ref; /* 0 if not served, or freed */
    uint64_t address;
    uint64_t requested, granted;
    uint32_t stream; /* the owner, as an index of the trace's streams */
} strata_served_t;

typedef struct strata_running {
    const strata_trace_t *trace;
    const strata_run_options_t *options;
    strata_machine_t machine;
    strata_timeline_t timeline;
    strata_measure_t measure;
    strata_watch_t watch;
    strata_steps_t steps;
    strata_t facade;
    strata_served_t *served; /* by lifetime */
    size_t room; /* lifetimes that fit in `served` and `borrows` */
    uint64_t *pools; /* the strategy's pool for each pool of the trace, or 0 if it has none; NULL if no pool matches */
    strata_borrows_t borrows; /* of live blocks, if the trace has no work */
    uint64_t *kernel_times; /* by stream: time of its last kernel in us, plus 1 */
    strata_access_t *accesses;
    size_t access_capacity;
    strata_run_result_t *result;
} strata_running_t;

/* Carries out the row, or the rows of one kernel that the trace has so far. Returns the number of rows. */
size_t strata_run_row(strata_running_t *run, size_t row);

#endif

/* One trace through one strategy, once. */
#ifndef STRATA_REPLAY_RUN_H
#define STRATA_REPLAY_RUN_H

#include "replay/compare/figures.h"
#include "replay/run/ended.h"
#include "replay/run/timeline.h"
#include "strategy/model.h"

/* Called now and then: rows done so far. */
typedef void (*strata_run_progress_fn)(void *context, uint64_t rows);

/* A moment of a run: behind a row, everything still open. */
typedef struct strata_run_moment {
    const strata_trace_t *trace;
    const strata_timeline_t *timeline; /* its streams are the trace's, by index */
    strata_t facade;
    size_t rows; /* carried out, 1 at least */
    const struct strata_run_result *result; /* what is counted so far: operations, failures, the device's name */
} strata_run_moment_t;
typedef void (*strata_run_look_fn)(void *context, const strata_run_moment_t *moment);

typedef struct strata_run_options {
    strata_target_t target;
    strata_timeline_options_t timeline;
    size_t rows; /* how many are carried out; 0: all. Rows of one kernel are not cut in two */
    strata_run_look_fn look; /* behind the last of them; may be NULL */
    void *look_context;
    bool check; /* the happens-before checker watches; simulated devices alone */
    strata_run_progress_fn progress; /* may be NULL */
    void *progress_context;
} strata_run_options_t;

typedef struct strata_run_result {
    strata_figures_t figures; /* all but trace, label, options, host_ns_per_op, smallest_device_bytes */
    double host_ns_per_op;
    size_t peak_row; /* how many rows had been carried out when most was reserved of devices, for the first time; 0: nothing was */
    bool work_left_out; /* the trace has work, which the device does not carry out */
    char device[64];
    char first_hazards[12288]; /* of a checked run, with their histories; "" if it found none */
    strata_run_ended_t ended;
    char first_failure[1024]; /* "file:line: ..." of the first operation that failed, not for memory; "" if none did */
} strata_run_result_t;

/* What a trace is called in figures: its file's name, without the folder. */
const char *strata_run_trace_name(const strata_trace_t *trace);
/* figures.strategy is the strategy's own string, figures.device points into the result. Fails only where no run took place. */
strata_status_t strata_run(const strata_trace_t *trace, const strata_strategy_t *strategy, const strata_run_options_t *options,
                           strata_run_result_t *result);

#endif

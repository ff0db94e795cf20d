/* One trace through one strategy, once. */
#ifndef STRATA_REPLAY_RUN_H
#define STRATA_REPLAY_RUN_H

#include "replay/figures.h"
#include "replay/timeline.h"
#include "strategy/model.h"

/* Called now and then: rows done so far. */
typedef void (*strata_run_progress_fn)(void *context, uint64_t rows);

typedef struct strata_run_options {
    strata_target_t target;
    strata_timeline_options_t timeline;
    bool check;                      /* the happens-before checker watches; simulated devices alone */
    strata_run_progress_fn progress; /* may be NULL */
    void *progress_context;
} strata_run_options_t;

typedef struct strata_run_result {
    strata_figures_t figures; /* all but trace, label, options, host_ns_per_op, smallest_device_bytes */
    double host_ns_per_op;
    bool work_left_out; /* the trace has work, which the device does not carry out */
    char device[64];
    char first_hazards[12288]; /* of a checked run, with their histories; "" if it found none */
    char first_failure[1024]; /* "file:line: ..." of the first operation that failed, not for memory; "" if none did */
} strata_run_result_t;

/* Whether a trace can be replayed at all. E_UNSUPPORTED, as "file:line: ...". */
strata_status_t strata_run_check(const strata_trace_t *trace);
/* figures.strategy is the strategy's own string, figures.device points into the result. Fails only where no run took place. */
strata_status_t strata_run(const strata_trace_t *trace, const strata_strategy_t *strategy, const strata_run_options_t *options,
                           strata_run_result_t *result);

#endif

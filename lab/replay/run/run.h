/* Runs one trace through one strategy once.
 *
 *     trace --> rows.c --> facade --> devices
 *                  +-- timeline/   when each row runs, and how far the GPU is by then
 *                  +-- measure.h   metrics of memory, time and device calls
 *                  +-- watch.h     reports to the happens-before checker */
#ifndef STRATA_REPLAY_RUN_H
#define STRATA_REPLAY_RUN_H

#include "lab/replay/run/ended.h"
#include "lab/replay/run/figures.h"
#include "lab/replay/series/series.h"
#include "lab/replay/timeline/timeline.h"
#include "lab/trace/read/feed.h"
#include "strategy/model.h"

/* Called regularly with the number of rows done. */
typedef void (*strata_run_progress_fn)(void *context, uint64_t rows);

/* A moment of a run after a row, with everything still open. */
typedef struct strata_run_moment {
    const strata_trace_t *trace;
    const strata_timeline_t *timeline; /* its streams have the trace's indices */
    strata_t facade;
    size_t rows; /* rows carried out, at least 1 */
    const struct strata_run_result *result; /* the counts so far, such as operations and failures, and the device's name */
    const void *run;
} strata_run_moment_t;
/* Calls `live` for every live block, in no particular order. It passes the address from the facade and the
 * trace's lifetime (the number of its alloc). Only from inside a look. */
typedef void (*strata_run_live_fn)(void *context, uint64_t address, uint32_t lifetime);
void strata_run_each_live(const strata_run_moment_t *moment, strata_run_live_fn live, void *context);
/* The address and the bytes served for a lifetime of the trace, or 0 if it has not been served yet. They
 * remain after the free. */
typedef struct strata_run_block {
    uint64_t address, granted;
    bool live;
} strata_run_block_t;
strata_run_block_t strata_run_block(const strata_run_moment_t *moment, uint32_t lifetime);
typedef void (*strata_run_inspect_fn)(void *context, const strata_run_moment_t *moment);

/* Callbacks that follow a run from row to row. */
typedef struct strata_run_follow {
    /* Called after each row. The peak of reserved bytes is among the samples even if it lasted only within a call. */
    void (*row)(void *context, const strata_series_sample_t *sample);
    /* Called when a request finally failed for memory. `text` is the whole report, valid during the call. */
    void (*refused)(void *context, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text);
    /* Also called after each row, with everything still open. `chunks` is true if calls got memory from the
     * device or returned it. May be NULL. */
    void (*moment)(void *context, const strata_run_moment_t *moment, bool chunks);
    void *context;
} strata_run_follow_t;

typedef struct strata_run_options {
    strata_target_t target;
    strata_timeline_options_t timeline;
    size_t rows; /* rows to carry out, or 0 for all; rows of one kernel are not separated */
    strata_run_inspect_fn inspect; /* called after the last of them; may be NULL */
    void *inspect_context;
    const strata_run_follow_t *follow; /* may be NULL */
    bool check; /* use the happens-before checker; only on simulated devices */
    strata_run_progress_fn progress; /* may be NULL */
    void *progress_context;
    size_t at_once; /* max concurrent runs, including this one; 0 if it runs alone */
} strata_run_options_t;

typedef struct strata_run_result {
    strata_figures_t figures; /* all except trace, label, options, host_ns_per_op, smallest_device_bytes */
    double host_ns_per_op;
    /* set by strata_compare(): the minimum capacity that serves everything, or STRATA_FIGURE_NULL if not
     * searched or not found */
    uint64_t needed_bytes;
    size_t peak_row; /* rows carried out when reserved device memory first reached its peak; 0 if nothing was reserved */
    bool work_left_out; /* the trace has work that the device cannot carry out */
    char device[64];
    char first_hazards[12288]; /* of a checked run, with their histories; empty if none was found */
    strata_run_ended_t ended;
    strata_device_ledger_t ledger; /* of a followed run: the strategy's device calls, without the program's own */
    /* "file:line: ..." of the first operation that failed for another reason than memory; empty if there is none */
    char first_failure[1024];
} strata_run_result_t;

/* Returns the name of a trace in figures, which is its file name without the folder. */
const char *strata_run_trace_name(const strata_trace_t *trace);
/* figures.strategy is the strategy's own string. figures.device points into the result. Fails only if no run took place. */
strata_status_t strata_run(const strata_trace_t *trace, const strata_strategy_t *strategy, const strata_run_options_t *options,
                           strata_run_result_t *result);
/* Returns the max number of stacks that a run of the trace needs: one for every kind of place with an owner,
 * stream and pool. All concurrent runs of a process share STRATA_RUN_STACKS. */
enum { STRATA_RUN_STACKS = 4095 };
size_t strata_run_stacks(const strata_trace_t *trace);
/* Runs a trace that is still being read, with the same figures, on simulated devices only. There is no
 * follower, look or check, and all rows are carried out. Sets *outgrown to true if a later row uses a stream,
 * a pool or work that the first rows did not show. It is also true if all concurrent runs need too many
 * stacks. The result is then void, and the whole trace must be run. An invalid row ends the run with the
 * error of strata_trace_feed_wait(). */
strata_status_t strata_run_feed(strata_trace_feed_t *feed, const strata_strategy_t *strategy, const strata_run_options_t *options,
                                bool *outgrown, strata_run_result_t *result);

#endif

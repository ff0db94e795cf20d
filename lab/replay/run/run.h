/* One trace through one strategy, once. */
#ifndef STRATA_REPLAY_RUN_H
#define STRATA_REPLAY_RUN_H

#include "lab/replay/run/ended.h"
#include "lab/replay/run/figures.h"
#include "lab/replay/series/series.h"
#include "lab/replay/timeline/timeline.h"
#include "lab/trace/read/feed.h"
#include "strategy/model.h"

/* Called now and then with the number of rows done. */
typedef void (*strata_run_progress_fn)(void *context, uint64_t rows);

/* A moment of a run: after a row, everything still open. */
typedef struct strata_run_moment {
    const strata_trace_t *trace;
    const strata_timeline_t *timeline; /* its streams are the trace's, by index */
    strata_t facade;
    size_t rows; /* carried out, at least 1 */
    const struct strata_run_result *result; /* the counts so far: operations, failures, the device's name */
    const void *run;
} strata_run_moment_t;
/* Calls back for every live block in no order: the address that the facade gave, and the lifetime of the trace (the number of its
 * alloc). Only from inside a look. */
typedef void (*strata_run_live_fn)(void *context, uint64_t address, uint32_t lifetime);
void strata_run_each_live(const strata_run_moment_t *moment, strata_run_live_fn live, void *context);
/* What a lifetime of the trace was served: its address, and the bytes that it was given; 0 if it has not been served yet. They stay after
 * the free. */
typedef struct strata_run_block {
    uint64_t address, granted;
    bool live;
} strata_run_block_t;
strata_run_block_t strata_run_block(const strata_run_moment_t *moment, uint32_t lifetime);
typedef void (*strata_run_look_fn)(void *context, const strata_run_moment_t *moment);

/* Who follows a run from row to row. */
typedef struct strata_run_follow {
    /* After each row. The peak of reserved bytes is among the samples even if it lasted only within a call. */
    void (*row)(void *context, const strata_series_sample_t *sample);
    /* A request failed for memory at last. `text` is the whole report, valid during the call. */
    void (*refused)(void *context, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text);
    /* After each row too, everything still open; `chunks`: calls were made that get memory from the device, or give it back. NULL:
     * nobody looks. */
    void (*moment)(void *context, const strata_run_moment_t *moment, bool chunks);
    void *context;
} strata_run_follow_t;

typedef struct strata_run_options {
    strata_target_t target;
    strata_timeline_options_t timeline;
    size_t rows; /* how many to carry out; 0: all. Rows of one kernel are not separated */
    strata_run_look_fn look; /* after the last of them; may be NULL */
    void *look_context;
    const strata_run_follow_t *follow; /* NULL: nobody */
    bool check; /* the happens-before checker watches; only on simulated devices */
    strata_run_progress_fn progress; /* may be NULL */
    void *progress_context;
    size_t at_once; /* runs that may go on beside this one, itself included; 0: it is alone */
} strata_run_options_t;

typedef struct strata_run_result {
    strata_figures_t figures; /* all except trace, label, options, host_ns_per_op, smallest_device_bytes */
    double host_ns_per_op;
    uint64_t needed_bytes; /* set by strata_compare(): the minimum capacity that serves everything; STRATA_FIGURE_NULL: not
                              searched or not found */
    size_t peak_row; /* the number of rows carried out when reserved device memory was highest, for the first time; 0: nothing was
                        reserved */
    bool work_left_out; /* the trace has work, which the device cannot carry out */
    char device[64];
    char first_hazards[12288]; /* of a checked run, with their histories; "" if it found none */
    strata_run_ended_t ended;
    strata_device_ledger_t ledger; /* of a followed run: the strategy's device calls, the program's own left out */
    char first_failure[1024]; /* "file:line: ..." of the first operation that failed, not for memory; "" if none did */
} strata_run_result_t;

/* The name of a trace in figures: that of its file, without the folder. */
const char *strata_run_trace_name(const strata_trace_t *trace);
/* figures.strategy is the strategy's own string; figures.device points into the result. Fails only if no run took place. */
strata_status_t strata_run(const strata_trace_t *trace, const strata_strategy_t *strategy, const strata_run_options_t *options,
                           strata_run_result_t *result);
/* The stacks that a run of the trace needs at most: one for every kind of place with an owner, stream and pool. All runs of a process at
 * one time share STRATA_RUN_STACKS. */
enum { STRATA_RUN_STACKS = 4095 };
size_t strata_run_stacks(const strata_trace_t *trace);
/* The same while the trace is still read, with the same figures; on simulated devices alone. Nobody follows, looks or checks, and all
 * rows are carried out. *outgrown: a later row shows what the first ones did not (a stream, a pool, work), or there are too many stacks
 * for all runs at once; the result says nothing, and the whole trace must be run. A row that is found wrong ends it: as
 * strata_trace_feed_wait(). */
strata_status_t strata_run_feed(strata_trace_feed_t *feed, const strata_strategy_t *strategy, const strata_run_options_t *options,
                                bool *outgrown, strata_run_result_t *result);

#endif

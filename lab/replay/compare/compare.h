/* Traces through contenders, in turn and repeatedly. */
#ifndef STRATA_REPLAY_COMPARE_H
#define STRATA_REPLAY_COMPARE_H

#include "lab/replay/run/run.h"

typedef struct strata_contender {
    const char *label;
    const strata_strategy_t *strategy;
    strata_figure_options_t options;
    strata_target_t target;
} strata_contender_t;

typedef struct strata_comparison {
    const strata_contender_t *contenders;
    size_t contender_count;
    strata_timeline_options_t timeline;
    uint32_t repeat; /* 1 .. STRATA_FIGURE_REPEATS */
    uint32_t threads; /* runs at once, at most as many as there are contenders, on simulated devices alone; 0: one after another */
    bool check; /* the happens-before checker watches the first repeat; only on simulated devices */
    const strata_run_follow_t *follow; /* of each contender's first repeat; NULL: nobody follows */
    bool smallest; /* also search for the minimum capacity of each; only on simulated devices */
    bool nearest; /* if no contender serves everything: search for the minimum capacity of those with the fewest failures */
    void (*progress)(void *context, const char *what, const char *label, uint64_t done, uint64_t all);
    void *progress_context; /* progress may be NULL */
} strata_comparison_t;

/* Replays one trace under every contender: A B C A B C ..., begun in this order. results[i] belongs to contender i, and nothing in it
 * but the host's time depends on how many threads there are. `follow` is called by several threads, for each contender by one;
 * `progress` by one at a time. E_UNSUPPORTED: only simulated devices can do that. */
strata_status_t strata_compare(const strata_comparison_t *comparison, const strata_trace_t *trace, strata_run_result_t *results);
/* The same of a trace that is still read: the first repeat of a run goes on with it, as far as that can be. Nobody follows or checks, all
 * devices are simulated (strata_compare_may_feed()). The feed ends with it; *trace is the whole trace, the caller's, NULL: the file is
 * wrong. */
strata_status_t strata_compare_feed(const strata_comparison_t *comparison, strata_trace_feed_t *feed, strata_trace_t **trace,
                                    strata_run_result_t *results);
bool strata_compare_may_feed(const strata_comparison_t *comparison);

#endif

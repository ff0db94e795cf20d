/* Replays traces under several candidates, in turn and repeatedly, and searches for their minimum capacities. */
#ifndef STRATA_REPLAY_COMPARE_H
#define STRATA_REPLAY_COMPARE_H

#include "lab/replay/run/run.h"

typedef struct strata_candidate {
    const char *label;
    const strata_strategy_t *strategy;
    strata_figure_options_t options;
    strata_target_t target;
} strata_candidate_t;

typedef struct strata_comparison {
    const strata_candidate_t *candidates;
    size_t candidate_count;
    strata_timeline_options_t timeline;
    uint32_t repeat; /* 1 .. STRATA_FIGURE_REPEATS */
    /* concurrent runs, at most one per candidate, on simulated devices only; 0 or 1 runs them one after another */
    uint32_t threads;
    bool check; /* the happens-before checker watches the first repeat; only on simulated devices */
    const strata_run_follow_t *follow; /* followers of each candidate's first repeat; may be NULL */
    bool smallest; /* also search for the minimum capacity of each candidate; only on simulated devices */
    bool nearest; /* if no candidate serves everything, search for the minimum capacity of those with the fewest failures */
    void (*progress)(void *context, const char *what, const char *label, uint64_t done, uint64_t all);
    void *progress_context; /* progress may be NULL */
} strata_comparison_t;

/* Replays one trace under every candidate in the order A B C A B C. results[i] belongs to candidate i. Except
 * for host times, the results do not depend on the number of threads. `follow` is called by several threads,
 * but for each candidate by one only. `progress` is called by one thread at a time. Fails with E_UNSUPPORTED
 * if an option needs simulated devices. */
strata_status_t strata_compare(const strata_comparison_t *comparison, const strata_trace_t *trace, strata_run_result_t *results);
/* Like strata_compare(), for a trace that is still being read. The first repeat of each run keeps up with the
 * reader as far as possible. Requires strata_compare_may_feed(). The call also finishes the feed. *trace is
 * the whole trace, which the caller owns, or NULL if the file is invalid. */
strata_status_t strata_compare_feed(const strata_comparison_t *comparison, strata_trace_feed_t *feed, strata_trace_t **trace,
                                    strata_run_result_t *results);
bool strata_compare_may_feed(const strata_comparison_t *comparison);

#endif

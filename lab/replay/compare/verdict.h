/* The verdict of a comparison on one trace: the strategies in order, and the finding in words.
 *
 * Strategies are compared by these criteria, in this order:
 * - It serves everything.
 * - Its program ends within 1 % of the earliest end.
 * - Its peak of device memory is lower.
 * - It is the preset strata.
 * - It was given first.
 *
 * If both fail, fewer failures are better, then a smaller capacity that serves everything. For traces without
 * device memory, the peak is that of pinned and host memory. If the device does not report its use, the peak
 * is that of the reserved bytes. */
#ifndef STRATA_REPLAY_VERDICT_H
#define STRATA_REPLAY_VERDICT_H

#include "lab/replay/compare/compare.h"

enum { STRATA_VERDICT_RUNS = 64, STRATA_VERDICT_TEXT = 4096 };

typedef struct strata_verdict_subject {
    const strata_trace_t *trace;
    const strata_run_result_t *results; /* one for each candidate, filled by strata_compare() */
    const strata_candidate_t *candidates; /* for advice about their options; NULL if there is to be none */
    const size_t *stands_for; /* from strata_candidates_same(); if NULL, each candidate represents itself */
    size_t count; /* 1 .. STRATA_VERDICT_RUNS */
} strata_verdict_subject_t;

typedef struct strata_verdict {
    size_t order[STRATA_VERDICT_RUNS]; /* candidates that represent themselves, best first */
    size_t count;
    bool requests; /* the trace requests memory; otherwise all strategies are equal */
    bool serves; /* the best candidate serves everything */
    /* if none serves everything, the minimum capacity with which the best does; STRATA_FIGURE_NULL if unknown */
    uint64_t needed_bytes;
    char text[STRATA_VERDICT_TEXT]; /* printable sentences; starts with the trace's name */
} strata_verdict_t;

void strata_verdict_make(const strata_verdict_subject_t *subject, strata_verdict_t *verdict);

#endif

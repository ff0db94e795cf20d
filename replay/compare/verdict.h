/* The verdict of a comparison on one trace: the strategies in their order, and the finding in words.
 *
 * A strategy is better than another if it serves everything and the other does not; of two that do, if its program ends within 1 % of
 * the earliest end and the other's does not; then if the device holds less at its peak. Ties prefer the preset strata, then the one
 * that was given first. Of strategies that fail, the one with fewer failures is better, then the one that needs less capacity. On
 * traces without device memory the peak is that of pinned and host memory. Where the device does not tell what it holds, the peak
 * is that of the reserved bytes. */
#ifndef STRATA_REPLAY_VERDICT_H
#define STRATA_REPLAY_VERDICT_H

#include "replay/run/run.h"

enum { STRATA_VERDICT_RUNS = 64, STRATA_VERDICT_TEXT = 4096 };

typedef struct strata_verdict_subject {
    const strata_trace_t *trace;
    const strata_run_result_t *results; /* one for each contender, finished by strata_compare() */
    const size_t *stands_for; /* strata_contenders_same(); NULL: each contender stands for itself */
    size_t count; /* 1 .. STRATA_VERDICT_RUNS */
} strata_verdict_subject_t;

typedef struct strata_verdict {
    size_t order[STRATA_VERDICT_RUNS]; /* contenders that stand for themselves, the best first */
    size_t count;
    bool requests; /* the trace asks for memory; if it does not, no strategy is better than another */
    bool serves; /* the best one serves everything */
    uint64_t needed_bytes; /* if none serves: the least capacity under which the best one does; STRATA_FIGURE_NULL: not known */
    char text[STRATA_VERDICT_TEXT]; /* sentences, printable; begins with the trace's name */
} strata_verdict_t;

void strata_verdict_make(const strata_verdict_subject_t *subject, strata_verdict_t *verdict);

#endif

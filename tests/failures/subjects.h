/* What failures are tried on: every layer of the registry in the stacks where it may stand, every preset, and each of them with
 * an option changed. Made at run time, so that a new layer, preset or option is among them. */
#ifndef STRATA_TESTS_FAILURES_SUBJECTS_H
#define STRATA_TESTS_FAILURES_SUBJECTS_H

#include "lab/conform/rig/rig.h"

enum { FAILING_SUBJECTS = 400, FAILING_LETTERS = 1000 };

#define FAILING_POOL "aside" /* of a few subjects */

typedef struct failing_subject {
    char name[96]; /* "auto_growth below stream_safe", "preset paddle" */
    char text[FAILING_LETTERS]; /* a strategy file, or a preset's name */
    strata_strategy_t *strategy;
} failing_subject_t;

typedef struct failing_subjects {
    failing_subject_t *list;
    size_t count;
} failing_subjects_t;

/* Those whose name holds STRATA_FAILURES_ONLY, where that is set. Fails the test if a layer or a preset has none. */
void failing_subjects_make(failing_subjects_t *subjects);
void failing_subjects_drop(failing_subjects_t *subjects);

#endif

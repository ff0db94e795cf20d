/* The results of a comparison and their provenance: the JSON of `strata compare`. */
#ifndef STRATA_REPLAY_FINDINGS_H
#define STRATA_REPLAY_FINDINGS_H

#include "lab/replay/compare/verdict.h"
#include "platform/sha256.h"

typedef struct strata_provenance_strategy {
    const char *label;
    const char *given; /* the name or path on the command line */
    char *text; /* the whole strategy as built, including values from --set */
    char sha256[STRATA_SHA256_TEXT]; /* of the text */
} strata_provenance_strategy_t;

typedef struct strata_provenance_trace {
    const char *name; /* the name in the figures */
    const char *path; /* the path on the command line */
    /* of the file as stored; empty if it is not a regular file, so that it can be read only once */
    char sha256[STRATA_SHA256_TEXT];
} strata_provenance_trace_t;

typedef struct strata_provenance {
    const char *command; /* as a shell command line */
    const char *device; /* as given; NULL if the strategies name it */
    uint64_t capacity; /* as given; 0 if it is the device's */
    uint64_t seed; /* of --host-jitter, or 0 if unused */
    strata_provenance_strategy_t *strategies;
    size_t strategy_count;
    strata_provenance_trace_t *traces;
    size_t trace_count;
} strata_provenance_t;

/* A trace that was left out, with the reason. */
typedef struct strata_trace_error {
    const char *path;
    strata_error_t error;
} strata_trace_error_t;

/* `runs` and `stands_for` are indexed by trace, then by candidate; `verdicts` and `next` by trace. */
typedef struct strata_findings {
    const strata_figures_t *runs;
    size_t candidates, traces;
    size_t *stands_for; /* NULL if there are no verdicts */
    strata_verdict_t *verdicts; /* NULL if there are none */
    char **next; /* the command that shows the memory of the best strategy; NULL if there is none */
    strata_provenance_t *provenance; /* NULL if unknown */
    const strata_trace_error_t *errors;
    size_t error_count;
    bool searched; /* the minimum capacity was searched for every run */
} strata_findings_t;

/* Writes {"schema": 1, ..., "runs": [{...}]}. Unknown or empty members are left out. docs/fields.md describes them. */
strata_status_t strata_findings_json(strata_output_t *out, const strata_findings_t *findings);

#endif

/* Everything that a comparison found, and what it was made from: the JSON of `strata compare`. */
#ifndef STRATA_REPLAY_FINDINGS_H
#define STRATA_REPLAY_FINDINGS_H

#include "platform/sha256.h"
#include "replay/compare/verdict.h"

typedef struct strata_provenance_strategy {
    const char *label;
    const char *given; /* the name or path on the command line */
    char *text; /* the whole strategy as built, values set by hand included */
    char sha256[STRATA_SHA256_TEXT]; /* of the text */
} strata_provenance_strategy_t;

typedef struct strata_provenance_trace {
    const char *name; /* as in the figures */
    const char *path; /* as given */
    char sha256[STRATA_SHA256_TEXT]; /* of the file as it is stored; "": it is no regular file, and was read only once */
} strata_provenance_trace_t;

typedef struct strata_provenance {
    const char *command; /* a line for a shell */
    const char *device; /* as given; NULL: as the strategies say */
    uint64_t capacity; /* as given; 0: as the device says */
    uint64_t seed; /* of the host's hold-ups; 0: none is used */
    strata_provenance_strategy_t *strategies;
    size_t strategy_count;
    strata_provenance_trace_t *traces;
    size_t trace_count;
} strata_provenance_t;

/* A trace that was left out, and why. */
typedef struct strata_trace_error {
    const char *path;
    strata_error_t error;
} strata_trace_error_t;

/* `runs` and `stands_for` are trace by trace, contender by contender; `verdicts` and `next` have one for each trace. */
typedef struct strata_findings {
    const strata_figures_t *runs;
    size_t contenders, traces;
    size_t *stands_for; /* NULL: without verdicts */
    strata_verdict_t *verdicts; /* NULL: none */
    char **next; /* the line that shows where the memory of the best went; NULL where there is none */
    strata_provenance_t *provenance; /* NULL: unknown */
    const strata_trace_error_t *errors;
    size_t error_count;
    bool searched; /* the least capacity was searched for every run */
} strata_findings_t;

/* {"schema": 1, ..., "runs": [{...}]}: members that are unknown or empty are left out. docs/fields.md describes them. */
strata_status_t strata_findings_json(strata_output_t *out, const strata_findings_t *findings);

#endif

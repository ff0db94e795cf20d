/* The strategies of a comparison, loaded and labeled, each with its device. */
#ifndef STRATA_TOOLS_CANDIDATES_H
#define STRATA_TOOLS_CANDIDATES_H

#include "lab/replay/compare/compare.h"
#include "lab/tools/options/arguments.h"

typedef struct strata_candidates {
    strata_candidate_t *all;
    const char *const *given; /* the name or path of each on the command line */
    size_t count;
    void *memory;
} strata_candidates_t;

/* Loads the strategies. Reports on standard error if a requested GPU is simulated. Also reports the presets
 * of `--strategy all` that are left out because the device cannot run them. On failure everything is
 * released. */
strata_status_t strata_candidates_load(const strata_arguments_t *arguments, strata_candidates_t *candidates);
void strata_candidates_delete(strata_candidates_t *candidates);

#endif

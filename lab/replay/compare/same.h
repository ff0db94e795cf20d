/* Finds strategies that cannot differ on a trace because their stacks for it are equal. */
#ifndef STRATA_REPLAY_SAME_H
#define STRATA_REPLAY_SAME_H

#include "lab/replay/compare/compare.h"

/* Maps each candidate to its representative, which is itself or another with equal stacks on an equal device.
 * The preset strata represents its equals, otherwise the first candidate does. Fails with E_HOST_MEMORY. */
strata_status_t strata_candidates_same(const strata_candidate_t *candidates, size_t count, const strata_trace_t *trace,
                                       size_t *stands_for);
/* Returns true if this strategy wins ties, which is the default one. */
bool strata_strategy_is_preferred(const char *name);

#endif

/* Strategies that cannot differ on a trace, because their stacks for what it uses are equal. */
#ifndef STRATA_REPLAY_SAME_H
#define STRATA_REPLAY_SAME_H

#include "replay/compare/compare.h"

/* For each contender the one that stands for it: itself, or another with equal stacks on an equal device. Of equal ones the preset
 * strata stands for the others, else the first. E_HOST_MEMORY. */
strata_status_t strata_contenders_same(const strata_contender_t *contenders, size_t count, const strata_trace_t *trace,
                                       size_t *stands_for);
/* Returns true if ties prefer this strategy, which is the default. */
bool strata_strategy_is_preferred(const char *name);

#endif

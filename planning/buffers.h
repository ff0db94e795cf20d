/* What the caller of a planner may give. */
#ifndef STRATA_PLANNING_BUFFERS_H
#define STRATA_PLANNING_BUFFERS_H

#include "strata/plan.h"

/* E_INVALID, E_LIMIT. After it no sum of sizes, alignments and a fixed offset overflows. */
strata_status_t strata_buffers_check(const strata_plan_buffer_t *buffers, size_t count);

/* Whether it needs memory at all. */
static inline bool strata_buffer_counts(const strata_plan_buffer_t *b) { return b->size != 0 && !(b->flags & STRATA_PLAN_REMOVED); }

#endif

/* What the caller of a planner may give. */
#ifndef STRATA_PLANNING_BUFFERS_H
#define STRATA_PLANNING_BUFFERS_H

#include "strata/plan.h"

/* No planner places a buffer at this offset or above it: a fixed offset is at most 2^60, and all sizes and alignments together are at
 * most 2^61. So a file with a plan must allow offsets up to here, or a plan could be written and not read again. */
#define STRATA_PLAN_OFFSET_LIMIT (UINT64_C(1) << 62)

/* E_INVALID, E_LIMIT. After it no sum of sizes, alignments and a fixed offset overflows. */
strata_status_t strata_buffers_check(const strata_plan_buffer_t *buffers, size_t count);

/* Whether it needs memory at all. */
static inline bool strata_buffer_counts(const strata_plan_buffer_t *b) { return b->size != 0 && !(b->flags & STRATA_PLAN_REMOVED); }

#endif

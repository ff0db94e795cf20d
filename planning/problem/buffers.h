/* Checks the buffers that the caller of a planner passes. */
#ifndef STRATA_PLANNING_BUFFERS_H
#define STRATA_PLANNING_BUFFERS_H

#include "strata/plan.h"

/* No planner places a buffer at this offset or above. A fixed offset is at most 2^60, and all sizes and
 * alignments together are at most 2^61. A plan file must allow offsets up to this limit, or a written
 * plan might not be readable. */
#define STRATA_PLAN_OFFSET_LIMIT (UINT64_C(1) << 62)

/* Returns E_INVALID or E_LIMIT for invalid buffers. After success, no sum of sizes, alignments and a
 * fixed offset overflows. */
strata_status_t strata_buffers_check(const strata_plan_buffer_t *buffers, size_t count);

/* Returns true if the buffer needs memory. */
static inline bool strata_buffer_counts(const strata_plan_buffer_t *b) { return b->size != 0 && !(b->flags & STRATA_PLAN_REMOVED); }

#endif

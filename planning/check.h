/* The validator (include/strata/plan.h), for those who show whom it found. */
#ifndef STRATA_PLANNING_CHECK_H
#define STRATA_PLANNING_CHECK_H

#include "strata/plan.h"

/* strata_plan_check(); where two share bytes, `pair` (may be NULL) receives them. */
strata_status_t strata_plan_check_pair(const strata_plan_buffer_t *buffers, size_t count, const uint64_t *offsets, uint64_t *peak,
                                       size_t pair[2]);

#endif

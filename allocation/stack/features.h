/* State that features keep in every stack. `struct strata_stack` has one member for each struct, so that its
 * lock and its cache lines stay together. The comment of a struct names the files that own it and the lock
 * that guards it. */
#ifndef STRATA_ALLOCATION_FEATURES_H
#define STRATA_ALLOCATION_FEATURES_H

#include "platform/device.h"

/* The waits of patience (docs/recovery.md), by the device's clock. Owned by reclaim/patience.c, guarded by
 * the stack's lock. */
typedef struct strata_wait_history {
    uint64_t last_wait_at; /* when the last wait gave memory; 0 if never */
    uint64_t last_late_at; /* the same for the last wait that ended late */
    uint64_t budget_at, budget_ns; /* budget of waits with less work ahead than `depth`, at that time */
    uint32_t extra_depth; /* blocks that were added to `depth` */
} strata_wait_history_t;

#endif

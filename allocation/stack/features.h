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

/* Memory that idleness released from a stack, most of which is recalled when requests come again. */
typedef struct strata_trimmed {
    uint64_t bytes, to_recall; /* bytes released, and the part that is still to be recalled */
    uint64_t idle_before; /* idle bytes of the layer before the release */
    uint8_t layer; /* number of the cache through which they are recalled */
} strata_trimmed_t;

/* The release of idle memory. Owned by reclaim/idle.c and reclaim/recall.c, guarded by the stack's lock. */
typedef struct strata_idle_release {
    strata_trimmed_t trimmed;
    strata_handle_t event; /* recorded on its stream by the last look for idleness, or NULL */
} strata_idle_release_t;

#endif

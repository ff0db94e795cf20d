/* How many bytes are freed by their holder and still in use by other streams, by the clock: not until somebody polls. Only for
 * devices that know when an event passes (simulated ones); elsewhere bytes count until they are polled. */
#ifndef STRATA_ALLOCATION_METER_H
#define STRATA_ALLOCATION_METER_H

#include "platform/host/growing.h"
#include "platform/lock.h"
#include "platform/status.h"

typedef struct strata_meter_entry {
    uint64_t ready_at;
    uint64_t bytes;
} strata_meter_entry_t;

typedef struct strata_meter {
    strata_lock_t lock;
    strata_meter_entry_t *heap; /* the earliest first; in a range that grows */
    uint32_t count, capacity; /* at last */
    uint32_t room; /* entries that there is room for now */
    strata_growing_t range;
    uint64_t bytes, peak;
} strata_meter_t;

strata_status_t strata_meter_init(strata_meter_t *meter);
void strata_meter_destroy(strata_meter_t *meter);
/* At time `now` bytes are deferred until `ready_at`. May be called under a stack's lock. */
void strata_meter_add(strata_meter_t *meter, uint64_t now, uint64_t ready_at, uint64_t bytes);
uint64_t strata_meter_peak(strata_meter_t *meter);
/* The peak begins at what waits now, as far as that is known: what has passed meanwhile is taken off at the next call above. */
void strata_meter_reset_peak(strata_meter_t *meter);

#endif

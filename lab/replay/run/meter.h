/* How many bytes are freed by their owner and still in use by other streams, by the clock: not until somebody polls. Only for devices
 * that know when an event passes (simulated ones). For one thread. */
#ifndef STRATA_REPLAY_METER_H
#define STRATA_REPLAY_METER_H

#include "allocation/domain/domain.h"
#include "platform/host/growing.h"

typedef struct strata_meter_entry {
    uint64_t ready_at;
    uint64_t bytes;
} strata_meter_entry_t;

typedef struct strata_meter {
    strata_deferral_t base; /* first; a domain calls it under a stack's lock */
    strata_meter_entry_t *heap; /* the earliest first; in a range that grows */
    uint32_t count, capacity; /* in the end */
    uint32_t room; /* entries that there is room for now */
    strata_growing_t range;
    uint64_t bytes, peak;
} strata_meter_t;

/* E_HOST_MEMORY. All zero is a meter that was never begun. */
strata_status_t strata_meter_init(strata_meter_t *meter);
void strata_meter_destroy(strata_meter_t *meter);
/* The bytes deferred at `now`, which is no earlier than that of any call before. */
uint64_t strata_meter_bytes(strata_meter_t *meter, uint64_t now);

#endif

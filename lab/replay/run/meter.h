/* Measures the bytes that are freed by their owner and still in use by other streams. It follows the clock
 * and does not depend on polling. It needs simulated devices, where the time at which an event completes is
 * known in advance. For one thread. */
#ifndef STRATA_REPLAY_METER_H
#define STRATA_REPLAY_METER_H

#include "allocation/domain/domain.h"
#include "platform/host/growing.h"

typedef struct strata_meter_entry {
    uint64_t ready_at;
    uint64_t bytes;
} strata_meter_entry_t;

typedef struct strata_meter {
    strata_deferral_t base; /* first member; a domain calls it under a stack's lock */
    strata_meter_entry_t *heap; /* min-heap by time, in a range that grows */
    uint32_t count, capacity; /* `capacity` is the final maximum */
    uint32_t room; /* entries that fit now */
    strata_growing_t range;
    uint64_t bytes, peak;
} strata_meter_t;

/* Fails with E_HOST_MEMORY. A zeroed meter may be destroyed without being initialized. */
strata_status_t strata_meter_init(strata_meter_t *meter);
void strata_meter_destroy(strata_meter_t *meter);
/* Returns the bytes deferred at `now`, which must not be earlier than in any call before. */
uint64_t strata_meter_bytes(strata_meter_t *meter, uint64_t now);

#endif

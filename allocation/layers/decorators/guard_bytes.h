/* The bytes of a block as a host can see them: where they are, or a copy that the device makes of them. */
#ifndef STRATA_ALLOCATION_LAYER_GUARD_BYTES_H
#define STRATA_ALLOCATION_LAYER_GUARD_BYTES_H

#include "allocation/domain/domain.h"

typedef struct guard_bytes {
    strata_domain_t *domain;
    strata_stream_t stream; /* copies are made in its order, */
    bool named; /* if it has a name in this thread; else all work of the device is waited for */
    _Atomic uint64_t *staging; /* pinned memory that the last look left; 0: none */
} guard_bytes_t;

/* No lock is held. */

/* Whether there is a way to look at the bytes of a device's memory. */
bool strata_guard_sees(strata_device_t *device, uint64_t address, uint64_t size);
/* Where the first byte is that is not `byte`; `size`: there is none. False: nobody could look. The work that may write them is done. */
bool strata_guard_first_other(const guard_bytes_t *bytes, uint64_t address, uint8_t byte, uint64_t size, uint64_t *at);
/* Nobody looks any more. */
void strata_guard_end_staging(strata_device_t *device, _Atomic uint64_t *staging);

#endif

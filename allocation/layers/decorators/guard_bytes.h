/* Reads the bytes of a block on the host: in place, or in a copy that the device makes. */
#ifndef STRATA_ALLOCATION_LAYER_GUARD_BYTES_H
#define STRATA_ALLOCATION_LAYER_GUARD_BYTES_H

#include "allocation/domain/domain.h"

typedef struct guard_bytes {
    strata_domain_t *domain;
    strata_stream_t stream; /* copies are made in its order if `named` */
    bool named; /* `stream` is a valid name in this thread; otherwise each check waits for all work of the device */
    _Atomic uint64_t *staging; /* pinned memory that the last check left, or 0 */
} guard_bytes_t;

/* For all functions below: no lock is held. */

/* Returns whether the bytes of a device's memory can be read. */
bool strata_guard_sees(strata_device_t *device, uint64_t address, uint64_t size);
/* Sets *at to the offset of the first byte that is not `byte`, or to `size` if there is none. Returns false
 * if the bytes could not be read. The work that may write them must be complete. */
bool strata_guard_first_other(const guard_bytes_t *bytes, uint64_t address, uint8_t byte, uint64_t size, uint64_t *at);
/* Frees the staging memory after the last check. */
void strata_guard_end_staging(strata_device_t *device, _Atomic uint64_t *staging);

#endif

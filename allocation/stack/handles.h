/* What a source of physical handles can do besides serving: for peer GPUs, other processes, and those who register memory with the
 * hardware. A handle that somebody outside relies on is *held*: it is not moved; a registered one does not go back either. */
#ifndef STRATA_ALLOCATION_HANDLES_H
#define STRATA_ALLOCATION_HANDLES_H

#include "allocation/stack/stack.h"
#include "platform/device.h"

typedef enum strata_hold {
    STRATA_HOLD_EXPORTED, /* from now on, as long as the handle exists */
    STRATA_HOLD_REGISTERED /* until as many strata_handles_t.let_go */
} strata_hold_t;

/* A handle, and where it lies. */
typedef struct strata_held {
    uint64_t address, size;
    uint64_t number; /* no other handle of the process has it */
    strata_physical_t physical;
} strata_held_t;

typedef struct strata_handles {
    /* Memory of the layer can be used by every peer of the domain (strata_domain_t.peers), which has just been given one more. A
     * failure: by those that it had before, at least. */
    strata_status_t (*add_peers)(strata_layer_t *self);
    /* Holds the handles that [address, address + size) lies in, and tells them in order of addresses. E_UNKNOWN_POINTER: the range
     * is not the layer's. E_LIMIT: they are more than `capacity`; *count says how many. Then nothing is held. */
    strata_status_t (*hold)(strata_layer_t *self, strata_hold_t hold, uint64_t address, uint64_t size, strata_held_t *held,
                            uint32_t capacity, uint32_t *count);
    /* Ends one such hold. E_UNKNOWN_POINTER: there is none. */
    strata_status_t (*let_go)(strata_layer_t *self, strata_hold_t hold, uint64_t address, uint64_t size);
} strata_handles_t;
/* No lock is held in any of them. */

#endif

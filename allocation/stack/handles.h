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

/* What a source does while its memory is taken away from it and brought back (docs/sharing.md). One thread at a time chooses, does one
 * of the two, and settles. Frees of what is chosen wait for that. */
typedef struct strata_pausing {
    /* Marks the handles that [address, address + size) lies in: one that is wanted, or one that stays whatever else is wanted of it.
     * False: the range is not the layer's. */
    bool (*mark)(strata_layer_t *self, uint64_t address, uint64_t size, bool wanted);
    /* Chooses among the handles that have memory (`away`: that are paused) all, or those that are wanted and do not stay. Returns
     * how many. E_BUSY, where they have memory: somebody outside relies on one of them. Then none is chosen. */
    strata_status_t (*choose)(strata_layer_t *self, bool away, bool marked, uint32_t *count);
    /* The chosen one at *from or above, and *from is after it. False: there is none. */
    bool (*next)(strata_layer_t *self, uint64_t *from, strata_held_t *handle);
    /* Whether some of a range is chosen; whether the handle of that number is paused. */
    bool (*chose)(strata_layer_t *self, uint64_t address, uint64_t size);
    bool (*is_away)(strata_layer_t *self, uint64_t address, uint64_t number);
    /* Their memory goes to the device: no work uses it. What the device does not take is as it was. Returns the bytes. */
    uint64_t (*take)(strata_layer_t *self);
    /* Their memory comes, where it was. A failure: all of it has gone again. */
    strata_status_t (*bring)(strata_layer_t *self);
    void (*undo)(strata_layer_t *self); /* what was brought goes again */
    /* Nothing is chosen or marked any more. `back`: what was brought is in use from now on. */
    void (*settle)(strata_layer_t *self, bool back);
    /* How many are paused. */
    uint32_t (*count_away)(strata_layer_t *self);
} strata_pausing_t;

typedef struct strata_handles {
    /* Memory of the layer can be used by every peer of the domain (strata_domain_t.peers), which has just been given one more. A
     * failure: by those that it had before, at least. */
    strata_status_t (*add_peers)(strata_layer_t *self);
    /* Holds the handles that [address, address + size) lies in, and tells them in order of addresses. E_UNKNOWN_POINTER: the range
     * is not the layer's. E_LIMIT: they are more than `capacity`; *count says how many. E_BUSY: one is paused. Then nothing is
     * held. */
    strata_status_t (*hold)(strata_layer_t *self, strata_hold_t hold, uint64_t address, uint64_t size, strata_held_t *held,
                            uint32_t capacity, uint32_t *count);
    /* Ends one such hold. E_UNKNOWN_POINTER: there is none. */
    strata_status_t (*let_go)(strata_layer_t *self, strata_hold_t hold, uint64_t address, uint64_t size);
    /* From now on handles lie side by side where a request names no place. Before the first request. E_UNSUPPORTED: each
     * block has to lie in one handle. E_HOST_MEMORY. */
    strata_status_t (*lay_together)(strata_layer_t *self);
    const strata_pausing_t *pausing;
} strata_handles_t;
/* No lock is held in any of them. */

#endif

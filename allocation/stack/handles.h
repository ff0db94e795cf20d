/* Operations of a source of physical handles besides serving: for peer GPUs, other processes, and programs that register memory
 * with hardware. A handle with a user outside the library is *held*: it is not moved. A registered one is not released either. */
#ifndef STRATA_ALLOCATION_HANDLES_H
#define STRATA_ALLOCATION_HANDLES_H

#include "allocation/stack/stack.h"
#include "platform/device.h"

typedef enum strata_hold {
    STRATA_HOLD_EXPORTED, /* for as long as the handle exists */
    STRATA_HOLD_REGISTERED /* until each hold is ended by strata_handles_t.unhold */
} strata_hold_t;

/* A handle and its address. */
typedef struct strata_held {
    uint64_t address, size;
    uint64_t number; /* unique in the process */
    strata_physical_t physical;
} strata_held_t;

/* Operations that pause and resume the memory of a source (docs/sharing.md). One thread at a time calls choose,
 * then release or restore, then finish. Frees of chosen handles wait for finish. */
typedef struct strata_pausing {
    /* Marks the handles of [address, address + size) as `wanted`, or if that is false as staying, whatever other marks they have.
     * Returns false if the range is not the layer's. */
    bool (*mark)(strata_layer_t *self, uint64_t address, uint64_t size, bool wanted);
    /* Chooses among the handles that have memory, or with `paused` among the paused ones. It chooses all, or with `marked` those that
     * are `wanted` and do not stay. Sets *count. Returns E_BUSY and chooses none if one that has memory is held. */
    strata_status_t (*choose)(strata_layer_t *self, bool paused, bool marked, uint32_t *count);
    /* Returns the first chosen handle at *from or above, and moves *from past its address. Returns false if there is none. */
    bool (*next)(strata_layer_t *self, uint64_t *from, strata_held_t *handle);
    /* Return whether any handle of a range is chosen, and whether the handle with that number is paused. */
    bool (*is_chosen)(strata_layer_t *self, uint64_t address, uint64_t size);
    bool (*is_paused)(strata_layer_t *self, uint64_t address, uint64_t number);
    /* Releases the memory of the chosen handles to the device. No work may use it. Memory that the device does not take back still
     * counts as reserved. Returns the bytes released. */
    uint64_t (*release)(strata_layer_t *self);
    /* Creates the memory of the chosen handles again, at their addresses. If that fails, all of it is released again. */
    strata_status_t (*restore)(strata_layer_t *self);
    void (*undo)(strata_layer_t *self); /* releases the memory that restore created */
    /* Ends the step: no handle is chosen or marked any more. With `back`, the chosen ones are no longer paused. */
    void (*finish)(strata_layer_t *self, bool back);
    /* Returns the number of paused handles. */
    uint32_t (*count_paused)(strata_layer_t *self);
} strata_pausing_t;

typedef struct strata_handles {
    /* Gives every peer of the domain access to the layer's memory, after a peer was added to strata_domain_t.peers. On failure at
     * least the earlier peers have access. */
    strata_status_t (*add_peers)(strata_layer_t *self);
    /* Holds the handles of [address, address + size), and stores them in `held`, by address, and their number in *count. Holds
     * nothing on failure: E_UNKNOWN_POINTER if the range is not the layer's, E_LIMIT if *count exceeds `capacity`, E_BUSY if one
     * is paused. */
    strata_status_t (*hold)(strata_layer_t *self, strata_hold_t hold, uint64_t address, uint64_t size, strata_held_t *held,
                            uint32_t capacity, uint32_t *count);
    /* Ends one such hold. E_UNKNOWN_POINTER if there is none. */
    strata_status_t (*unhold)(strata_layer_t *self, strata_hold_t hold, uint64_t address, uint64_t size);
    /* Makes the source place handles next to each other unless a request has an address. Called before the first request.
     * E_UNSUPPORTED if each block must be in one handle. E_HOST_MEMORY. */
    strata_status_t (*place_adjacent)(strata_layer_t *self);
    const strata_pausing_t *pausing;
} strata_handles_t;
/* No lock is held in any of these calls. */

#endif

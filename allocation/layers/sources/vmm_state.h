/* The state that the files of vmm share.
 *
 *     vmm.c         the source: creates, moves and frees handles
 *     vmm_alias.c   secondary mappings of a handle that stays at its address
 *     vmm_places.c  handles next to each other in one range of addresses
 *     vmm_share.c   access of peer GPUs; exported and registered handles; queries of the cache above
 *     vmm_pause.c   memory that is released to the device for a time */
#ifndef STRATA_ALLOCATION_LAYER_VMM_STATE_H
#define STRATA_ALLOCATION_LAYER_VMM_STATE_H

#include "allocation/layers/sources/vmm.h"
#include "allocation/stack/handles.h"
#include "allocation/tables/order.h"

enum { STRATA_VMM_USERS_MAY_RUN, STRATA_VMM_USERS_ARE_DONE }; /* `pool` of a record */

typedef struct vmm_options {
    bool registrable;
} vmm_options_t;

/* A handle or an alias. A record's `user` is its number. */
typedef struct vmm_piece {
    uint32_t next; /* in the list of refused pieces, or in the free list of nodes */
    uint32_t slot; /* of its record, if the record waits for the piece's end; otherwise 0 */
    uint32_t of; /* for an alias: the piece with its handle, since it has none; otherwise 0 */
    bool mapped, own_range, counts; /* counts: its bytes are reserved */
    bool placed; /* it has a part of the layer's common range (vmm_places.c) */
    bool done; /* no work uses it */
    bool listed; /* in the order by address, because it is served or registered */
    bool marked, excluded; /* marks of a pause. Under the lock */
    _Atomic bool chosen; /* a pause or resume is in progress with it, and no other thread may end it. Changed under the lock */
    _Atomic bool paused; /* paused: not mapped, and its memory belongs to the device. Changed under the lock */
    uint32_t ending; /* aliases of its handle that a thread is ending. Under the lock */
    uint32_t peers; /* peers with access to the mapping, one bit each */
    _Atomic uint32_t exported, registered; /* counts of holds. Changed under the lock */
    _Atomic uint32_t aliases; /* of its handle, mapped or paused; it is not released before they end */
    strata_physical_t physical; /* 0 if there is none */
    uint64_t address, size;
    uint64_t number; /* of the handle, in the process */
    strata_order_link_t link; /* by address */
} vmm_piece_t;

typedef struct vmm_layer {
    strata_layer_t base;
    strata_nodes_t pieces; /* guarded by the lock; a piece belongs to the owner of its record */
    strata_order_t order; /* the listed pieces, by address. Under the lock */
    bool adjacent; /* handles are next to each other unless a request has an address. Written before the first request */
    uint64_t room, room_size; /* the common range; 0 before the first request. Under the lock */
    strata_nodes_t parts; /* the parts of that range that handles use. Under the lock */
    strata_order_t parts_order; /* these parts, by address */
    uint64_t granularity;
    strata_condition_t settled; /* signals that no piece is chosen, or that the end of an alias has completed */
    uint32_t first_refused; /* the first piece that the device refused to take back; each release offers it again. Under the lock */
    _Atomic uint64_t handles, aliases, moved, ranges, exports, registrations;
} vmm_layer_t;

static inline strata_device_t *strata_vmm_device(const vmm_layer_t *self) { return self->base.domain->device; }
static inline vmm_piece_t *strata_vmm_piece(const vmm_layer_t *self, uint32_t number) { return strata_node(&self->pieces, number); }
static inline void strata_vmm_lock(vmm_layer_t *self) { strata_stack_lock_own(self->base.stack); }
static inline void strata_vmm_unlock(vmm_layer_t *self) { strata_unlock(&self->base.stack->lock); }

/* ---- the order by address; the lock is held ---- */

void strata_vmm_list(vmm_layer_t *self, uint32_t number);
void strata_vmm_unlist(vmm_layer_t *self, uint32_t number);

/* Returns the piece that has the handle: for an alias its original, otherwise the piece itself. */
static inline vmm_piece_t *strata_vmm_handle_of(const vmm_layer_t *self, vmm_piece_t *piece) {
    return piece->of ? strata_vmm_piece(self, piece->of) : piece;
}

/* ---- handles next to each other; no lock is held ---- */

strata_status_t strata_vmm_place_adjacent(strata_layer_t *base);
/* Takes a gap of the range. E_NO_MEMORY if none is large enough. */
strata_status_t strata_vmm_reserve_gap(vmm_layer_t *self, uint64_t size, uint64_t *address);
/* Returns a gap once nothing is mapped there. */
void strata_vmm_release_gap(vmm_layer_t *self, uint64_t address);

/* ---- access; no lock is held ---- */

/* Gives the device and all of its peers access to a mapping. *peers receives their mask. */
strata_status_t strata_vmm_give_access(vmm_layer_t *self, uint64_t address, uint64_t size, uint32_t *peers);
/* After OK the lock is held, and all peers of the domain have access to the mapping. Peers that are added
 * later find the piece in the order. */
strata_status_t strata_vmm_lock_complete(vmm_layer_t *self, uint64_t address, uint64_t size, uint32_t *peers);

/* ---- the parts of a piece; no lock is held ---- */

/* Ends a handle or alias as far as the device allows. Returns true if nothing is left of it. */
bool strata_vmm_give_back(vmm_layer_t *self, uint32_t number);
strata_status_t strata_vmm_create_physical(vmm_layer_t *self, vmm_piece_t *piece);
/* Returns true if the handle was released. */
bool strata_vmm_release_physical(vmm_layer_t *self, vmm_piece_t *piece);
/* Returns the first piece of a range that pieces fill without a gap, and their count. Returns 0 if there is
 * a gap. The lock is held. */
uint32_t strata_vmm_find_range(vmm_layer_t *self, uint64_t address, uint64_t size, uint32_t *count);

/* Function tables of the layer type. */
extern const strata_handles_t strata_vmm_handles;
extern const strata_pausing_t strata_vmm_pausing;

#endif

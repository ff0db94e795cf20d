/* What the files of vmm share.
 *
 *     vmm.c         the source: handles come, move and go
 *     vmm_alias.c   further addresses of a handle that stays where it is
 *     vmm_places.c  handles side by side in one range of addresses
 *     vmm_share.c   access of peer GPUs; handles that somebody outside relies on; what the cache above asks
 *     vmm_pause.c   memory that goes to the device for a while
 */
#ifndef STRATA_ALLOCATION_LAYER_VMM_STATE_H
#define STRATA_ALLOCATION_LAYER_VMM_STATE_H

#include "allocation/layers/sources/vmm.h"
#include "allocation/stack/handles.h"
#include "allocation/tables/order.h"

enum { STRATA_VMM_USERS_MAY_RUN, STRATA_VMM_USERS_ARE_DONE }; /* `pool` of a record */

typedef struct vmm_options {
    bool registrable;
} vmm_options_t;

/* A handle, by the number in `user` of its record. */
typedef struct vmm_piece {
    uint32_t next; /* of the pieces that are left; of a node that nobody has the next one */
    uint32_t slot; /* of its record, if that waits for the piece's end; 0: none */
    uint32_t of; /* this is an alias of that piece's handle, and has none of its own; 0: it is none */
    bool mapped, own_range, counts; /* counts: its bytes are reserved */
    bool placed; /* it has a part of the layer's range, beside other handles (vmm_places.c) */
    bool done; /* no work uses it */
    bool listed; /* in the order by address: it is served, or registered */
    bool wanted, stays; /* marks of a pause. Under the lock */
    _Atomic bool chosen; /* a pause or a resume is under way with it: nobody else ends it. Changed under the lock */
    _Atomic bool away; /* paused: not mapped, and its memory is the device's. Changed under the lock */
    uint32_t peers; /* that have access to the mapping, a bit each */
    _Atomic uint32_t exported, registered; /* how often. Changed under the lock */
    _Atomic uint32_t aliases; /* of its handle, mapped or paused: it is not released before them */
    strata_physical_t physical; /* 0: none */
    uint64_t address, size;
    uint64_t number; /* of the handle, in the process */
    strata_order_link_t link; /* by address */
} vmm_piece_t;

typedef struct vmm_layer {
    strata_layer_t base;
    strata_nodes_t pieces; /* guarded by the lock; a piece belongs to whoever has its record */
    strata_order_t order; /* of those that are listed, by address. Under the lock */
    bool together; /* handles lie side by side unless a request names a place. Written before the first request */
    uint64_t room, room_size; /* the range for them; 0 until the first. Under the lock */
    strata_nodes_t parts; /* of that range, which handles have. Under the lock */
    strata_order_t parts_order; /* of these, by address */
    uint64_t granularity;
    strata_condition_t settled; /* nothing is chosen any more */
    uint32_t left; /* the first piece that the device did not take back; each release offers it again. Under the lock */
    _Atomic uint64_t handles, aliases, moved, ranges, exports, registrations;
} vmm_layer_t;

static inline strata_device_t *strata_vmm_device(const vmm_layer_t *self) { return self->base.domain->device; }
static inline vmm_piece_t *strata_vmm_piece(const vmm_layer_t *self, uint32_t number) { return strata_node(&self->pieces, number); }
static inline void strata_vmm_lock(vmm_layer_t *self) { strata_stack_take(self->base.stack); }
static inline void strata_vmm_unlock(vmm_layer_t *self) { strata_unlock(&self->base.stack->lock); }

/* ---- the order by address; the lock is held ---- */

void strata_vmm_list(vmm_layer_t *self, uint32_t number);
void strata_vmm_unlist(vmm_layer_t *self, uint32_t number);

/* The piece that has the handle: itself, but for an alias. */
static inline vmm_piece_t *strata_vmm_handle_of(const vmm_layer_t *self, vmm_piece_t *piece) {
    return piece->of ? strata_vmm_piece(self, piece->of) : piece;
}

/* An alias is no more; nothing for other pieces. */
static inline void strata_vmm_forget_alias(vmm_layer_t *self, const vmm_piece_t *piece) {
    if (piece->of) atomic_fetch_sub(&strata_vmm_piece(self, piece->of)->aliases, 1);
}

/* ---- handles side by side; no lock is held ---- */

strata_status_t strata_vmm_lay_together(strata_layer_t *base);
/* A gap of the range, from now on taken. E_NO_MEMORY: none is large enough. */
strata_status_t strata_vmm_take_place(vmm_layer_t *self, uint64_t size, uint64_t *address);
/* Nothing is mapped there any more. */
void strata_vmm_give_place(vmm_layer_t *self, uint64_t address);

/* ---- access; no lock is held ---- */

/* The device and all of its peers may use a mapping; *peers receives who. */
strata_status_t strata_vmm_give_access(vmm_layer_t *self, uint64_t address, uint64_t size, uint32_t *peers);
/* The lock is held after OK, and then all peers of the domain have access to the mapping: whoever comes later finds the piece in
 * the order. */
strata_status_t strata_vmm_lock_complete(vmm_layer_t *self, uint64_t address, uint64_t size, uint32_t *peers);

/* ---- what a pause does with pieces; no lock is held ---- */

strata_status_t strata_vmm_create_physical(vmm_layer_t *self, vmm_piece_t *piece);
/* True: it is gone. */
bool strata_vmm_release_physical(vmm_layer_t *self, vmm_piece_t *piece);
/* The first piece of a range that pieces fill without a gap, and how many they are; 0: it is not filled. The lock is held. */
uint32_t strata_vmm_find_range(vmm_layer_t *self, uint64_t address, uint64_t size, uint32_t *count);

/* Of the type. */
extern const strata_handles_t strata_vmm_handles;
extern const strata_pausing_t strata_vmm_pausing;

#endif

/* Access of peer GPUs, and handles that are held because they are exported or registered.
 *
 * A peer that is added while a handle is being mapped is not missed. The domain first sets the peer, and
 * then gives access to all pieces in the order. A piece enters the order only once its mapping has access
 * for all peers of the domain (lock_complete). */
#include "allocation/layers/sources/vmm_state.h"

enum { DEVICES = 32 };

/* ---- the order by address ---- */

void strata_vmm_list(vmm_layer_t *self, uint32_t number) {
    vmm_piece_t *piece = strata_vmm_piece(self, number);
    strata_order_add(&self->order, number, &(strata_order_key_t){piece->address, number, 0});
    piece->listed = true;
}

void strata_vmm_unlist(vmm_layer_t *self, uint32_t number) {
    vmm_piece_t *piece = strata_vmm_piece(self, number);
    if (!piece->listed) return;
    strata_order_remove(&self->order, number);
    piece->listed = false;
}

/* ---- peers ---- */

strata_status_t strata_vmm_give_access(vmm_layer_t *self, uint64_t address, uint64_t size, uint32_t *peers) {
    uint32_t list[DEVICES], mask = atomic_load(&self->base.domain->peers), count = 0;
    for (uint32_t i = 0; i < DEVICES; i++)
        if (mask & UINT32_C(1) << i) list[count++] = i;
    strata_status_t status = strata_device_set_access(strata_vmm_device(self), address, size, count ? list : NULL, count);
    if (status == STRATA_OK) *peers = mask;
    return status;
}

strata_status_t strata_vmm_lock_complete(vmm_layer_t *self, uint64_t address, uint64_t size, uint32_t *peers) {
    for (;;) {
        strata_vmm_lock(self);
        if ((atomic_load(&self->base.domain->peers) & ~*peers) == 0) return STRATA_OK;
        strata_vmm_unlock(self);
        strata_status_t status = strata_vmm_give_access(self, address, size, peers);
        if (status != STRATA_OK) return status;
    }
}

/* A paused piece has no mapping. The resume gives access to all peers. */
static bool lacks(const vmm_piece_t *piece, uint32_t mask) { return piece->mapped && (mask & ~piece->peers) != 0; }

/* Finds the next piece in the order, from *address on, that lacks a peer. Returns false if there is none. */
static bool next_lacking(vmm_layer_t *self, uint64_t *address, strata_held_t *found) {
    strata_vmm_lock(self);
    const strata_order_key_t key = {*address, 0, 0};
    uint32_t number = strata_order_from(&self->order, &key), mask = atomic_load(&self->base.domain->peers);
    while (number && !lacks(strata_vmm_piece(self, number), mask)) number = strata_order_next(&self->order, number);
    if (number) {
        const vmm_piece_t *piece = strata_vmm_piece(self, number);
        *found = (strata_held_t){piece->address, piece->size, piece->number, piece->physical};
        *address = piece->address + 1;
    }
    strata_vmm_unlock(self);
    return number != 0;
}

/* Returns the piece of a handle if it is still at its address, or 0 if it has moved, ended, or is paused.
 * The lock is held. */
static uint32_t still_there(vmm_layer_t *self, const strata_held_t *found) {
    const strata_order_key_t key = {found->address, 0, 0};
    uint32_t number = strata_order_from(&self->order, &key);
    const vmm_piece_t *piece = strata_vmm_piece(self, number);
    return number && piece->number == found->number && piece->mapped ? number : 0;
}

/* A thread that moved a piece in between has already seen the new peer. So a refusal counts only if the
 * piece has not moved. */
static strata_status_t add_peers(strata_layer_t *base) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    strata_held_t found;
    uint64_t address = 0;
    while (next_lacking(self, &address, &found)) {
        uint32_t peers;
        strata_status_t status = strata_vmm_give_access(self, found.address, found.size, &peers);
        strata_vmm_lock(self);
        uint32_t number = still_there(self, &found);
        if (number && status == STRATA_OK) strata_vmm_piece(self, number)->peers = peers;
        strata_vmm_unlock(self);
        if (number && status != STRATA_OK) return status;
    }
    return STRATA_OK;
}

/* ---- holding handles ---- */

uint32_t strata_vmm_find_range(vmm_layer_t *self, uint64_t address, uint64_t size, uint32_t *count) {
    const strata_order_key_t key = {address, UINT64_MAX, 0};
    uint32_t first = strata_order_before(&self->order, &key);
    uint64_t at = first ? strata_vmm_piece(self, first)->address : 0;
    *count = 0;
    for (uint32_t number = first; number && strata_vmm_piece(self, number)->address == at;
         number = strata_order_next(&self->order, number)) {
        at += strata_vmm_piece(self, number)->size;
        if (at <= address) return 0;
        ++*count;
        if (at - address >= size) return first;
    }
    return 0;
}

static strata_status_t not_ours(void) {
    return strata_fail(STRATA_E_UNKNOWN_POINTER, 0, "vmm: the memory is not in handles of this source");
}

static _Atomic uint32_t *counter(vmm_piece_t *piece, strata_hold_t hold) {
    return hold == STRATA_HOLD_EXPORTED ? &piece->exported : &piece->registered;
}

/* A hold of an alias also holds its handle. */
static void change(vmm_layer_t *self, vmm_piece_t *piece, strata_hold_t hold, uint32_t by) {
    atomic_fetch_add(counter(piece, hold), by);
    if (piece->of) atomic_fetch_add(counter(strata_vmm_handle_of(self, piece), hold), by);
}

static void count_held(vmm_layer_t *self, strata_hold_t hold, uint64_t by) {
    atomic_fetch_add(hold == STRATA_HOLD_EXPORTED ? &self->exports : &self->registrations, by);
}

/* The lock is held. */
static bool is_paused(vmm_layer_t *self, uint32_t number, uint32_t count) {
    bool paused = false;
    for (; count > 0; count--, number = strata_order_next(&self->order, number)) {
        const vmm_piece_t *piece = strata_vmm_handle_of(self, strata_vmm_piece(self, number));
        paused = paused || piece->paused || piece->chosen;
    }
    return paused;
}

static strata_status_t hold_range(strata_layer_t *base, strata_hold_t hold, uint64_t address, uint64_t size, strata_held_t *held,
                                  uint32_t capacity, uint32_t *count) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    strata_vmm_lock(self);
    uint32_t number = strata_vmm_find_range(self, address, size, count);
    bool fits = number && *count <= capacity, busy = number && is_paused(self, number, *count);
    if (busy) fits = false;
    for (uint32_t i = 0; fits && i < *count; i++, number = strata_order_next(&self->order, number)) {
        vmm_piece_t *piece = strata_vmm_piece(self, number);
        change(self, piece, hold, 1);
        held[i] = (strata_held_t){piece->address, piece->size, piece->number, strata_vmm_handle_of(self, piece)->physical};
    }
    strata_vmm_unlock(self);
    if (fits) count_held(self, hold, *count);
    else if (busy) return strata_fail(STRATA_E_BUSY, 0, "vmm: the memory is paused; call strata_resume() first");
    else if (number == 0) return not_ours();
    else return strata_fail(STRATA_E_LIMIT, 0, "the memory spans %u handles, and the maximum is %u", *count, capacity);
    return STRATA_OK;
}

static strata_status_t unhold(strata_layer_t *base, strata_hold_t hold, uint64_t address, uint64_t size) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    uint32_t count;
    strata_vmm_lock(self);
    uint32_t first = strata_vmm_find_range(self, address, size, &count), number = first, held = 0;
    for (uint32_t i = 0; first && i < count; i++, number = strata_order_next(&self->order, number))
        held += atomic_load(counter(strata_vmm_piece(self, number), hold)) > 0;
    bool all = first && held == count;
    number = first;
    for (uint32_t i = 0; all && i < count; i++, number = strata_order_next(&self->order, number))
        change(self, strata_vmm_piece(self, number), hold, UINT32_MAX);
    strata_vmm_unlock(self);
    if (!all) return not_ours();
    count_held(self, hold, -(uint64_t)count);
    return STRATA_OK;
}

const strata_handles_t strata_vmm_handles = {.add_peers = add_peers,
                                             .hold = hold_range,
                                             .unhold = unhold,
                                             .place_adjacent = strata_vmm_place_adjacent,
                                             .pausing = &strata_vmm_pausing};

/* ---- functions for the cache above ---- */

strata_status_t strata_vmm_find(const strata_layer_t *cache, strata_layer_t **vmm) {
    const char *name = cache->type->name;
    strata_layer_t *layer = cache->below[0];
    while (layer->type->role == STRATA_DECORATOR) layer = layer->below[0];
    if (layer->type != &strata_vmm_type)
        return strata_fail(STRATA_E_STRATEGY, 0, "%s needs vmm below it, with no router between them", name);
    if (((const vmm_options_t *)layer->options)->registrable)
        return strata_fail(
            STRATA_E_STRATEGY, 0,
            "blocks of %s cross handles, but vmm.registrable keeps each block in one; write auto_growth above vmm instead", name);
    *vmm = layer;
    return STRATA_OK;
}

static bool made_here(const strata_layer_t *vmm, const strata_record_t *chunk) {
    return chunk->home == vmm->stack->number && strata_record_maker_number(chunk) == vmm->number && !strata_record_inner(chunk);
}

bool strata_vmm_may_move(const strata_layer_t *vmm, const strata_record_t *chunk) {
    if (!made_here(vmm, chunk)) return false;
    const vmm_piece_t *piece = strata_vmm_piece((const vmm_layer_t *)vmm, chunk->user);
    if (piece->paused || piece->chosen) return false;
    return atomic_load(&piece->exported) == 0 && atomic_load(&piece->registered) == 0;
}

bool strata_vmm_may_free(const strata_layer_t *vmm, const strata_record_t *chunk) {
    return !made_here(vmm, chunk) || atomic_load(&strata_vmm_piece((const vmm_layer_t *)vmm, chunk->user)->registered) == 0;
}

uint64_t strata_vmm_granularity(const strata_layer_t *vmm) { return ((const vmm_layer_t *)vmm)->granularity; }

void strata_vmm_note_done(const strata_layer_t *vmm, strata_record_t *chunk) {
    if (made_here(vmm, chunk)) chunk->pool = STRATA_VMM_USERS_ARE_DONE;
}

void strata_vmm_free_chunks(strata_layer_t *vmm, strata_record_t *const *chunks, uint32_t count, bool done) {
    for (uint32_t i = 0; i < count; i++) {
        if (done) strata_vmm_note_done(vmm, chunks[i]);
        strata_chunk_free(chunks[i]);
    }
}

/* Pauses handles: their memory is released to the device for a time, and created again at the same
 * addresses.
 *
 * Until it settles, a pause or resume owns its chosen pieces exclusively: they are neither moved nor held,
 * and their frees wait. Other threads read only `mapped`, `peers` and the marks of such a piece, so these
 * change under the lock. A paused piece keeps its record, its addresses and its place in the order, and its
 * aliases are paused with it. If the device refuses a step, the piece records the parts that exist, and the
 * next step continues from there. */
#include "allocation/layers/sources/vmm_state.h"
#include "allocation/report/outcome.h"

static vmm_layer_t *self_of(strata_layer_t *base) { return (vmm_layer_t *)base; }

#define EACH_LISTED(self, number)                                                                                                  \
    for (uint32_t number = first_listed(self); number; number = strata_order_next(&(self)->order, number))

static uint32_t first_listed(vmm_layer_t *self) {
    const strata_order_key_t lowest = {0, 0, 0};
    return strata_order_from(&self->order, &lowest);
}

/* ---- choosing pieces ---- */

static bool mark(strata_layer_t *base, uint64_t address, uint64_t size, bool wanted) {
    vmm_layer_t *self = self_of(base);
    uint32_t count;
    strata_vmm_lock(self);
    uint32_t number = strata_vmm_find_range(self, address, size, &count);
    bool found = number != 0;
    for (; number && count > 0; count--, number = strata_order_next(&self->order, number)) {
        vmm_piece_t *piece = strata_vmm_handle_of(self, strata_vmm_piece(self, number));
        *(wanted ? &piece->marked : &piece->excluded) = true;
    }
    strata_vmm_unlock(self);
    return found;
}

static bool is_meant(const vmm_piece_t *piece, bool paused, bool marked) {
    return piece->paused == paused && (paused || piece->counts) && (!marked || (piece->marked && !piece->excluded));
}

/* The lock is held. */
static vmm_piece_t *first_held(vmm_layer_t *self, bool marked) {
    EACH_LISTED(self, number) {
        vmm_piece_t *piece = strata_vmm_piece(self, number);
        if (is_meant(piece, false, marked) && (atomic_load(&piece->exported) > 0 || atomic_load(&piece->registered) > 0))
            return piece;
    }
    return NULL;
}

static strata_status_t choose(strata_layer_t *base, bool paused, bool marked, uint32_t *count) {
    vmm_layer_t *self = self_of(base);
    *count = 0;
    strata_vmm_lock(self);
    const vmm_piece_t *held = paused ? NULL : first_held(self, marked);
    uint64_t address = held ? held->address : 0;
    bool exported = held && atomic_load(&held->exported) > 0;
    if (!held) {
        EACH_LISTED(self, number) {
            vmm_piece_t *piece = strata_vmm_piece(self, number);
            piece->chosen = is_meant(piece, paused, marked);
            *count += piece->chosen;
        }
    }
    strata_vmm_unlock(self);
    if (!held) return STRATA_OK;
    return strata_fail(STRATA_E_BUSY, 0, "the memory at 0x%llx %s", (unsigned long long)address,
                       exported ? "was exported, and other processes may use it as long as it exists"
                                : "is registered; call strata_unregister() first");
}

static bool next_chosen(strata_layer_t *base, uint64_t *from, strata_held_t *handle) {
    vmm_layer_t *self = self_of(base);
    const strata_order_key_t key = {*from, 0, 0};
    strata_vmm_lock(self);
    uint32_t number = strata_order_from(&self->order, &key);
    while (number && !strata_vmm_piece(self, number)->chosen) number = strata_order_next(&self->order, number);
    if (number) {
        const vmm_piece_t *piece = strata_vmm_piece(self, number);
        *handle = (strata_held_t){piece->address, piece->size, piece->number, piece->physical};
        *from = piece->address + 1;
    }
    strata_vmm_unlock(self);
    return number != 0;
}

static bool is_chosen(strata_layer_t *base, uint64_t address, uint64_t size) {
    vmm_layer_t *self = self_of(base);
    bool chosen = false;
    uint32_t count;
    strata_vmm_lock(self);
    uint32_t number = strata_vmm_find_range(self, address, size, &count);
    for (; number && count > 0; count--, number = strata_order_next(&self->order, number))
        chosen = chosen || strata_vmm_handle_of(self, strata_vmm_piece(self, number))->chosen;
    strata_vmm_unlock(self);
    return chosen;
}

static bool is_paused(strata_layer_t *base, uint64_t address, uint64_t handle) {
    vmm_layer_t *self = self_of(base);
    const strata_order_key_t key = {address, 0, 0};
    strata_vmm_lock(self);
    uint32_t number = strata_order_from(&self->order, &key);
    const vmm_piece_t *piece = strata_vmm_piece(self, number);
    bool paused = number && piece->address == address && piece->number == handle && piece->paused;
    strata_vmm_unlock(self);
    return paused;
}

static uint32_t count_paused(strata_layer_t *base) {
    vmm_layer_t *self = self_of(base);
    uint32_t count = 0;
    strata_vmm_lock(self);
    EACH_LISTED(self, number) count += strata_vmm_piece(self, number)->paused;
    strata_vmm_unlock(self);
    return count;
}

/* Returns the next chosen piece for a step that releases the lock, or 0 if there is none. */
static uint32_t each_chosen(vmm_layer_t *self, uint64_t *from) {
    const strata_order_key_t key = {*from, 0, 0};
    strata_vmm_lock(self);
    uint32_t number = strata_order_from(&self->order, &key);
    while (number && !strata_vmm_piece(self, number)->chosen) number = strata_order_next(&self->order, number);
    if (number) *from = strata_vmm_piece(self, number)->address + 1;
    strata_vmm_unlock(self);
    return number;
}

/* ---- pause ---- */

/* `mapped` is cleared before the mapping ends, so that no thread gives access to it. Returns false if the
 * device keeps the mapping. */
static bool unmap(vmm_layer_t *self, vmm_piece_t *piece) {
    strata_vmm_lock(self);
    piece->mapped = false;
    strata_vmm_unlock(self);
    if (strata_vmm_unmap(&self->base, piece->address, piece->size)) return true;
    strata_vmm_lock(self);
    piece->mapped = true;
    strata_vmm_unlock(self);
    return false;
}

/* Returns the next alias of a chosen handle, at *from or above, or 0 if there is none. No thread makes or
 * ends aliases of a chosen handle. */
static uint32_t next_alias(vmm_layer_t *self, uint32_t handle, uint64_t *from) {
    const strata_order_key_t key = {*from, 0, 0};
    strata_vmm_lock(self);
    uint32_t number = strata_order_from(&self->order, &key);
    while (number && strata_vmm_piece(self, number)->of != handle) number = strata_order_next(&self->order, number);
    if (number) *from = strata_vmm_piece(self, number)->address + 1;
    strata_vmm_unlock(self);
    return number;
}

/* Returns false if the device keeps a mapping, and so the handle's memory. An alias that its owner has ended, but
 * the device has not, is no longer in the order. */
static bool unmap_aliases(vmm_layer_t *self, uint32_t handle) {
    uint64_t from = 0;
    uint32_t gone = 0;
    strata_vmm_lock(self);
    while (strata_vmm_piece(self, handle)->ending > 0) strata_condition_wait(&self->settled, &self->base.stack->lock, UINT64_MAX);
    uint32_t aliases = atomic_load(&strata_vmm_piece(self, handle)->aliases);
    strata_vmm_unlock(self);
    if (aliases == 0) return true;
    for (uint32_t alias = next_alias(self, handle, &from); alias; alias = next_alias(self, handle, &from)) {
        vmm_piece_t *piece = strata_vmm_piece(self, alias);
        gone += !piece->mapped || unmap(self, piece);
    }
    return gone == aliases;
}

/* A handle that waits for its end has its bytes in quarantine. While they are paused, they are not reserved. */
static void count_paused_bytes(vmm_layer_t *self, vmm_piece_t *piece, bool paused) {
    strata_statistics_t *figures = &self->base.stack->figures;
    strata_vmm_lock(self);
    piece->counts = !paused;
    figures->paused_bytes += paused ? piece->size : -piece->size;
    if (piece->slot) figures->quarantined_bytes -= paused ? piece->size : -piece->size;
    strata_vmm_unlock(self);
}

/* Releases the memory to the device. If the device refuses, the memory still counts. */
static uint64_t release_physical(vmm_layer_t *self, vmm_piece_t *piece) {
    if (!strata_vmm_release_physical(self, piece)) return 0;
    strata_domain_unbook(self->base.domain, piece->size);
    count_paused_bytes(self, piece, true);
    return piece->size;
}

static uint64_t release(strata_layer_t *base) {
    vmm_layer_t *self = self_of(base);
    uint64_t from = 0, given = 0;
    for (uint32_t number = each_chosen(self, &from); number; number = each_chosen(self, &from)) {
        vmm_piece_t *piece = strata_vmm_piece(self, number);
        if (!unmap(self, piece)) continue;
        if (unmap_aliases(self, number)) given += release_physical(self, piece);
        piece->paused = true;
    }
    return given;
}

/* ---- resume ---- */

static strata_status_t make_physical(vmm_layer_t *self, vmm_piece_t *piece) {
    strata_domain_t *domain = self->base.domain;
    strata_status_t status = strata_domain_claim(domain, NULL, piece->size);
    if (status != STRATA_OK) return status;
    uint64_t number = piece->number; /* the saved contents are found by this number */
    status = strata_vmm_create_physical(self, piece);
    piece->number = number;
    if (status != STRATA_OK) {
        strata_domain_unclaim(domain, piece->size);
        return status;
    }
    strata_domain_count(domain, piece->size);
    count_paused_bytes(self, piece, false);
    return STRATA_OK;
}

/* A mapping that the device refused to end may still be there. */
static strata_status_t map(vmm_layer_t *self, vmm_piece_t *piece) {
    uint32_t peers = 0;
    vmm_piece_t *handle = strata_vmm_handle_of(self, piece);
    strata_status_t status = piece->mapped
                                 ? STRATA_OK
                                 : strata_device_map(strata_vmm_device(self), piece->address, piece->size, handle->physical);
    if (status != STRATA_OK) return status;
    strata_vmm_lock(self);
    piece->mapped = true;
    piece->peers = ~0u; /* no other thread gives access until it is given here */
    strata_vmm_unlock(self);
    status = strata_vmm_give_access(self, piece->address, piece->size, &peers);
    if (status == STRATA_OK) status = strata_vmm_lock_complete(self, piece->address, piece->size, &peers);
    if (status != STRATA_OK) return status;
    piece->peers = peers;
    strata_vmm_unlock(self);
    return STRATA_OK;
}

static strata_status_t map_aliases(vmm_layer_t *self, uint32_t handle) {
    uint64_t from = 0;
    strata_status_t status = STRATA_OK;
    for (uint32_t alias = next_alias(self, handle, &from); alias && status == STRATA_OK; alias = next_alias(self, handle, &from))
        status = map(self, strata_vmm_piece(self, alias));
    return status;
}

static void undo(strata_layer_t *base) {
    vmm_layer_t *self = self_of(base);
    uint64_t from = 0;
    for (uint32_t number = each_chosen(self, &from); number; number = each_chosen(self, &from)) {
        vmm_piece_t *piece = strata_vmm_piece(self, number);
        bool gone = unmap_aliases(self, number);
        if (piece->mapped && !unmap(self, piece)) continue;
        if (gone && piece->physical) (void)release_physical(self, piece);
    }
}

static strata_status_t restore(strata_layer_t *base) {
    vmm_layer_t *self = self_of(base);
    uint64_t from = 0;
    strata_status_t status = STRATA_OK;
    for (uint32_t number = each_chosen(self, &from); number && status == STRATA_OK; number = each_chosen(self, &from)) {
        vmm_piece_t *piece = strata_vmm_piece(self, number);
        if (!piece->physical) status = make_physical(self, piece);
        if (status == STRATA_OK) status = map(self, piece);
        if (status == STRATA_OK) status = map_aliases(self, number);
    }
    if (status == STRATA_OK) return status;
    const strata_error_t reason = *strata_last_error();
    undo(base);
    return strata_fail_again(&reason);
}

/* ---- the end of a step ---- */

static void finish(strata_layer_t *base, bool back) {
    vmm_layer_t *self = self_of(base);
    strata_vmm_lock(self);
    EACH_LISTED(self, number) {
        vmm_piece_t *piece = strata_vmm_piece(self, number);
        if (piece->chosen && back) piece->paused = false;
        piece->chosen = piece->marked = piece->excluded = false;
    }
    strata_condition_broadcast(&self->settled);
    strata_vmm_unlock(self);
}

const strata_pausing_t strata_vmm_pausing = {.mark = mark,
                                             .choose = choose,
                                             .next = next_chosen,
                                             .is_chosen = is_chosen,
                                             .is_paused = is_paused,
                                             .release = release,
                                             .restore = restore,
                                             .undo = undo,
                                             .finish = finish,
                                             .count_paused = count_paused};

/* vmm: physical handles, mapped at the address of the request (cuMemCreate, cuMemMap, cuMemSetAccess). The
 * source under auto_growth_vmm.
 *
 * Each record is one handle at one address. A request without an address gets an address range of its own,
 * which is released with it. Under a cache that uses adjacent chunks as one, it gets a part of a common
 * range (vmm_places.c). A free unmaps and releases the handle, neither of which waits for running work. So
 * the free waits for the device itself, as the driver's own free does, unless the cache above has marked
 * all users as done.
 *
 * A piece records the parts of a handle that must be ended. Ending works step by step and can be tried
 * again where the device refused, so the same code undoes a partial creation. */
#include "allocation/layers/sources/vmm_state.h"

#include "allocation/report/outcome.h"
#include "platform/arithmetic.h"

enum { PIECES = 1 << 20 };

static const strata_option_row_t options[] = {
    {"registrable", STRATA_OPTION_BOOL, offsetof(vmm_options_t, registrable), "false", 0, 0, NULL,
     "keep each block within one handle, which can be exported to processes and network cards, as NCCL and RDMA registration "
     "require"},
    {0},
};

static const strata_stat_row_t stats[] = {
    {"handles", "count", offsetof(vmm_layer_t, handles), "current physical handles"},
    {"aliases", "count", offsetof(vmm_layer_t, aliases), "second mappings of these handles"},
    {"moved", "count", offsetof(vmm_layer_t, moved), "handles moved to another address"},
    {"ranges", "count", offsetof(vmm_layer_t, ranges), "current address ranges"},
    {"exports", "count", offsetof(vmm_layer_t, exports), "exports of a handle to another process"},
    {"registrations", "count", offsetof(vmm_layer_t, registrations), "registered handles, which cannot move"},
    {0},
};

static _Atomic uint64_t numbers; /* of the handles that the process has created */

static bool is_released(strata_status_t status) { return status == STRATA_OK || status == STRATA_E_SHUTDOWN; }

/* ---- ranges ---- */

strata_status_t strata_vmm_reserve(strata_layer_t *base, uint64_t size, uint64_t *address) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    strata_status_t status = strata_device_reserve(strata_vmm_device(self), size, 0, address);
    if (status == STRATA_OK) atomic_fetch_add(&self->ranges, 1);
    return status;
}

static bool unreserve(vmm_layer_t *self, uint64_t address, uint64_t size) {
    bool gone = is_released(strata_device_unreserve(strata_vmm_device(self), address, size));
    if (gone) atomic_fetch_sub(&self->ranges, 1);
    return gone;
}

/* ---- pieces: no lock is held ---- */

/* Keeps a piece that the device did not take back, to offer it again. If there is no node for it, it is
 * lost to the process. */
static void keep_refused(vmm_layer_t *self, const vmm_piece_t *piece) {
    strata_vmm_lock(self);
    uint32_t number = strata_nodes_acquire(&self->pieces);
    if (number) {
        *strata_vmm_piece(self, number) = *piece;
        strata_vmm_piece(self, number)->next = self->first_refused;
        self->first_refused = number;
    }
    self->base.stack->figures.quarantined_bytes += piece->counts ? piece->size : 0;
    strata_vmm_unlock(self);
}

void strata_vmm_unreserve(strata_layer_t *base, uint64_t address, uint64_t size) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    if (unreserve(self, address, size)) return;
    keep_refused(self, &(vmm_piece_t){.own_range = true, .done = true, .address = address, .size = size});
}

/* Sets *mapped if there is a mapping to end, also after a failure. */
static strata_status_t map(vmm_layer_t *self, uint64_t address, const vmm_piece_t *piece, uint32_t *peers, bool *mapped) {
    strata_status_t status = strata_device_map(strata_vmm_device(self), address, piece->size, piece->physical);
    *mapped = status == STRATA_OK;
    return *mapped ? strata_vmm_give_access(self, address, piece->size, peers) : status;
}

bool strata_vmm_release_physical(vmm_layer_t *self, vmm_piece_t *piece) {
    bool gone = is_released(strata_device_release(strata_vmm_device(self), piece->physical));
    if (gone) piece->physical = 0;
    if (gone) atomic_fetch_sub(&self->handles, 1);
    return gone;
}

/* Returns true if nothing is left of the piece. */
static bool end_piece(vmm_layer_t *self, vmm_piece_t *piece) {
    strata_device_t *device = strata_vmm_device(self);
    if (piece->mapped) piece->mapped = !is_released(strata_device_unmap(device, piece->address, piece->size));
    if (!piece->mapped && piece->physical) (void)strata_vmm_release_physical(self, piece);
    if (!piece->mapped && piece->own_range) piece->own_range = !unreserve(self, piece->address, piece->size);
    if (!piece->mapped && piece->placed) {
        strata_vmm_release_gap(self, piece->address);
        piece->placed = false;
    }
    return !piece->mapped && !piece->physical && !piece->own_range;
}

strata_status_t strata_vmm_create_physical(vmm_layer_t *self, vmm_piece_t *piece) {
    strata_status_t status = strata_device_create(strata_vmm_device(self), piece->size, strata_vmm_device(self)->capabilities.share,
                                                  &piece->physical);
    if (status != STRATA_OK) return status;
    piece->number = atomic_fetch_add(&numbers, 1) + 1;
    atomic_fetch_add(&self->handles, 1);
    return status;
}

/* After a failure the piece records the parts that must be ended. */
static strata_status_t make_piece(vmm_layer_t *self, const strata_request_t *request, uint64_t size, uint64_t at,
                                  vmm_piece_t *piece) {
    *piece = (vmm_piece_t){.address = at, .size = size};
    strata_status_t status = strata_vmm_create_physical(self, piece);
    if (status == STRATA_OK && at == 0) {
        status = self->adjacent ? strata_vmm_reserve_gap(self, size, &piece->address)
                                : strata_vmm_reserve(&self->base, size, &piece->address);
        piece->placed = status == STRATA_OK && self->adjacent;
        piece->own_range = status == STRATA_OK && !self->adjacent;
    }
    if (status == STRATA_OK) status = map(self, piece->address, piece, &piece->peers, &piece->mapped);
    if (status == STRATA_E_NO_MEMORY) strata_refused_by_device(request, size);
    return status;
}

/* ---- free ---- */

/* Returns whether the piece may end. If so, look-ups no longer find it. A piece that is registered or has
 * aliases stays. A paused piece has no memory to wait for. No lock is held. */
static bool may_end(vmm_layer_t *self, uint32_t number) {
    vmm_piece_t *piece = strata_vmm_piece(self, number), *handle = strata_vmm_handle_of(self, piece);
    strata_vmm_lock(self);
    while (handle->chosen) strata_condition_wait(&self->settled, &self->base.stack->lock, UINT64_MAX);
    bool stays = atomic_load(&piece->registered) > 0 || atomic_load(&piece->aliases) > 0;
    if (!stays) strata_vmm_unlist(self, number);
    handle->ending += piece->of != 0 && !stays;
    if (piece->paused) {
        if (!piece->counts) self->base.stack->figures.paused_bytes -= piece->size;
        piece->paused = false;
        piece->done = true;
    }
    strata_vmm_unlock(self);
    return !stays;
}

/* A pause waits for this, since an alias in the middle of its end is neither listed nor gone. No lock is held. */
static void settle_alias(vmm_layer_t *self, const vmm_piece_t *piece, bool gone) {
    vmm_piece_t *handle = strata_vmm_piece(self, piece->of);
    strata_vmm_lock(self);
    handle->ending--;
    atomic_fetch_sub(&handle->aliases, gone);
    strata_condition_broadcast(&self->settled);
    strata_vmm_unlock(self);
}

bool strata_vmm_give_back(vmm_layer_t *self, uint32_t number) {
    strata_domain_t *domain = self->base.domain;
    vmm_piece_t *piece = strata_vmm_piece(self, number);
    if (!may_end(self, number)) return false;
    if (!piece->done) piece->done = strata_domain_wait_for_own(domain) || strata_last_error()->status == STRATA_E_SHUTDOWN;
    if (!piece->done) return false;
    uint64_t address = piece->address;
    strata_domain_uncover(domain, address, piece->size);
    bool gone = end_piece(self, piece);
    if (piece->of) settle_alias(self, piece, gone);
    if (gone && piece->counts) strata_domain_unbook(domain, piece->size);
    return gone;
}

/* The lock is held. */
static void forget(vmm_layer_t *self, uint32_t number) {
    uint32_t slot = strata_vmm_piece(self, number)->slot;
    if (slot) strata_record_delete(&self->base, strata_record_at(&self->base, slot));
    strata_nodes_release(&self->pieces, number);
}

/* A handle that the device refuses to take back counts, is never served again, and is offered again. */
static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    uint32_t number = record->user;
    vmm_piece_t *piece = strata_vmm_piece(self, number);
    strata_unlocked_t opened = strata_call_unlock(call);
    uint64_t size = strata_record_withdraw(base, record);
    piece->done = record->pool == STRATA_VMM_USERS_ARE_DONE;
    bool gone = strata_vmm_give_back(self, number);
    strata_vmm_lock(self);
    record->size = size;
    piece->slot = strata_record_slot(base, record);
    if (gone) {
        forget(self, number);
    } else {
        base->stack->figures.quarantined_bytes += piece->counts ? size : 0;
        record->state = STRATA_RECORD_DEFERRED;
        record->route = base->number;
        piece->next = self->first_refused;
        self->first_refused = number;
    }
    strata_vmm_unlock(self);
    strata_call_lock(call, opened);
}

/* Offers memory that the device refused to take back again. Returns the bytes that it took now. No lock is held. */
static uint64_t retry_refused(vmm_layer_t *self) {
    strata_vmm_lock(self);
    uint32_t chain = self->first_refused;
    self->first_refused = 0;
    strata_vmm_unlock(self);
    for (uint32_t number = chain; number; number = strata_vmm_piece(self, number)->next) (void)strata_vmm_give_back(self, number);
    strata_vmm_lock(self);
    /* The remaining pieces go back into the list. */
    uint64_t given = 0;
    for (uint32_t number = chain, next; number; number = next) {
        vmm_piece_t *piece = strata_vmm_piece(self, number);
        next = piece->next;
        /* A handle that was freed while it was paused has nothing to end, but may still have aliases. */
        if (!piece->listed && !piece->mapped && !piece->physical && !piece->own_range) {
            self->base.stack->figures.quarantined_bytes -= piece->counts ? piece->size : 0;
            given += piece->counts ? piece->size : 0;
            forget(self, number);
        } else {
            piece->next = self->first_refused;
            self->first_refused = number;
        }
    }
    strata_vmm_unlock(self);
    return given;
}

/* A mapping that the device refused to end would prevent a new mapping at its address. */
static void clear(vmm_layer_t *self, uint64_t at) {
    if (strata_vmm_still_maps(&self->base, at)) (void)retry_refused(self);
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    strata_vmm_lock(self);
    bool has_refused = self->first_refused != 0;
    strata_vmm_unlock(self);
    if (!has_refused) return 0;
    strata_unlocked_t opened = strata_call_unlock(call);
    uint64_t given = retry_refused(self);
    strata_call_lock(call, opened);
    return given;
}

/* ---- allocate ---- */

/* Makes a record of the piece and adds it to the order. Returns NULL on E_LIMIT. The lock is held. */
static strata_record_t *make_record(vmm_layer_t *self, const strata_request_t *request, const vmm_piece_t *piece) {
    uint32_t number = strata_nodes_acquire(&self->pieces);
    strata_record_t *record = number ? strata_record_new(&self->base, request, piece->address, piece->size) : NULL;
    if (record) {
        *strata_vmm_piece(self, number) = *piece;
        strata_vmm_piece(self, number)->counts = true;
        strata_vmm_list(self, number);
        record->user = number;
        record->pool = STRATA_VMM_USERS_MAY_RUN;
    } else if (number) {
        strata_nodes_release(&self->pieces, number);
    } else {
        strata_fail(STRATA_E_LIMIT, 0, "vmm: %u handles are live, the maximum of one source; release idle memory",
                    self->pieces.capacity - 1);
    }
    return record;
}

/* The reason of the failure stays. */
static strata_status_t undo(vmm_layer_t *self, vmm_piece_t *piece, bool booked) {
    strata_error_t reason = *strata_last_error();
    strata_domain_t *domain = self->base.domain;
    if (booked) strata_domain_uncover(domain, piece->address, piece->size);
    if (end_piece(self, piece)) {
        if (booked) strata_domain_unbook(domain, piece->size);
        else strata_domain_unclaim(domain, piece->size);
    } else {
        if (!booked) strata_domain_count(domain, piece->size);
        piece->counts = piece->done = true;
        keep_refused(self, piece);
    }
    return strata_fail_again(&reason);
}

static strata_status_t get(vmm_layer_t *self, const strata_request_t *request, uint64_t size, strata_record_t **record) {
    strata_domain_t *domain = self->base.domain;
    vmm_piece_t piece;
    bool names_place = request->struct_size >= offsetof(strata_request_t, at) + sizeof request->at;
    uint64_t at = names_place ? request->at : 0;
    if (at) clear(self, at);
    strata_status_t status = strata_domain_claim(domain, request, size);
    if (status != STRATA_OK) return status;
    status = make_piece(self, request, size, at, &piece);
    if (status == STRATA_OK) status = strata_domain_book(domain, piece.address, size);
    if (status != STRATA_OK) return undo(self, &piece, false);
    status = strata_vmm_lock_complete(self, piece.address, size, &piece.peers);
    if (status != STRATA_OK) return undo(self, &piece, true);
    *record = make_record(self, request, &piece);
    strata_vmm_unlock(self);
    return *record ? STRATA_OK : undo(self, &piece, true);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    uint64_t size;
    if (request->flags & STRATA_NO_GROW)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "vmm keeps no free memory, and the request forbids growth");
    if (!strata_round_up(request->size, self->granularity, &size) || size - request->size > UINT32_MAX)
        return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = get(self, request, size, record);
    strata_call_lock(request->call, opened);
    return status;
}

/* ---- functions for the cache above ---- */

/* On success the lock is held. */
static strata_status_t map_elsewhere(vmm_layer_t *self, vmm_piece_t *piece, uint64_t to) {
    uint32_t peers = 0;
    bool mapped;
    strata_status_t status = map(self, to, piece, &peers, &mapped);
    if (status == STRATA_OK) status = strata_vmm_lock_complete(self, to, piece->size, &peers);
    if (status == STRATA_OK) {
        piece->peers = peers;
        return STRATA_OK;
    }
    strata_error_t reason = *strata_last_error();
    if (mapped && !strata_vmm_unmap(&self->base, to, piece->size)) strata_vmm_defer_unmap(&self->base, to, piece->size);
    return strata_fail_again(&reason);
}

strata_status_t strata_vmm_move(strata_layer_t *base, strata_record_t *chunk, uint64_t to) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    strata_domain_t *domain = base->domain;
    vmm_piece_t *piece = strata_vmm_piece(self, chunk->user);
    clear(self, to);
    strata_status_t status = domain->directory ? strata_directory_cover(domain->directory, to, piece->size) : STRATA_OK;
    if (status != STRATA_OK) return status;
    if (!strata_vmm_may_move(base, chunk))
        status = strata_fail(STRATA_E_BUSY, 0, "vmm: the handle is exported or registered, so it cannot move");
    if (status == STRATA_OK) status = map_elsewhere(self, piece, to);
    strata_domain_uncover(domain, status == STRATA_OK ? chunk->ptr : to, piece->size);
    if (status != STRATA_OK) return status;
    strata_vmm_unlist(self, chunk->user);
    chunk->ptr = piece->address = to;
    strata_vmm_list(self, chunk->user);
    strata_vmm_unlock(self);
    atomic_fetch_add(&self->moved, 1);
    return STRATA_OK;
}

bool strata_vmm_unmap(strata_layer_t *vmm, uint64_t address, uint64_t size) {
    return is_released(strata_device_unmap(strata_vmm_device((const vmm_layer_t *)vmm), address, size));
}

void strata_vmm_defer_unmap(strata_layer_t *vmm, uint64_t address, uint64_t size) {
    keep_refused((vmm_layer_t *)vmm, &(vmm_piece_t){.mapped = true, .done = true, .address = address, .size = size});
}

bool strata_vmm_still_maps(strata_layer_t *vmm, uint64_t address) {
    vmm_layer_t *self = (vmm_layer_t *)vmm;
    bool keeps = false;
    strata_vmm_lock(self);
    for (uint32_t number = self->first_refused; number && !keeps; number = strata_vmm_piece(self, number)->next)
        keeps = strata_vmm_piece(self, number)->mapped && strata_vmm_piece(self, number)->address == address;
    strata_vmm_unlock(self);
    return keeps;
}

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    const strata_device_capabilities_t *can = &base->domain->device->capabilities;
    if (!can->virtual_memory)
        return strata_fail(STRATA_E_UNSUPPORTED, 0,
                           "vmm: %s has no virtual memory; write system instead, and auto_growth "
                           "above it",
                           base->domain->device->name);
    if (((const vmm_options_t *)base->options)->registrable && !can->share)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "vmm.registrable: %s cannot share memory with other processes",
                           base->domain->device->name);
    self->granularity = can->granularity;
    strata_status_t status = strata_nodes_init(&self->pieces, sizeof(vmm_piece_t), PIECES);
    strata_order_init(&self->order, &self->pieces, offsetof(vmm_piece_t, link));
    strata_condition_init(&self->settled);
    return status;
}

static bool offer_all(vmm_layer_t *self) {
    bool all = true;
    for (uint32_t number = 1; number < self->pieces.used; number++) {
        vmm_piece_t *piece = strata_vmm_piece(self, number);
        if (!piece->physical && !piece->mapped && !piece->own_range) continue;
        strata_domain_uncover(self->base.domain, piece->address, piece->size);
        if (end_piece(self, piece) && piece->counts) strata_domain_unbook(self->base.domain, piece->size);
        all = all && !piece->physical && !piece->mapped && !piece->own_range;
    }
    return all;
}

/* Ends the remaining pieces, which have no owner afterwards. A range can only be released once nothing is
 * mapped in it. So failed pieces are offered again, and once more for the common range of adjacent handles. */
static void destroy(strata_layer_t *base) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    bool all = offer_all(self);
    if (self->room_size > 0) {
        strata_vmm_unreserve(base, self->room, self->room_size);
        all = offer_all(self);
    }
    if (!all) (void)offer_all(self);
    strata_nodes_destroy(&self->parts);
    strata_nodes_destroy(&self->pieces);
    strata_condition_destroy(&self->settled);
}

/* Handles exist only for device memory. */
static strata_status_t check(const void *given, strata_place_kind_t place, const char **option) {
    (void)given, (void)option;
    if (place == STRATA_PLACE_GPU) return STRATA_OK;
    return strata_fail(STRATA_E_STRATEGY, 0, "vmm serves only gpu places; write system here");
}

static uint64_t alignment(const void *given, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    (void)given, (void)place, (void)below, (void)wanted;
    return 2ull << 20; /* no device has a smaller granularity */
}

const strata_layer_type_t strata_vmm_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "vmm",
    .doc = "maps physical handles at addresses that the cache chooses (cuMemCreate, cuMemMap)",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_HANDLE_SOURCE | STRATA_TRAIT_CONTIGUOUS,
    .state_size = sizeof(vmm_layer_t),
    .options_size = sizeof(vmm_options_t),
    .options = options,
    .stats = stats,
    .check = check,
    .alignment = alignment,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .release = release,
    .handles = &strata_vmm_handles,
};

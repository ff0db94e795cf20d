/* vmm: physical handles, mapped where the request says (cuMemCreate, cuMemMap, cuMemSetAccess). The source under auto_growth_vmm.
 *
 * Each record is one handle at one place. A request that names no place gets a range of addresses of its own, which goes with it.
 * Giving back is unmapping and releasing, neither of which waits for running work. So the free waits for the device itself, as the
 * driver's own free does, unless the cache above has seen that all users are done.
 *
 * What a handle needs to be ended is in its piece. Ending goes step by step and can be tried again where the device refused, so
 * the same way undoes half a creation. */
#include "allocation/layer/vmm.h"

#include "allocation/reclaim/refusal.h"
#include "allocation/tables/nodes.h"
#include "platform/arithmetic.h"

enum { PIECES = 1 << 20 };
enum { USERS_MAY_RUN, USERS_ARE_DONE }; /* `pool` of a record */

/* A handle, by the number in `user` of its record. */
typedef struct piece {
    uint32_t next; /* of the pieces that are left; of a node that nobody has the next one */
    uint32_t slot; /* of its record, if that waits for the piece's end; 0: none */
    bool mapped, own_range, counts; /* counts: its bytes are reserved */
    bool done; /* no work uses it */
    strata_physical_t physical; /* 0: none */
    uint64_t address, size;
} piece_t;

typedef struct vmm_layer {
    strata_layer_t base;
    strata_nodes_t pieces; /* guarded by the lock; a piece belongs to whoever has its record */
    uint64_t granularity;
    uint32_t left; /* the first piece that the device did not take back; each release offers it again. Under the lock */
    _Atomic uint64_t handles, moved, ranges;
} vmm_layer_t;

static const strata_stat_row_t stats[] = {
    {"handles", "count", offsetof(vmm_layer_t, handles), "physical handles that exist"},
    {"moved", "count", offsetof(vmm_layer_t, moved), "handles that were mapped at another address"},
    {"ranges", "count", offsetof(vmm_layer_t, ranges), "ranges of addresses that exist"},
    {0},
};

static strata_device_t *device_of(const vmm_layer_t *self) { return self->base.domain->device; }

static piece_t *piece_at(const vmm_layer_t *self, uint32_t number) { return strata_node(&self->pieces, number); }

static void lock(vmm_layer_t *self) { strata_lock(&self->base.stack->lock); }

static void unlock(vmm_layer_t *self) { strata_unlock(&self->base.stack->lock); }

static bool has_gone(strata_status_t status) { return status == STRATA_OK || status == STRATA_E_SHUTDOWN; }

/* ---- ranges ---- */

strata_status_t strata_vmm_reserve(strata_layer_t *base, uint64_t size, uint64_t *address) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    strata_status_t status = strata_device_reserve(device_of(self), size, 0, address);
    if (status == STRATA_OK) atomic_fetch_add(&self->ranges, 1);
    return status;
}

static bool unreserve(vmm_layer_t *self, uint64_t address, uint64_t size) {
    bool gone = has_gone(strata_device_unreserve(device_of(self), address, size));
    if (gone) atomic_fetch_sub(&self->ranges, 1);
    return gone;
}


/* ---- pieces: no lock is held ---- */

/* What the device does not take back is offered again. It is lost to the process where there is no node for it. */
static void keep_left(vmm_layer_t *self, const piece_t *piece) {
    lock(self);
    uint32_t number = strata_nodes_take(&self->pieces);
    if (number) {
        *piece_at(self, number) = *piece;
        piece_at(self, number)->next = self->left;
        self->left = number;
    }
    self->base.stack->figures.quarantined_bytes += piece->counts ? piece->size : 0;
    unlock(self);
}

void strata_vmm_unreserve(strata_layer_t *base, uint64_t address, uint64_t size) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    if (unreserve(self, address, size)) return;
    keep_left(self, &(piece_t){.own_range = true, .done = true, .address = address, .size = size});
}


/* *mapped: whether there is a mapping to end, also after a failure. */
static strata_status_t map(vmm_layer_t *self, uint64_t address, const piece_t *piece, bool *mapped) {
    strata_device_t *device = device_of(self);
    strata_status_t status = strata_device_map(device, address, piece->size, piece->physical);
    *mapped = status == STRATA_OK;
    return *mapped ? strata_device_set_access(device, address, piece->size, NULL, 0) : status;
}

/* True: nothing is left of it. */
static bool end_piece(vmm_layer_t *self, piece_t *piece) {
    strata_device_t *device = device_of(self);
    if (piece->mapped) piece->mapped = !has_gone(strata_device_unmap(device, piece->address, piece->size));
    if (!piece->mapped && piece->physical && has_gone(strata_device_release(device, piece->physical))) {
        piece->physical = 0;
        atomic_fetch_sub(&self->handles, 1);
    }
    if (!piece->mapped && piece->own_range) piece->own_range = !unreserve(self, piece->address, piece->size);
    return !piece->mapped && !piece->physical && !piece->own_range;
}

static strata_status_t create_physical(vmm_layer_t *self, piece_t *piece) {
    strata_status_t status = strata_device_create(device_of(self), piece->size, false, &piece->physical);
    if (status == STRATA_OK) atomic_fetch_add(&self->handles, 1);
    return status;
}

/* Whatever fails, the piece says what there is to end. */
static strata_status_t make_piece(vmm_layer_t *self, uint64_t size, uint64_t at, piece_t *piece) {
    *piece = (piece_t){.address = at, .size = size};
    strata_status_t status = create_physical(self, piece);
    if (status == STRATA_OK && at == 0) {
        status = strata_vmm_reserve(&self->base, size, &piece->address);
        piece->own_range = status == STRATA_OK;
    }
    if (status == STRATA_OK) status = map(self, piece->address, piece, &piece->mapped);
    if (status == STRATA_E_NO_MEMORY)
        strata_refusal_note(&(strata_refusal_t){.by = STRATA_REFUSED_BY_DEVICE, .asked = size});
    return status;
}

/* ---- allocate ---- */

/* A record of the piece; NULL: E_LIMIT. */
static strata_record_t *make_record(vmm_layer_t *self, const strata_request_t *request, const piece_t *piece) {
    lock(self);
    uint32_t number = strata_nodes_take(&self->pieces);
    strata_record_t *record = number ? strata_record_new(&self->base, request, piece->address, piece->size) : NULL;
    if (record) {
        *piece_at(self, number) = *piece;
        piece_at(self, number)->counts = true;
        record->user = number;
        record->pool = USERS_MAY_RUN;
    } else if (number) {
        strata_nodes_give(&self->pieces, number);
    } else {
        strata_fail(STRATA_E_LIMIT, 0, "vmm holds %u handles, its most", self->pieces.capacity - 1);
    }
    unlock(self);
    return record;
}

/* The reason of the failure stays. */
static strata_status_t undo(vmm_layer_t *self, piece_t *piece, bool booked) {
    strata_error_t reason = *strata_last_error();
    strata_domain_t *domain = self->base.domain;
    if (booked) strata_domain_uncover(domain, piece->address, piece->size);
    if (end_piece(self, piece)) {
        if (booked) strata_domain_unbook(domain, piece->size);
        else strata_domain_unclaim(domain, piece->size);
    } else {
        if (!booked) strata_domain_count(domain, piece->size);
        piece->counts = piece->done = true;
        keep_left(self, piece);
    }
    return strata_fail_again(&reason);
}

static strata_status_t get(vmm_layer_t *self, const strata_request_t *request, uint64_t size, strata_record_t **record) {
    strata_domain_t *domain = self->base.domain;
    piece_t piece;
    bool names_place = request->struct_size >= offsetof(strata_request_t, at) + sizeof request->at;
    strata_status_t status = strata_domain_claim(domain, size);
    if (status != STRATA_OK) return status;
    status = make_piece(self, size, names_place ? request->at : 0, &piece);
    if (status == STRATA_OK) status = strata_domain_book(domain, piece.address, size);
    if (status != STRATA_OK) return undo(self, &piece, false);
    *record = make_record(self, request, &piece);
    return *record ? STRATA_OK : undo(self, &piece, true);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    uint64_t size;
    if (request->flags & STRATA_NO_GROW)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "vmm keeps nothing, and the request forbids asking the device");
    if (!strata_round_up(request->size, self->granularity, &size) || size - request->size > UINT32_MAX)
        return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    strata_opened_t opened = strata_call_unlock(request->call);
    strata_status_t status = get(self, request, size, record);
    strata_call_lock(request->call, opened);
    return status;
}

/* ---- free ---- */

/* No lock is held. */
static bool give_back(vmm_layer_t *self, piece_t *piece) {
    strata_domain_t *domain = self->base.domain;
    if (!piece->done) piece->done = strata_domain_wait_for_own(domain) || strata_last_error()->status == STRATA_E_SHUTDOWN;
    if (!piece->done) return false;
    uint64_t address = piece->address;
    strata_domain_uncover(domain, address, piece->size);
    if (!end_piece(self, piece)) return false;
    if (piece->counts) strata_domain_unbook(domain, piece->size);
    return true;
}

/* The lock is held. */
static void forget(vmm_layer_t *self, uint32_t number) {
    uint32_t slot = piece_at(self, number)->slot;
    if (slot) strata_record_delete(&self->base, strata_record_at(&self->base, slot));
    strata_nodes_give(&self->pieces, number);
}

/* What the device refuses to take back counts, is never served again, and is offered again. */
static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    uint32_t number = record->user;
    piece_t *piece = piece_at(self, number);
    strata_opened_t opened = strata_call_unlock(call);
    uint64_t size = strata_record_withdraw(base, record);
    piece->done = record->pool == USERS_ARE_DONE;
    bool gone = give_back(self, piece);
    lock(self);
    record->size = size;
    piece->slot = strata_record_slot(base, record);
    if (gone) {
        forget(self, number);
    } else {
        base->stack->figures.quarantined_bytes += size;
        record->state = STRATA_RECORD_DEFERRED;
        record->route = base->number;
        piece->next = self->left;
        self->left = number;
    }
    unlock(self);
    strata_call_lock(call, opened);
}

/* The pieces of a chain that are still there become the list again; the bytes of those that went. The lock is held. */
static uint64_t settle_left(vmm_layer_t *self, uint32_t chain) {
    uint64_t given = 0;
    for (uint32_t number = chain, next; number; number = next) {
        piece_t *piece = piece_at(self, number);
        next = piece->next;
        if (!piece->mapped && !piece->physical && !piece->own_range) {
            self->base.stack->figures.quarantined_bytes -= piece->counts ? piece->size : 0;
            given += piece->counts ? piece->size : 0;
            forget(self, number);
        } else {
            piece->next = self->left;
            self->left = number;
        }
    }
    return given;
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    lock(self);
    uint32_t chain = self->left;
    self->left = 0;
    unlock(self);
    if (chain == 0) return 0;
    strata_opened_t opened = strata_call_unlock(call);
    for (uint32_t number = chain; number; number = piece_at(self, number)->next) (void)give_back(self, piece_at(self, number));
    lock(self);
    uint64_t given = settle_left(self, chain);
    unlock(self);
    strata_call_lock(call, opened);
    return given;
}

/* ---- for the cache above ---- */

strata_layer_t *strata_vmm_below(const strata_layer_t *cache) {
    strata_layer_t *layer = cache->below[0];
    while (layer->type->role == STRATA_DECORATOR) layer = layer->below[0];
    return layer->type == &strata_vmm_type ? layer : NULL;
}

bool strata_vmm_made(const strata_layer_t *vmm, const strata_record_t *chunk) {
    return chunk->home == vmm->stack->number && strata_record_maker_number(chunk) == vmm->number && !strata_record_inner(chunk);
}

uint64_t strata_vmm_granularity(const strata_layer_t *vmm) { return ((const vmm_layer_t *)vmm)->granularity; }

strata_status_t strata_vmm_move(strata_layer_t *base, strata_record_t *chunk, uint64_t to) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    strata_domain_t *domain = base->domain;
    piece_t *piece = piece_at(self, chunk->user);
    strata_status_t status = domain->directory ? strata_directory_cover(domain->directory, to, piece->size) : STRATA_OK;
    if (status != STRATA_OK) return status;
    bool mapped;
    status = map(self, to, piece, &mapped);
    strata_domain_uncover(domain, status == STRATA_OK ? chunk->ptr : to, piece->size);
    if (status != STRATA_OK) {
        strata_error_t reason = *strata_last_error();
        if (mapped && !strata_vmm_unmap(base, to, piece->size)) strata_vmm_leave(base, to, piece->size);
        return strata_fail_again(&reason);
    }
    lock(self);
    chunk->ptr = piece->address = to;
    unlock(self);
    atomic_fetch_add(&self->moved, 1);
    return STRATA_OK;
}

bool strata_vmm_unmap(strata_layer_t *vmm, uint64_t address, uint64_t size) {
    return has_gone(strata_device_unmap(device_of((const vmm_layer_t *)vmm), address, size));
}

void strata_vmm_leave(strata_layer_t *vmm, uint64_t address, uint64_t size) {
    keep_left((vmm_layer_t *)vmm, &(piece_t){.mapped = true, .done = true, .address = address, .size = size});
}

bool strata_vmm_keeps(strata_layer_t *vmm, uint64_t address) {
    vmm_layer_t *self = (vmm_layer_t *)vmm;
    bool keeps = false;
    lock(self);
    for (uint32_t number = self->left; number && !keeps; number = piece_at(self, number)->next)
        keeps = piece_at(self, number)->mapped && piece_at(self, number)->address == address;
    unlock(self);
    return keeps;
}

void strata_vmm_note_done(strata_layer_t *vmm, strata_record_t *chunk) {
    if (strata_vmm_made(vmm, chunk)) chunk->pool = USERS_ARE_DONE;
}

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    const strata_device_capabilities_t *can = &base->domain->device->capabilities;
    if (!can->virtual_memory)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "vmm: %s has no virtual memory; write system instead, and auto_growth above it",
                           base->domain->device->name);
    self->granularity = can->granularity;
    return strata_nodes_init(&self->pieces, sizeof(piece_t), PIECES);
}

static bool offer_all(vmm_layer_t *self) {
    bool all = true;
    for (uint32_t number = 1; number < self->pieces.used; number++) {
        piece_t *piece = piece_at(self, number);
        if (!piece->physical && !piece->mapped && !piece->own_range) continue;
        strata_domain_uncover(self->base.domain, piece->address, piece->size);
        if (end_piece(self, piece) && piece->counts) strata_domain_unbook(self->base.domain, piece->size);
        all = all && !piece->physical && !piece->mapped && !piece->own_range;
    }
    return all;
}

/* What is left, and what its last holder left. Nobody has it after this, and a range goes only once nothing is mapped there: so all
 * is offered twice. */
static void destroy(strata_layer_t *base) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    if (!offer_all(self)) (void)offer_all(self);
    strata_nodes_destroy(&self->pieces);
}

/* Where device memory is had as handles, no other memory is. */
static strata_status_t check(const void *options, strata_place_kind_t place, const char **option) {
    (void)options, (void)option;
    if (place == STRATA_PLACE_GPU) return STRATA_OK;
    return strata_fail(STRATA_E_STRATEGY, 0, "vmm serves gpu places alone; write system here");
}

static uint64_t alignment(const void *options, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    (void)options, (void)place, (void)below, (void)wanted;
    return 2ull << 20; /* no device has a smaller granularity */
}

const strata_layer_type_t strata_vmm_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "vmm",
    .doc = "physical handles mapped at addresses of the cache's choice (cuMemCreate, cuMemMap)",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_HANDLE_SOURCE,
    .state_size = sizeof(vmm_layer_t),
    .stats = stats,
    .check = check,
    .alignment = alignment,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .release = release,
};

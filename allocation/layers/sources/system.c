/* system: a device call for every request and every free. The source under caches. */
#include "allocation/domain/layer.h"
#include "allocation/report/outcome.h"
#include "platform/host/host_memory.h"

enum { MEMORY_OF_PLACE = 0 };
enum { SIDE_NONE, SIDE_DEVICE, SIDE_HOST };
enum { NODE_ANY, NODE_NEAR, NODE_FIRST }; /* node 0 is NODE_FIRST */
#define HUGE_PAGE (2ull << 20)

typedef struct system_options {
    uint64_t cap;
    uint32_t memory, prefetch, preferred, accessed_by, node;
    bool read_mostly, portable, mapped, write_combined, huge_pages;
} system_options_t;

typedef struct system_layer {
    strata_layer_t base;
    strata_memory_t memory;
    uint32_t host_flags;
    _Atomic uint64_t held_bytes; /* requested or allocated bytes, if there is a cap or a count of oversubscription */
    _Atomic uint64_t total; /* of the device, once managed memory has been allocated */
    _Atomic uint64_t oversubscribed, refused_by_cap, refused_hints;
} system_layer_t;

static const strata_option_row_t options[] = {
    {"memory", STRATA_OPTION_CHOICE, offsetof(system_options_t, memory), "place", 0, 0, "place|device|managed|pinned|host",
     "kind of memory; `place` for the kind of the stack's place"},
    {"prefetch", STRATA_OPTION_CHOICE, offsetof(system_options_t, prefetch), "none", 0, 0, "none|device|host",
     "managed: where new memory is moved, in the order of the requesting stream"},
    {"preferred", STRATA_OPTION_CHOICE, offsetof(system_options_t, preferred), "none", 0, 0, "none|device|host",
     "managed: preferred location, as advice to the driver"},
    {"accessed_by", STRATA_OPTION_CHOICE, offsetof(system_options_t, accessed_by), "none", 0, 0, "none|device|host",
     "managed: processor with a mapping, whose access causes no fault"},
    {"read_mostly", STRATA_OPTION_BOOL, offsetof(system_options_t, read_mostly), "false", 0, 0, NULL,
     "managed: read-only copies on both sides"},
    {"cap", STRATA_OPTION_SIZE, offsetof(system_options_t, cap), "unlimited", 1, 0, NULL,
     "pinned and host: max bytes allocated at a time; beyond it requests fail for memory"},
    {"portable", STRATA_OPTION_BOOL, offsetof(system_options_t, portable), "true", 0, 0, NULL,
     "pinned: usable in all "
     "devices' contexts"},
    {"mapped", STRATA_OPTION_BOOL, offsetof(system_options_t, mapped), "true", 0, 0, NULL, "pinned: addressable by devices"},
    {"write_combined", STRATA_OPTION_BOOL, offsetof(system_options_t, write_combined), "false", 0, 0, NULL,
     "pinned: fast for devices to read, slow for the host"},
    {"node", STRATA_OPTION_CHOICE, offsetof(system_options_t, node), "any", 0, 0, "any|near|0|1|2|3|4|5|6|7|8|9|10|11|12|13|14|15",
     "pinned and host: the host's NUMA node to prefer; `near`: the one nearest to the device, if one can be chosen"},
    {"huge_pages", STRATA_OPTION_BOOL, offsetof(system_options_t, huge_pages), "false", 0, 0, NULL,
     "host: align blocks of 2 MiB or more to 2 MiB and request huge pages"},
    {0},
};

static const strata_stat_row_t stats[] = {
    {"oversubscribed", "bytes", offsetof(system_layer_t, oversubscribed), "peak managed memory beyond the device's whole memory"},
    {"refused_by_cap", "count", offsetof(system_layer_t, refused_by_cap), "requests refused by `cap`"},
    {"refused_hints", "count", offsetof(system_layer_t, refused_hints), "refused prefetches, advice and huge pages"},
    {0},
};

static const system_options_t *options_of(const system_layer_t *self) { return self->base.options; }

static strata_memory_t memory_of(const system_options_t *o, strata_place_kind_t place) {
    return (strata_memory_t)(o->memory == MEMORY_OF_PLACE ? (uint32_t)place : o->memory - 1);
}

static bool on_host(strata_memory_t memory) { return memory == STRATA_MEMORY_PINNED || memory == STRATA_MEMORY_HOST; }

/* ---- the node ---- */

/* A named node must exist; `near` is only a preference. */
static strata_status_t find_node(system_layer_t *self) {
    const system_options_t *o = options_of(self);
    const strata_device_capabilities_t *can = &self->base.domain->device->capabilities;
    if (o->node == NODE_ANY) return STRATA_OK;
    uint32_t node = o->node == NODE_NEAR ? can->near_node : o->node - NODE_FIRST;
    bool there = node < 64 && (can->host_nodes >> node & 1);
    if (there) self->host_flags |= STRATA_HOST_ON_NODE(node);
    if (there || o->node == NODE_NEAR) return STRATA_OK;
    if (can->host_nodes == 0)
        return strata_fail(STRATA_E_UNSUPPORTED, 0,
                           "system.node: %u: this process cannot choose a NUMA node; write any, or near to use one if possible",
                           node);
    return strata_fail(STRATA_E_UNSUPPORTED, 0, "system.node: %u: this process may use only the host's NUMA nodes %d to %d", node,
                       __builtin_ctzll(can->host_nodes), 63 - __builtin_clzll(can->host_nodes));
}

static strata_status_t create(strata_layer_t *base) {
    system_layer_t *self = (system_layer_t *)base;
    const system_options_t *o = base->options;
    uint32_t kind = o->memory == MEMORY_OF_PLACE ? (uint32_t)strata_place_kind(base->domain->place) : o->memory - 1;
    self->memory = (strata_memory_t)kind;
    self->host_flags = (o->portable ? STRATA_HOST_PORTABLE : 0u) | (o->mapped ? STRATA_HOST_MAPPED : 0u) |
                       (o->write_combined ? STRATA_HOST_WRITE_COMBINED : 0u);
    return on_host(self->memory) ? find_node(self) : STRATA_OK;
}

/* ---- the cap ---- */

/* Claims bytes before the device call, so that the cap is never exceeded. */
static strata_status_t claim(system_layer_t *self, const strata_request_t *request) {
    uint64_t size = request->size;
    uint64_t cap = options_of(self)->cap, held = atomic_load(&self->held_bytes);
    do {
        if (size <= cap && held <= cap - size) continue;
        atomic_fetch_add(&self->refused_by_cap, 1);
        return strata_refuse_by_bound(&self->base, request, "cap", size, held, cap);
    } while (!atomic_compare_exchange_weak(&self->held_bytes, &held, held + size));
    return STRATA_OK;
}

static void unclaim(system_layer_t *self, uint64_t size) { atomic_fetch_sub(&self->held_bytes, size); }

/* ---- hints: a refused hint costs only time ---- */

static void note_hint(system_layer_t *self, bool taken) {
    if (!taken) atomic_fetch_add(&self->refused_hints, 1);
}

static void advise(system_layer_t *self, strata_address_t address, uint64_t size, strata_advice_t advice, uint32_t side) {
    if (side == SIDE_NONE) return;
    strata_device_t *device = self->base.domain->device;
    note_hint(self, strata_device_advise(device, address, size, advice, side == SIDE_HOST) == STRATA_OK);
}

static void count_oversubscription(system_layer_t *self) {
    uint64_t total = atomic_load(&self->total), free_bytes;
    if (total == 0 && strata_device_mem_info(self->base.domain->device, &free_bytes, &total) == STRATA_OK)
        atomic_store(&self->total, total);
    uint64_t held = atomic_load(&self->held_bytes), seen = atomic_load(&self->oversubscribed);
    if (total == 0 || held <= total) return;
    while (held - total > seen && !atomic_compare_exchange_weak(&self->oversubscribed, &seen, held - total)) {}
}

static void prepare_managed(system_layer_t *self, const strata_request_t *request, strata_address_t address) {
    const system_options_t *o = options_of(self);
    count_oversubscription(self);
    advise(self, address, request->size, STRATA_ADVISE_SET_READ_MOSTLY, o->read_mostly ? SIDE_DEVICE : SIDE_NONE);
    advise(self, address, request->size, STRATA_ADVISE_SET_PREFERRED, o->preferred);
    advise(self, address, request->size, STRATA_ADVISE_SET_ACCESSED_BY, o->accessed_by);
    if (o->prefetch == SIDE_NONE) return;
    strata_device_t *device = self->base.domain->device;
    bool to_host = o->prefetch == SIDE_HOST,
         captured = strata_domain_refuse_captured(self->base.domain, request->stream) != STRATA_OK;
    note_hint(self, !captured && strata_device_prefetch(device, address, request->size, to_host, request->stream) == STRATA_OK);
}

/* ---- the device ---- */

static strata_status_t host_allocate(system_layer_t *self, const strata_request_t *request, strata_address_t *address) {
    const system_options_t *o = options_of(self);
    bool huge = o->huge_pages && self->memory == STRATA_MEMORY_HOST && request->size >= HUGE_PAGE;
    uint64_t alignment = huge && request->alignment < HUGE_PAGE ? HUGE_PAGE : request->alignment;
    strata_status_t status = strata_device_host_alloc(self->base.domain->device, self->memory, request->size, alignment,
                                                      self->host_flags, address);
    if (status == STRATA_OK && huge)
        note_hint(self, strata_host_advise_huge_pages((void *)(uintptr_t)*address, request->size / HUGE_PAGE * HUGE_PAGE));
    return status;
}

static strata_status_t device_allocate(system_layer_t *self, const strata_request_t *request, strata_address_t *address) {
    strata_status_t status = claim(self, request);
    if (status != STRATA_OK) return status;
    status = on_host(self->memory) ? host_allocate(self, request, address)
                                   : strata_device_malloc(self->base.domain->device, self->memory, request->size, address);
    if (status == STRATA_E_NO_MEMORY) strata_refused_by_device(request, request->size);
    if (status != STRATA_OK) unclaim(self, request->size);
    else if (self->memory == STRATA_MEMORY_MANAGED) prepare_managed(self, request, *address);
    return status;
}

static strata_status_t device_free(system_layer_t *self, strata_address_t address, uint64_t size) {
    strata_device_t *device = self->base.domain->device;
    strata_status_t status = on_host(self->memory) ? strata_device_host_free(device, self->memory, address)
                                                   : strata_device_free(device, self->memory, address);
    if (status == STRATA_E_SHUTDOWN) status = STRATA_OK;
    if (status == STRATA_OK) unclaim(self, size);
    return status;
}

/* Another thread may get the address as soon as the device has the block. Returns false if the device
 * refuses it. */
static bool give_back(system_layer_t *self, strata_address_t address, uint64_t size) {
    strata_domain_t *domain = self->base.domain;
    strata_domain_uncover(domain, address, size);
    bool gone = device_free(self, address, size) == STRATA_OK;
    if (gone) strata_domain_unbook(domain, size);
    else strata_domain_recover(domain, address, size);
    return gone;
}

/* Returns an unserved block immediately; no lock is held. If the device refuses it, the block is
 * quarantined. The earlier reason stays. */
static strata_status_t free_unserved(system_layer_t *self, strata_address_t address, uint64_t size, bool booked) {
    strata_error_t reason = *strata_last_error();
    strata_domain_t *domain = self->base.domain;
    if (booked) strata_domain_uncover(domain, address, size);
    bool gone = device_free(self, address, size) == STRATA_OK;
    if (!gone) {
        unclaim(self, size);
        if (!booked) strata_domain_count(domain, size);
        strata_domain_quarantine(domain, self->memory, address, size, false);
    } else if (booked) {
        strata_domain_unbook(domain, size);
    } else {
        strata_domain_unclaim(domain, size);
    }
    return strata_fail_again(&reason);
}

/* Books memory from the device and makes its record; no lock is held. */
static strata_status_t book_record(system_layer_t *self, const strata_request_t *request, strata_address_t address,
                                   strata_record_t **record) {
    strata_layer_t *base = &self->base;
    strata_status_t status = strata_domain_book(base->domain, address, request->size);
    bool booked = status == STRATA_OK;
    if (booked) {
        strata_stack_lock_own(base->stack);
        *record = strata_record_new(base, request, address, request->size);
        strata_unlock(&base->stack->lock);
        if (*record) return STRATA_OK;
    }
    return free_unserved(self, address, request->size, booked);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    if (request->flags & STRATA_NO_GROW)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "system keeps no free memory, and the request forbids growth");
    system_layer_t *self = (system_layer_t *)base;
    strata_address_t address;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = strata_domain_claim(base->domain, request, request->size);
    if (status == STRATA_OK) {
        status = device_allocate(self, request, &address);
        if (status == STRATA_OK) status = book_record(self, request, address, record);
        else strata_domain_unclaim(base->domain, request->size);
    }
    strata_call_lock(request->call, opened);
    return status;
}

/* A device free waits for the work submitted before it, but a free of host memory does not have to. If
 * blocks have an owner stream, no other layer has waited for its work. */
static bool work_is_done(const strata_layer_t *base) {
    strata_place_kind_t kind = strata_place_kind(base->domain->place);
    bool owned = kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED;
    if (!owned || !on_host(((const system_layer_t *)base)->memory)) return true;
    return strata_domain_wait_for_own(base->domain) || strata_last_error()->status == STRATA_E_SHUTDOWN;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    uint64_t size = strata_record_withdraw(base, record);
    bool gone = work_is_done(base) && give_back((system_layer_t *)base, record->ptr, size);
    strata_stack_lock_own(base->stack);
    record->size = size;
    if (gone) {
        strata_record_delete(base, record);
    } else {
        /* The device refused the block: it is counted, never reused, and offered again when the shared stack is
         * destroyed. */
        base->stack->figures.quarantined_bytes += size;
        record->state = STRATA_RECORD_DEFERRED;
        record->route = base->number;
    }
    strata_unlock(&base->stack->lock);
    strata_call_lock(call, opened);
}

/* Frees the blocks that the device refused, and those that their last holder left. */
static void destroy(strata_layer_t *base) {
    system_layer_t *self = (system_layer_t *)base;
    strata_domain_t *domain = base->domain;
    strata_slab_t *slab = &base->stack->slab;
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        strata_record_t *record = strata_slab_record(slab, slot);
        if (record->state == STRATA_RECORD_UNUSED || strata_record_maker_number(record) != base->number) continue;
        /* The record has no owner any longer, so memory that the device refuses is quarantined, and offered once more. */
        strata_domain_uncover(domain, record->ptr, record->size);
        if (device_free(self, record->ptr, record->size) == STRATA_OK) strata_domain_unbook(domain, record->size);
        else strata_domain_quarantine(domain, self->memory, record->ptr, record->size, false);
    }
}

/* Resets the peaks. */
static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    (void)notice, (void)call;
    system_layer_t *self = (system_layer_t *)base;
    uint64_t held = atomic_load(&self->held_bytes), total = atomic_load(&self->total);
    atomic_store(&self->oversubscribed, total != 0 && held > total ? held - total : 0);
}

/* An option for another kind of memory than the place's would have no effect, so it is refused. */
static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    const system_options_t *o = filled;
    strata_memory_t memory = memory_of(o, place);
    bool pinned = memory == STRATA_MEMORY_PINNED, host = memory == STRATA_MEMORY_HOST, managed = memory == STRATA_MEMORY_MANAGED;
    const struct {
        const char *name, *places;
        bool wrong;
    } rows[] = {
        {"prefetch", "managed", o->prefetch != SIDE_NONE && !managed},
        {"preferred", "managed", o->preferred != SIDE_NONE && !managed},
        {"accessed_by", "managed", o->accessed_by != SIDE_NONE && !managed},
        {"read_mostly", "managed", o->read_mostly && !managed},
        {"cap", "pinned and host", o->cap != UINT64_MAX && !pinned && !host},
        {"portable", "pinned", !o->portable && !pinned},
        {"mapped", "pinned", !o->mapped && !pinned},
        {"write_combined", "pinned", o->write_combined && !pinned},
        {"node", "pinned and host", o->node != NODE_ANY && !pinned && !host},
        {"huge_pages", "host", o->huge_pages && !host},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].wrong) continue;
        *option = rows[i].name;
        return strata_fail(STRATA_E_STRATEGY, 0, "this option is only for %s memory; remove it here", rows[i].places);
    }
    *option = "node";
    if (o->node != NODE_ANY && o->write_combined)
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "the driver has no write-combined memory of a NUMA node; write any, or remove write_combined");
    return STRATA_OK;
}

/* The host supports a requested alignment, the device does not. */
static uint64_t alignment(const void *filled, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    const system_options_t *o = filled;
    (void)wanted;
    return on_host(memory_of(o, place)) ? UINT64_MAX : below;
}

const strata_layer_type_t strata_system_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "system",
    .doc = "makes one device call per request (cudaMalloc, cudaMallocManaged, cudaHostAlloc, or the host)",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE,
    .state_size = sizeof(system_layer_t),
    .options_size = sizeof(system_options_t),
    .options = options,
    .stats = stats,
    .check = check,
    .alignment = alignment,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .notices = 1u << STRATA_NOTICE_PEAKS,
    .notify = notify,
};

/* system: asks the device for every request and gives every block back. The source under caches. */
#include "allocation/layer.h"

enum { MEMORY_OF_PLACE = 0 };

typedef struct system_options {
    uint32_t memory;
} system_options_t;

typedef struct system_layer {
    strata_layer_t base;
    strata_memory_t memory;
} system_layer_t;

static const strata_option_row_t options[] = {
    {"memory", STRATA_OPTION_CHOICE, offsetof(system_options_t, memory), "place", 0, 0, "place|device|managed|pinned|host",
     "the kind of memory to ask for; `place`: the kind of the place that the stack serves"},
    {0},
};

static strata_status_t create(strata_layer_t *self) {
    const system_options_t *o = self->options;
    uint32_t kind = o->memory == MEMORY_OF_PLACE ? (uint32_t)strata_place_kind(self->domain->place) : o->memory - 1;
    ((system_layer_t *)self)->memory = (strata_memory_t)kind;
    return STRATA_OK;
}

static bool on_host(strata_memory_t memory) {
    return memory == STRATA_MEMORY_PINNED || memory == STRATA_MEMORY_HOST;
}

static strata_status_t device_get(system_layer_t *self, const strata_request_t *request, strata_address_t *address) {
    strata_device_t *device = self->base.domain->device;
    if (!on_host(self->memory)) return strata_device_malloc(device, self->memory, request->size, address);
    return strata_device_host_alloc(device, self->memory, request->size, request->alignment,
                                    STRATA_HOST_PORTABLE | STRATA_HOST_MAPPED, address);
}

static strata_status_t device_give(system_layer_t *self, strata_address_t address) {
    strata_device_t *device = self->base.domain->device;
    strata_status_t status = on_host(self->memory) ? strata_device_host_free(device, self->memory, address)
                                                   : strata_device_free(device, self->memory, address);
    return status == STRATA_E_SHUTDOWN ? STRATA_OK : status;
}

/* Books what the device gave and makes its record; no lock is held. */
static strata_status_t take_in(system_layer_t *self, const strata_request_t *request, strata_address_t address,
                               strata_record_t **record) {
    strata_layer_t *base = &self->base;
    strata_status_t status = strata_domain_reserve(base->domain, address, request->size);
    if (status != STRATA_OK) return status;
    strata_lock(&base->stack->lock);
    *record = strata_record_new(base, request, address, request->size);
    strata_unlock(&base->stack->lock);
    if (*record) return STRATA_OK;
    strata_domain_unreserve(base->domain, address, request->size);
    return STRATA_E_LIMIT;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    system_layer_t *self = (system_layer_t *)base;
    if (request->flags & STRATA_NO_GROW)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "system keeps nothing, and the request forbids asking the device");
    strata_address_t address;
    strata_opened_t opened = strata_path_unlock(request->path);
    strata_status_t status = device_get(self, request, &address);
    if (status == STRATA_OK && (status = take_in(self, request, address, record)) != STRATA_OK) (void)device_give(self, address);
    strata_path_lock(request->path, opened);
    return status;
}

/* The device refused to take it back: counted, never reused, offered again when the trunk ends. */
static void quarantine(strata_layer_t *self, strata_record_t *record) {
    self->stack->figures.quarantined_bytes += record->size;
    record->state = STRATA_RECORD_DEFERRED;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_path_t *path) {
    strata_opened_t opened = strata_path_unlock(path);
    /* Unbooked first: once the device has it back, another thread may be given the same address. */
    strata_domain_unreserve(base->domain, record->ptr, record->size);
    bool gone = device_give((system_layer_t *)base, record->ptr) == STRATA_OK;
    if (!gone) (void)strata_domain_reserve(base->domain, record->ptr, record->size);
    strata_lock(&base->stack->lock);
    if (gone) strata_record_delete(base, record);
    else quarantine(base, record);
    strata_unlock(&base->stack->lock);
    strata_path_lock(path, opened);
}

/* What the device refused to take back, and what its last holder left behind. */
static void destroy(strata_layer_t *base) {
    strata_slab_t *slab = &base->stack->slab;
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        strata_record_t *record = strata_slab_record(slab, slot);
        if (record->state == STRATA_RECORD_UNUSED) continue;
        strata_domain_unreserve(base->domain, record->ptr, record->size);
        (void)device_give((system_layer_t *)base, record->ptr);
    }
}

const strata_layer_type_t strata_system_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "system",
    .doc = "asks the device for every request (cudaMalloc, cudaMallocManaged, cudaHostAlloc, or the host)",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE,
    .state_size = sizeof(system_layer_t),
    .options_size = sizeof(system_options_t),
    .options = options,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
};

#include "conform/source.h"

static _Atomic uint64_t calls, live, fail_at;
static _Atomic bool fail_onward;
static _Atomic strata_status_t fail_status;

static strata_status_t nothing_to_create(strata_layer_t *self) {
    (void)self;
    return STRATA_OK;
}

void test_source_fail(uint64_t k, bool onward, strata_status_t status) {
    fail_at = k ? calls + k : 0;
    fail_onward = onward;
    fail_status = status;
}

uint64_t test_source_calls(void) { return calls; }

uint64_t test_source_live(void) { return live; }

static void give_back(strata_layer_t *self, strata_address_t address, uint64_t size) {
    strata_domain_uncover(self->domain, address, size);
    (void)strata_device_free(self->domain->device, STRATA_MEMORY_DEVICE, address);
    strata_domain_unbook(self->domain, size);
}

static strata_status_t source_get(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_domain_t *domain = self->domain;
    strata_address_t address;
    strata_status_t status = strata_domain_claim(domain, request->size);
    if (status != STRATA_OK) return status;
    status = strata_device_malloc(domain->device, STRATA_MEMORY_DEVICE, request->size, &address);
    if (status == STRATA_OK && (status = strata_domain_book(domain, address, request->size)) != STRATA_OK)
        (void)strata_device_free(domain->device, STRATA_MEMORY_DEVICE, address);
    if (status != STRATA_OK) {
        strata_domain_unclaim(domain, request->size);
        return status;
    }
    strata_lock(&self->stack->lock);
    *record = strata_record_new(self, request, address, request->size);
    strata_unlock(&self->stack->lock);
    if (*record) return STRATA_OK;
    give_back(self, address, request->size);
    return STRATA_E_LIMIT;
}

static strata_status_t source_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    if (request->flags & STRATA_NO_GROW) return strata_fail(STRATA_E_NO_MEMORY, 0, "the test's source keeps nothing");
    uint64_t call = ++calls;
    if (fail_at != 0 && (call == fail_at || (fail_onward && call > fail_at)))
        return strata_fail(fail_status, 0, "the test's source fails its call %llu", (unsigned long long)call);
    strata_opened_t opened = strata_call_unlock(request->call);
    strata_status_t status = source_get(self, request, record);
    strata_call_lock(request->call, opened);
    if (status == STRATA_OK) live++;
    return status;
}

static void source_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    strata_opened_t opened = strata_call_unlock(call);
    give_back(self, record->ptr, record->size);
    strata_lock(&self->stack->lock);
    strata_record_delete(self, record);
    strata_unlock(&self->stack->lock);
    strata_call_lock(call, opened);
    live--;
}

/* What its last holder left behind. */
static void source_destroy(strata_layer_t *self) {
    strata_slab_t *slab = &self->stack->slab;
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        strata_record_t *record = strata_slab_record(slab, slot);
        if (record->state == STRATA_RECORD_UNUSED || strata_record_maker_number(record) != self->number) continue;
        give_back(self, record->ptr, record->size);
        live--;
    }
}

const strata_layer_type_t test_source_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_source",
    .doc = "a source that fails on order",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE,
    .state_size = sizeof(strata_layer_t),
    .create = nothing_to_create,
    .destroy = source_destroy,
    .allocate = source_allocate,
    .free = source_free,
};

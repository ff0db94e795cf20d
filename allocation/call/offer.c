/* Offers services of the device and the core to layers outside the tree: strata/layer.h. */
#include "allocation/domain/layer.h"
#include "allocation/domain/quarantine.h"
#include "allocation/mechanism/block_list.h"
#include "allocation/report/outcome.h"
#include "allocation/stack/threads.h"
#include "platform/arguments.h"

bool strata_below_gives(const strata_layer_t *self, uint32_t traits) {
    STRATA_REFUSE_NULL_AS(self, "self", false);
    for (uint32_t i = 0; i < self->below_count; i++) {
        const strata_layer_t *below = self->below[i];
        uint32_t missing = traits & ~below->type->gives;
        bool passes_on = below->below_count > 0 && (missing & ~below->type->passes) == 0;
        if (missing && !(passes_on && strata_below_gives(below, missing))) return false;
    }
    return self->below_count > 0;
}

strata_statistics_t *strata_layer_stack_figures(strata_layer_t *self) {
    STRATA_REFUSE_NULL_AS(self, "self", NULL);
    return &self->stack->figures;
}

strata_record_t *strata_block_new(strata_layer_t *self, uint32_t chunk, uint64_t ptr, uint64_t size) {
    STRATA_REFUSE_NULL_AS(self, "self", NULL);
    uint32_t slot = strata_block_list_begin(&self->stack->slab, chunk, ptr, size);
    if (slot) return strata_slab_record(&self->stack->slab, slot);
    (void)strata_fail(STRATA_E_LIMIT, 0,
                      "too many blocks: this stack has %u, the maximum; free some, or use more streams or "
                      "pools",
                      self->stack->slab.capacity);
    return NULL;
}

strata_status_t strata_layer_refuse_captured(const strata_layer_t *self, strata_stream_t stream) {
    STRATA_REFUSE_NULL(self);
    return strata_domain_refuse_captured(self->domain, stream);
}

strata_place_t strata_layer_place(const strata_layer_t *self) {
    STRATA_REFUSE_NULL_AS(self, "self", 0);
    return self->domain->place;
}

/* ---- memory of a source ---- */

static bool on_host(strata_memory_t memory) { return memory == STRATA_MEMORY_PINNED || memory == STRATA_MEMORY_HOST; }

static strata_memory_t memory_of(const strata_layer_t *self) { return (strata_memory_t)strata_place_kind(self->domain->place); }

static strata_status_t give_back(strata_layer_t *self, uint64_t address) {
    strata_device_t *device = self->domain->device;
    strata_memory_t memory = memory_of(self);
    strata_status_t status = on_host(memory) ? strata_device_host_free(device, memory, address)
                                             : strata_device_free(device, memory, address);
    return status == STRATA_E_SHUTDOWN ? STRATA_OK : status;
}

/* Returns memory that could not be booked. If the device refuses it, the memory is quarantined. The
 * earlier reason stays. */
static strata_status_t return_unbooked(strata_layer_t *self, strata_address_t got, size_t size) {
    strata_error_t reason = *strata_last_error();
    if (give_back(self, got) == STRATA_OK) {
        strata_domain_unclaim(self->domain, size);
    } else {
        strata_domain_count(self->domain, size);
        strata_domain_quarantine(self->domain, memory_of(self), got, size, false);
    }
    return strata_fail_again(&reason);
}

strata_status_t strata_layer_allocate_memory(strata_layer_t *self, const strata_request_t *request, size_t size, size_t alignment,
                                             uint64_t *address) {
    STRATA_REFUSE_NULL(self);
    STRATA_REFUSE_NULL(request);
    STRATA_REFUSE_NULL(address);
    strata_domain_t *domain = self->domain;
    strata_address_t got = 0;
    strata_status_t status = strata_domain_claim(domain, request, size);
    if (status != STRATA_OK) return status;
    strata_memory_t memory = memory_of(self);
    status = on_host(memory) ? strata_device_host_alloc(domain->device, memory, size, alignment,
                                                        STRATA_HOST_PORTABLE | STRATA_HOST_MAPPED, &got)
                             : strata_device_malloc(domain->device, memory, size, &got);
    if (status != STRATA_OK) {
        strata_domain_unclaim(domain, size);
        if (status == STRATA_E_NO_MEMORY) strata_refused_by_device(request, size);
        return status;
    }
    status = strata_domain_book(domain, got, size);
    if (status != STRATA_OK) return return_unbooked(self, got, size);
    *address = got;
    return STRATA_OK;
}

strata_status_t strata_layer_free_memory(strata_layer_t *self, uint64_t address, size_t size) {
    STRATA_REFUSE_NULL(self);
    strata_domain_uncover(self->domain, address, size);
    strata_status_t status = give_back(self, address);
    if (status == STRATA_OK) strata_domain_unbook(self->domain, size);
    else strata_domain_recover(self->domain, address, size);
    return status;
}

/* Returns whether the layer made the record. The maker is at the bottom of the route. An empty route
 * means that the layer already had the record back when the device refused the free. */
static bool made_by(const strata_record_t *record, const strata_layer_t *layer) {
    uint64_t route = record->route;
    while (route >> STRATA_ROUTE_BITS) route >>= STRATA_ROUTE_BITS;
    return route == layer->number || route == 0;
}

void strata_layer_each_remaining(strata_layer_t *self, strata_walk_fn each, void *context) {
    STRATA_REFUSE_NULL_AS(self, "self", );
    STRATA_REFUSE_NULL_AS(each, "record", );
    strata_slab_t *slab = &self->stack->slab;
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        const strata_record_t *record = strata_slab_record(slab, slot);
        bool held = record->state != STRATA_RECORD_UNUSED && record->state != STRATA_RECORD_FREE && record->size > 0;
        if (held && made_by(record, self)) each(record, context);
    }
}

/* ---- operations that do nothing ---- */

strata_status_t strata_layer_create_nothing(strata_layer_t *self) {
    STRATA_REFUSE_NULL(self);
    return STRATA_OK;
}

void strata_layer_destroy_nothing(strata_layer_t *self) { STRATA_REFUSE_NULL_AS(self, "self", ); }

void strata_layer_free_below(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    strata_below_free(record, call);
}

/* ---- streams ---- */

strata_stream_t strata_stack_stream(const strata_stack_t *stack) {
    STRATA_REFUSE_NULL_AS(stack, "stack", NULL);
    return stack->stream;
}

bool strata_layer_owner(const strata_layer_t *self, strata_stream_t *stream) {
    STRATA_REFUSE_NULL_AS(stream, "stream", false);
    STRATA_REFUSE_NULL_AS(self, "self", false);
    const strata_stack_t *stack = self->stack;
    uint64_t thread = stack->stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0;
    if (stack->is_shared || stack->ownerless || stack->forgotten.orphan || stack->thread != thread) return false;
    *stream = stack->stream;
    return true;
}

bool strata_layer_wait_for(strata_layer_t *self, strata_stream_t stream) {
    STRATA_REFUSE_NULL_AS(self, "self", false);
    return strata_domain_wait_for(self->domain, stream);
}

/* ---- contents and events ---- */

void *strata_layer_host_view(strata_layer_t *self, uint64_t address, size_t size) {
    STRATA_REFUSE_NULL_AS(self, "self", NULL);
    return strata_device_host_view(self->domain->device, address, size);
}

strata_status_t strata_layer_fill(strata_layer_t *self, uint64_t address, uint8_t byte, size_t size, strata_stream_t stream) {
    STRATA_REFUSE_NULL(self);
    return strata_domain_fill(self->domain, address, byte, size, stream);
}

strata_status_t strata_layer_acquire_event(strata_layer_t *self, strata_event_t *event) {
    STRATA_REFUSE_NULL(self);
    STRATA_REFUSE_NULL(event);
    strata_events_t *events = &self->domain->events;
    strata_handle_t taken;
    while ((taken = strata_events_acquire(events)) == NULL) {
        strata_status_t status = strata_events_ensure(events, 1);
        if (status != STRATA_OK) return status;
    }
    *event = taken;
    return STRATA_OK;
}

void strata_layer_release_event(strata_layer_t *self, strata_event_t event) {
    STRATA_REFUSE_NULL_AS(self, "self", );
    STRATA_REFUSE_NULL_AS(event, "event", );
    strata_events_release(&self->domain->events, event);
}

strata_status_t strata_layer_record_event(strata_layer_t *self, strata_event_t event, strata_stream_t stream) {
    STRATA_REFUSE_NULL(self);
    STRATA_REFUSE_NULL(event);
    return strata_domain_record_event(self->domain, event, stream);
}

strata_status_t strata_layer_query_event(strata_layer_t *self, strata_event_t event) {
    STRATA_REFUSE_NULL(self);
    STRATA_REFUSE_NULL(event);
    return strata_device_event_query(self->domain->device, event);
}

strata_status_t strata_layer_await_event(strata_layer_t *self, strata_stream_t stream, strata_event_t event) {
    STRATA_REFUSE_NULL(self);
    STRATA_REFUSE_NULL(event);
    return strata_device_stream_wait(self->domain->device, stream, event);
}

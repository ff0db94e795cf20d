#include "allocation/uses/free_stream.h"

static strata_device_t *device_of(const strata_free_stream_t *self) { return self->stack->domain->device; }

static strata_events_t *events_of(const strata_free_stream_t *self) { return &self->stack->domain->events; }

static strata_pending_free_t *free_at(const strata_free_stream_t *self, uint32_t node) { return strata_node(&self->frees, node); }

strata_status_t strata_free_stream_init(strata_free_stream_t *self, strata_stack_t *stack) {
    *self = (strata_free_stream_t){.stack = stack};
    return strata_nodes_init(&self->frees, sizeof(strata_pending_free_t), STRATA_EVENTS);
}

void strata_free_stream_destroy(strata_free_stream_t *self) {
    for (uint32_t node = self->first; node; node = free_at(self, node)->next) {
        strata_events_give(events_of(self), free_at(self, node)->event);
        strata_domain_discount(self->stack->domain, free_at(self, node)->bytes);
    }
    if (self->made) (void)strata_device_stream_destroy(device_of(self), self->stream);
    strata_nodes_destroy(&self->frees);
}

/* Of two threads that make it at once one throws its own away. */
strata_status_t strata_free_stream_make(strata_free_stream_t *self) {
    strata_lock(&self->stack->lock);
    bool made = self->made;
    strata_unlock(&self->stack->lock);
    if (made) return STRATA_OK;
    strata_handle_t stream;
    strata_status_t status = strata_device_stream_create(device_of(self), STRATA_STREAM_NON_BLOCKING, 0, &stream);
    if (status != STRATA_OK) return status;
    strata_lock(&self->stack->lock);
    made = self->made;
    if (!made) self->stream = stream;
    self->made = true;
    strata_unlock(&self->stack->lock);
    if (made) (void)strata_device_stream_destroy(device_of(self), stream);
    return STRATA_OK;
}

/* NULL: the device refuses. */
static strata_handle_t take_event(strata_free_stream_t *self) {
    strata_handle_t event;
    while ((event = strata_events_take(events_of(self))) == NULL)
        if (strata_events_ensure(events_of(self), 4) != STRATA_OK) return NULL;
    return event;
}

/* Whether an event was last recorded in a capture: a stream that waits for it is drawn in. A device that knows when it will pass is
 * not asked. */
static bool is_captured(const strata_free_stream_t *self, strata_handle_t event) {
    if (strata_device_event_ready_at(device_of(self), event) != UINT64_MAX) return false;
    return strata_device_event_query(device_of(self), event) == STRATA_E_CAPTURE;
}

bool strata_free_stream_stand_behind(strata_free_stream_t *self, strata_stream_t stream) {
    strata_handle_t event = take_event(self);
    if (!event) return false;
    bool done = strata_device_event_record(device_of(self), event, stream) == STRATA_OK && !is_captured(self, event) &&
                strata_device_stream_wait(device_of(self), self->stream, event) == STRATA_OK;
    strata_events_give(events_of(self), event);
    return done;
}

/* Marks the end of the stream's work so far by the node's event and appends it, in one step under the lock. */
static bool append(strata_free_stream_t *self, uint32_t node, strata_handle_t event, uint64_t bytes) {
    strata_device_t *device = device_of(self);
    if (strata_device_event_record(device, event, self->stream) != STRATA_OK) return false;
    *free_at(self, node) = (strata_pending_free_t){.event = event, .bytes = bytes, .number = ++self->count};
    if (self->last) free_at(self, self->last)->next = node;
    else self->first = node;
    self->last = node;
    self->pending_bytes += bytes;
    self->stack->figures.deferred_bytes += bytes;
    self->stack->figures.deferred_frees++;
    uint64_t now = device->clock->now(device->clock), ready = strata_device_event_ready_at(device, event);
    if (ready != UINT64_MAX) strata_meter_add(&self->stack->domain->deferred, now, ready, bytes);
    return true;
}

void strata_free_stream_note(strata_free_stream_t *self, uint64_t bytes, uint64_t *live) {
    strata_handle_t event = take_event(self);
    strata_lock(&self->stack->lock);
    uint32_t node = event ? strata_nodes_take(&self->frees) : 0;
    bool appended = node && append(self, node, event, bytes);
    if (node && !appended) strata_nodes_give(&self->frees, node);
    if (appended) *live -= bytes;
    strata_unlock(&self->stack->lock);
    if (appended) return;
    if (event) strata_events_give(events_of(self), event);
    (void)strata_device_stream_synchronise(device_of(self), self->stream);
    strata_lock(&self->stack->lock);
    *live -= bytes;
    strata_unlock(&self->stack->lock);
    strata_domain_discount(self->stack->domain, bytes);
}

void strata_free_stream_wait(strata_free_stream_t *self) {
    strata_lock(&self->stack->lock);
    bool pending = self->first != 0;
    strata_unlock(&self->stack->lock);
    if (!pending) return;
    (void)strata_device_stream_synchronise(device_of(self), self->stream);
    strata_lock(&self->stack->lock);
    (void)strata_free_stream_collect(self);
    strata_unlock(&self->stack->lock);
}

uint64_t strata_free_stream_collect(strata_free_stream_t *self) {
    uint64_t freed = 0;
    while (self->first && strata_device_event_query(device_of(self), free_at(self, self->first)->event) == STRATA_OK) {
        uint32_t node = self->first;
        const strata_pending_free_t *done = free_at(self, node);
        strata_events_give(events_of(self), done->event);
        freed += done->bytes;
        self->first = done->next;
        if (self->first == 0) self->last = 0;
        strata_nodes_give(&self->frees, node);
    }
    self->pending_bytes -= freed;
    self->stack->figures.deferred_bytes -= freed;
    strata_domain_discount(self->stack->domain, freed);
    return freed;
}

const strata_pending_free_t *strata_free_stream_last(const strata_free_stream_t *self) {
    return self->last ? free_at(self, self->last) : NULL;
}

uint64_t strata_free_stream_ready_at(const strata_free_stream_t *self) {
    return self->first ? strata_device_event_ready_at(device_of(self), free_at(self, self->first)->event) : UINT64_MAX;
}

strata_status_t strata_free_stream_validate(const strata_free_stream_t *self) {
    uint64_t bytes = 0, number = 0;
    uint32_t last = 0;
    for (uint32_t node = self->first; node; node = free_at(self, node)->next) {
        if (free_at(self, node)->number <= number) return strata_fail(STRATA_E_CORRUPT, 0, "the pending frees are not in order");
        number = free_at(self, node)->number;
        bytes += free_at(self, node)->bytes;
        last = node;
    }
    if (last != self->last || bytes != self->pending_bytes)
        return strata_fail(STRATA_E_CORRUPT, 0, "the end or the sum of the pending frees is wrong");
    return strata_nodes_validate(&self->frees);
}

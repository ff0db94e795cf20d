/* Operations of the domain and the facade on a stack. Each visits the stack's own layers, the top first. */
#include "allocation/domain/layer.h"
#include "platform/arithmetic.h"

uint64_t strata_stack_release(strata_stack_t *stack) {
    uint64_t released = 0;
    if (atomic_load(&stack->group->pinned)) return 0;
    STRATA_EACH_OWN_LAYER(stack, layer) {
        if (!layer->type->release) continue;
        strata_call_t call = {.stack = stack};
        bool entered = strata_call_enter(&call, layer);
        released += layer->type->release(layer, &call);
        strata_call_exit(&call, layer, entered);
    }
    return released;
}

uint64_t strata_stack_trim(strata_stack_t *stack, uint64_t keep) {
    uint64_t released = 0;
    if (atomic_load(&stack->group->pinned)) return 0;
    STRATA_EACH_OWN_LAYER(stack, layer) {
        bool tells = layer->type->idle_bytes != NULL;
        if (!layer->type->trim && !(tells && layer->type->release)) continue;
        /* Memory that a layer above released may be idle in one below, so the idle bytes are counted for
         * each layer. */
        uint64_t idle = strata_stack_idle_bytes(stack);
        if (tells && idle <= keep) continue;
        strata_call_t call = {.stack = stack};
        bool entered = strata_call_enter(&call, layer);
        /* A layer that cannot report its idle bytes (a driver's pool) may keep the part that the others leave. */
        uint64_t own = tells ? layer->type->idle_bytes(layer) : 0, others = idle - strata_min(idle, own);
        if (layer->type->trim) released += layer->type->trim(layer, keep - strata_min(keep, others), &call);
        else released += layer->type->release(layer, &call);
        strata_call_exit(&call, layer, entered);
    }
    return released;
}

void strata_stack_poll(strata_stack_t *stack, strata_pending_t *pending) {
    if (stack->forgotten.orphan) {
        /* Memory of a forgotten stream is pending until that stream's work is done. Afterwards any stream may use it. */
        strata_stack_lock_own(stack);
        strata_handle_t end_event = stack->forgotten.last_event;
        uint64_t at = end_event ? strata_device_event_ready_at(stack->domain->device, end_event) : UINT64_MAX;
        strata_unlock(&stack->lock);
        uint64_t idle = end_event ? strata_stack_idle_bytes(stack) : 0;
        bool passed = end_event && strata_stack_is_done(stack);
        *(passed ? &pending->freed_bytes : &pending->pending_bytes) += idle;
        if (!passed) pending->ready_at = strata_min(pending->ready_at, at);
    }
    STRATA_EACH_OWN_LAYER(stack, layer) {
        if (!layer->type->poll) continue;
        strata_call_t call = {.stack = stack};
        bool entered = strata_call_enter(&call, layer);
        layer->type->poll(layer, &call, pending);
        strata_call_exit(&call, layer, entered);
    }
}

void strata_stack_notify_by(strata_stack_t *stack, strata_notice_t *notice, strata_call_t *call) {
    STRATA_EACH_OWN_LAYER(stack, layer) {
        if (!strata_layer_handles_notice(layer->type, notice->kind)) continue;
        bool entered = strata_call_enter(call, layer);
        layer->type->notify(layer, notice, call);
        strata_call_exit(call, layer, entered);
    }
}

void strata_stack_notify(strata_stack_t *stack, strata_notice_t *notice) {
    strata_call_t call = {.stack = stack};
    strata_stack_notify_by(stack, notice, &call);
}

void strata_stack_stream_destroyed(strata_stack_t *stack, strata_stream_t stream) {
    strata_notice_t notice = {.struct_size = sizeof notice, .kind = STRATA_NOTICE_STREAM_DESTROYED, .stream = stream};
    strata_stack_notify(stack, &notice);
}

void strata_record_notify(strata_record_t *record, strata_notice_t *notice, strata_call_t *call) {
    notice->record = record;
    strata_stack_notify_by(strata_stack_of(record->stack), notice, call);
}

/* If no layer takes such notices, only the plans are examined. */
void strata_domain_notify(strata_domain_t *domain, strata_notice_t *notice) {
    strata_group_t *group = NULL;
    while (!notice->handled && (group = strata_domain_next_group(domain, group)) != NULL) {
        bool takes = false;
        for (uint32_t i = 1; i <= group->plan->count && !takes; i++)
            takes = strata_layer_handles_notice(group->plan->nodes[i].type, notice->kind);
        if (!takes) continue;
        STRATA_DOMAIN_EACH_OF(domain, group, stack)
            if (!notice->handled) strata_stack_notify(stack, notice);
    }
}

void strata_stack_notify_capture(strata_stack_t *stack, uint64_t pool, bool begins) {
    strata_notice_t notice = {
        .struct_size = sizeof notice, .kind = begins ? STRATA_NOTICE_CAPTURE_BEGIN : STRATA_NOTICE_CAPTURE_END, .pool = pool};
    strata_stack_notify(stack, &notice);
}

bool strata_stack_set_frontier(strata_stack_t *stack, uint64_t count) {
    strata_notice_t notice = {.struct_size = sizeof notice, .kind = STRATA_NOTICE_FRONTIER, .count = count};
    strata_stack_lock_own(stack);
    if (stack->open)
        STRATA_EACH_OWN_LAYER(stack, layer) strata_layer_notify(layer, &notice, NULL);
    strata_unlock(&stack->lock);
    return notice.handled;
}

bool strata_stack_is_done(strata_stack_t *stack) {
    strata_stack_lock_own(stack);
    strata_forgotten_t *forgotten = &stack->forgotten;
    if (forgotten->last_event && strata_device_event_query(stack->domain->device, forgotten->last_event) == STRATA_OK) {
        strata_events_release(&stack->domain->events, forgotten->last_event);
        forgotten->last_event = NULL;
    }
    bool passed = strata_forgotten_is_over(forgotten);
    strata_unlock(&stack->lock);
    return passed;
}

/* An event on an idle stream passes within this number of queries. */
enum { QUERIES = 16 };

/* An event also follows the work of the legacy stream that the stack's stream is ordered with. A query of the stream
 * would not, and could break a capture. */
bool strata_stack_is_at_rest(strata_stack_t *stack) {
    strata_domain_t *domain = stack->domain;
    if (strata_events_ensure(&domain->events, 1) != STRATA_OK) return false;
    strata_stack_lock_own(stack);
    bool named = strata_stack_names_stream(stack) && strata_domain_refuse_captured(domain, stack->stream) == STRATA_OK,
         rests = false;
    strata_handle_t event = named ? strata_events_acquire(&domain->events) : NULL;
    if (event && strata_domain_record_event(domain, event, stack->stream) == STRATA_OK)
        for (int i = 0; i < QUERIES && !rests; i++) rests = strata_device_event_query(domain->device, event) == STRATA_OK;
    if (event) strata_events_release(&domain->events, event);
    strata_unlock(&stack->lock);
    return rests;
}

uint64_t strata_stack_idle_bytes(strata_stack_t *stack) {
    uint64_t bytes = 0;
    strata_stack_lock_own(stack);
    STRATA_EACH_OWN_LAYER(stack, layer)
        if (layer->type->idle_bytes) bytes += layer->type->idle_bytes(layer);
    strata_unlock(&stack->lock);
    return bytes;
}

bool strata_stack_is_empty(strata_stack_t *stack) {
    strata_stack_lock(stack);
    bool empty = stack->open && stack->figures.allocations == stack->figures.frees && stack->holds.calls == 0 &&
                 stack->holds.sent_blocks == 0 && stack->figures.deferred_bytes == 0 &&
                 stack->slab.used == 1 + stack->slab.unused + stack->slab.retired;
    strata_stack_unlock(stack);
    return empty;
}

strata_status_t strata_stack_validate(strata_stack_t *stack) {
    strata_stack_lock_own(stack);
    strata_status_t status = stack->open ? strata_slab_validate(&stack->slab) : STRATA_OK;
    if (stack->open)
        STRATA_EACH_OWN_LAYER(stack, layer)
            if (status == STRATA_OK && layer->type->validate) status = layer->type->validate(layer);
    strata_unlock(&stack->lock);
    return status;
}

void strata_stack_walk_live(strata_stack_t *stack, strata_walk_fn live, void *context) {
    strata_stack_lock_own(stack);
    for (uint32_t slot = 1; slot < stack->slab.used; slot++) {
        const strata_record_t *record = strata_slab_record(&stack->slab, slot);
        if (record->state == STRATA_RECORD_LIVE) live(record, context);
    }
    strata_unlock(&stack->lock);
}

void strata_stack_note_pointers(strata_stack_t *stack, strata_directory_t *directory) {
    strata_stack_lock(stack);
    stack->directory = directory;
    for (uint32_t slot = 1; slot < stack->slab.used; slot++) {
        const strata_record_t *record = strata_slab_record(&stack->slab, slot);
        if (record->state == STRATA_RECORD_LIVE && record->size > 0)
            strata_directory_write(directory, record->ptr, stack->number, slot);
    }
    strata_stack_unlock(stack);
}

/* Takes and releases the locks of a call, and passes requests and frees down the layers. */
#include <stdio.h>
#include <string.h>

#include "allocation/domain/layer.h"
#include "allocation/graphs/graphs.h"
#include "platform/arguments.h"
#include "platform/ranges/ranges.h"

strata_unlocked_t strata_call_unlock(strata_call_t *call) {
    strata_unlocked_t opened = {{call->held[0], call->held[1]}};
    call->held[0] = call->held[1] = NULL;
    if (opened.held[1]) strata_unlock(&opened.held[1]->lock);
    if (opened.held[0]) strata_unlock(&opened.held[0]->lock);
    return opened;
}

void strata_call_lock(strata_call_t *call, strata_unlocked_t opened) {
    for (int i = 0; i < 2; i++) {
        if (!opened.held[i]) continue;
        strata_stack_lock_own(opened.held[i]);
        call->held[i] = opened.held[i];
    }
}

/* A thread's shared stack is the lower one for the stacks that share it. For requests that its own cache
 * makes to the layers below, it is the upper one. */
int strata_call_level(const strata_call_t *call, const strata_stack_t *stack) {
    return stack->is_shared && !(stack->of_thread && stack == call->stack) ? 1 : 0;
}

bool strata_call_enter(strata_call_t *call, const strata_layer_t *layer) {
    strata_stack_t *stack = layer->stack;
    int level = strata_call_level(call, stack);
    if (!layer->type->guarded || call->held[level] == stack) return false;
    strata_stack_lock_own(stack);
    call->held[level] = stack;
    return true;
}

void strata_call_exit(strata_call_t *call, const strata_layer_t *layer, bool entered) {
    if (!entered) return;
    call->held[strata_call_level(call, layer->stack)] = NULL;
    strata_unlock(&layer->stack->lock);
}

/* The shared stack of all threads lives as long as its domain, so it needs no count. */
static void change_inside(strata_call_t *call, strata_stack_t *home, uint32_t by) {
    call->stack->holds.calls += by;
    if (home == call->stack || !home->of_thread) return;
    bool held = strata_call_holds(call, home);
    if (!held) strata_stack_lock_own(home);
    home->holds.calls += by;
    if (!held) strata_unlock(&home->lock);
}

strata_stack_t *strata_call_pin_home(strata_call_t *call, const strata_record_t *record) {
    strata_stack_t *home = strata_stack_of(record->home);
    change_inside(call, home, 1);
    return home;
}

void strata_call_unpin_home(strata_call_t *call, strata_stack_t *home) { change_inside(call, home, UINT32_MAX); }

void strata_call_wait(strata_call_t *call, strata_stack_t *stack, strata_condition_t *condition, uint64_t timeout_ns) {
    int own = strata_call_level(call, stack);
    strata_stack_t *other = call->held[1 - own];
    /* A stack's lock is taken before a shared stack's, so the shared stack's must be released before this
     * one is retaken. */
    if (!other) {
        strata_condition_wait(condition, &stack->lock, timeout_ns);
        return;
    }
    strata_unlock(&other->lock);
    strata_condition_wait(condition, &stack->lock, timeout_ns);
    call->held[1 - own] = other;
    strata_unlocked_t opened = {{call->held[0], call->held[1]}};
    strata_unlock(&stack->lock);
    call->held[0] = call->held[1] = NULL;
    strata_call_lock(call, opened);
}

strata_status_t strata_layer_allocate(strata_layer_t *layer, const strata_request_t *request, strata_record_t **record) {
    bool entered = strata_call_enter(request->call, layer);
    strata_status_t status = layer->type->allocate(layer, request, record);
    if (status == STRATA_OK) strata_record_push(*record, layer);
    strata_call_exit(request->call, layer, entered);
    return status;
}

/* If a cache below made the record, it reads the state under this lock. */
static void set_state(const strata_call_t *call, strata_record_t *record, strata_record_state_t state) {
    strata_stack_t *home = strata_stack_of(record->home);
    bool held = strata_call_holds(call, home);
    if (!held) strata_stack_lock_own(home);
    record->state = (uint8_t)state;
    if (!held) strata_unlock(&home->lock);
}

/* Handles a record that is freed because a layer above failed. It never had a ref to end. A layer that
 * keeps or defers it must not see it as a caller's block. */
static void undo(strata_call_t *call, strata_record_t *record) {
    /* A layer may have filled the memory on the stream of the request. An orphan's memory is served to any
     * stream next, with no ordering after that fill. If the end of the fill cannot be observed, no memory of
     * the stack may be reused. The host fills memory that has no owner stream. */
    if (call->stack->forgotten.orphan) {
        strata_unlocked_t opened = strata_call_unlock(call);
        if (!strata_domain_wait_for(call->stack->domain, call->stream)) {
            strata_stack_lock_own(call->stack);
            call->stack->forgotten.borrower_unknown = true;
            strata_unlock(&call->stack->lock);
        }
        strata_call_lock(call, opened);
    }
    set_state(call, record, STRATA_RECORD_DEFERRED);
}

void strata_below_free(strata_record_t *record, strata_call_t *call) {
    strata_stack_t *serving_stack = strata_stack_of(record->stack);
    strata_layer_t *layer = serving_stack->layers[record->route & STRATA_ROUTE_MASK];
    record->route >>= STRATA_ROUTE_BITS;
    if (record->state == STRATA_RECORD_LIVE) undo(call, record);
    bool entered = strata_call_enter(call, layer);
    layer->type->free(layer, record, call);
    strata_call_exit(call, layer, entered);
}

void strata_below_undo(strata_record_t *record, strata_call_t *call) {
    const strata_error_t reason = *strata_last_error();
    strata_below_free(record, call);
    (void)strata_fail_again(&reason);
}

strata_status_t strata_chunk_allocate_from(strata_layer_t *layer, strata_stack_t *stack, uint64_t size,
                                           const strata_request_t *request, strata_record_t **chunk) {
    strata_call_t call = {.stack = stack, .stream = request->stream, .purpose = STRATA_FOR_CHUNK};
    strata_request_t below = *request;
    below.size = size;
    below.call = &call;
    strata_status_t status = strata_graphs_refuse_unannounced(stack, request->stream);
    strata_range_begin(STRATA_RANGE_growth, size);
    if (status == STRATA_OK) status = strata_layer_allocate(layer, &below, chunk);
    strata_range_end();
    if (status == STRATA_OK) set_state(&call, *chunk, STRATA_RECORD_CHUNK);
    return status;
}

strata_status_t strata_chunk_allocate(strata_layer_t *self, uint64_t size, const strata_request_t *request,
                                      strata_record_t **chunk) {
    STRATA_REFUSE_NULL(self);
    STRATA_REFUSE_NULL(request);
    STRATA_REFUSE_NULL(chunk);
    return strata_chunk_allocate_from(self->below[0], self->stack, size, request, chunk);
}

void strata_chunk_free(strata_record_t *chunk) {
    STRATA_REFUSE_NULL_AS(chunk, "chunk", );
    strata_call_t call = {.stack = strata_stack_of(chunk->stack)};
    set_state(&call, chunk, STRATA_RECORD_DEFERRED);
    strata_below_free(chunk, &call);
}

strata_record_t *strata_record_new(strata_layer_t *self, const strata_request_t *request, uint64_t ptr, uint64_t size) {
    strata_slab_t *slab = &self->stack->slab;
    uint32_t slot = strata_slab_acquire(slab);
    if (slot == 0) {
        strata_fail(STRATA_E_LIMIT, 0, "too many blocks: this stack has %u, the maximum; free some, or use more streams or pools",
                    slab->capacity);
        return NULL;
    }
    strata_record_t *record = strata_slab_record(slab, slot);
    record->ptr = ptr;
    record->size = size;
    record->route = 0;
    record->stack = request->call->stack->number;
    record->attention = 0;
    record->prev = record->next = record->bin_prev = record->bin_next = record->chunk = 0;
    record->slack = (uint32_t)(size - request->size);
    record->state = STRATA_RECORD_LIVE;
    record->pool = 0;
    record->borrows = 0;
    return record;
}

void strata_record_delete(strata_layer_t *self, strata_record_t *record) {
    strata_slab_release(&self->stack->slab, strata_slab_slot(&self->stack->slab, record));
}

uint64_t strata_record_withdraw(strata_layer_t *self, strata_record_t *record) {
    strata_stack_lock_own(self->stack);
    uint64_t size = record->size;
    record->size = 0;
    strata_unlock(&self->stack->lock);
    return size;
}

void strata_layer_enable_allocate(strata_layer_t *self, bool enabled) {
    STRATA_REFUSE_NULL_AS(self, "self", );
    if (self->stack->magazine_use.occupied) strata_stack_flush_magazines(self->stack);
    uint16_t *bits = &self->stack->attention_allocate;
    *bits = (uint16_t)(enabled ? *bits | self->attention : *bits & ~self->attention);
}

void strata_route_text(const strata_stack_t *stack, uint64_t call, char *text, size_t capacity) {
    size_t length = 0;
    if (capacity > 0) text[0] = 0;
    for (; call != 0 && length < capacity; call >>= STRATA_ROUTE_BITS) {
        if (stack->group->plan->nodes[call & STRATA_ROUTE_MASK].number == 0) continue;
        const char *name = stack->layers[call & STRATA_ROUTE_MASK]->type->name;
        int wrote = snprintf(text + length, capacity - length, "%s%s", length ? " > " : "", name);
        length += wrote > 0 ? (size_t)wrote : 0;
    }
}

void strata_record_describe(const strata_stack_t *serving_stack, const strata_record_t *record, char *text, size_t capacity) {
    if (capacity == 0) return;
    strata_route_text(serving_stack, record->route, text, capacity);
    for (const strata_record_t *inner = record; (inner = strata_record_inner(inner)) != NULL; record = inner) {
        size_t upper = strlen(text);
        if (upper + 4 > capacity) return;
        memcpy(text + upper, " > ", 4);
        strata_route_text(serving_stack, inner->route, text + upper + 3, capacity - upper - 3);
    }
    strata_layer_t *layer = strata_record_maker(serving_stack, record);
    const strata_record_t *chunk = layer && layer->type->chunk_of ? layer->type->chunk_of(layer, record) : NULL;
    size_t length = strlen(text);
    if (!chunk || length + 3 >= capacity) return;
    memcpy(text + length, " | ", 4);
    const strata_stack_t *below = strata_stack_of(chunk->stack);
    strata_route_text(below, chunk->route, text + length + 3, capacity - length - 3);
}

/* Finds a record by its ref, notes borrows, and frees through the layers of the route in reverse order. */
#include "allocation/domain/layer.h"
#include "allocation/domain/sent.h"
#include "allocation/reclaim/waiting.h"
#include "allocation/uses/record_notes.h"
#include "platform/arguments.h"

static strata_status_t stale(strata_ref_t ref, const char *why) {
    return strata_fail(STRATA_E_STALE, 0, "ref %#llx (stack %u, slot %u): %s", (unsigned long long)ref,
                       (unsigned)strata_ref_home(ref), (unsigned)strata_ref_slot(ref), why);
}

/* Returns the live record of a ref, or NULL with the reason set. The lock of `home` is held. */
static strata_record_t *checked(strata_stack_t *home, strata_t facade, strata_ref_t ref) {
    uint32_t slot = strata_ref_slot(ref);
    const char *why = NULL;
    if (!home->open) why = "its stack was closed";
    else if (home->facade != facade) why = "it belongs to another facade";
    else if (slot == 0 || slot >= home->slab.used) why = "it was never allocated";
    if (why) {
        stale(ref, why);
        return NULL;
    }
    strata_record_t *record = strata_slab_record(&home->slab, slot);
    if (record->generation != strata_ref_generation(ref) || record->state != STRATA_RECORD_LIVE) {
        stale(ref, "it was already freed");
        return NULL;
    }
    return record;
}

/* A stack's lock is taken before a shared stack's. */
static void lock_in_order(strata_call_t *call, strata_stack_t *serving_stack) {
    strata_stack_lock_own(serving_stack);
    call->held[strata_call_level(call, serving_stack)] = serving_stack;
    strata_stack_t *shared = atomic_load(&serving_stack->home);
    if (shared == serving_stack) return;
    strata_stack_lock_own(shared);
    call->held[strata_call_level(call, shared)] = shared;
}

strata_status_t strata_record_find(strata_t facade, strata_ref_t ref, strata_call_t *call, strata_record_t **out) {
    strata_stack_t *home = strata_stack_of(strata_ref_home(ref));
    if (!home) return stale(ref, "it was never allocated");
    strata_stack_lock_own(home);
    strata_record_t *record = checked(home, facade, ref);
    if (!record) {
        strata_unlock(&home->lock);
        return STRATA_E_STALE;
    }
    strata_stack_t *serving_stack = strata_stack_of(record->stack);
    *call = (strata_call_t){.stack = serving_stack};
    *out = record;
    if (serving_stack == home && atomic_load(&serving_stack->home) == serving_stack) {
        call->held[strata_call_level(call, home)] = home;
        return STRATA_OK;
    }
    strata_unlock(&home->lock);
    lock_in_order(call, serving_stack);
    /* The record may have been freed while no lock was held. */
    bool held = strata_call_holds(call, home);
    if (!held) strata_stack_lock_own(home);
    *out = checked(home, facade, ref);
    if (!held) strata_unlock(&home->lock);
    if (*out) return STRATA_OK;
    (void)strata_call_unlock(call);
    return STRATA_E_STALE;
}

/* ---- borrows ---- */

/* Returns the first layer that handles borrows, or NULL. It searches `route`, the rest of the record's
 * route, from the top, and then the records inside. Sets *record to the record that this layer handles. */
static strata_layer_t *borrow_layer(const strata_stack_t *serving_stack, uint64_t route, strata_record_t **record) {
    for (strata_record_t *at = *record; at; at = strata_record_inner(at), route = at ? at->route : 0) {
        for (; route; route >>= STRATA_ROUTE_BITS) {
            strata_layer_t *layer = serving_stack->layers[route & STRATA_ROUTE_MASK];
            if (!layer->type->record_stream) continue;
            *record = at;
            return layer;
        }
    }
    return NULL;
}

static strata_layer_t *borrow_layer_below(const strata_layer_t *self, strata_record_t **record) {
    uint64_t route = (*record)->route;
    while (route && (route & STRATA_ROUTE_MASK) != self->number) route >>= STRATA_ROUTE_BITS;
    return borrow_layer(strata_stack_of((*record)->stack), route >> STRATA_ROUTE_BITS, record);
}

/* The builder adds a layer that handles them where a strategy names none. */
static strata_status_t fail_unhandled(void) {
    return strata_fail(STRATA_E_INVALID, 0, "the block came from no layer that handles borrows");
}

static strata_status_t note(strata_layer_t *layer, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    if (!layer) return fail_unhandled();
    bool entered = strata_call_enter(call, layer);
    strata_status_t status = layer->type->record_stream(layer, record, stream, call);
    strata_call_exit(call, layer, entered);
    return status;
}

static strata_status_t erase(strata_layer_t *layer, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    if (!layer) return fail_unhandled();
    if (!layer->type->erase_stream) return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s cannot undo a borrow", layer->type->name);
    bool entered = strata_call_enter(call, layer);
    strata_status_t status = layer->type->erase_stream(layer, record, stream, call);
    strata_call_exit(call, layer, entered);
    return status;
}

strata_status_t strata_below_record_stream(strata_layer_t *self, strata_record_t *record, strata_stream_t stream,
                                           strata_call_t *call) {
    STRATA_REFUSE_NULL(self);
    STRATA_REFUSE_NULL(record);
    STRATA_REFUSE_NULL(call);
    strata_layer_t *layer = borrow_layer_below(self, &record);
    return note(layer, record, stream, call);
}

strata_status_t strata_below_erase_stream(strata_layer_t *self, strata_record_t *record, strata_stream_t stream,
                                          strata_call_t *call) {
    STRATA_REFUSE_NULL(self);
    STRATA_REFUSE_NULL(record);
    STRATA_REFUSE_NULL(call);
    strata_layer_t *layer = borrow_layer_below(self, &record);
    return erase(layer, record, stream, call);
}

strata_status_t strata_record_borrow(strata_call_t *call, strata_record_t *record, strata_stream_t stream) {
    if (record->size == 0) return STRATA_OK;
    strata_stack_t *home = strata_call_pin_home(call, record);
    strata_domain_note_borrower(call->stack, stream);
    strata_layer_t *layer = borrow_layer(call->stack, record->route, &record);
    strata_status_t status = note(layer, record, stream, call);
    strata_call_unpin_home(call, home);
    return status;
}

strata_status_t strata_record_unborrow(strata_call_t *call, strata_record_t *record, strata_stream_t stream) {
    if (record->size == 0) return STRATA_OK;
    strata_stack_t *home = strata_call_pin_home(call, record);
    strata_layer_t *layer = borrow_layer(call->stack, record->route, &record);
    strata_status_t status = erase(layer, record, stream, call);
    strata_call_unpin_home(call, home);
    return status;
}

/* ---- free ---- */

/* Ends the ref, which is stale from here on: a second free finds another generation. Afterwards this call
 * alone owns the record, and the stack is not destroyed before leave(), whatever it holds. */
static void begin_free(strata_call_t *call, strata_record_t *record) {
    strata_stack_t *serving_stack = call->stack, *home = strata_stack_of(record->home);
    strata_stack_unbook(serving_stack, record);
    serving_stack->uncached.bytes -= strata_record_reserved(record);
    bool held = strata_call_holds(call, home);
    if (!held) strata_stack_lock_own(home);
    record->generation++;
    record->state = STRATA_RECORD_DEFERRED;
    if (!held) strata_unlock(&home->lock);
    serving_stack->holds.calls++;
}

/* A thread that waits for memory may do so in another stack. */
static void end_free(strata_stack_t *serving_stack) {
    strata_domain_t *domain = serving_stack->domain;
    strata_stack_lock(serving_stack);
    bool waited_for = serving_stack->attention_free & STRATA_ATTENTION_WAITER;
    serving_stack->holds.calls--;
    strata_stack_unlock(serving_stack);
    if (waited_for) strata_domain_wake(domain);
}

/* Releases the lock, which is held. If not all users are known to be done or noted, the block is
 * quarantined. It is then never reused, and is returned when the stack ends. */
static void return_block(strata_call_t *call, strata_record_t *record, bool known) {
    strata_stack_t *serving_stack = call->stack;
    if (record->route == 0) {
        strata_slab_release(&serving_stack->slab, strata_slab_slot(&serving_stack->slab, record));
        (void)strata_call_unlock(call);
        return;
    }
    if (!known) serving_stack->figures.quarantined_bytes += record->size;
    (void)strata_call_unlock(call);
    if (known) strata_below_free(record, call);
}

/* Completes a free whose ref has ended. A block that other processes use stays as a deferred block, in no
 * layer's list. */
static void finish(strata_call_t *call, strata_record_t *record, strata_sent_mark_t mark, bool known) {
    strata_domain_t *domain = call->stack->domain;
    if (strata_sent_defer(call, mark, record, known)) {
        record->attention |= STRATA_ATTENTION_NOTES; /* the record is in limbo */
        call->stack->holds.sent_blocks++;
        (void)strata_call_unlock(call);
    } else {
        return_block(call, record, known);
    }
    end_free(call->stack);
    if (mark.number) (void)strata_sent_poll(domain);
}

void strata_record_return(strata_record_t *record, bool known) {
    strata_call_t call = {.stack = strata_stack_of(record->stack)};
    lock_in_order(&call, call.stack);
    record->attention &= (uint16_t)~STRATA_ATTENTION_NOTES;
    call.stack->holds.sent_blocks--;
    call.stack->holds.calls++;
    return_block(&call, record, known);
    end_free(call.stack);
}

void strata_record_free(strata_call_t *call, strata_record_t *record) {
    bool known = !strata_record_has_unknown_use(call, record);
    strata_sent_mark_t mark = strata_sent_mark(call, record);
    if (strata_record_drop_owner(call, record)) {
        (void)strata_call_unlock(call);
        return;
    }
    begin_free(call, record);
    finish(call, record, mark, known);
}

/* If the block has several owners, this owner's use is noted as unknown, because the last owner cannot
 * wait for it. */
void strata_record_quarantine(strata_call_t *call, strata_record_t *record) {
    if (strata_record_is_shared(call, record)) strata_record_note_unknown_use(call, record);
    strata_sent_mark_t mark = strata_sent_mark(call, record);
    if (strata_record_drop_owner(call, record)) {
        (void)strata_call_unlock(call);
        return;
    }
    begin_free(call, record);
    finish(call, record, mark, false);
}

/* Notes the last use on `stream` as a borrow. If that fails, the host waits. Returns false if neither was
 * possible. The call's lock is held, and may be released in between. */
static bool note_last_use(strata_call_t *call, strata_record_t *record, strata_stream_t stream) {
    strata_status_t status = strata_record_borrow(call, record, stream);
    if (status == STRATA_OK || status == STRATA_E_UNSUPPORTED) return true;
    strata_unlocked_t opened = strata_call_unlock(call);
    bool done = strata_domain_wait_for(call->stack->domain, stream);
    strata_call_lock(call, opened);
    return done;
}

void strata_record_free_on(strata_call_t *call, strata_record_t *record, strata_stream_t stream) {
    /* Notes a use that outlives this owner before the other owners can free the block. */
    if (strata_record_is_shared(call, record)) {
        if (!note_last_use(call, record, stream)) strata_record_note_unknown_use(call, record);
        strata_record_free(call, record);
        return;
    }
    bool known = !strata_record_has_unknown_use(call, record);
    strata_sent_mark_t mark = strata_sent_mark(call, record);
    (void)strata_record_drop_owner(call, record);
    begin_free(call, record);
    known = note_last_use(call, record, stream) && known;
    finish(call, record, mark, known);
}

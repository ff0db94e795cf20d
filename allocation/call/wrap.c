/* Wraps records for decorators that change the address or the size. */
#include "allocation/domain/layer.h"
#include "platform/arguments.h"

strata_layer_t *strata_record_maker(const strata_stack_t *serving_stack, const strata_record_t *record) {
    uint64_t route = record->route;
    while (route >> STRATA_ROUTE_BITS) route >>= STRATA_ROUTE_BITS;
    return route ? serving_stack->layers[route] : NULL;
}

/* A look-up of a ref reads the state under the lock of the record's home. If the home is not our stack,
 * it is the shared stack, whose lock is taken after ours. */
static void set_state(const strata_layer_t *self, strata_record_t *record, strata_record_state_t state) {
    strata_stack_t *home = strata_stack_of(record->home);
    if (home != self->stack) strata_stack_lock_own(home);
    record->state = (uint8_t)state;
    if (home != self->stack) strata_unlock(&home->lock);
}

strata_record_t *strata_record_wrap(strata_layer_t *self, const strata_request_t *request, strata_record_t *inner, uint64_t ptr,
                                    uint64_t size) {
    strata_record_t *record = strata_record_new(self, request, ptr, size);
    if (!record) return NULL;
    record->wrapped_slot = strata_slab_slot(&strata_stack_of(inner->home)->slab, inner);
    record->wrapped_home = inner->home;
    set_state(self, inner, STRATA_RECORD_CHUNK);
    return record;
}

strata_record_t *strata_record_wrapped(const strata_record_t *record) {
    return strata_slab_record(&strata_stack_of((uint16_t)record->wrapped_home)->slab, record->wrapped_slot);
}

/* Decorators make records only by wrapping. */
strata_record_t *strata_record_inner(const strata_record_t *record) {
    const strata_layer_t *maker = strata_record_maker(strata_stack_of(record->stack), record);
    return maker && maker->type->role == STRATA_DECORATOR ? strata_record_wrapped(record) : NULL;
}

uint64_t strata_record_reserved(const strata_record_t *record) {
    const strata_record_t *inner;
    if (record->chunk != 0) return 0;
    while ((inner = strata_record_inner(record)) != NULL) record = inner;
    return record->chunk == 0 ? record->size : 0;
}

strata_record_t *strata_record_unwrap(strata_layer_t *self, strata_record_t *record) {
    strata_record_t *inner = strata_record_wrapped(record);
    strata_record_delete(self, record);
    set_state(self, inner, STRATA_RECORD_DEFERRED);
    return inner;
}

bool strata_record_is_borrowed(const strata_record_t *record) {
    const strata_stack_t *stack = strata_stack_of(record->stack);
    if (record->borrows) return true;
    for (uint64_t route = record->route; route; route >>= STRATA_ROUTE_BITS) {
        const strata_layer_t *layer = stack->layers[route & STRATA_ROUTE_MASK];
        if (STRATA_LAYER_HAS(layer->type, is_borrowed) && layer->type->is_borrowed(layer, record)) return true;
    }
    return false;
}

bool strata_record_borrowed_below(const strata_record_t *record) {
    STRATA_REFUSE_NULL_AS(record, "record", false);
    strata_record_t *inner = strata_record_wrapped(record);
    while (inner && !strata_record_is_borrowed(inner)) inner = strata_record_inner(inner);
    return inner != NULL;
}

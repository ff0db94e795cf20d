/* Functions of the core for the layers of the tree, in addition to strata/layer.h, which is for all layers. */
#ifndef STRATA_ALLOCATION_LAYER_H
#define STRATA_ALLOCATION_LAYER_H

#include "allocation/domain/domain.h"
#include "allocation/stack/stack.h"

/* Notifies a layer if its type takes notices of this kind. The layer's lock is held, unless the kind has
 * another rule. `call` may be NULL for FRONTIER, PEAKS, FIGURES and REPORT. */
static inline void strata_layer_notify(strata_layer_t *layer, strata_notice_t *notice, strata_call_t *call) {
    if (strata_layer_handles_notice(layer->type, notice->kind)) layer->type->notify(layer, notice, call);
}
/* Walks the instances that are a stack's own, from the top. Those of device scope belong to the shared stack. */
#define STRATA_EACH_OWN_LAYER(stack, layer)                                                                                        \
    for (uint32_t n_ = 1; n_ <= (stack)->group->plan->count; n_++)                                                                 \
        for (strata_layer_t *layer = (stack)->layers[n_]; layer && layer->stack == (stack); layer = NULL)

/* The alignment of a place's memory, which does not depend on the layer that serves it. */
static inline uint64_t strata_place_alignment(strata_place_kind_t place) { return place == STRATA_PLACE_HOST ? 64 : 256; }

/* ---- locks ---- */

/* Returns the index of a stack's lock in held[]. */
int strata_call_level(const strata_call_t *call, const strata_stack_t *stack);
/* Returns whether the call holds the lock of a stack. */
static inline bool strata_call_holds(const strata_call_t *call, const strata_stack_t *stack) {
    return call->held[0] == stack || call->held[1] == stack;
}
/* Takes the lock of a guarded layer if the call does not hold it. Returns whether it did, for
 * strata_call_exit(). */
bool strata_call_enter(strata_call_t *call, const strata_layer_t *layer);
void strata_call_exit(strata_call_t *call, const strata_layer_t *layer, bool entered);
/* Enclose code that may release the locks while another thread frees the record. Neither the stack that
 * served it, which the call holds the lock of, nor its home, which is returned, is destroyed in between. */
strata_stack_t *strata_call_pin_home(strata_call_t *call, const strata_record_t *record);
void strata_call_unpin_home(strata_call_t *call, strata_stack_t *home);
/* Sleeps on a condition of a stack. The call holds that stack's lock, and every other lock of the call is
 * released. May wake without a reason. */
void strata_call_wait(strata_call_t *call, strata_stack_t *stack, strata_condition_t *condition, uint64_t timeout_ns);

/* Allocates a record of a layer for the core itself, as a call of `stack`. It is not a block of the
 * program. The core frees it with strata_chunk_free(). No lock is held. */
strata_status_t strata_chunk_allocate_from(strata_layer_t *layer, strata_stack_t *stack, uint64_t size,
                                           const strata_request_t *request, strata_record_t **chunk);

/* ---- records; the lock of the layer's stack is held ---- */

static inline void strata_record_push(strata_record_t *record, const strata_layer_t *layer) {
    record->route = record->route << STRATA_ROUTE_BITS | layer->number;
}

/* Returns the number of the layer that made the record, at the bottom of its route, or 0 if that layer is
 * freeing it. */
static inline uint8_t strata_record_maker_number(const strata_record_t *record) {
    uint64_t route = record->route;
    while (route >> STRATA_ROUTE_BITS) route >>= STRATA_ROUTE_BITS;
    return (uint8_t)route;
}

/* Returns the bottom layer of a record's route, which made it, or NULL for a record of 0 bytes. */
strata_layer_t *strata_record_maker(const strata_stack_t *serving_stack, const strata_record_t *record);

/* Clears the block in a source's record before the device frees it, because another thread may get the
 * address before the record is gone. Returns its bytes, which the source restores once the device has
 * answered. No lock is held. */
uint64_t strata_record_withdraw(strata_layer_t *self, strata_record_t *record);

/* Returns whether a layer of its route has recorded a borrow of it. */
bool strata_record_is_borrowed(const strata_record_t *record);

/* ---- records that others wrap (strata_record_wrap()) ---- */

/* Returns the record inside a record, unless a free is returning it. NULL if the record belongs to a source
 * or a cache. */
strata_record_t *strata_record_inner(const strata_record_t *record);
/* Calls strata_below_free() for a record that was served for a request that then failed above. The reason
 * of that failure stays. */
void strata_below_undo(strata_record_t *record, strata_call_t *call);

/* Writes "retry > stream_safe > auto_growth | system": the layers of an allocation, then those of its
 * chunk. The lock of `serving_stack`, which served it, is held. */
void strata_record_describe(const strata_stack_t *serving_stack, const strata_record_t *record, char *text, size_t capacity);

#endif

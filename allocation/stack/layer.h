/* What the core offers to the layers of the tree beside what strata/layer.h offers to all. */
#ifndef STRATA_ALLOCATION_LAYER_H
#define STRATA_ALLOCATION_LAYER_H

#include "allocation/domain/domain.h"
#include "allocation/stack/stack.h"

/* Whether a layer has an operation that older ones lack. */
#define STRATA_LAYER_HAS(type, operation)                                                                                          \
    ((type)->struct_size >= offsetof(strata_layer_type_t, operation) + sizeof(type)->operation && (type)->operation)
/* The instances that are a stack's own, the top first; those of device scope are the shared stack's. */
#define STRATA_EACH_OWN_LAYER(stack, layer)                                                                                        \
    for (uint32_t n_ = 1; n_ <= (stack)->group->plan->count; n_++)                                                                 \
        for (strata_layer_t *layer = (stack)->layers[n_]; layer && layer->stack == (stack); layer = NULL)

/* What the memory of a place begins at multiples of, whoever serves it. */
static inline uint64_t strata_place_alignment(strata_place_kind_t place) { return place == STRATA_PLACE_HOST ? 64 : 256; }

/* ---- locks ---- */

/* Where in held[] a stack's lock stands. */
int strata_call_level(const strata_call_t *call, const strata_stack_t *stack);
/* Whether the call holds the lock of a stack. */
static inline bool strata_call_holds(const strata_call_t *call, const strata_stack_t *stack) {
    return call->held[0] == stack || call->held[1] == stack;
}
/* Takes the lock of a guarded layer if the path does not hold it; answers whether it did, for strata_call_leave(). */
bool strata_call_enter(strata_call_t *call, const strata_layer_t *layer);
void strata_call_leave(strata_call_t *call, const strata_layer_t *layer, bool entered);
/* Round a call that may open the locks while another frees the record: neither the stack that served it, whose lock the path
 * holds, nor its home, which is answered, ends meanwhile. */
strata_stack_t *strata_call_stay(strata_call_t *call, const strata_record_t *record);
void strata_call_stayed(strata_call_t *call, strata_stack_t *home);
/* Sleeps on a condition of a stack whose lock the path holds, with every other lock of the path open. Wakes may be spurious. */
void strata_call_wait(strata_call_t *call, strata_stack_t *stack, strata_condition_t *condition, uint64_t timeout_ns);

/* ---- records; under the lock of the layer's stack ---- */

static inline void strata_record_push(strata_record_t *record, const strata_layer_t *layer) {
    record->route = record->route << 8 | layer->number;
}

/* The number of the layer that made the record: the bottom of its decorator stack; 0: the maker is freeing it. */
static inline uint8_t strata_record_maker_number(const strata_record_t *record) {
    uint64_t route = record->route;
    while (route >> 8) route >>= 8;
    return (uint8_t)route;
}

/* The bottom layer of a record's decorator stack: the one that made it. NULL: a record of 0 bytes. */
strata_layer_t *strata_record_maker(const strata_stack_t *server, const strata_record_t *record);

/* A source's record on its way to the device: it shows no block any more, since another thread may be given the address before the
 * record is gone. Answers its bytes, which the source writes back once the device has answered. No lock is held. */
uint64_t strata_record_withdraw(strata_layer_t *self, strata_record_t *record);

/* ---- records that others wrap (strata_record_wrap()) ---- */

/* What a record holds, for any that no free is taking back; NULL: it is a source's or a cache's. */
strata_record_t *strata_record_inner(const strata_record_t *record);
/* strata_below_free() of what was served for a request that then failed above: the reason of that failure stays. */
void strata_below_undo(strata_record_t *record, strata_call_t *call);

/* "retry > stream_safe > auto_growth | system": the layers of an allocation, then those of the chunk it lies in. The lock of
 * `server`, which served it, is held. */
void strata_record_describe(const strata_stack_t *server, const strata_record_t *record, char *text, size_t capacity);

#endif

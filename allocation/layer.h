/* What the core offers to the layers of the tree beside what strata/layer.h offers to all. */
#ifndef STRATA_ALLOCATION_LAYER_H
#define STRATA_ALLOCATION_LAYER_H

#include "allocation/domain.h"
#include "allocation/stack.h"

/* ---- locks ---- */

/* Takes the lock of a guarded layer if the path does not hold it; answers whether it did, for strata_path_leave(). */
bool strata_path_enter(strata_path_t *path, const strata_layer_t *layer);
void strata_path_leave(strata_path_t *path, const strata_layer_t *layer, bool entered);
/* Sleeps on a condition of a stack whose lock the path holds, with every other lock of the path open. Wakes may be spurious. */
void strata_path_wait(strata_path_t *path, strata_stack_t *stack, strata_condition_t *condition, uint64_t timeout_ns);

/* ---- records; under the lock of the layer's stack ---- */

static inline void strata_record_push(strata_record_t *record, const strata_layer_t *layer) {
    record->path = record->path << 8 | layer->number;
}

/* "retry > stream_safe > auto_growth | system": the layers of an allocation, then those of the chunk it lies in. The lock of
 * `server`, which served it, is held. */
void strata_record_describe(const strata_stack_t *server, const strata_record_t *record, char *text, size_t capacity);

#endif

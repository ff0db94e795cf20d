/* Describes the cache that serves a stream of a place below its decorators. */
#include <stdio.h>
#include <string.h>

#include "allocation/domain/layer.h"
#include "facade/registry/facade.h"
#include "platform/arguments.h"

/* Returns a cache or source at or below `layer`, depth first, after skipping *left of them. */
static strata_layer_t *find(strata_layer_t *layer, size_t *left) {
    if (layer->type->role == STRATA_CACHE || layer->type->role == STRATA_SOURCE) return (*left)-- == 0 ? layer : NULL;
    for (uint32_t i = 0; i < layer->below_count; i++) {
        strata_layer_t *found = find(layer->below[i], left);
        if (found) return found;
    }
    return NULL;
}

static bool is_held(const strata_record_t *record) {
    return record->state != STRATA_RECORD_UNUSED && record->state != STRATA_RECORD_FREE;
}

static void count_held(const strata_record_t *record, void *context) {
    uint64_t *bytes = context;
    if (is_held(record)) *bytes += record->size;
}

/* Requires the lock of the layer's stack. A source keeps no blocks, so its served blocks are found in the slab. */
static uint64_t used_bytes(strata_layer_t *layer) {
    uint64_t bytes = 0;
    if (layer->type->walk) {
        layer->type->walk(layer, count_held, &bytes);
        return bytes;
    }
    const strata_slab_t *slab = &layer->stack->slab;
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        const strata_record_t *record = strata_slab_record(slab, slot);
        if (strata_record_maker_number(record) == layer->number) count_held(record, &bytes);
    }
    return bytes;
}

static void describe(strata_layer_t *layer, strata_cache_t *cache) {
    snprintf(cache->name, sizeof cache->name, "%s", layer->stack->group->plan->nodes[layer->number].name);
    snprintf(cache->layer, sizeof cache->layer, "%s", layer->type->name);
    cache->id = layer->serial;
    strata_stack_lock_own(layer->stack);
    cache->used_bytes = used_bytes(layer);
    cache->idle_bytes = layer->type->idle_bytes ? layer->type->idle_bytes(layer) : 0;
    strata_unlock(&layer->stack->lock);
}

strata_status_t strata_cache_below(strata_t handle, strata_place_t place, strata_stream_t stream, size_t index,
                                   strata_cache_t *cache) {
    STRATA_REFUSE_NULL(cache);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    STRATA_REFUSE_RESULT(cache);
    strata_stack_t *stack;
    uint64_t pool;
    strata_status_t status = strata_facade_pool(facade, place, 0, &pool);
    if (status == STRATA_OK) status = strata_facade_pool_stack(facade, place, pool, stream, &stack);
    if (status != STRATA_OK) return status;
    size_t left = index;
    strata_layer_t *layer = find(stack->top, &left);
    if (!layer)
        return strata_fail(STRATA_E_INVALID, 0, "index %zu: the stack has %zu cache%s", index, index - left,
                           index - left == 1 ? "" : "s");
    strata_cache_t found = {.id = layer->serial};
    describe(layer, &found);
    strata_fill_result(cache, &found, sizeof found);
    return STRATA_OK;
}

/* Finds the source of handles that contains a block. */
#include "facade/share/share.h"

#include "allocation/domain/layer.h"

strata_layer_t *strata_share_next_source(strata_share_walk_t *walk) {
    for (;;) {
        if (!walk->group || walk->number > STRATA_PLAN_ALL) {
            walk->group = strata_domain_next_group(walk->domain, walk->group);
            if (!walk->group) return NULL;
            walk->number = 0;
        }
        while (walk->number <= STRATA_PLAN_ALL) {
            strata_layer_t *layer = walk->group->shared[walk->number++];
            if (layer && layer->type->role == STRATA_SOURCE) return layer;
        }
    }
}

const strata_handles_t *strata_share_handles(const strata_layer_t *layer) {
    return STRATA_LAYER_HAS(layer->type, handles) ? layer->type->handles : NULL;
}

/* Returns the location of a block. The block is live, so the location stays valid. */
static strata_status_t locate(strata_t handle, strata_ref_t ref, strata_share_block_t *block) {
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    *block = (strata_share_block_t){.domain = call.stack->domain, .address = record->ptr, .size = record->size};
    (void)strata_call_unlock(&call);
    return STRATA_OK;
}

static strata_status_t refuse(const strata_share_block_t *block, const char *what) {
    return strata_fail(
        STRATA_E_UNSUPPORTED, 0,
        "%s: the block at 0x%llx is not in handles; write vmm instead of its source (stack: [stream_safe, auto_growth, vmm]), "
        "in a pool if only some memory is to be shared",
        what, (unsigned long long)block->address);
}

strata_status_t strata_share_hold(strata_t handle, strata_ref_t ref, strata_hold_t hold, const char *what, uint32_t capacity,
                                  strata_share_block_t *block) {
    strata_status_t status = locate(handle, ref, block);
    if (status != STRATA_OK) return status;
    if (block->size == 0) return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s: a block of 0 bytes has no memory", what);
    strata_share_walk_t walk = {.domain = block->domain};
    while ((block->source = strata_share_next_source(&walk)) != NULL) {
        const strata_handles_t *handles = strata_share_handles(block->source);
        if (!handles) continue;
        status = handles->hold(block->source, hold, block->address, block->size, block->held, capacity, &block->count);
        if (status == STRATA_OK) return STRATA_OK;
        if (status == STRATA_E_BUSY) return strata_fail_context("%s", what);
        if (status != STRATA_E_UNKNOWN_POINTER)
            return strata_fail(status, 0,
                               "%s: the block spans %u handles, and the maximum is %u; registrable: true of vmm keeps it in one",
                               what, block->count, capacity);
    }
    return refuse(block, what);
}

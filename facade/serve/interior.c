/* Locates a block: from an address inside it, by its place, or in the device's memory. */
#include "allocation/call/blocks.h"
#include "allocation/domain/layer.h"
#include "facade/registry/diagnose.h"
#include "facade/registry/facade.h"
#include "facade/serve/slow_path.h"
#include "platform/arguments.h"

/* Finds the block of a stack that contains the address. Takes the stack's lock. */
static bool block_in(strata_stack_t *stack, uint64_t address, strata_block_t *block) {
    strata_stack_lock_own(stack);
    const strata_record_t *record = strata_stack_block_at(stack, address);
    if (record)
        *block = (strata_block_t){(void *)(uintptr_t)record->ptr, (size_t)record->size,
                                  strata_ref_make(stack->number, strata_slab_slot(&stack->slab, record), record->generation)};
    strata_unlock(&stack->lock);
    return record != NULL;
}

strata_status_t strata_base_pointer(strata_t handle, const void *interior, strata_block_t *block) {
    STRATA_REFUSE_NULL(block);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL)
        STRATA_DOMAIN_EACH(domain, stack) {
            if (!block_in(stack, (uint64_t)(uintptr_t)interior, block)) continue;
            strata_domain_end_walk(domain, stack);
            return STRATA_OK;
        }
    return strata_diagnose_pointer(facade, interior, "contains it");
}

bool strata_facade_holds(strata_facade_t *facade, const void *address) {
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL)
        STRATA_DOMAIN_EACH(domain, stack) {
            strata_stack_lock_own(stack);
            bool held = strata_stack_holds(stack, (uint64_t)(uintptr_t)address);
            strata_unlock(&stack->lock);
            if (!held) continue;
            strata_domain_end_walk(domain, stack);
            return true;
        }
    return false;
}

strata_status_t strata_place_of(strata_t handle, strata_ref_t ref, strata_place_t *place) {
    STRATA_REFUSE_NULL(place);
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    *place = call.stack->domain->place;
    (void)strata_call_unlock(&call);
    return STRATA_OK;
}

/* Returns the record that this one was made from, or NULL if the device served it. */
static const strata_record_t *below(const strata_record_t *record) {
    const strata_record_t *inner = strata_record_inner(record);
    if (inner) return inner;
    strata_layer_t *maker = strata_record_maker(strata_stack_of(record->stack), record);
    return maker && maker->type->chunk_of ? maker->type->chunk_of(maker, record) : NULL;
}

strata_status_t strata_base_of(strata_t handle, strata_ref_t ref, void **base, size_t *size) {
    STRATA_REFUSE_NULL(base);
    STRATA_REFUSE_NULL(size);
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    const strata_record_t *piece = record;
    for (const strata_record_t *next; (next = below(piece)) != NULL;) piece = next;
    if (record->ptr - piece->ptr <= piece->size && record->size <= piece->size - (record->ptr - piece->ptr)) {
        *base = (void *)(uintptr_t)piece->ptr;
        *size = (size_t)piece->size;
    } else {
        status = strata_fail(STRATA_E_UNSUPPORTED, 0, "the block spans several pieces of memory");
    }
    (void)strata_call_unlock(&call);
    return status;
}

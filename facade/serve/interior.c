/* From an address inside a block to the block. */
#include "allocation/call/blocks.h"
#include "facade/serve/arguments.h"
#include "facade/serve/diagnose.h"

/* The block of a stack that contains the address, under its lock. */
static bool block_in(strata_stack_t *stack, uint64_t address, strata_block_t *block) {
    strata_lock(&stack->lock);
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
            strata_domain_leave_stack(domain, stack);
            return STRATA_OK;
        }
    return strata_diagnose_pointer(facade, interior, "holds it");
}

/* Registers blocks with hardware that uses them by address. */
#include "facade/share/share.h"
#include "platform/arguments.h"
#include "platform/text/pointer.h"

enum { LIMIT = STRATA_SHARE_SEGMENTS };

strata_status_t strata_register(strata_t handle, strata_ref_t ref, strata_registration_t *registration) {
    STRATA_REFUSE_NULL(registration);
    strata_share_block_t block;
    strata_status_t status = strata_share_hold(handle, ref, STRATA_HOLD_REGISTERED, "strata_register", LIMIT, &block);
    if (status != STRATA_OK) return status;
    const strata_held_t *last = &block.held[block.count - 1];
    *registration = (strata_registration_t){.ptr = (void *)(uintptr_t)block.address,
                                            .size = (size_t)block.size,
                                            .base = (void *)(uintptr_t)block.held[0].address,
                                            .base_size = (size_t)(last->address + last->size - block.held[0].address),
                                            .handles = block.count,
                                            .place = block.domain->place};
    return STRATA_OK;
}

strata_status_t strata_unregister(strata_t handle, const strata_registration_t *registration) {
    STRATA_REFUSE_NULL(registration);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_share_walk_t walk = {0};
    strata_layer_t *source;
    strata_status_t status = strata_facade_domain(facade, registration->place, &walk.domain);
    if (status != STRATA_OK) return status;
    while ((source = strata_share_next_source(&walk)) != NULL) {
        const strata_handles_t *handles = strata_share_handles(source);
        if (handles &&
            handles->unhold(source, STRATA_HOLD_REGISTERED, (uintptr_t)registration->ptr, registration->size) == STRATA_OK)
            return STRATA_OK;
    }
    return strata_fail(STRATA_E_UNKNOWN_POINTER, 0, "strata_unregister: nothing is registered at %s",
                       strata_pointer_text(registration->ptr).text);
}

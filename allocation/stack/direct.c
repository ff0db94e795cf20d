#include "allocation/stack/direct.h"

static strata_status_t allocate(strata_stack_handle_t handle, strata_stream_t stream, size_t size, strata_block_t *block,
                                strata_stack_t *stack, strata_allocate_fn missed) {
    return strata_direct_allocate_by(handle, stream, size, block, stack, missed, NULL);
}

static strata_status_t free_by_ref(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack, strata_free_fn missed) {
    return strata_direct_free_by(handle, ref, stack, missed, NULL);
}

const strata_direct_t strata_direct_any = {.allocate = allocate, .free = free_by_ref};

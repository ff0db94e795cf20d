/* fallback: if a stack is out of memory, tries the next one. The stack that served is recorded, and the
 * free goes to it.
 *
 * The stacks may have other kinds of memory than the place's (device, then managed or pinned). If growth is
 * forbidden only the first is tried. A cached block of a later stack must not be used before the first
 * stack was asked for new memory. */
#include <stdatomic.h>

#include "allocation/domain/layer.h"

typedef struct fallback {
    strata_layer_t base;
    _Atomic uint64_t fell_back;
} fallback_t;

static const strata_stat_row_t stats[] = {
    {"fell_back", "count", offsetof(fallback_t, fell_back),
     "requests that failed in the first stack for memory and were "
     "served by another"},
    {0},
};

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    fallback_t *self = (fallback_t *)base;
    strata_status_t status = strata_layer_allocate(base->below[0], request, record);
    if (status != STRATA_E_NO_MEMORY || (request->flags & STRATA_NO_GROW)) return status;
    for (uint32_t i = 1; i < base->below_count; i++) {
        status = strata_layer_allocate(base->below[i], request, record);
        if (status == STRATA_OK) atomic_fetch_add_explicit(&self->fell_back, 1, memory_order_relaxed);
        /* A stack with a kind of memory that this device lacks counts as out of memory. */
        if (status != STRATA_E_NO_MEMORY && status != STRATA_E_UNSUPPORTED) return status;
    }
    return strata_fail(STRATA_E_NO_MEMORY, 0, "none of the %u stacks can serve %zu bytes", base->below_count, request->size);
}

const strata_layer_type_t strata_fallback_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "fallback",
    .doc = "tries the next stack when one is out of memory: for example device memory, then managed or pinned",
    .role = STRATA_ROUTER,
    .scope = STRATA_SCOPE_NONE,
    .gives = STRATA_TRAIT_ANY_MEMORY,
    .passes = ~(uint32_t)(STRATA_TRAIT_ANY_MEMORY | STRATA_TRAIT_HANDLE_SOURCE),
    .state_size = sizeof(fallback_t),
    .stats = stats,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = strata_layer_free_below,
};

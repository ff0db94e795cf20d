/* Growth of auto_growth: which chunk to request from below, its size, and the steps when memory is short. */
#include "allocation/cache/policies/auto_growth/auto_growth_state.h"

#include "allocation/options/option.h"
#include "platform/arithmetic.h"
#include "platform/host/growing.h"

/* Adds a chunk to a pool, with the locks open. */
static strata_status_t grow(auto_growth_t *self, uint64_t size, uint32_t pool, const strata_request_t *request) {
    uint32_t number;
    strata_status_t status = strata_chunks_grow(&self->chunks, size, self->chunks.unit, request, &number);
    if (status != STRATA_OK) return status;
    uint32_t slot = strata_chunk_at(&self->chunks, number)->first;
    strata_slab_record(slab_of(self), slot)->pool = (uint8_t)pool;
    strata_auto_growth_insert(self, slot, self->by_address, pool);
    return STRATA_OK;
}

uint64_t strata_auto_growth_size(const strata_layer_t *base, const strata_lookup_t *lookup) {
    const auto_growth_t *self = (const auto_growth_t *)base;
    uint64_t rounded = lookup->rounded, least = self->pools[strata_auto_growth_pool_for(self, rounded)].growth;
    uint64_t full = self->warming_up ? rounded : strata_max(rounded, least);
    if (!(lookup->request->flags & STRATA_SMALL_GROWTH)) return full;
    /* The small size is worth a call only if it is smaller than what was refused before. */
    return strata_auto_growth_options(self)->smaller_growth && rounded < full ? rounded : 0;
}

strata_status_t strata_auto_growth_grow(strata_layer_t *base, strata_lookup_t *lookup, uint64_t size, strata_record_t **record) {
    auto_growth_t *self = (auto_growth_t *)base;
    const auto_growth_options_t *o = strata_auto_growth_options(self);
    const strata_request_t *request = lookup->request;
    uint32_t pool = strata_auto_growth_pool_for(self, lookup->rounded);
    (void)record;
    if (o->free_when_no_cache_hit) (void)strata_chunks_release(&self->base, request->call);
    strata_status_t status = grow(self, size, pool, request);
    if (status != STRATA_E_NO_MEMORY || o->free_when_no_cache_hit) return status;
    if (o->reclaim != STRATA_AUTO_GROWTH_RECLAIM_OWN) return status;
    (void)strata_chunks_release(&self->base, request->call);
    return grow(self, size, pool, request);
}

/* ---- before the first request ---- */

static strata_status_t preallocate(auto_growth_t *self, uint64_t bytes, uint32_t pool, const char *option) {
    if (bytes == 0) return STRATA_OK;
    bytes = strata_round_down(bytes + self->chunks.unit - 1, self->chunks.unit);
    strata_call_t call = {.stack = self->base.stack};
    strata_request_t request = {.struct_size = sizeof request,
                                .size = bytes,
                                .alignment = self->chunks.unit,
                                .stream = self->base.stack->stream,
                                .call = &call};
    strata_status_t status;
    do {
        bool entered = strata_call_enter(&call, &self->base);
        status = grow(self, bytes, pool, &request);
        strata_call_exit(&call, &self->base, entered);
        /* A chunk of many handles can need more nodes than the tables below initially have. */
    } while (status != STRATA_OK && strata_growing_try_again(&status));
    if (status == STRATA_OK) return status;
    char size[64];
    strata_print_size(bytes, size, sizeof size);
    return strata_fail_context("auto_growth.%s: %s", option, size);
}

strata_status_t strata_auto_growth_preallocate(auto_growth_t *self) {
    const auto_growth_options_t *o = strata_auto_growth_options(self);
    const strata_stack_t *stack = self->base.stack;
    if (!strata_domain_is_first(stack->domain, stack->stream)) return STRATA_OK;
    strata_status_t status = preallocate(self, o->small_preallocate, 0, "small_preallocate");
    if (status != STRATA_OK) return status;
    return preallocate(self, o->preallocate, o->small_pool_size > 0 ? 1 : strata_auto_growth_pool_for(self, o->preallocate),
                       "preallocate");
}

/* The loop that serves a request after a miss, for every cache that splits or coalesces blocks. */
#include "allocation/cache/serve.h"

#include "platform/arithmetic.h"

strata_status_t strata_cache_round(const strata_chunks_t *cache, const strata_request_t *request, uint64_t padding,
                                   uint64_t *rounded) {
    if (request->alignment > cache->unit)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s serves alignments up to %llu", cache->base.type->name,
                           (unsigned long long)cache->unit);
    if (!strata_add(request->size, padding, rounded) || !strata_round_up(*rounded, cache->unit, rounded))
        return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    return STRATA_OK;
}

bool strata_cache_wait_for_pending(strata_layer_t *self, strata_lookup_t *lookup, uint64_t growth_size,
                                   strata_patience_t *patience) {
    return !((const strata_chunks_t *)self)->growing &&
           strata_patience_waited(patience, self, lookup->request, &(strata_growth_asked_t){.bytes = growth_size});
}

strata_status_t strata_cache_serve(strata_chunks_t *cache, const strata_cache_policy_t *policy, bool *growing,
                                   strata_lookup_t *lookup, strata_record_t **record) {
    strata_layer_t *self = &cache->base;
    strata_patience_t patience = {0};
    strata_status_t status = STRATA_OK;
    strata_record_t *block = NULL;
    strata_extent_t place;
    bool repeats = strata_repeats_are_on(&cache->repeats);
    if (repeats && strata_repeats_recall(&cache->repeats, lookup->user, lookup->rounded, &place))
        block = policy->serve_at(self, &place, lookup);
    while (!block && (status = policy->search(self, lookup, &block)) == STRATA_E_NO_MEMORY) {
        uint64_t size = policy->growth_size ? policy->growth_size(self, lookup) : lookup->rounded;
        if (lookup->request->flags & STRATA_NO_GROW) size = 0;
        if (size == 0)
            return strata_fail(STRATA_E_NO_MEMORY, 0, "no free block of %llu bytes, and growth is forbidden",
                               (unsigned long long)lookup->rounded);
        if (policy->wait && policy->wait(self, lookup, size, &patience)) continue;
        if (*growing) {
            strata_chunks_wait_for_growth(cache, lookup->request->call);
            continue;
        }
        *growing = lookup->grown = true;
        status = policy->grow(self, lookup, size, &block);
        *growing = false;
        if (cache->waiting) strata_condition_broadcast(&cache->grown);
        if (status != STRATA_OK) return status;
    }
    if (status != STRATA_OK) return status;
    self->stack->figures.cache_hits += !lookup->grown;
    block->stack = lookup->request->call->stack->number;
    if (repeats) strata_repeats_note(&cache->repeats, &self->stack->slab, lookup->user, lookup->rounded, block);
    *record = block;
    return STRATA_OK;
}

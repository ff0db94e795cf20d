#include "allocation/reclaim/patience.h"

#include "allocation/stack/layer.h"

static uint64_t requested_in(strata_domain_t *domain) {
    uint64_t requested = 0;
    STRATA_DOMAIN_EACH(domain, stack) {
        strata_lock(strata_stack_home_lock(stack));
        requested += stack->figures.requested_bytes;
        strata_unlock(strata_stack_home_lock(stack));
    }
    return requested;
}

/* The highest sum of requested bytes at any growth so far, this request included. */
static uint64_t needed_with(strata_domain_t *domain, uint64_t size) {
    uint64_t needed = requested_in(domain) + size, peak = atomic_load(&domain->peak_needed);
    while (needed > peak && !atomic_compare_exchange_weak(&domain->peak_needed, &peak, needed)) {}
    return needed > peak ? needed : peak;
}

bool strata_patience_holds_back(strata_call_t *call, strata_stack_t *stack, uint64_t size) {
    const strata_patience_t *patience = call->patience;
    uint64_t pending = stack->figures.deferred_bytes, depth;
    call->held_back = false;
    if (!patience || __builtin_mul_overflow(patience->depth, size, &depth) || pending < depth) return false;
    strata_domain_t *domain = stack->domain;
    strata_opened_t opened = strata_call_unlock(call);
    double allowed = (double)needed_with(domain, size) * (1.0 + patience->slack);
    call->held_back = (double)(strata_domain_reserved(domain) + size) > allowed;
    strata_call_lock(call, opened);
    return call->held_back;
}

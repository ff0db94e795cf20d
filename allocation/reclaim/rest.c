#include "allocation/reclaim/rest.h"

#include "platform/arithmetic.h"

/* A collection costs its own time, and later about as much again when the other stream grows. */
enum { COSTS = 2 };
/* The first growth of a stack to some size may always collect. All other collections together take at most 1/PARTS of
 * the time since the place was opened. So streams that take turns do not pass memory on forever. */
enum { PARTS = 100 };
/* Less than 1/LEAST of the memory that the place holds is not worth a collection. */
enum { LEAST = 64 };

/* A capture must not be disturbed by a query. Other threads' default streams cannot be named here. */
static bool is_at_rest(strata_stack_t *stack) {
    strata_domain_t *domain = stack->domain;
    strata_stack_lock_own(stack);
    bool rests = strata_stack_names_stream(stack) && strata_domain_refuse_captured(domain, stack->stream) == STRATA_OK &&
                 strata_device_stream_query(domain->device, stack->stream) == STRATA_OK;
    strata_unlock(&stack->lock);
    return rests;
}

/* Returns whether the stack, with this growth, holds more bytes than ever, and more than it has collected. */
static bool is_first_growth(strata_stack_t *own, uint64_t growth) {
    strata_rest_history_t *history = &own->rest_history;
    strata_stack_lock_own(own);
    history->peak_bytes = strata_max(history->peak_bytes, own->figures.reserved_bytes + growth);
    bool first = history->collected_bytes < history->peak_bytes;
    strata_unlock(&own->lock);
    return first;
}

static void note_collection(strata_stack_t *own, uint64_t bytes) {
    strata_stack_lock_own(own);
    own->rest_history.collected_bytes += bytes;
    strata_unlock(&own->lock);
}

void strata_rest_collect(strata_stack_t *own, uint64_t excess, uint64_t growth) {
    strata_domain_t *domain = own->domain;
    strata_clock_t *clock = domain->device->clock;
    uint64_t began = clock->now(clock), bytes = strata_min(excess, growth), collected = 0;
    if (excess < strata_domain_reserved(domain) / LEAST) return;
    bool first = is_first_growth(own, growth);
    if (!first && atomic_load(&domain->rest_ns) > (began - domain->created_at) / PARTS) return;
    const strata_error_t reason = *strata_last_error();
    STRATA_DOMAIN_EACH_OF(domain, own->group, stack) {
        if (stack == own || collected >= bytes || strata_stack_idle_bytes(stack) == 0 || !is_at_rest(stack)) continue;
        uint64_t idle = strata_stack_idle_bytes(stack);
        collected += strata_stack_trim(stack, idle - strata_min(idle, bytes - collected));
    }
    (void)strata_fail_again(&reason);
    if (collected == 0) return;
    note_collection(own, collected);
    if (!first) atomic_fetch_add(&domain->rest_ns, COSTS * (clock->now(clock) - began));
}

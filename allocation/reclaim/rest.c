#include "allocation/reclaim/rest.h"

#include "platform/arithmetic.h"

/* A collection costs its own time, and later about as much again when the other stream grows. */
enum { COSTS = 2 };
/* The first growth of a stack to some size may always collect. All other collections together take at most 1/PARTS of
 * the time since the place was opened. So streams that take turns do not pass memory on forever. */
enum { PARTS = 100 };
/* Caches hold 1/HOLES more than the need, because blocks of many sizes leave holes. */
enum { HOLES = 50 };
/* Less than 1/LEAST of the memory that the place holds, or LEAST_BYTES, is not worth a collection. */
enum { LEAST = 64 };
#define LEAST_BYTES (8ull << 20)

/* Returns the bytes by which a growth would exceed the peak of the requested bytes. That peak does not look at the
 * stacks. If the place has too many for it, the growth counts as needed. */
static uint64_t beyond_need(strata_domain_t *domain, uint64_t growth) {
    strata_peaks_t *peaks = &domain->peaks;
    strata_lock(&peaks->lock);
    uint64_t needed = peaks->crowded ? UINT64_MAX : peaks->highest_sum[STRATA_REQUESTED];
    strata_unlock(&peaks->lock);
    needed = strata_max(needed, atomic_load(&domain->peak_needed));
    if (needed < UINT64_MAX) needed += needed / HOLES;
    uint64_t planned = strata_domain_reserved(domain) + growth;
    return planned - strata_min(planned, needed);
}

/* Copies the stacks that have grown, without `own`, and lists `own` among them. Only they can have memory at rest. */
static void list_grown(strata_stack_t *own, strata_stack_handle_t others[STRATA_GROWN]) {
    strata_domain_t *domain = own->domain;
    strata_stack_handle_t handle = atomic_load(&own->handle);
    strata_lock(&domain->lock);
    uint32_t place = domain->next_grown % STRATA_GROWN;
    for (uint32_t i = 0; i < STRATA_GROWN; i++)
        if (domain->grown[i] == 0) place = i;
    for (uint32_t i = 0; i < STRATA_GROWN; i++) {
        others[i] = domain->grown[i] == handle ? 0 : domain->grown[i];
        if (domain->grown[i] == handle) place = i;
    }
    if (place == domain->next_grown % STRATA_GROWN) domain->next_grown++;
    domain->grown[place] = handle;
    strata_unlock(&domain->lock);
}

static void unlist_grown(strata_domain_t *domain, strata_stack_handle_t handle) {
    strata_lock(&domain->lock);
    for (uint32_t i = 0; i < STRATA_GROWN; i++)
        if (domain->grown[i] == handle) domain->grown[i] = 0;
    strata_unlock(&domain->lock);
}

/* A capture must not be disturbed by a query. Other threads' default streams cannot be named here. */
static bool is_at_rest(strata_stack_t *stack) {
    strata_domain_t *domain = stack->domain;
    strata_stack_lock_own(stack);
    bool rests = strata_stack_names_stream(stack) && strata_domain_refuse_captured(domain, stack->stream) == STRATA_OK &&
                 strata_device_stream_query(domain->device, stack->stream) == STRATA_OK;
    strata_unlock(&stack->lock);
    return rests;
}

/* Returns whether the stack has collected fewer bytes than it will hold at most, with this growth. */
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

/* Returns the bytes that another stack of the group has returned to its source. */
static uint64_t collect_from(strata_stack_t *own, strata_stack_handle_t other, uint64_t bytes) {
    strata_stack_t *stack = strata_stack_enter(other);
    if (!stack) {
        unlist_grown(own->domain, other);
        return 0;
    }
    uint64_t idle = stack->group == own->group ? strata_stack_idle_bytes(stack) : 0, collected = 0;
    if (idle > 0 && is_at_rest(stack)) collected = strata_stack_trim(stack, idle - strata_min(idle, bytes));
    strata_stack_exit(stack);
    return collected;
}

void strata_rest_collect(strata_stack_t *own, uint64_t growth) {
    strata_domain_t *domain = own->domain;
    strata_clock_t *clock = domain->device->clock;
    strata_stack_handle_t others[STRATA_GROWN];
    list_grown(own, others);
    uint64_t began = clock->now(clock), excess = beyond_need(domain, growth), bytes = strata_min(excess, growth), collected = 0;
    if (excess < strata_max(strata_domain_reserved(domain) / LEAST, LEAST_BYTES)) return;
    bool first = is_first_growth(own, growth);
    if (!first && atomic_load(&domain->rest_ns) > (began - domain->created_at) / PARTS) return;
    const strata_error_t reason = *strata_last_error();
    for (uint32_t i = 0; i < STRATA_GROWN && collected < bytes; i++)
        if (others[i]) collected += collect_from(own, others[i], bytes - collected);
    (void)strata_fail_again(&reason);
    if (collected == 0) return;
    note_collection(own, collected);
    if (!first) atomic_fetch_add(&domain->rest_ns, COSTS * (clock->now(clock) - began));
}

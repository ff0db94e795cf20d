#include "allocation/reclaim/rest.h"

#include "allocation/reclaim/idle.h"
#include "platform/arithmetic.h"

/* A collection costs its own time, and later about as much again when the other stream grows. */
enum { COSTS = 2 };
/* A stack may always collect, up to the most bytes that it has held. All other collections together take at most
 * 1/PARTS of the time since the place was opened. So streams that take turns do not pass memory on forever. */
enum { PARTS = 100 };
/* Caches hold 1/HOLES more than the need, because blocks of many sizes leave holes. */
enum { HOLES = 50 };
/* Less than 1/LEAST of the memory that the place holds, or LEAST_BYTES, is not worth a collection. */
enum { LEAST = 64 };
#define LEAST_BYTES (8ull << 20)
/* A program that lends memory in each step would return it and grow again in each step. So memory goes back this long after
 * the stack last grew beside lent memory. It must be at least 1/LENT_PARTS of the memory that the place holds. */
#define LENT_NS (100ull * 1000 * 1000)
enum { LENT_PARTS = 16 };

/* Returns the bytes by which a growth would exceed the highest sum of requested bytes. If the place has too many
 * stacks for that sum, the growth counts as needed. A reset of the peaks does not lower the need. */
static uint64_t beyond_need(strata_domain_t *domain, uint64_t growth) {
    uint64_t planned = strata_domain_reserved(domain) + growth, peaks[STRATA_MEASURES];
    strata_lock(&domain->peaks.lock);
    bool crowded = domain->peaks.crowded;
    strata_unlock(&domain->peaks.lock);
    if (crowded) return 0;
    strata_peaks_read(&domain->peaks, UINT64_MAX, peaks);
    uint64_t needed = peaks[STRATA_REQUESTED], known = atomic_load(&domain->rest_needed);
    while (needed > known && !atomic_compare_exchange_weak(&domain->rest_needed, &known, needed)) {}
    needed = strata_max(needed, known);
    return planned - strata_min(planned, needed + needed / HOLES);
}

/* Copies the stacks that have grown, the latest first, without `own`, and makes `own` the latest. A stack whose stream
 * was forgotten during the call has no handle any more. */
static void list_grown(strata_stack_t *own, strata_stack_handle_t others[STRATA_GROWN]) {
    strata_domain_t *domain = own->domain;
    strata_stack_handle_t handle = atomic_load(&own->handle);
    uint32_t place = 0;
    strata_lock(&domain->lock);
    for (uint32_t i = 0; i < STRATA_GROWN; i++) others[i] = domain->grown[i] == handle ? 0 : domain->grown[i];
    while (place < STRATA_GROWN - 1 && domain->grown[place] != 0 && domain->grown[place] != handle) place++;
    for (; handle && place > 0; place--) domain->grown[place] = domain->grown[place - 1];
    if (handle) domain->grown[0] = handle;
    strata_unlock(&domain->lock);
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

/* Notes a growth that memory of the stack itself would serve, if its borrowers were done. */
static void note_lent(strata_stack_t *own, uint64_t bytes, uint64_t now) {
    strata_stack_lock_own(own);
    uint64_t lent = strata_min(bytes, own->figures.deferred_bytes);
    atomic_fetch_add(&own->rest_history.lent_bytes, lent);
    if (lent > 0) own->rest_history.lent_at = now;
    strata_unlock(&own->lock);
}

static bool is_within_budget(const strata_domain_t *domain, uint64_t now) {
    return atomic_load(&domain->rest_ns) <= (now - domain->created_at) / PARTS;
}

/* Returns the bytes that another stack of the group has returned to its source. */
static uint64_t collect_from(strata_stack_t *own, strata_stack_handle_t other, uint64_t bytes) {
    strata_domain_t *domain = own->domain;
    strata_stack_t *stack = strata_stack_enter(other);
    if (!stack) {
        strata_lock(&domain->lock);
        for (uint32_t i = 0; i < STRATA_GROWN; i++)
            if (domain->grown[i] == other) domain->grown[i] = 0;
        strata_unlock(&domain->lock);
        return 0;
    }
    uint64_t idle = stack->group == own->group ? strata_stack_idle_bytes(stack) : 0, collected = 0;
    if (idle > 0 && strata_stack_is_at_rest(stack)) collected = strata_stack_trim(stack, idle - strata_min(idle, bytes));
    strata_stack_exit(stack);
    return collected;
}

/* An attempt counts like its success, so that attempts without one are bounded too. */
void strata_rest_collect(strata_stack_t *own, uint64_t growth) {
    strata_domain_t *domain = own->domain;
    strata_clock_t *clock = domain->device->clock;
    strata_stack_handle_t others[STRATA_GROWN];
    if (strata_idle_waits_for_device(own->group->plan)) return;
    list_grown(own, others);
    uint64_t began = clock->now(clock), excess = beyond_need(domain, growth), collected = 0;
    uint64_t least = strata_max(strata_domain_reserved(domain) / LEAST, LEAST_BYTES);
    if (excess < least) return;
    bool first = is_first_growth(own, growth);
    uint64_t bytes = strata_min(excess, strata_max(growth, least));
    note_lent(own, bytes, began);
    if (!first && !is_within_budget(domain, began)) return;
    const strata_error_t reason = *strata_last_error();
    for (uint32_t i = 0; i < STRATA_GROWN && collected < bytes; i++)
        if (others[i]) collected += collect_from(own, others[i], bytes - collected);
    (void)strata_fail_again(&reason);
    if (first) {
        strata_stack_lock_own(own);
        own->rest_history.collected_bytes += strata_max(collected, bytes);
        strata_unlock(&own->lock);
    } else {
        atomic_fetch_add(&domain->rest_ns, COSTS * (clock->now(clock) - began));
    }
}

/* Returns whether it is time to look. The next look is LENT_NS later, because a look has a price too. */
static bool begins_look(strata_stack_t *own, uint64_t now) {
    strata_stack_lock_own(own);
    uint64_t last = own->rest_history.lent_at; /* later than `now` if another thread has grown the stack since */
    bool over = own->figures.deferred_bytes == 0 && now >= last && now - last >= LENT_NS;
    if (over) own->rest_history.lent_at = now;
    strata_unlock(&own->lock);
    return over;
}

void strata_rest_return_all_lent(strata_stack_t *own) {
    strata_domain_t *domain = own->domain;
    strata_clock_t *clock = domain->device->clock;
    uint64_t began = clock->now(clock), lent = atomic_load(&own->rest_history.lent_bytes);
    if (!is_within_budget(domain, began) || !begins_look(own, began)) return;
    uint64_t excess = strata_min(lent, beyond_need(domain, 0)), idle = strata_stack_idle_bytes(own);
    uint64_t least = strata_max(strata_domain_reserved(domain) / LENT_PARTS, LEAST_BYTES);
    bool goes = excess >= least && idle >= excess && strata_stack_is_at_rest(own);
    const strata_error_t reason = *strata_last_error();
    if (goes) (void)strata_stack_trim(own, idle - excess);
    (void)strata_fail_again(&reason);
    if (goes || excess < least) (void)atomic_compare_exchange_strong(&own->rest_history.lent_bytes, &lent, 0);
    atomic_fetch_add(&domain->rest_ns, COSTS * (clock->now(clock) - began));
}

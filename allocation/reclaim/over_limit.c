#include "allocation/reclaim/over_limit.h"

#include "allocation/reclaim/waiting.h"
#include "platform/arithmetic.h"

static bool is_above(strata_domain_t *domain) { return strata_domain_reserved(domain) > atomic_load(&domain->quota.limit); }

/* Releases only as much as the limit requires. Memory that other pools keep for themselves is not touched. */
static void give_back(strata_domain_t *domain) {
    strata_pending_t pending;
    (void)strata_domain_poll(domain, &pending);
    uint64_t idle = 0;
    STRATA_DOMAIN_EACH(domain, stack) idle += strata_stack_idle_bytes(stack);
    idle -= strata_min(idle, strata_domain_kept_bytes(domain, NULL));
    uint64_t reserved = strata_domain_reserved(domain), limit = atomic_load(&domain->quota.limit);
    if (reserved <= limit) return;
    uint64_t keep = idle - strata_min(idle, reserved - limit);
    if (keep) strata_domain_trim(domain, keep);
    else (void)strata_domain_release(domain, NULL);
}

/* While the place is watched, all its hits and frees take the slow path. `above` is set before the bits. A stack that is created concurrently, and a waiter that clears its bits,
 * read it after taking their own lock. Threads with different results repeat this one after the other,
 * until `above` and the bits agree with the facts. */
static void update_watch(strata_domain_t *domain) {
    for (bool again = false;; again = true) {
        bool above = is_above(domain);
        bool was = atomic_exchange(&domain->over_limit, above);
        if (was != above || above || again) {
            STRATA_DOMAIN_EACH(domain, stack) {
                strata_stack_lock(stack);
                if (stack->open) strata_stack_close(stack, STRATA_CLOSED_ABOVE_LIMIT, above);
                strata_stack_unlock(stack);
            }
        }
        if (atomic_load(&domain->over_limit) == above && is_above(domain) == above) return;
    }
}

void strata_over_limit_trim(strata_domain_t *domain) {
    give_back(domain);
    if (!is_above(domain)) update_watch(domain);
}

/* A free before the bits are set goes unnoticed, so the place is checked again after them. */
void strata_over_limit_set(strata_domain_t *domain, uint64_t bytes) {
    strata_quota_set(&domain->quota, bytes, &domain->lock);
    strata_domain_wake(domain);
    if (is_above(domain)) give_back(domain);
    update_watch(domain);
    strata_over_limit_check(domain);
}

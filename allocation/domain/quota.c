#include "allocation/domain/quota.h"

#include "platform/clock.h"

enum { LOOK_AGAIN_NS = 1000 * 1000 };

void strata_quota_init(strata_quota_t *quota, uint64_t limit) {
    atomic_store(&quota->limit, limit);
    strata_condition_init(&quota->settled);
}

void strata_quota_destroy(strata_quota_t *quota) { strata_condition_destroy(&quota->settled); }

static void raise_peak(strata_quota_t *quota, uint64_t used) {
    uint64_t peak = atomic_load(&quota->peak);
    while (used > peak && !atomic_compare_exchange_weak(&quota->peak, &peak, used)) continue;
}

/* A concurrent claim raises it again. */
void strata_quota_reset_peak(strata_quota_t *quota) {
    atomic_store(&quota->peak, 0);
    raise_peak(quota, atomic_load(&quota->used));
}

/* The limit may have been lowered between the check and the claim; then the claim is taken back. Either
 * this thread sees the new limit, or the thread that set it sees the claim and waits for it. */
bool strata_quota_claim(strata_quota_t *quota, uint64_t bytes) {
    uint64_t limit = atomic_load(&quota->limit), used = atomic_load(&quota->used);
    for (;;) {
        do {
            if (used > limit || bytes > limit - used) return false;
        } while (!atomic_compare_exchange_weak(&quota->used, &used, used + bytes));
        uint64_t now = atomic_load(&quota->limit);
        if (now >= limit) break;
        limit = now;
        used = atomic_fetch_sub(&quota->used, bytes) - bytes;
    }
    raise_peak(quota, used + bytes);
    return true;
}

bool strata_quota_may_fit(strata_quota_t *quota, uint64_t bytes) {
    uint64_t limit = atomic_load(&quota->limit), served = atomic_load(&quota->served);
    return served <= limit && bytes <= limit - served;
}

bool strata_quota_claim_in_time(strata_quota_t *quota, uint64_t bytes, strata_lock_t *lock, const _Atomic uint32_t *blocked) {
    bool claimed = strata_quota_claim(quota, bytes), settles = true;
    if (claimed || !strata_quota_may_fit(quota, bytes)) return claimed;
    uint64_t soon = strata_real_now() + LOOK_AGAIN_NS;
    strata_lock(lock);
    atomic_fetch_add(&quota->waiting, 1);
    while (!(claimed = strata_quota_claim(quota, bytes)) && strata_quota_may_fit(quota, bytes) && settles) {
        strata_condition_wait(&quota->settled, lock, LOOK_AGAIN_NS);
        settles = !blocked || atomic_load(blocked) == 0 || strata_real_now() < soon;
    }
    atomic_fetch_sub(&quota->waiting, 1);
    strata_unlock(lock);
    return claimed;
}

void strata_quota_wake(strata_quota_t *quota, strata_lock_t *lock) {
    if (!strata_quota_has_waiters(quota)) return;
    strata_lock(lock);
    strata_condition_broadcast(&quota->settled);
    strata_unlock(lock);
}

/* Above the limit no new bytes are claimed, so the claims in progress end by themselves. */
void strata_quota_set(strata_quota_t *quota, uint64_t limit, strata_lock_t *lock) {
    atomic_store(&quota->limit, limit);
    strata_lock(lock);
    strata_condition_broadcast(&quota->settled);
    atomic_fetch_add(&quota->waiting, 1);
    while (atomic_load(&quota->used) > limit && atomic_load(&quota->served) < atomic_load(&quota->used))
        strata_condition_wait(&quota->settled, lock, LOOK_AGAIN_NS);
    atomic_fetch_sub(&quota->waiting, 1);
    strata_unlock(lock);
}

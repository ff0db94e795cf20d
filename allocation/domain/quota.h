/* A limit on bytes that several threads request concurrently. It is never exceeded, not even for a moment.
 *
 * Bytes are claimed by compare-and-swap before they are requested, and unclaimed if the request fails. A
 * claim that would fit if other claims in progress failed waits until those are settled. So a large request
 * that fails never makes a small one fail. The limit may change at any time. */
#ifndef STRATA_ALLOCATION_QUOTA_H
#define STRATA_ALLOCATION_QUOTA_H

#include "platform/lock.h"
#include "platform/status.h"

typedef struct strata_quota {
    _Atomic uint64_t limit; /* UINT64_MAX if there is none */
    _Atomic uint64_t used; /* claimed bytes, served or in progress */
    _Atomic uint64_t served; /* claimed bytes that were served: rises after `used` and falls before it */
    _Atomic uint64_t peak; /* highest `used` */
    _Atomic uint32_t waiting; /* threads that sleep on `settled`, with the lock of their call */
    strata_condition_t settled;
} strata_quota_t;

void strata_quota_init(strata_quota_t *quota, uint64_t limit);
void strata_quota_destroy(strata_quota_t *quota);

/* Claims the bytes if they fit now. Any lock may be held. */
bool strata_quota_claim(strata_quota_t *quota, uint64_t bytes);
/* Returns whether a refused claim may still fit: it would if every claim in progress failed. */
bool strata_quota_may_fit(strata_quota_t *quota, uint64_t bytes);
/* Claims the bytes once the claims in progress are settled. Returns false if they do not fit. No lock is
 * held; `lock` is always the same one. `blocked` counts the requests that wait for other threads, perhaps
 * with a claim. While it is above 0 the wait is at most a millisecond, because those requests may wait for
 * the caller itself. It is NULL if no request waits with a claim. */
bool strata_quota_claim_in_time(strata_quota_t *quota, uint64_t bytes, strata_lock_t *lock, const _Atomic uint32_t *blocked);

/* Resets the peak to the bytes claimed now. Any lock may be held. */
void strata_quota_reset_peak(strata_quota_t *quota);

/* Settle a claim: the bytes were served, or not. Afterwards, once no lock is held, the caller wakes waiters
 * with strata_quota_wake(). */
static inline void strata_quota_serve(strata_quota_t *quota, uint64_t bytes) { atomic_fetch_add(&quota->served, bytes); }
static inline void strata_quota_unclaim(strata_quota_t *quota, uint64_t bytes) { atomic_fetch_sub(&quota->used, bytes); }
/* Served bytes were freed. */
static inline void strata_quota_return(strata_quota_t *quota, uint64_t bytes) {
    atomic_fetch_sub(&quota->served, bytes);
    atomic_fetch_sub(&quota->used, bytes);
}
/* Returns whether strata_quota_wake() must wake a thread. */
static inline bool strata_quota_has_waiters(strata_quota_t *quota) { return atomic_load(&quota->waiting) > 0; }
void strata_quota_wake(strata_quota_t *quota, strata_lock_t *lock);

/* Sets another limit. After the return no claim above it is in progress, so the served bytes do not grow
 * while they are above. No lock is held. */
void strata_quota_set(strata_quota_t *quota, uint64_t limit, strata_lock_t *lock);

#endif

/* A bound on bytes that several threads ask for at once: never a byte above it, not for a moment.
 *
 * Bytes are claimed by compare-and-swap before they are asked for, and given back if the asking fails. A claim that would fit if
 * others under way failed waits until those are settled: a large request that fails never makes a small one fail. The bound may
 * change at any time. */
#ifndef STRATA_ALLOCATION_QUOTA_H
#define STRATA_ALLOCATION_QUOTA_H

#include "platform/lock.h"
#include "platform/status.h"

typedef struct strata_quota {
    _Atomic uint64_t limit; /* UINT64_MAX: none */
    _Atomic uint64_t used; /* claimed: served, or under way */
    _Atomic uint64_t served; /* of these, what was got: rises after `used` and falls before it */
    _Atomic uint64_t peak; /* highest `used` */
    _Atomic uint32_t waiting; /* threads that sleep on `settled`, with the lock that they were given */
    strata_condition_t settled;
} strata_quota_t;

void strata_quota_init(strata_quota_t *quota, uint64_t limit);
void strata_quota_destroy(strata_quota_t *quota);

/* Claims if it fits now. Any lock may be held. */
bool strata_quota_claim(strata_quota_t *quota, uint64_t bytes);
/* Whether a refused claim may still fit: it would if every claim under way failed. */
bool strata_quota_may_fit(strata_quota_t *quota, uint64_t bytes);
/* Claims once those under way are settled; false: it does not fit. No lock is held; `lock` is always the same one. `held_up` counts
 * the requests that wait for what others do, perhaps with a claim. As long as there are some the wait is at most a millisecond,
 * because the caller itself may have to do what they wait for. NULL: nobody waits with a claim. */
bool strata_quota_claim_in_time(strata_quota_t *quota, uint64_t bytes, strata_lock_t *lock, const _Atomic uint32_t *held_up);

/* The peak begins at what is claimed now. Any lock may be held. */
void strata_quota_reset_peak(strata_quota_t *quota);

/* What was claimed was got, or not. Then, unless a lock is held, those that wait are woken. */
void strata_quota_serve(strata_quota_t *quota, uint64_t bytes);
void strata_quota_unclaim(strata_quota_t *quota, uint64_t bytes);
/* What was served was given back. */
void strata_quota_return(strata_quota_t *quota, uint64_t bytes);
/* Whether somebody must be woken by strata_quota_tell(). */
bool strata_quota_is_awaited(strata_quota_t *quota);
void strata_quota_tell(strata_quota_t *quota, strata_lock_t *lock);

/* Sets another bound. After the return no claim above it is under way: what is served does not grow while it is above. No lock is
 * held. */
void strata_quota_set(strata_quota_t *quota, uint64_t limit, strata_lock_t *lock);

#endif

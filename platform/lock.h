/* Locks with an order. Debug builds (STRATA_CHECK_LOCKS) abort when a thread takes locks out of order or makes a device call
 * that is not quick while it holds one.
 *
 * A lock that nobody else wants is one compare-and-exchange, and one subtraction to release. Many threads that want one at once do
 * not slow each other down: whoever comes may take it before those that wait, one thread at a time looks for it from time to time,
 * and all others sleep (lock.c). */
#ifndef STRATA_PLATFORM_LOCK_H
#define STRATA_PLATFORM_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread takes locks only in this order; two of one rank only where the comment says so. */
typedef enum strata_lock_rank {
    STRATA_RANK_FACADE = 1, /* building and dropping stacks */
    STRATA_RANK_DOMAIN, /* registrations of a domain: stacks, callbacks, waiters */
    STRATA_RANK_STACK, /* a stack of stream or thread scope; snapshots take several, by number */
    STRATA_RANK_THREAD, /* what a thread's stacks share, after those; snapshots take several, by number */
    STRATA_RANK_SHARED, /* a shared stack of device scope, after those; snapshots take several, by number */
    STRATA_RANK_MAGAZINE, /* what a stack keeps for some of its threads */
    STRATA_RANK_EVENTS, /* the event pool of a domain */
    STRATA_RANK_DEVICE /* inside a device */
} strata_lock_rank_t;

typedef struct strata_lock strata_lock_t;

/* Called at hand-overs of a lock while it is active. The simulator joins its threads' clocks by it; it is active once there are two
 * threads. */
typedef struct strata_lock_observer strata_lock_observer_t;
struct strata_lock_observer {
    _Atomic bool active;
    void (*acquired)(strata_lock_observer_t *self, strata_lock_t *lock); /* the lock is held */
    void (*releasing)(strata_lock_observer_t *self, strata_lock_t *lock); /* the lock is still held */
};

struct strata_lock {
    _Atomic uint32_t state; /* bits of lock.c; 0: free, and nobody waits */
    _Atomic uint32_t wakes; /* how often a sleeping thread was woken: what they sleep on */
    strata_lock_observer_t *observer; /* NULL: nobody listens */
    uint64_t observed; /* for the observer's own use, guarded by the lock */
    strata_lock_rank_t rank;
    uint32_t passed_by; /* how often the looking thread got it while others slept; guarded by the lock */
};

#define STRATA_LOCK_HELD 1u

/* For the two below: another thread has the lock, or wants it. */
void strata_lock_wait(strata_lock_t *lock);
void strata_lock_wake(strata_lock_t *lock, uint32_t left);

void strata_lock_init(strata_lock_t *lock, strata_lock_rank_t rank, strata_lock_observer_t *observer);
void strata_lock_destroy(strata_lock_t *lock);

#ifdef STRATA_CHECK_LOCKS
void strata_lock_note_take(const strata_lock_t *lock);
void strata_lock_note_drop(const strata_lock_t *lock);
/* Before a thread sleeps until a lock is released. */
void strata_lock_note_sleep(void);
/* Aborts with `what` if the calling thread holds any lock except those of rank DEVICE. */
void strata_lock_assert_none(const char *what);
/* For tests: from now on threads yield or sleep, now and then as the seed says, before they take a lock, release one or sleep, so that rare schedules occur. 0: off. */
void strata_lock_perturb(uint64_t seed);
#else
static inline void strata_lock_note_take(const strata_lock_t *lock) { (void)lock; }
static inline void strata_lock_note_drop(const strata_lock_t *lock) { (void)lock; }
static inline void strata_lock_note_sleep(void) {}
static inline void strata_lock_assert_none(const char *what) { (void)what; }
#endif

static inline bool strata_lock_observed(const strata_lock_t *lock) {
    return lock->observer && atomic_load_explicit(&lock->observer->active, memory_order_relaxed);
}

/* The lock alone: neither the order nor the observer hears of it. */
static inline bool strata_lock_try_acquire(strata_lock_t *lock) {
    uint32_t none = 0;
    return atomic_compare_exchange_strong_explicit(&lock->state, &none, STRATA_LOCK_HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Whether another thread had it, or wanted it. */
static inline bool strata_lock_acquire(strata_lock_t *lock) {
    if (__builtin_expect(strata_lock_try_acquire(lock), 1)) return false;
    strata_lock_wait(lock);
    return true;
}

static inline void strata_lock_release(strata_lock_t *lock) {
    uint32_t left = atomic_fetch_sub_explicit(&lock->state, STRATA_LOCK_HELD, memory_order_release) - STRATA_LOCK_HELD;
    if (__builtin_expect(left != 0, 0)) strata_lock_wake(lock, left);
}

/* The same of a lock that is taken as any other. */
static inline bool strata_lock_meeting(strata_lock_t *lock) {
    strata_lock_note_take(lock);
    bool met = strata_lock_acquire(lock);
    if (__builtin_expect(strata_lock_observed(lock), 0)) lock->observer->acquired(lock->observer, lock);
    return met;
}

static inline void strata_lock(strata_lock_t *lock) { (void)strata_lock_meeting(lock); }

static inline void strata_unlock(strata_lock_t *lock) {
    strata_lock_note_drop(lock);
    if (__builtin_expect(strata_lock_observed(lock), 0)) lock->observer->releasing(lock->observer, lock);
    strata_lock_release(lock);
}

/* For ways so short that they shall save no registers for a call: each half of a pair that nobody else wants, and nobody listens to. */
/* False: nothing has happened, take it as any other. */
static inline bool strata_lock_at_once(strata_lock_t *lock) {
    if (__builtin_expect(strata_lock_observed(lock) || !strata_lock_try_acquire(lock), 0)) return false;
    strata_lock_note_take(lock);
    return true;
}
/* False: it is still held, release it as any other. */
static inline bool strata_unlock_at_once(strata_lock_t *lock) {
    uint32_t held = STRATA_LOCK_HELD;
    if (__builtin_expect(strata_lock_observed(lock), 0)) return false;
    bool released = atomic_compare_exchange_strong_explicit(&lock->state, &held, 0, memory_order_release, memory_order_relaxed);
    if (__builtin_expect(released, 1)) strata_lock_note_drop(lock);
    return released;
}

typedef struct strata_condition {
    _Atomic uint32_t wakes;
} strata_condition_t;

void strata_condition_init(strata_condition_t *condition);
void strata_condition_destroy(strata_condition_t *condition);
void strata_condition_broadcast(strata_condition_t *condition);
/* Releases the lock, sleeps until woken or for `timeout_ns` of real time (UINT64_MAX: for ever), takes it again. May wake without a
 * reason. */
void strata_condition_wait(strata_condition_t *condition, strata_lock_t *lock, uint64_t timeout_ns);

#endif

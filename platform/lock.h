/* Locks with an order. Debug builds (STRATA_CHECK_LOCKS) abort when a thread takes locks out of order or makes a device call
 * that is not quick while it holds one.
 *
 * A lock that nobody else wants and nobody observes is one compare-and-exchange to take, and one to release: whatever makes it more
 * than that is a bit of its state, so that either fails. Many threads that want one at once do not slow each other down: whoever
 * comes may take it before those that wait, one thread at a time looks for it from time to time, and all others sleep (lock.c). */
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

typedef struct strata_lock_observer strata_lock_observer_t;

struct strata_lock {
    _Atomic uint32_t state; /* bits of lock.c; 0: free, nobody waits, and nobody hears of it */
    _Atomic uint32_t wakes; /* how often a sleeping thread was woken: what they sleep on */
    strata_lock_observer_t *observer; /* NULL: nobody listens; guarded by the lock */
    strata_lock_t *next, *before; /* locks of that observer; guarded by its `list` */
    uint64_t observed; /* for the observer's own use, guarded by the lock */
    strata_lock_rank_t rank;
    uint32_t passed_by; /* how often the looking thread got it while others slept; guarded by the lock */
};

/* Called at hand-overs of its locks while it is active. The simulator joins its threads' clocks by it; it is active once there are
 * two threads, so it is not at first, and knows its locks in order to tell them. What is not named here begins as zeros. */
struct strata_lock_observer {
    void (*acquired)(strata_lock_observer_t *self, strata_lock_t *lock); /* the lock is held */
    void (*releasing)(strata_lock_observer_t *self, strata_lock_t *lock); /* the lock is still held */
    _Atomic bool active; /* set by strata_lock_observer_activate(), for good; changed under `list` */
    strata_lock_t list; /* a leaf, which has no order; guards `first` */
    strata_lock_t *first;
};

/* Any thread, under any lock. Who holds one of its locks meanwhile calls releasing() without an acquired(). */
void strata_lock_observer_activate(strata_lock_observer_t *observer);

#define STRATA_LOCK_HELD 1u

/* For the two below: another thread has the lock, or wants it, or somebody hears of it. `seen`: its state, which said so. */
bool strata_lock_slowly(strata_lock_t *lock, uint32_t seen);
void strata_unlock_slowly(strata_lock_t *lock, uint32_t seen);

void strata_lock_init(strata_lock_t *lock, strata_lock_rank_t rank, strata_lock_observer_t *observer);
/* Before its observer ends, which would find it in its list. */
void strata_lock_destroy(strata_lock_t *lock);
/* From now on `observer` hears of it, and no other; NULL: nobody. By who holds the lock, or while nobody else uses it: who has it
 * then calls releasing() of the new one without an acquired(), and of the old one no more. */
void strata_lock_observe(strata_lock_t *lock, strata_lock_observer_t *observer);

#ifdef STRATA_CHECK_LOCKS
void strata_lock_note_take(const strata_lock_t *lock);
void strata_lock_note_drop(const strata_lock_t *lock);
/* Before a thread sleeps until a lock is released. */
void strata_lock_note_sleep(void);
/* Aborts with `what` if the calling thread holds any lock except those of rank DEVICE. */
void strata_lock_assert_none(const char *what);
/* Aborts if `observer`, which ends, still has a lock: the lock would tell it of its next release. */
void strata_lock_assert_alone(const strata_lock_observer_t *observer);
/* For tests: from now on threads yield or sleep, now and then as the seed says, before they take a lock, release one or sleep, so that rare schedules occur. 0: off. */
void strata_lock_perturb(uint64_t seed);
#else
static inline void strata_lock_note_take(const strata_lock_t *lock) { (void)lock; }
static inline void strata_lock_note_drop(const strata_lock_t *lock) { (void)lock; }
static inline void strata_lock_note_sleep(void) {}
static inline void strata_lock_assert_none(const char *what) { (void)what; }
static inline void strata_lock_assert_alone(const strata_lock_observer_t *observer) { (void)observer; }
#endif

/* The lock alone: neither the order nor the observer hears of it. */
bool strata_lock_try_acquire(strata_lock_t *lock);
/* Whether another thread had it, or wanted it. */
bool strata_lock_acquire(strata_lock_t *lock);
void strata_lock_release(strata_lock_t *lock);

/* As any lock is taken and released. Whether another thread had it, or wanted it. */
static inline bool strata_lock_meeting(strata_lock_t *lock) {
    strata_lock_note_take(lock);
    uint32_t seen = 0;
    bool taken = atomic_compare_exchange_strong_explicit(&lock->state, &seen, STRATA_LOCK_HELD, memory_order_acquire,
                                                         memory_order_relaxed);
    return __builtin_expect(taken, 1) ? false : strata_lock_slowly(lock, seen);
}

static inline void strata_lock(strata_lock_t *lock) { (void)strata_lock_meeting(lock); }

static inline void strata_unlock(strata_lock_t *lock) {
    strata_lock_note_drop(lock);
    uint32_t seen = STRATA_LOCK_HELD;
    bool released = atomic_compare_exchange_strong_explicit(&lock->state, &seen, 0, memory_order_release, memory_order_relaxed);
    if (__builtin_expect(!released, 0)) strata_unlock_slowly(lock, seen);
}

/* For ways so short that a call in them would cost more than all else: the lock of whoever is alone with it. False: another thread has it
 * or wants it, or somebody hears of it, and nothing has happened. */
static inline bool strata_lock_at_once(strata_lock_t *lock) {
    uint32_t seen = 0;
    bool taken = atomic_compare_exchange_strong_explicit(&lock->state, &seen, STRATA_LOCK_HELD, memory_order_acquire,
                                                         memory_order_relaxed);
    if (__builtin_expect(taken, 1)) strata_lock_note_take(lock);
    return taken;
}
/* False: likewise, and it is still held. */
static inline bool strata_unlock_at_once(strata_lock_t *lock) {
    uint32_t seen = STRATA_LOCK_HELD;
    bool released = atomic_compare_exchange_strong_explicit(&lock->state, &seen, 0, memory_order_release, memory_order_relaxed);
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

/* Locks with an order. Debug builds (STRATA_CHECK_LOCKS) abort when a thread takes locks out of order,
 * or when it holds one during a device call that is not quick.
 *
 * Without contention and without an observer, taking a lock is one compare-and-exchange, and so is
 * releasing it. Anything that needs more sets a bit of its state, so that either one fails. Contention
 * by many threads stays cheap. A new thread may take the lock before those that wait. Only one waiting
 * thread looks for it from time to time, and all others sleep (lock.c). */
#ifndef STRATA_PLATFORM_LOCK_H
#define STRATA_PLATFORM_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread takes locks only in this order, and two of one rank only where the comment allows it. */
typedef enum strata_lock_rank {
    STRATA_RANK_FACADE = 1, /* creating and destroying stacks */
    STRATA_RANK_DOMAIN, /* registrations of a domain: stacks, callbacks, waiters */
    STRATA_RANK_STACK, /* a stack of stream or thread scope; snapshots take several, by number */
    STRATA_RANK_THREAD, /* a shared stack of a thread, after those; snapshots take several, by number */
    STRATA_RANK_SHARED, /* a shared stack of device scope, after those; snapshots take several, by number */
    STRATA_RANK_MAGAZINE, /* per-thread magazines of a stack */
    STRATA_RANK_EVENTS, /* the event pool of a domain */
    STRATA_RANK_DEVICE /* inside a device */
} strata_lock_rank_t;

typedef struct strata_lock strata_lock_t;

typedef struct strata_lock_observer strata_lock_observer_t;

struct strata_lock {
    _Atomic uint32_t state; /* bits of lock.c; 0 if it is free, no thread waits, and it has no active observer */
    _Atomic uint32_t wakes; /* number of wake-ups; the futex word on which threads sleep */
    strata_lock_observer_t *observer; /* may be NULL; guarded by the lock */
    strata_lock_t *next, *prev; /* locks of that observer; guarded by its `list` */
    uint64_t observed; /* for the observer's own use, guarded by the lock */
    strata_lock_rank_t rank;
    uint32_t spin_wins; /* number of times the spinning thread got it while others slept; guarded by the lock */
};

/* Gets a call at each hand-over of its locks while it is active. The simulator joins its threads'
 * clocks this way. It becomes active with the second thread, and keeps a list of its locks so that it
 * can then mark them all. Fields that an initializer omits must be zero. */
struct strata_lock_observer {
    void (*acquired)(strata_lock_observer_t *self, strata_lock_t *lock); /* the lock is held */
    void (*releasing)(strata_lock_observer_t *self, strata_lock_t *lock); /* the lock is still held */
    _Atomic bool active; /* set for good by strata_lock_observer_activate(); changed under `list` */
    strata_lock_t list; /* a leaf lock without a rank; guards `first` */
    strata_lock_t *first;
};

/* May be called on any thread, under any lock. A thread that holds one of its locks during this call
 * then calls releasing() without an acquired(). */
void strata_lock_observer_activate(strata_lock_observer_t *observer);

#define STRATA_LOCK_HELD 1u

/* Slow paths of the two functions below, used if another thread has or waits for the lock or if it is
 * observed. `seen` is the state of the lock that showed this. */
bool strata_lock_slow(strata_lock_t *lock, uint32_t seen);
void strata_unlock_slow(strata_lock_t *lock, uint32_t seen);

void strata_lock_init(strata_lock_t *lock, strata_lock_rank_t rank, strata_lock_observer_t *observer);
/* Must be called before the lock's observer ends, since that keeps the lock in its list. */
void strata_lock_destroy(strata_lock_t *lock);
/* Makes `observer` the lock's only observer; NULL removes it. The caller holds the lock, or no other
 * thread uses it. A caller that holds it then calls releasing() of the new observer without an
 * acquired(), and calls no more functions of the old one. */
void strata_lock_observe(strata_lock_t *lock, strata_lock_observer_t *observer);

#ifdef STRATA_CHECK_LOCKS
void strata_lock_note_locked(const strata_lock_t *lock);
void strata_lock_note_unlocked(const strata_lock_t *lock);
/* Called before a thread sleeps until a lock is released. */
void strata_lock_note_sleep(void);
/* Aborts with `what` if the calling thread holds any lock except those of rank DEVICE. */
void strata_lock_assert_none(const char *what);
/* Aborts if `observer`, which is about to end, still has a lock. That lock's next release would call it. */
void strata_lock_assert_alone(const strata_lock_observer_t *observer);
/* For tests, to make rare schedules occur: threads now and then yield or sleep before they take a lock,
 * release one or sleep. The seed decides when; 0 switches this off. */
void strata_lock_perturb(uint64_t seed);
#else
static inline void strata_lock_note_locked(const strata_lock_t *lock) { (void)lock; }
static inline void strata_lock_note_unlocked(const strata_lock_t *lock) { (void)lock; }
static inline void strata_lock_note_sleep(void) {}
static inline void strata_lock_assert_none(const char *what) { (void)what; }
static inline void strata_lock_assert_alone(const strata_lock_observer_t *observer) { (void)observer; }
#endif

/* Takes or releases only the lock itself, without the check of the order and without the observer. */
bool strata_lock_try_acquire(strata_lock_t *lock);
/* Returns true if another thread had the lock or waited for it. */
bool strata_lock_acquire(strata_lock_t *lock);
void strata_lock_release(strata_lock_t *lock);

/* Takes a lock as strata_lock() does. Returns true if another thread had it or waited for it. */
static inline bool strata_lock_contended(strata_lock_t *lock) {
    strata_lock_note_locked(lock);
    uint32_t seen = 0;
    bool taken = atomic_compare_exchange_strong_explicit(&lock->state, &seen, STRATA_LOCK_HELD, memory_order_acquire,
                                                         memory_order_relaxed);
    return __builtin_expect(taken, 1) ? false : strata_lock_slow(lock, seen);
}

static inline void strata_lock(strata_lock_t *lock) { (void)strata_lock_contended(lock); }

static inline void strata_unlock(strata_lock_t *lock) {
    strata_lock_note_unlocked(lock);
    uint32_t seen = STRATA_LOCK_HELD;
    bool released = atomic_compare_exchange_strong_explicit(&lock->state, &seen, 0, memory_order_release, memory_order_relaxed);
    if (__builtin_expect(!released, 0)) strata_unlock_slow(lock, seen);
}

/* Takes the lock only if no other thread has it or waits for it and it is not observed. Otherwise
 * returns false and does nothing. For paths so short that a function call would cost more than all the
 * rest. */
static inline bool strata_lock_try_fast(strata_lock_t *lock) {
    uint32_t seen = 0;
    bool taken = atomic_compare_exchange_strong_explicit(&lock->state, &seen, STRATA_LOCK_HELD, memory_order_acquire,
                                                         memory_order_relaxed);
    if (__builtin_expect(taken, 1)) strata_lock_note_locked(lock);
    return taken;
}
/* Releases the lock under the same conditions. Otherwise returns false, and the lock is still held. */
static inline bool strata_unlock_try_fast(strata_lock_t *lock) {
    uint32_t seen = STRATA_LOCK_HELD;
    bool released = atomic_compare_exchange_strong_explicit(&lock->state, &seen, 0, memory_order_release, memory_order_relaxed);
    if (__builtin_expect(released, 1)) strata_lock_note_unlocked(lock);
    return released;
}

typedef struct strata_condition {
    _Atomic uint32_t wakes;
} strata_condition_t;

void strata_condition_init(strata_condition_t *condition);
void strata_condition_destroy(strata_condition_t *condition);
void strata_condition_broadcast(strata_condition_t *condition);
/* Releases the lock, sleeps until woken or for `timeout_ns` of real time (forever if UINT64_MAX), and
 * takes the lock again. May wake without a reason. */
void strata_condition_wait(strata_condition_t *condition, strata_lock_t *lock, uint64_t timeout_ns);

#endif

/* Locks and conditions over futexes.
 *
 * A thread that finds a lock free takes it, even if others wait. One of the waiting threads looks for
 * it with growing pauses, so that the holder's cache lines stay where they are. All others sleep. A
 * release wakes a sleeper only if no thread looks. So under contention two or three threads are awake,
 * each does many pieces of work in a row, and system calls are rare. (The designated waker is nsync's
 * idea, by M. Burrows.) No thread sleeps forever while two others pass a lock to and fro: after TURNS
 * looks that succeeded, one more is woken.
 *
 * Why no wake-up is lost. While SPINNING is set, either a thread looks and will clear it, or UNCLAIMED
 * is set too. In the second case every thread that is about to sleep first clears UNCLAIMED, which
 * claims the look, and then looks. A release with sleepers that finds SPINNING clear sets both bits,
 * then changes `wakes`, then wakes one thread. A thread that counts as a sleeper reads `wakes`, then
 * the state. It sleeps only if the lock is held, UNCLAIMED is clear and `wakes` is unchanged. So it
 * either slept before the wake-up and is woken, or it finds UNCLAIMED set. A thread that stops looking
 * clears SPINNING first, so the next release wakes one.
 *
 * OBSERVED is set while the lock has an active observer. It makes the fast paths of lock.h fail, and
 * waiting threads ignore it. A thread that holds the lock and sees the bit can use the observer until
 * the release, because only the holder may remove it. */
#include "platform/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    HELD = STRATA_LOCK_HELD,
    OBSERVED = 2, /* it has an active observer */
    SPINNING = 4, /* a thread looks for it, or UNCLAIMED is set too */
    UNCLAIMED = 8, /* the next thread that wakes, or is about to sleep, must look for it */
    SLEEPER = 16, /* one thread that sleeps or is about to; the count of these is above all other bits */
    SPINS = 20, /* attempts of a spinning thread before it sleeps */
    PAUSE_FIRST = 64, /* pauses of the processor between its first two attempts */
    PAUSE_MAX = 256, /* max pauses between two attempts */
    TURNS = 256
};

/* ---- the kernel ---- */

/* Sleeps while *word is `value`, for at most `timeout`, or until it is woken if that is NULL. May
 * return without a reason. */
static void sleep_on(_Atomic uint32_t *word, uint32_t value, const struct timespec *timeout) {
    int before = errno;
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
    errno = before;
}

/* Wakes at most `most` of the threads that sleep on the word. */
static void wake(_Atomic uint32_t *word, int most) {
    int before = errno;
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
    errno = before;
}

static void pause_for(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

/* ---- rare schedules ---- */

#ifdef STRATA_CHECK_LOCKS
static _Atomic uint64_t perturbed; /* the seed; 0 if this is off */
static _Atomic uint64_t perturbed_threads;
static _Thread_local uint64_t my_seed, my_random;

void strata_lock_perturb(uint64_t seed) {
    atomic_store(&perturbed_threads, 0);
    atomic_store(&perturbed, seed);
}

static void yield_to_waiters(void) {
    uint64_t seed = atomic_load_explicit(&perturbed, memory_order_relaxed);
    if (seed == 0) return;
    if (my_seed != seed) my_random = (seed + 1) * 0x9e3779b97f4a7c15ull ^ atomic_fetch_add(&perturbed_threads, 1) << 32;
    my_seed = seed;
    my_random = my_random * 6364136223846793005ull + 1442695040888963407ull;
    uint64_t dice = my_random >> 40;
    if (dice % 128 == 0) (void)nanosleep(&(struct timespec){.tv_nsec = (long)(dice / 128 % 60000)}, NULL);
    else if (dice % 8 == 0) (void)sched_yield();
}

void strata_lock_note_sleep(void) { yield_to_waiters(); }
#endif

/* ---- locks ---- */

/* Takes a free lock. Clears the bits `off` and subtracts `sleepers` from the sleeper count in the same step. */
static bool try_take(strata_lock_t *lock, uint32_t off, uint32_t sleepers) {
    uint32_t state = atomic_load_explicit(&lock->state, memory_order_relaxed);
    while (!(state & HELD)) {
        uint32_t taken = ((state | HELD) & ~off) - sleepers * SLEEPER;
        if (atomic_compare_exchange_weak_explicit(&lock->state, &state, taken, memory_order_acquire, memory_order_relaxed))
            return true;
    }
    return false;
}

/* Wakes one sleeper of a lock for which no thread looks. Returns false if the state has changed from *state. */
static bool wake_one(strata_lock_t *lock, uint32_t *state) {
    if (!atomic_compare_exchange_weak(&lock->state, state, *state | SPINNING | UNCLAIMED)) return false;
    atomic_fetch_add(&lock->wakes, 1);
    wake(&lock->wakes, 1);
    return true;
}

/* Called by the new holder, which looked for the lock. Wakes another thread after TURNS such turns. */
static void wake_next_spinner(strata_lock_t *lock) {
    uint32_t state = atomic_load_explicit(&lock->state, memory_order_relaxed);
    if (state < SLEEPER || ++lock->spin_wins < TURNS) return;
    lock->spin_wins = 0;
    if (!(state & SPINNING)) (void)wake_one(lock, &state);
}

/* Called by the thread for which SPINNING is set. Clears it before returning. */
static bool spin(strata_lock_t *lock, uint32_t sleepers) {
    uint32_t pause = PAUSE_FIRST;
    bool taken = try_take(lock, SPINNING, sleepers);
    for (int i = 0; i < SPINS && !taken; i++) {
        pause_for(pause);
        if (pause < PAUSE_MAX) pause *= 2;
        taken = try_take(lock, SPINNING, sleepers);
    }
    if (taken) wake_next_spinner(lock);
    else atomic_fetch_and(&lock->state, ~(uint32_t)SPINNING);
    return taken;
}

static bool begin_spin(strata_lock_t *lock) { return !(atomic_fetch_or(&lock->state, SPINNING) & SPINNING); }

static bool claim_spin(strata_lock_t *lock) { return atomic_fetch_and(&lock->state, ~(uint32_t)UNCLAIMED) & UNCLAIMED; }

static void wait_for(strata_lock_t *lock) {
    if (try_take(lock, 0, 0)) return;
    if (begin_spin(lock) && spin(lock, 0)) return;
    atomic_fetch_add(&lock->state, SLEEPER);
    for (;;) {
        uint32_t wakes = atomic_load(&lock->wakes), state = atomic_load(&lock->state);
        if (state & UNCLAIMED) {
            if (claim_spin(lock) && spin(lock, 1)) return;
        } else if (!(state & HELD)) {
            if (try_take(lock, 0, 1)) return;
        } else {
            strata_lock_note_sleep();
            sleep_on(&lock->wakes, wakes, NULL);
        }
    }
}

static void wake_sleeper(strata_lock_t *lock, uint32_t left) {
    uint32_t state = left;
    while (state >= SLEEPER && !(state & (HELD | SPINNING)))
        if (wake_one(lock, &state)) return;
}

/* Returns true if another thread has the lock or waits for it. OBSERVED is no sign of that. */
static bool is_contended(uint32_t state) { return (state & ~(uint32_t)OBSERVED) != 0; }

bool strata_lock_try_acquire(strata_lock_t *lock) {
    uint32_t state = atomic_load_explicit(&lock->state, memory_order_relaxed);
    while (!is_contended(state)) {
        if (atomic_compare_exchange_weak_explicit(&lock->state, &state, state | HELD, memory_order_acquire, memory_order_relaxed))
            return true;
    }
    return false;
}

bool strata_lock_acquire(strata_lock_t *lock) {
    if (strata_lock_try_acquire(lock)) return false;
    wait_for(lock);
    return true;
}

/* After the release the lock is touched only if other threads sleep. So a thread that took it since,
 * and is the last user, may destroy it. */
void strata_lock_release(strata_lock_t *lock) {
    uint32_t left = atomic_fetch_sub_explicit(&lock->state, HELD, memory_order_release) - HELD;
    if (left >= SLEEPER) wake_sleeper(lock, left);
}

/* The observer may also have become active after the lock was taken. A late acquired() does no harm. */
bool strata_lock_slow(strata_lock_t *lock, uint32_t seen) {
    bool contended = is_contended(seen);
    if (contended) wait_for(lock);
    else contended = strata_lock_acquire(lock);
    if (atomic_load_explicit(&lock->state, memory_order_relaxed) & OBSERVED) lock->observer->acquired(lock->observer, lock);
    return contended;
}

/* The observer seen in the state is still there, because only the caller may remove it. */
void strata_unlock_slow(strata_lock_t *lock, uint32_t seen) {
    if (seen & OBSERVED) lock->observer->releasing(lock->observer, lock);
    strata_lock_release(lock);
}

/* ---- observers ---- */

/* Called with the observer's list locked: until its release the lock neither ends nor gets another observer. */
static void begin_report(strata_lock_t *lock) { (void)atomic_fetch_or_explicit(&lock->state, OBSERVED, memory_order_relaxed); }

static void observer_add(strata_lock_t *lock, strata_lock_observer_t *observer) {
    strata_lock_acquire(&observer->list);
    lock->prev = NULL;
    lock->next = observer->first;
    if (lock->next) lock->next->prev = lock;
    observer->first = lock;
    if (observer->active) begin_report(lock);
    strata_lock_release(&observer->list);
}

static void observer_remove(strata_lock_t *lock, strata_lock_observer_t *observer) {
    strata_lock_acquire(&observer->list);
    if (lock->next) lock->next->prev = lock->prev;
    if (lock->prev) lock->prev->next = lock->next;
    else observer->first = lock->next;
    (void)atomic_fetch_and_explicit(&lock->state, ~(uint32_t)OBSERVED, memory_order_relaxed);
    strata_lock_release(&observer->list);
}

void strata_lock_observe(strata_lock_t *lock, strata_lock_observer_t *observer) {
    if (lock->observer == observer) return;
    if (lock->observer) observer_remove(lock, lock->observer);
    lock->observer = observer;
    if (observer) observer_add(lock, observer);
}

void strata_lock_observer_activate(strata_lock_observer_t *observer) {
    strata_lock_acquire(&observer->list);
    if (!observer->active)
        for (strata_lock_t *lock = observer->first; lock; lock = lock->next) begin_report(lock);
    observer->active = true;
    strata_lock_release(&observer->list);
}

void strata_lock_init(strata_lock_t *lock, strata_lock_rank_t rank, strata_lock_observer_t *observer) {
    *lock = (strata_lock_t){.rank = rank};
    strata_lock_observe(lock, observer);
}

void strata_lock_destroy(strata_lock_t *lock) { strata_lock_observe(lock, NULL); }

/* ---- lock order ---- */

#ifdef STRATA_CHECK_LOCKS
enum { HELD_MAX = 5000 }; /* a snapshot holds every stack of a domain */
/* The first few locks, and an array allocated while more are held. All thread storage of the library is
 * static, and must stay small so that the library can be loaded late (dlopen). */
enum { HELD_FEW = 16 };
static _Thread_local const strata_lock_t *few[HELD_FEW];
static _Thread_local const strata_lock_t **rest;
static _Thread_local int held_count;

static const strata_lock_t **held_at(int i) { return i < HELD_FEW ? &few[i] : &rest[i - HELD_FEW]; }

static void abort_with(const char *what, const strata_lock_t *lock) {
    fprintf(stderr, "strata: %s (lock of rank %d)\n", what, lock ? (int)lock->rank : 0);
    for (int i = 0; i < held_count; i++) fprintf(stderr, "  held: rank %d\n", (int)(*held_at(i))->rank);
    abort();
}

void strata_lock_note_locked(const strata_lock_t *lock) {
    yield_to_waiters();
    for (int i = 0; i < held_count; i++) {
        const strata_lock_t *held = *held_at(i);
        if (held == lock) abort_with("a thread takes a lock that it already holds", lock);
        /* A snapshot takes the domain's lock first, then the domain's stacks, then its shared stacks
         * (those of threads first), each in the order of numbers. These are the only legal pairs of one
         * rank. */
        bool snapshot = (*held_at(0))->rank == STRATA_RANK_DOMAIN || lock->rank == STRATA_RANK_STACK;
        bool pair = held->rank == lock->rank && snapshot && lock->rank >= STRATA_RANK_STACK && lock->rank <= STRATA_RANK_SHARED;
        if (held->rank >= lock->rank && !pair) abort_with("a lock is taken out of order", lock);
    }
    if (held_count == HELD_MAX) abort_with("too many locks are held", lock);
    if (held_count == HELD_FEW && !rest && !(rest = calloc(HELD_MAX, sizeof *rest)))
        abort_with("out of memory for lock tracking", lock);
    *held_at(held_count++) = lock;
}

void strata_lock_note_unlocked(const strata_lock_t *lock) {
    yield_to_waiters();
    for (int i = held_count - 1; i >= 0; i--) {
        if (*held_at(i) != lock) continue;
        for (int j = i; j + 1 < held_count; j++) *held_at(j) = *held_at(j + 1);
        if (--held_count > 0) return;
        free(rest);
        rest = NULL;
        return;
    }
    abort_with("a lock is dropped that this thread does not hold", lock);
}

void strata_lock_assert_none(const char *what) {
    for (int i = 0; i < held_count; i++)
        if ((*held_at(i))->rank != STRATA_RANK_DEVICE) abort_with(what, *held_at(i));
}

void strata_lock_assert_alone(const strata_lock_observer_t *observer) {
    if (observer->first) abort_with("a lock outlives its observer", observer->first);
}
#endif

/* ---- conditions ---- */

void strata_condition_init(strata_condition_t *condition) { atomic_init(&condition->wakes, 0); }

void strata_condition_destroy(strata_condition_t *condition) { (void)condition; }

void strata_condition_broadcast(strata_condition_t *condition) {
    atomic_fetch_add(&condition->wakes, 1);
    wake(&condition->wakes, INT_MAX);
}

void strata_condition_wait(strata_condition_t *condition, strata_lock_t *lock, uint64_t timeout_ns) {
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u), .tv_nsec = (long)(timeout_ns % 1000000000u)};
    uint32_t wakes = atomic_load(&condition->wakes);
    strata_unlock(lock);
    sleep_on(&condition->wakes, wakes, timeout_ns == UINT64_MAX ? NULL : &timeout);
    strata_lock(lock);
}

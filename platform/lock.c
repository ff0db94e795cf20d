#include "platform/lock.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void strata_lock_init(strata_lock_t *lock, strata_lock_rank_t rank, strata_lock_observer_t *observer) {
    pthread_mutex_init(&lock->mutex, NULL);
    lock->observer = observer;
    lock->observed = 0;
    lock->rank = rank;
}

void strata_lock_destroy(strata_lock_t *lock) { pthread_mutex_destroy(&lock->mutex); }

#ifdef STRATA_CHECK_LOCKS
enum { HELD_MOST = 5000 }; /* a snapshot holds every stack of a domain */
/* The first few, and room for more while more are held: all of the library's thread storage is static, and must stay small so that
 * the library can be loaded late. */
enum { HELD_FEW = 16 };
static _Thread_local const strata_lock_t *few[HELD_FEW];
static _Thread_local const strata_lock_t **rest;
static _Thread_local int held_count;

static const strata_lock_t **held_at(int i) { return i < HELD_FEW ? &few[i] : &rest[i - HELD_FEW]; }

static void wrong(const char *what, const strata_lock_t *lock) {
    fprintf(stderr, "strata: %s (lock of rank %d)\n", what, lock ? (int)lock->rank : 0);
    for (int i = 0; i < held_count; i++) fprintf(stderr, "  held: rank %d\n", (int)(*held_at(i))->rank);
    abort();
}

static _Atomic uint64_t perturbed; /* the seed; 0: off */
static _Atomic uint64_t perturbed_threads;
static _Thread_local uint64_t my_seed, my_random;

void strata_lock_perturb(uint64_t seed) {
    atomic_store(&perturbed_threads, 0);
    atomic_store(&perturbed, seed);
}

static void give_way(void) {
    uint64_t seed = atomic_load_explicit(&perturbed, memory_order_relaxed);
    if (seed == 0) return;
    if (my_seed != seed) my_random = (seed + 1) * 0x9e3779b97f4a7c15ull ^ atomic_fetch_add(&perturbed_threads, 1) << 32;
    my_seed = seed;
    my_random = my_random * 6364136223846793005ull + 1442695040888963407ull;
    uint64_t dice = my_random >> 40;
    if (dice % 128 == 0) (void)nanosleep(&(struct timespec){.tv_nsec = (long)(dice / 128 % 60000)}, NULL);
    else if (dice % 8 == 0) (void)sched_yield();
}

void strata_lock_note_take(const strata_lock_t *lock) {
    give_way();
    for (int i = 0; i < held_count; i++) {
        const strata_lock_t *held = *held_at(i);
        if (held == lock) wrong("a lock is taken twice by one thread", lock);
        /* A snapshot holds the stacks of a domain and then its shared stacks (those of threads first), each in the order of
         * numbers, under the domain's lock, which comes first. These are the only lawful pairs of one rank. */
        bool snapshot = (*held_at(0))->rank == STRATA_RANK_DOMAIN || lock->rank == STRATA_RANK_STACK;
        bool pair = held->rank == lock->rank && snapshot && lock->rank >= STRATA_RANK_STACK && lock->rank <= STRATA_RANK_SHARED;
        if (held->rank >= lock->rank && !pair) wrong("a lock is taken out of order", lock);
    }
    if (held_count == HELD_MOST) wrong("too many locks are held", lock);
    if (held_count == HELD_FEW && !rest && !(rest = calloc(HELD_MOST, sizeof *rest))) wrong("no room to note a lock", lock);
    *held_at(held_count++) = lock;
}

void strata_lock_note_drop(const strata_lock_t *lock) {
    give_way();
    for (int i = held_count - 1; i >= 0; i--) {
        if (*held_at(i) != lock) continue;
        for (int j = i; j + 1 < held_count; j++) *held_at(j) = *held_at(j + 1);
        if (--held_count > 0) return;
        free(rest);
        rest = NULL;
        return;
    }
    wrong("a lock is dropped that this thread does not hold", lock);
}

void strata_lock_assert_none(const char *what) {
    for (int i = 0; i < held_count; i++)
        if ((*held_at(i))->rank != STRATA_RANK_DEVICE) wrong(what, *held_at(i));
}
#endif

void strata_condition_init(strata_condition_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition->condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

void strata_condition_destroy(strata_condition_t *condition) { pthread_cond_destroy(&condition->condition); }

void strata_condition_broadcast(strata_condition_t *condition) { pthread_cond_broadcast(&condition->condition); }

void strata_condition_wait(strata_condition_t *condition, strata_lock_t *lock, uint64_t timeout_ns) {
    strata_lock_note_drop(lock);
    if (strata_lock_observed(lock)) lock->observer->releasing(lock->observer, lock);
    if (timeout_ns == UINT64_MAX) {
        pthread_cond_wait(&condition->condition, &lock->mutex);
    } else {
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &end);
        uint64_t nanoseconds = (uint64_t)end.tv_nsec + timeout_ns % 1000000000u;
        end.tv_sec += (time_t)(timeout_ns / 1000000000u + nanoseconds / 1000000000u);
        end.tv_nsec = (long)(nanoseconds % 1000000000u);
        pthread_cond_timedwait(&condition->condition, &lock->mutex, &end);
    }
    strata_lock_note_take(lock);
    if (strata_lock_observed(lock)) lock->observer->acquired(lock->observer, lock);
}

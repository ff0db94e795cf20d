/* Waits for memory: time passes until a free, which wakes the waiters (docs/contracts.md §3). No lock is held. */
#ifndef STRATA_ALLOCATION_WAITING_H
#define STRATA_ALLOCATION_WAITING_H

#include "allocation/domain/domain.h"

/* One wait of one request. If other threads may free, its timeout also holds in real time, so it cannot hang. */
typedef struct strata_waiting {
    strata_domain_t *domain;
    uint64_t deadline, real_deadline;
    uint64_t unknown_deadline; /* real time; until then the wait allows for a free by a thread that has never called */
    uint64_t backoff; /* ns of real time until the next poll */
    uint64_t nap; /* ns of the last sleep; 0 if it ended exactly at a predicted event */
    bool marked; /* this thread is among the domain's waiters, and every stack reports its frees */
} strata_waiting_t;

strata_waiting_t strata_waiting_begin(strata_domain_t *domain, uint64_t timeout);
bool strata_waiting_is_over(const strata_waiting_t *waiting);
/* Returns the number of threads that could free memory for each other. */
uint32_t strata_waiting_threads(const strata_domain_t *domain);

/* Returns the epoch, which advances with every free that a waiter notices. */
uint64_t strata_domain_epoch(strata_domain_t *domain);
/* Called by a free that finds the waiter bit. Advances the epoch, so that every waiter tries again. */
void strata_domain_wake(strata_domain_t *domain);

/* Makes every free from here on advance the epoch. */
void strata_waiting_mark(strata_waiting_t *waiting);
void strata_waiting_unmark(strata_waiting_t *waiting);

/* Lets time pass until the earliest pending free may be done, at `ready_at`, or UINT64_MAX if that is
 * unknown. Returns true if a free has advanced the epoch. */
bool strata_waiting_wait_until(strata_waiting_t *waiting, uint64_t ready_at, uint64_t epoch);
/* Returns true if this wait still allows for a free by a thread that has never called. Always false if only one thread uses the device. */
bool strata_waiting_has_unknown_threads(const strata_waiting_t *waiting);
/* Sleeps until a free advances the epoch, and then returns true. Returns false at the deadline, or as soon
 * as no thread is left that could free. That is the case if every other registered thread sleeps here too,
 * and there are no unknown threads. */
bool strata_waiting_sleep(strata_waiting_t *waiting, uint64_t epoch);

#endif

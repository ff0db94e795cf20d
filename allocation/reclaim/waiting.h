/* Waiting for memory: time passes until a free, and who is woken by one (docs/contracts.md §3). No lock is held. */
#ifndef STRATA_ALLOCATION_WAITING_H
#define STRATA_ALLOCATION_WAITING_H

#include "allocation/domain/domain.h"

/* One wait of one request. Its timeout also holds in real time where other threads may free, so nothing hangs. */
typedef struct strata_waiting {
    strata_domain_t *domain;
    uint64_t deadline, real_deadline;
    uint64_t stranger_deadline; /* real time; until then the wait allows for a free by a thread that has never called */
    uint64_t backoff; /* ns of real time until the next poll */
    uint64_t nap; /* ns that the last sleep lasted; 0: it ended with the event, because the device knew when */
    bool marked; /* this thread is among the domain's waiters, and every stack reports its frees */
} strata_waiting_t;

strata_waiting_t strata_waiting_begin(strata_domain_t *domain, uint64_t timeout);
bool strata_waiting_is_over(const strata_waiting_t *waiting);
/* The threads of which one may free what another waits for. */
uint32_t strata_waiting_threads(const strata_domain_t *domain);

/* Moves with every free that a waiter notices. */
uint64_t strata_domain_epoch(strata_domain_t *domain);
/* A free found the waiter bit: the epoch moves, every waiter tries again. */
void strata_domain_wake(strata_domain_t *domain);

/* From here on every free is noticed, and moves the epoch. */
void strata_waiting_mark(strata_waiting_t *waiting);
void strata_waiting_unmark(strata_waiting_t *waiting);

/* Lets time pass until the earliest pending free may be done (`ready_at`; UINT64_MAX: nobody knows), or a free has moved the epoch:
 * true. */
bool strata_waiting_pass(strata_waiting_t *waiting, uint64_t ready_at, uint64_t epoch);
/* Returns true if this wait still allows for a free by a thread that has never called. Always false if only one thread uses the device. */
bool strata_waiting_has_strangers(const strata_waiting_t *waiting);
/* Sleeps until a free moves the epoch: true. False at the deadline, and as soon as nobody is left who could free: every other
 * registered thread sleeps here too, and there are no strangers. */
bool strata_waiting_sleep(strata_waiting_t *waiting, uint64_t epoch);

#endif

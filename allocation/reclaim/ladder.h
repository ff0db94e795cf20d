/* Out of memory (CONTRACTS §3): the reclaim ladder, one function, climbed by `retry` between its tries, or once by the core
 * when the stack has no `retry`. No lock is held. */
#ifndef STRATA_ALLOCATION_LADDER_H
#define STRATA_ALLOCATION_LADDER_H

#include "allocation/domain/domain.h"

/* One try: search, then growth. E_NO_MEMORY: go on climbing. */
typedef strata_status_t (*strata_try_fn)(void *context, uint32_t extra_flags);

typedef struct strata_ladder {
    strata_domain_t *domain;
    strata_stack_t *stack; /* that the request came to */
    size_t size;
    uint64_t timeout; /* ns of the device's clock; 0: no waiting at all */
    bool wait_first; /* wait for pending frees that could serve before anything is released */
    bool wait_only; /* nothing is asked or given back: polls and waits for frees alone */
    uint16_t waiter; /* attention bit of the layer that wakes waiters at free; 0: nobody does */
    strata_try_fn try_again;
    void *context;
} strata_ladder_t;

/* Climbs until a try succeeds or fails otherwise, or nothing is left. E_NO_MEMORY then. */
strata_status_t strata_ladder_climb(const strata_ladder_t *ladder);

/* What each rung gave, in bytes: those of the calling thread's last climb. */
typedef struct strata_climbed {
    bool climbed; /* false: the request met no ladder */
    uint64_t polled; /* deferred frees that had passed */
    uint64_t waited; /* those that were waited for first */
    uint64_t released; /* idle chunks */
    uint64_t called_back; /* as the program's callbacks say */
    uint64_t took_ns; /* on the device's clock */
    bool asked_small; /* growth by the request alone was tried */
    bool slept; /* it waited for other threads' frees */
    bool timed_out; /* it ended because the time was over */
    uint8_t own; /* the layer that took steps of its own before it was refused, by its number in the plan; 0: none */
    uint64_t own_gave; /* bytes that the device got back meanwhile */
} strata_climbed_t;
strata_climbed_t strata_ladder_last(void);
/* A request begins that has climbed nothing yet. */
void strata_ladder_begin(void);
/* A layer's own steps have not helped a request, and the device got so much back meanwhile. */
void strata_ladder_note_own(uint8_t layer, uint64_t gave);

/* Before a growth that a cache held back: waits for the own stack's pending frees while they could serve. E_NO_MEMORY: that did
 * not help, growth is due. */
strata_status_t strata_ladder_be_patient(const strata_ladder_t *ladder);

/* A free found the waiter bit: the domain's epoch moves, every waiter tries again. No lock is held. */
void strata_domain_wake(strata_domain_t *domain);

#endif

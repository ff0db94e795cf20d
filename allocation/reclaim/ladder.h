/* Out of memory (docs/contracts.md §3): the ladder, climbed by the core if a stack that has one refused a request. */
#ifndef STRATA_ALLOCATION_LADDER_H
#define STRATA_ALLOCATION_LADDER_H

#include "allocation/domain/domain.h"

/* A request that reached `first`, the first layer of a stack, was refused for memory. Climbs as the stack's `out_of_memory` says
 * (strata_plan_node_t), or once without waiting if nothing says so. Until a try succeeds or fails otherwise, or nothing is left:
 * then E_NO_MEMORY. No lock is held. */
strata_status_t strata_reclaim_for(strata_layer_t *first, const strata_request_t *request, strata_record_t **record);

/* One try: search, then growth. E_NO_MEMORY: go on climbing. */
typedef strata_status_t (*strata_try_fn)(void *context, uint32_t extra_flags);

typedef struct strata_ladder {
    strata_stack_t *stack; /* that the request reached */
    size_t size;
    const strata_reclaim_t *says;
    strata_try_fn try_again;
    void *context;
} strata_ladder_t;

/* strata_reclaim_for() with other tries. */
strata_status_t strata_ladder_climb(const strata_ladder_t *ladder);

/* What each rung gave, in bytes, in the calling thread's last climb. */
typedef struct strata_climbed {
    bool climbed; /* false: the request met no ladder */
    uint64_t polled; /* deferred frees that had passed */
    uint64_t waited; /* deferred frees that were waited for first */
    uint64_t released; /* idle chunks */
    uint64_t called_back; /* as the program's callbacks report */
    uint64_t took_ns; /* on the device's clock */
    bool asked_small; /* growth by the request alone was tried */
    bool slept; /* it waited for other threads' frees */
    bool timed_out; /* it ended because the time was over */
    const strata_layer_t *own; /* whose own steps have not helped (strata_layer_has_reclaimed()); NULL: none */
    uint64_t own_gave; /* bytes that the device got back until then */
    uint64_t given_before; /* what it had got back when the request began */
} strata_climbed_t;
strata_climbed_t strata_ladder_last(void);
/* A request begins, which has climbed nothing yet; `given` are the bytes that the device got back so far. */
void strata_ladder_begin(uint64_t given_bytes);
/* At the end of a climb. */
void strata_ladder_note(strata_climbed_t climbed);
/* What the thread knew before a callback of the program, which may have made requests of its own. */
void strata_ladder_restore(const strata_climbed_t *last);

#endif

/* The outcome of one request: who refused it, what recovery gave, and how long it may wait.
 *
 * strata_stack_serve() begins the outcome of a request, and every copy of the request points to it. Layers note in it why they refuse. The
 * facade reads it for the report of a request that fails for memory at last. Only the thread of the request uses it, so it needs no lock.
 * Requests that the core makes for itself have none, and a layer outside the tree may pass a request that was built for an older header.
 * All functions accept such requests, and note nothing. */
#ifndef STRATA_ALLOCATION_REPORT_OUTCOME_H
#define STRATA_ALLOCATION_REPORT_OUTCOME_H

#include "strata/layer.h"

typedef enum strata_reclaim_steps { STRATA_RECLAIM_ALL, STRATA_RECLAIM_WAIT } strata_reclaim_steps_t;

/* The options of a `retry`. */
typedef struct strata_reclaim {
    uint64_t timeout; /* ns of the device's clock; 0: the request never waits */
    uint32_t steps; /* strata_reclaim_steps_t; WAIT: polls and waits for frees; nothing is asked for or given back */
    bool wait_first; /* wait for pending frees that could serve before anything is released */
    bool patience; /* docs/patience.md */
    uint64_t depth, deepest;
    double slack;
} strata_reclaim_t;

typedef enum strata_refused_by {
    STRATA_REFUSED_BY_OTHERS, /* nothing was noted: a layer refused for its own reasons */
    STRATA_REFUSED_BY_DEVICE,
    STRATA_REFUSED_BY_PLACE, /* strata_set_limit() */
    STRATA_REFUSED_BY_BOUND /* an option of a layer */
} strata_refused_by_t;

typedef struct strata_refusal {
    strata_refused_by_t by;
    uint64_t asked, used, limit; /* bytes; the latter two for a bound, of which `used` were taken */
    uint8_t layer; /* for a bound: its layer's number in the plan */
    const char *option; /* for a bound: its option, a constant string */
} strata_refusal_t;

/* The bytes that each step of a recovery gave. */
typedef struct strata_climbed {
    bool climbed; /* false: no recovery ran */
    uint64_t polled; /* deferred frees that had passed */
    uint64_t waited; /* deferred frees that were waited for first */
    uint64_t released; /* idle chunks */
    uint64_t called_back; /* as the program's callbacks report */
    uint64_t took_ns; /* on the device's clock */
    bool asked_small; /* growth by the request alone was tried */
    bool slept; /* it waited for other threads' frees */
    bool timed_out; /* it ended because the time was over */
} strata_climbed_t;

struct strata_outcome {
    const strata_reclaim_t *reclaim; /* of the nearest `retry` that the request has passed; NULL: none */
    bool decided; /* a `retry` was asked to recover, and did what its options allow */
    strata_refusal_t refusal; /* the latest one: earlier refusals were overcome */
    strata_climbed_t climbed; /* the latest one */
    const strata_layer_t *own; /* whose own steps have not helped (strata_layer_has_reclaimed()); NULL: none */
    uint64_t own_gave; /* bytes that the device got back until then */
    uint64_t given_before; /* what the device had got back when the request began */
};

/* Returns NULL if the request has no outcome, or is NULL. */
static inline strata_outcome_t *strata_outcome_of(const strata_request_t *request) {
    bool has = request && request->struct_size >= offsetof(strata_request_t, outcome) + sizeof request->outcome;
    return has ? request->outcome : NULL;
}

/* A request begins; the device has got `given` bytes back so far. Words that mean nothing yet are left as they are: this runs for each request
 * that is no hit. */
static inline void strata_outcome_begin(strata_outcome_t *outcome, uint64_t given) {
    outcome->reclaim = NULL;
    outcome->decided = false;
    outcome->refusal.by = STRATA_REFUSED_BY_OTHERS;
    outcome->climbed.climbed = outcome->climbed.slept = outcome->climbed.timed_out = false;
    outcome->own = NULL;
    outcome->given_before = given;
}

/* ---- refusals; each returns nothing, or E_NO_MEMORY with a text ---- */

void strata_refused_by_device(const strata_request_t *request, uint64_t asked);
void strata_refused_by_place(const strata_request_t *request, uint64_t asked, uint64_t used, uint64_t limit);
/* Notes that an option bounds what a layer may have from below, and returns E_NO_MEMORY with the option's name. */
strata_status_t strata_refuse_by_bound(const strata_layer_t *layer, const strata_request_t *request, const char *option,
                                       uint64_t asked, uint64_t used, uint64_t limit);
/* Corrects the last refusal: it refused a piece of `whole` bytes, of which `got` had been served. Another try needs all of them from a
 * device, because the pieces that were served go back first. A bound has counted those. */
void strata_refused_piece(const strata_request_t *request, uint64_t whole, uint64_t got);

#endif

/* The outcome of one request: the layer or limit that refused it, the bytes that recovery gave, and how
 * long it may wait.
 *
 * strata_stack_serve() begins the outcome of a request, and every copy of the request points to it. Layers
 * note in it why they refuse. The facade reads it to report a request that finally fails for lack of
 * memory. Only the thread of the request uses it, so it needs no lock. Requests that the core makes for
 * itself have none. A layer outside the tree may pass a request that was built for an older header. All
 * functions accept such requests, and note nothing. */
#ifndef STRATA_ALLOCATION_REPORT_OUTCOME_H
#define STRATA_ALLOCATION_REPORT_OUTCOME_H

#include "strata/layer.h"

typedef enum strata_reclaim_steps { STRATA_RECLAIM_ALL, STRATA_RECLAIM_WAIT } strata_reclaim_steps_t;

/* The options of a `retry`. */
typedef struct strata_reclaim {
    uint64_t timeout; /* ns of the device's clock; 0 if the request never waits */
    /* strata_reclaim_steps_t; WAIT only polls and waits for frees, and neither releases memory nor calls
     * callbacks */
    uint32_t steps;
    bool wait_first; /* wait for pending frees that could serve before anything is released */
    bool patience; /* docs/virtual-memory.md */
    uint64_t depth, deepest;
    double slack;
} strata_reclaim_t;

typedef enum strata_refused_by {
    STRATA_REFUSED_BY_OTHERS, /* no limit was noted: a layer refused for its own reasons */
    STRATA_REFUSED_BY_DEVICE,
    STRATA_REFUSED_BY_PLACE, /* strata_set_limit() */
    STRATA_REFUSED_BY_BOUND /* an option of a layer */
} strata_refused_by_t;

typedef struct strata_refusal {
    strata_refused_by_t by;
    uint64_t asked, used, limit; /* bytes; the latter two are only set for a bound, of which `used` were taken */
    uint8_t layer; /* for a bound: its layer's number in the plan */
    bool for_good; /* for the device: it is smaller than the request, so recovery cannot help */
    const char *option; /* for a bound: its option, a constant string */
} strata_refusal_t;

/* The bytes that each step of a recovery gave. */
typedef struct strata_recovery_result {
    bool ran; /* false if no recovery ran */
    uint64_t polled; /* deferred frees that were complete */
    uint64_t waited; /* deferred frees for which wait_first waited */
    uint64_t released; /* idle chunks */
    uint64_t called_back; /* as the program's callbacks report */
    uint64_t took_ns; /* on the device's clock */
    bool asked_small; /* growth by the request alone was tried */
    bool slept; /* it waited for frees by other threads, or the timeout left no time for that */
    bool timed_out; /* it ended because the timeout expired */
} strata_recovery_result_t;

struct strata_outcome {
    const strata_reclaim_t *reclaim; /* of the nearest `retry` that the request has passed; NULL if there is none */
    bool decided; /* a `retry` tried to recover, as far as its options allow */
    strata_refusal_t refusal; /* the latest one: earlier refusals were overcome */
    strata_recovery_result_t recovery; /* the latest one */
    const strata_layer_t *own; /* the layer that failed to recover on its own (strata_layer_note_reclaimed()), or NULL */
    uint64_t own_released; /* bytes returned to the device until then */
    uint64_t returned_before; /* bytes returned to the device before the request began */
};

/* Returns NULL if the request has no outcome, or is NULL. */
static inline strata_outcome_t *strata_outcome_of(const strata_request_t *request) {
    bool has = request && request->struct_size >= offsetof(strata_request_t, outcome) + sizeof request->outcome;
    return has ? request->outcome : NULL;
}

/* Begins the outcome of a request; `given` bytes have been returned to the device so far. Fields that have
 * no meaning yet are not written, because this runs for each request that is not a hit. */
static inline void strata_outcome_begin(strata_outcome_t *outcome, uint64_t given) {
    outcome->reclaim = NULL;
    outcome->decided = false;
    outcome->refusal.by = STRATA_REFUSED_BY_OTHERS;
    outcome->recovery.ran = outcome->recovery.slept = outcome->recovery.timed_out = false;
    outcome->own = NULL;
    outcome->returned_before = given;
}

/* ---- refusals ---- */

void strata_refused_by_device(const strata_request_t *request, uint64_t asked);
/* Notes that the whole device is smaller than the request. */
void strata_refused_for_good(const strata_request_t *request, uint64_t asked);
static inline bool strata_is_refused_for_good(const strata_outcome_t *outcome) {
    return outcome && outcome->refusal.by == STRATA_REFUSED_BY_DEVICE && outcome->refusal.for_good;
}
void strata_refused_by_place(const strata_request_t *request, uint64_t asked, uint64_t used, uint64_t limit);
/* Notes that an option bounds the bytes that a layer may take from below. Returns E_NO_MEMORY with the
 * option's name. */
strata_status_t strata_refuse_by_bound(const strata_layer_t *layer, const strata_request_t *request, const char *option,
                                       uint64_t asked, uint64_t used, uint64_t limit);
/* Corrects the last refusal: it refused a piece of `whole` bytes, of which `got` had been served. Another
 * try needs all of them from a device, because the served pieces are freed first. A bound has already
 * counted those. */
void strata_refused_piece(const strata_request_t *request, uint64_t whole, uint64_t got);

#endif

/* Why a way down was refused: noted by the calling thread where it happened, for the report of a request that fails for memory at
 * last. For a layer that notes nothing, the report has only its error's text. */
#ifndef STRATA_ALLOCATION_REFUSAL_H
#define STRATA_ALLOCATION_REFUSAL_H

#include "allocation/stack/stack.h"

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
    const char *option; /* likewise; constant */
} strata_refusal_t;

/* A request begins. */
void strata_refusal_begin(void);
/* The latest one counts: earlier refusals were overcome. */
void strata_refusal_note(const strata_refusal_t *refusal);
strata_refusal_t strata_refusal_last(void);
/* What was refused was a piece of `whole` bytes, of which `got` had come: a device must have all of them free for another try, for
 * those that came go back first; a bound has counted them. */
void strata_refusal_of_piece(uint64_t whole, uint64_t got);

/* An option of a layer bounds what it may have from below: notes it, and returns E_NO_MEMORY with the option's name. */
strata_status_t strata_refuse_by_bound(const strata_layer_t *layer, const char *option, uint64_t asked, uint64_t used,
                                       uint64_t limit);

#endif

/* What a layer that follows plans can do besides serving. The stack's lock is held where a call is passed, and opened meanwhile. */
#ifndef STRATA_ALLOCATION_PLANNING_H
#define STRATA_ALLOCATION_PLANNING_H

#include "allocation/stack/stack.h"

typedef struct strata_ahead strata_ahead_t; /* planning/file/ahead.h */

typedef struct strata_planning {
    /* A plan that was made ahead is followed from the next request on; room for it comes together now. All or nothing. E_NO_MEMORY,
     * E_UNSUPPORTED, E_BUSY, E_HOST_MEMORY. */
    strata_status_t (*load)(strata_layer_t *self, const strata_ahead_t *ahead, strata_call_t *call);
    /* Makes the plan that is wanted, if one is. One thread at a time. */
    void (*make)(strata_layer_t *self, strata_call_t *call);
    /* What it divides of the memory of the cache right below is that cache's again (strata_chunks_t.divider). No lock is opened. */
    void (*let_go)(strata_layer_t *self);
} strata_planning_t;

/* The first layer of the stack's own that follows plans takes it. No lock is held. E_UNSUPPORTED: there is none. */
strata_status_t strata_stack_load_plan(strata_stack_t *stack, const strata_ahead_t *ahead);
/* Makes the plans that layers of the stack want. No lock is held. */
void strata_stack_make_plans(strata_stack_t *stack);

#endif

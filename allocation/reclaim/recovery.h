/* Recovery from out-of-memory (docs/contracts.md §3). A `retry` layer runs it, or the core if no `retry`
 * did.
 *
 *     request refused -> poll -> wait first -> release -> callbacks -> smaller growth -> wait, then again
 *                        after each step that gave memory: try the request again
 *
 * Parts: reclaim.c decides which requests are recovered; recovery.c has the steps; waiting.* sleeps until a
 * free; callbacks.* calls the program. Patience (patience.*) waits instead of growing.
 * Before it grows, memory at rest is collected (rest.*). Idleness (idle.*,
 * regrow.c) releases memory while the program is idle and recalls it later. over_limit.* releases memory after
 * the limit was lowered. */
#ifndef STRATA_ALLOCATION_RECOVERY_H
#define STRATA_ALLOCATION_RECOVERY_H

#include "allocation/report/outcome.h"

/* Recovers a request that `first`, the layer below a `retry`, has refused for lack of memory. Runs the
 * steps that the options allow, and tries again after each step that gave memory. Ends when a try succeeds
 * or fails otherwise. Returns E_NO_MEMORY if no step is left, or if the request forbids recovery. No lock
 * is held. */
strata_status_t strata_reclaim_for(strata_layer_t *first, const strata_reclaim_t *config, const strata_request_t *request,
                                   strata_record_t **record);
/* Like strata_reclaim_for() with `retry: {timeout: 0}` above the top of a stack: once, and without waiting.
 * Returns E_NO_MEMORY if a `retry` has decided on the request, or if a cache's own steps have left nothing
 * to find. The request has an outcome. */
strata_status_t strata_reclaim_once(strata_layer_t *top, const strata_request_t *request, strata_record_t **record);

/* Tries once: a search, then growth. After E_NO_MEMORY recovery continues. */
typedef strata_status_t (*strata_try_fn)(void *context, uint32_t extra_flags);

typedef struct strata_recovery {
    strata_stack_t *stack; /* that the request reached */
    size_t size;
    const strata_reclaim_t *config;
    strata_try_fn try_again;
    void *context;
    strata_recovery_result_t *given; /* set at the end; may be NULL */
} strata_recovery_t;

/* Runs the steps with the caller's tries. */
strata_status_t strata_recovery_run(const strata_recovery_t *recovery);

#endif

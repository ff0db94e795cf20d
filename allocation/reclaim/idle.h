/* Releases idle memory while the program is idle: `idle:` beside a stack (docs/virtual-memory.md).
 *
 * An idle program makes no calls. So a thread of the facade (facade/open/idle.c) looks, or a replay, which
 * advances the time itself. A look checks each group with such a plan for requests to its stacks since the
 * last look, which costs requests nothing. */
#ifndef STRATA_ALLOCATION_IDLE_H
#define STRATA_ALLOCATION_IDLE_H

#include "allocation/domain/domain.h"

enum { STRATA_IDLE_PARTS = 16 }; /* of `after`: the interval of a thread's looks */

/* Checks every group of a domain and releases memory that has been idle for long enough. One thread at a
 * time; no lock is held. Returns when the next look is due if there are no requests until then, by the
 * device's clock, or STRATA_NEVER if none is due. */
uint64_t strata_idle_check(strata_domain_t *domain, uint64_t now);

/* Returns whether the device waits for all of its work when a source of the plan releases memory. */
bool strata_idle_waits_for_device(const strata_plan_t *plan);

/* Regrows memory that idleness released from `stack`, after a request of `by` has grown by `grown` bytes.
 * `stack` is `by` or shared by it. The memory returns in a few steps, each as large as all before it, which
 * means few and large device calls. No lock is held; the thread's last error stays. */
void strata_idle_regrow(strata_stack_t *stack, strata_stack_t *by, strata_stream_t stream, uint64_t grown);
/* The stack is being destroyed. Its lock is held. */
void strata_idle_end(strata_stack_t *stack);

#endif

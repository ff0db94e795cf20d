/* Idle memory goes back when the program is idle: `idle:` beside a stack (docs/idle.md).
 *
 * Somebody has to look, because an idle program makes no calls: a thread of the facade (facade/open/idle.c), or a replay, which knows when
 * time passes. A look asks each group whose plan says so whether anything was asked of its stacks since the last one; that costs requests
 * nothing. */
#ifndef STRATA_ALLOCATION_IDLE_H
#define STRATA_ALLOCATION_IDLE_H

#include "allocation/domain/domain.h"

enum { STRATA_IDLE_PARTS = 16 }; /* of `after`: how often a thread has to look */

/* Looks at every group of a domain; what has been idle for long enough goes back. One thread at a time, no lock is held. Returns when the
 * next look has something to do if nothing is asked until then, by the device's clock; STRATA_NEVER: nothing. */
uint64_t strata_idle_look(strata_domain_t *domain, uint64_t now);

/* A request of `by` has grown by so many bytes. What idleness took from `stack`, which is the same or shared by it, comes back in a few steps, each as
 * large as all before it: with few and large calls of the device. No lock is held; the thread's last error stays. */
void strata_idle_recall(strata_stack_t *stack, strata_stack_t *by, strata_stream_t stream, uint64_t grown);
/* The stack ends. Under its lock. */
void strata_idle_end(strata_stack_t *stack);

#endif

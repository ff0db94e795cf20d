/* Memory at rest: idle memory in the caches of other streams, whose work is done.
 *
 * A program that opens a stream for each phase would otherwise hold the sum of its phases. The memory goes back to
 * the source, from which the growing cache gets it. No cache looks into another one (docs/contracts.md, section 2). */
#ifndef STRATA_ALLOCATION_REST_H
#define STRATA_ALLOCATION_REST_H

#include "allocation/domain/domain.h"

/* Called before a cache of `own` grows by `growth` bytes. If that exceeds the need of the program, as much memory at
 * rest in other stacks of the group goes back to their sources. The saving must be large enough, and the budget of
 * time must permit it. At most the STRATA_GROWN stacks that grew last are looked at. No lock is held. */
void strata_rest_collect(strata_stack_t *own, uint64_t growth);
/* Called after a request that was no hit. A stack may have grown while its own memory waited for borrowers. As much memory goes
 * back once it is idle and the work of the stack's stream is done. The budget of time must permit it, and 100 ms must have
 * passed since that growth. No lock is held. */
void strata_rest_return_all_lent(strata_stack_t *own);
static inline void strata_rest_return_lent(strata_stack_t *own) {
    if (__builtin_expect(atomic_load_explicit(&own->rest_history.lent_bytes, memory_order_relaxed) > 0, 0))
        strata_rest_return_all_lent(own);
}

#endif

/* Patience: a cache that finds no free block waits for memory that is freed already and only waits for the GPU, instead of growing
 * (docs/patience.md). It waits only where that costs the GPU nothing: when its own stack has `depth` blocks of that size on the
 * way, so that the stream has work ahead of it meanwhile; and only when growth would go beyond what the program needed so far. */
#ifndef STRATA_ALLOCATION_PATIENCE_H
#define STRATA_ALLOCATION_PATIENCE_H

#include "allocation/domain/domain.h"

/* Whether growth of a stack by `size` should wait. The path holds the stack's lock; it may be opened, and is held again. */
bool strata_patience_holds_back(strata_call_t *call, strata_stack_t *stack, uint64_t size);

#endif

/* The blocks of a stack: those of its caches, live or free, and what its sources serve without a cache. */
#ifndef STRATA_ALLOCATION_BLOCKS_H
#define STRATA_ALLOCATION_BLOCKS_H

#include "allocation/domain/layer.h"

/* A block of a cache comes in the order of its chunk, with links to its neighbours, and may be another cache's chunk
 * (STRATA_RECORD_CHUNK). `layer` is NULL for a block of a source, which is its own chunk. */
typedef void (*strata_block_fn)(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block, void *context);

/* Every block, chunk by chunk. The stack's lock is held. */
void strata_stack_each_block(strata_stack_t *stack, strata_block_fn block, void *context);
/* The live block that contains an address; NULL: none of this stack. The stack's lock is held. */
const strata_record_t *strata_stack_block_at(strata_stack_t *stack, uint64_t address);
/* Returns true if the stack has memory at an address, in use or not. The stack's lock is held. */
bool strata_stack_holds(strata_stack_t *stack, uint64_t address);

/* Locks every stack of a domain, so that all are seen at one moment: in stack order, the shared stacks last. The list of stacks
 * does not change meanwhile. No other lock is held; no device call is made until the end. */
void strata_domain_lock_stacks(strata_domain_t *domain);
void strata_domain_unlock_stacks(strata_domain_t *domain);

#endif

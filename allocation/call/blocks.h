/* The blocks of a stack: those of its caches, live or free, and those that its sources serve without a
 * cache. */
#ifndef STRATA_ALLOCATION_BLOCKS_H
#define STRATA_ALLOCATION_BLOCKS_H

#include "allocation/domain/layer.h"

/* Visits a block. The blocks of a cache are visited in the order of their chunk, with links to their
 * neighbors. A block may also be another cache's chunk (STRATA_RECORD_CHUNK). `layer` is NULL for a block
 * of a source, which is its own chunk. */
typedef void (*strata_block_fn)(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block, void *context);

/* Visits every block, chunk by chunk. The stack's lock is held. */
void strata_stack_each_block(strata_stack_t *stack, strata_block_fn block, void *context);
/* Returns the stack's live block that contains an address, or NULL if there is none. The stack's lock is
 * held. */
const strata_record_t *strata_stack_block_at(strata_stack_t *stack, uint64_t address);
/* Returns true if the stack has memory at an address, in use or not. The stack's lock is held. */
bool strata_stack_holds(strata_stack_t *stack, uint64_t address);

/* Locks every stack of a domain, so that all are seen at one moment. The order is that of the stacks,
 * with the shared stacks last. The list of stacks cannot change before the unlock. No other lock is held,
 * and no device call may be made before the unlock. */
void strata_domain_lock_stacks(strata_domain_t *domain);
void strata_domain_unlock_stacks(strata_domain_t *domain);

#endif

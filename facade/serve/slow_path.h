/* The slow path of the calls in fast_path.c. */
#ifndef STRATA_FACADE_SLOW_PATH_H
#define STRATA_FACADE_SLOW_PATH_H

#include "allocation/stack/direct.h"
#include "facade/registry/facade.h"

strata_status_t strata_allocate_slow(strata_t facade, strata_place_t place, strata_stream_t stream, size_t size,
                                     strata_block_t *block);
/* Works like strata_allocate_slow(), with the stack that missed. Sets *found to false and does
 * nothing if the handle no longer names that stack. */
strata_status_t strata_allocate_missed(strata_stack_handle_t handle, strata_stream_t stream, size_t size, strata_block_t *block,
                                       bool *found);
/* Finds the stack of a request and keeps it from ending until strata_stack_exit(). The second function
 * serves a request on a stack that was entered. */
strata_status_t strata_request_enter(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, uint64_t named_pool,
                                     strata_stack_t **stack);
strata_status_t strata_request_serve(strata_facade_t *facade, strata_stack_t *stack, strata_stream_t stream,
                                     const strata_allocate_options_t *options, strata_block_t *block);
strata_status_t strata_free_slow(strata_t facade, strata_ref_t ref);
strata_status_t strata_free_pointer_slow(strata_t facade, void *ptr);
strata_status_t strata_free_null(strata_t facade);
/* Works like strata_record_stream(). Sets *waits to true if no layer handled the borrow, so the free
 * waits on the host. */
strata_status_t strata_facade_record_stream(strata_t facade, strata_ref_t ref, strata_stream_t stream, bool *waits);
/* Returns true if the address is in memory that the facade got from a device, in use or cached. Walks all stacks. */
bool strata_facade_holds(strata_facade_t *facade, const void *address);

#endif

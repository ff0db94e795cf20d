/* What the hot calls do when they are not a hit. */
#ifndef STRATA_FACADE_LONG_WAY_H
#define STRATA_FACADE_LONG_WAY_H

#include "facade/facade.h"

/* Larger requests are refused: no place has so much, and sums of such sizes cannot wrap. */
#define STRATA_LARGEST_REQUEST (1ull << 48)

extern strata_facade_t *_Atomic strata_facades[STRATA_FACADES];

strata_status_t strata_allocate_long_way(strata_t facade, strata_place_t place, strata_stream_t stream, size_t size,
                                         strata_block_t *block);
/* The same, with the stack that the call has missed in. *found: it is still that stack; else nothing has happened. */
strata_status_t strata_allocate_missed(strata_stack_handle_t handle, strata_stream_t stream, size_t size, strata_block_t *block,
                                       bool *found);
strata_status_t strata_free_long_way(strata_t facade, strata_ref_t ref);
strata_status_t strata_free_pointer_long_way(strata_t facade, void *ptr);
strata_status_t strata_free_null(strata_t facade);

#endif

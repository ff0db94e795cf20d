/* Helps programs that evict memory when it is short. It finds the free neighbors of a block, and the cheapest blocks to free for
 * a request. strata/strata.h includes this header. */
#ifndef STRATA_EVICTION_H
#define STRATA_EVICTION_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_neighbours {
    size_t struct_size;
    uint64_t free_before; /* free bytes directly before the block */
    uint64_t free_after; /* and directly after it */
    uint64_t run; /* bytes of the free run after a free of the block */
    strata_block_t block; /* the block itself */
} strata_neighbours_t;
/* Returns a live block and the free memory on both sides of it in its chunk. O(1). The run includes the bytes that a decorator
 * added around the block. */
STRATA_API strata_status_t strata_neighbours(strata_t facade, strata_ref_t ref, strata_neighbours_t *neighbours);
/* Finds the cheapest set of live blocks to free for a run of `size` bytes in one chunk. It searches the place, in the thread's
 * current pool. The cheapest set has the fewest bytes, then the fewest blocks. *count receives its size, 0 if such a run is
 * already free. `victims` (may be NULL if `capacity` is 0) receives the first `capacity` of them in address order. Walks every
 * block. A block with bytes of a decorator around it (guard, aligned) is considered alone. Returns E_NO_MEMORY if no chunk could
 * have such a run. `victims` may be written then. */
STRATA_API strata_status_t strata_best_victims(strata_t facade, strata_place_t place, size_t size, strata_ref_t *victims,
                                               size_t capacity, size_t *count);

#ifdef __cplusplus
}
#endif
#endif

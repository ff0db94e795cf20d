/* For programs that choose what to evict when memory is short: the free neighbors of a block, and the cheapest blocks whose free makes
 * room. strata/strata.h includes this header. */
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
    uint64_t run; /* bytes of the free run that would result if the block were freed */
    strata_block_t block; /* the block itself */
} strata_neighbours_t;
/* A live block and the free memory on both sides of it in its chunk. O(1). The run includes what a decorator put around
 * the block. */
STRATA_API strata_status_t strata_neighbours(strata_t facade, strata_ref_t ref, strata_neighbours_t *neighbours);
/* The cheapest set of live blocks of a place, in the thread's current pool, whose free makes a run of `size` bytes in one chunk:
 * the fewest bytes, then the fewest blocks. *count receives their number (0: such a run is free already), `victims` (may be NULL if
 * `capacity` is 0) the first `capacity` of them in address order. Looks at every block. A block around which a decorator put
 * something (guard, aligned) is considered alone. E_NO_MEMORY: no chunk has that much that could be freed; `victims` may have been written. */
STRATA_API strata_status_t strata_best_victims(strata_t facade, strata_place_t place, size_t size, strata_ref_t *victims,
                                               size_t capacity, size_t *count);

#ifdef __cplusplus
}
#endif
#endif

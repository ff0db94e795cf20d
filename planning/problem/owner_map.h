/* Stores the last owner of each byte of an address range: a tree over the edges of buffers. A step
 * assigns a range, and costs the logarithm of the edges for each piece that it overwrites. One more edge
 * adds at most two pieces over all steps. */
#ifndef STRATA_PLANNING_OWNER_MAP_H
#define STRATA_PLANNING_OWNER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

typedef struct strata_owner_map {
    uint64_t *edges; /* sorted, without duplicates */
    size_t edge_count, leaves;
    uint32_t *owner; /* owner of a node's addresses: one, none, or several */
} strata_owner_map_t;

/* Makes a tree without owners. `edges` is from strata_host_new(), with 2 for each buffer to paint, in any
 * order. The tree owns `edges` from now on, also after a failure. Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_owner_map_init(strata_owner_map_t *map, uint64_t *edges, size_t count);
void strata_owner_map_destroy(strata_owner_map_t *map);

/* Reports the bytes of one previous owner that are overwritten. Returns false to stop. */
typedef bool (*strata_piece_fn)(void *context, uint32_t owner, uint64_t bytes);
/* Assigns [begin, end) to `owner`, which is below UINT32_MAX - 1; both ends must be edges. Bytes without
 * an owner are not reported. Returns false if `piece` did; the tree is then unusable. */
bool strata_owner_map_assign(strata_owner_map_t *map, uint64_t begin, uint64_t end, uint32_t owner, strata_piece_fn piece,
                             void *context);

#endif

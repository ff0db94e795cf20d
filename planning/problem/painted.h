/* Who had each byte of a range of addresses last: a tree over the edges of what lies there, painted in the colours of owners. A step
 * costs the logarithm of the edges for each piece that it paints over; an edge more makes at most two pieces more, over all steps. */
#ifndef STRATA_PLANNING_PAINTED_H
#define STRATA_PLANNING_PAINTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

typedef struct strata_painted {
    uint64_t *edges; /* in order, none twice */
    size_t edge_count, leaves;
    uint32_t *owner; /* of a node's addresses: one owner, nobody, or several */
} strata_painted_t;

/* `edges`: from strata_host_new(), 2 for each that will be painted, in any order; they are the tree's from now on, whatever happens. Nobody
 * has any byte yet. E_HOST_MEMORY. */
strata_status_t strata_painted_init(strata_painted_t *painted, uint64_t *edges, size_t count);
void strata_painted_destroy(strata_painted_t *painted);

/* So many bytes of what is painted over were that owner's. False: it can take no more, and painting ends. */
typedef bool (*strata_piece_fn)(void *context, uint32_t owner, uint64_t bytes);
/* [begin, end) is `owner`'s from now on, a number below UINT32_MAX - 1; both are edges. Nobody's bytes are not told. False: `piece` said so,
 * and the tree is of no use. */
bool strata_painted_over(strata_painted_t *painted, uint64_t begin, uint64_t end, uint32_t owner, strata_piece_fn piece,
                         void *context);

#endif

/* Small nodes of fixed size, for the side tables of layers. Nodes have 32-bit numbers, of which 0 means
 * none. They are in a range that grows in place, and are reused last-in first-out. Taking a node allocates
 * no host memory, so it is allowed under a lock. Guarded by the owner. */
#ifndef STRATA_ALLOCATION_MECHANISM_NODES_H
#define STRATA_ALLOCATION_MECHANISM_NODES_H

#include <stddef.h>
#include <stdint.h>

#include "platform/host/growing.h"

typedef struct strata_nodes {
    unsigned char *memory;
    size_t node_size; /* a multiple of 8, not 0 */
    uint32_t free_head; /* each unused node begins with the number of the next; 0 if there is none */
    uint32_t used; /* nodes ever taken, number 0 included */
    uint32_t capacity; /* upper bound on nodes, number 0 included */
    uint32_t room; /* nodes that may be touched now, number 0 included; it rises as the range grows */
    uint32_t unused; /* length of the free list */
    strata_growing_t range;
} strata_nodes_t;

/* Creates room for at most `capacity` nodes, or fewer if the system has no address window for them. No lock
 * is held. E_HOST_MEMORY, E_INVALID. */
strata_status_t strata_nodes_init(strata_nodes_t *nodes, size_t node_size, uint32_t capacity);
void strata_nodes_destroy(strata_nodes_t *nodes);
/* Returns 0 if all nodes are taken, either permanently or until the range has grown. Contents are undefined. */
uint32_t strata_nodes_acquire(strata_nodes_t *nodes);
void strata_nodes_release(strata_nodes_t *nodes, uint32_t node);
static inline void *strata_node(const strata_nodes_t *nodes, uint32_t node) {
    return nodes->memory + (size_t)node * nodes->node_size;
}
/* Checks that the free list holds each unused node once. E_CORRUPT. */
strata_status_t strata_nodes_validate(const strata_nodes_t *nodes);

#endif

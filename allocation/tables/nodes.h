/* Small nodes of fixed size in a range that grows in place, by 32-bit number, reused last-in first-out; 0 is none. For the side
 * tables of layers: taking one is no host allocation, so it is allowed under a lock. Guarded by the owner. */
#ifndef STRATA_ALLOCATION_MECHANISM_NODES_H
#define STRATA_ALLOCATION_MECHANISM_NODES_H

#include <stddef.h>
#include <stdint.h>

#include "platform/host/growing.h"

typedef struct strata_nodes {
    unsigned char *memory;
    size_t node_size; /* a multiple of 8, not 0 */
    uint32_t free_head; /* each unused node begins with the number of the next; 0: none */
    uint32_t used; /* nodes ever taken, number 0 included */
    uint32_t capacity; /* in the end, number 0 included */
    uint32_t room; /* that may be touched now, number 0 included; more come as the range grows */
    uint32_t unused; /* length of the free list */
    strata_growing_t range;
} strata_nodes_t;

/* At most `capacity` nodes (fewer if the system has no window for them). No lock is held. E_HOST_MEMORY, E_INVALID. */
strata_status_t strata_nodes_init(strata_nodes_t *nodes, size_t node_size, uint32_t capacity);
void strata_nodes_destroy(strata_nodes_t *nodes);
/* 0 when all are taken, for ever or until the range has grown. Contents are undefined. */
uint32_t strata_nodes_take(strata_nodes_t *nodes);
void strata_nodes_give(strata_nodes_t *nodes, uint32_t node);
static inline void *strata_node(const strata_nodes_t *nodes, uint32_t node) {
    return nodes->memory + (size_t)node * nodes->node_size;
}
/* The free list holds each unused node once. E_CORRUPT. */
strata_status_t strata_nodes_validate(const strata_nodes_t *nodes);

#endif

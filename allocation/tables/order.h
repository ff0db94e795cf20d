/* Nodes in the order of a key: a skip list. A step of a walk is one look; adding, removing and finding take a few, however many
 * nodes there are. Each node has a link, so an order needs no memory of its own, and adding to one never fails. The number of a
 * node alone decides how many levels it has, so the shape depends only on the nodes.
 *
 * Guarded by the owner of the nodes. `looked` counts the nodes that were compared; tests check it. */
#ifndef STRATA_ALLOCATION_MECHANISM_ORDER_H
#define STRATA_ALLOCATION_MECHANISM_ORDER_H

#include "allocation/tables/nodes.h"

enum { STRATA_ORDER_LEVELS = 8 }; /* each has a quarter of the nodes of the one below */

/* Compared from the first word on; no two nodes have the same. */
typedef struct strata_order_key {
    uint64_t first, second, third;
} strata_order_key_t;

typedef struct strata_order_link {
    strata_order_key_t key;
    uint32_t next[STRATA_ORDER_LEVELS]; /* 0: none */
} strata_order_link_t;

typedef struct strata_order {
    const strata_nodes_t *nodes;
    size_t at; /* the offset of the link in a node */
    uint32_t first[STRATA_ORDER_LEVELS];
    uint32_t count;
    uint64_t looked;
} strata_order_t;

void strata_order_init(strata_order_t *order, const strata_nodes_t *nodes, size_t at);
/* Writes the node's link. */
void strata_order_add(strata_order_t *order, uint32_t node, const strata_order_key_t *key);
/* The node is in the order. */
void strata_order_remove(strata_order_t *order, uint32_t node);
/* The first node whose key is this one or higher, and the last one whose key is lower; 0: none. */
uint32_t strata_order_from(strata_order_t *order, const strata_order_key_t *key);
uint32_t strata_order_before(strata_order_t *order, const strata_order_key_t *key);
/* The node with this key; 0: none. */
uint32_t strata_order_find(strata_order_t *order, const strata_order_key_t *key);
/* The keys rise; each level has those nodes of the one below that belong to it; the lowest has `count`. E_CORRUPT. */
strata_status_t strata_order_validate(const strata_order_t *order);

static inline strata_order_link_t *strata_order_link(const strata_order_t *order, uint32_t node) {
    return (strata_order_link_t *)((unsigned char *)strata_node(order->nodes, node) + order->at);
}
static inline uint32_t strata_order_next(const strata_order_t *order, uint32_t node) {
    return strata_order_link(order, node)->next[0];
}

#endif

/* Keeps nodes in the order of a key. The structure is a skip list: a step of a walk reads one link. Adding,
 * removing and finding take few looks even among many nodes. Each node contains a link, so an order needs
 * no memory of its own, and adding never fails. A node's number alone decides how many levels it has, so
 * the shape depends only on the nodes.
 *
 * Guarded by the owner of the nodes. `examined` counts the nodes that were compared; tests check it. */
#ifndef STRATA_ALLOCATION_MECHANISM_ORDER_H
#define STRATA_ALLOCATION_MECHANISM_ORDER_H

#include "allocation/tables/nodes.h"

enum { STRATA_ORDER_LEVELS = 8 }; /* each has a quarter of the nodes of the one below */

/* Compared from the first word on. No two nodes have equal keys. */
typedef struct strata_order_key {
    uint64_t first, second, third;
} strata_order_key_t;

typedef struct strata_order_link {
    strata_order_key_t key;
    uint32_t next[STRATA_ORDER_LEVELS]; /* 0 if there is none */
} strata_order_link_t;

typedef struct strata_order {
    const strata_nodes_t *nodes;
    size_t at; /* offset of the link in a node */
    uint32_t first[STRATA_ORDER_LEVELS];
    uint32_t count;
    uint64_t examined;
} strata_order_t;

void strata_order_init(strata_order_t *order, const strata_nodes_t *nodes, size_t at);
/* Adds a node and writes its link. */
void strata_order_add(strata_order_t *order, uint32_t node, const strata_order_key_t *key);
/* Removes a node, which must be in the order. */
void strata_order_remove(strata_order_t *order, uint32_t node);
/* `from` returns the first node with this key or a higher one, `before` the last one with a lower key. Both
 * return 0 if there is none. */
uint32_t strata_order_from(strata_order_t *order, const strata_order_key_t *key);
uint32_t strata_order_before(strata_order_t *order, const strata_order_key_t *key);
/* Returns the node with this key, or 0 if there is none. */
uint32_t strata_order_find(strata_order_t *order, const strata_order_key_t *key);
/* Checks that the keys rise, that the lowest level has `count` nodes, and that each level has the right
 * nodes of the one below. E_CORRUPT. */
strata_status_t strata_order_validate(const strata_order_t *order);

static inline strata_order_link_t *strata_order_link(const strata_order_t *order, uint32_t node) {
    return (strata_order_link_t *)((unsigned char *)strata_node(order->nodes, node) + order->at);
}
static inline uint32_t strata_order_next(const strata_order_t *order, uint32_t node) {
    return strata_order_link(order, node)->next[0];
}

#endif

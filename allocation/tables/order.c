#include "allocation/tables/order.h"

#include <string.h>

static bool before(const strata_order_key_t *a, const strata_order_key_t *b) {
    if (a->first != b->first) return a->first < b->first;
    return a->second != b->second ? a->second < b->second : a->third < b->third;
}

/* Returns the number of levels of a node. A quarter of all numbers have at least two levels, a quarter of
 * those at least three. */
static uint32_t levels_of(uint32_t node) {
    uint32_t spread = node * 0x9e3779b1u;
    spread ^= spread >> 15;
    spread *= 0x85ebca6bu;
    spread ^= spread >> 13;
    return 1 + (uint32_t)__builtin_ctz(spread | 1u << (2 * (STRATA_ORDER_LEVELS - 1))) / 2;
}

void strata_order_init(strata_order_t *order, const strata_nodes_t *nodes, size_t at) {
    *order = (strata_order_t){.nodes = nodes, .at = at};
}

/* Finds in each level the link after which a key belongs. Returns the node of the lowest level, or 0 if the
 * link is the order's own. */
static uint32_t descend(strata_order_t *order, const strata_order_key_t *key, uint32_t *links[STRATA_ORDER_LEVELS]) {
    uint32_t *level = order->first, node = 0;
    for (uint32_t i = STRATA_ORDER_LEVELS; i-- > 0;) {
        for (; level[i]; node = level[i], level = strata_order_link(order, node)->next) {
            order->examined++;
            if (!before(&strata_order_link(order, level[i])->key, key)) break;
        }
        links[i] = &level[i];
    }
    return node;
}

void strata_order_add(strata_order_t *order, uint32_t node, const strata_order_key_t *key) {
    uint32_t *links[STRATA_ORDER_LEVELS];
    strata_order_link_t *own = strata_order_link(order, node);
    (void)descend(order, key, links);
    *own = (strata_order_link_t){.key = *key};
    for (uint32_t i = 0; i < levels_of(node); i++) {
        own->next[i] = *links[i];
        *links[i] = node;
    }
    order->count++;
}

void strata_order_remove(strata_order_t *order, uint32_t node) {
    uint32_t *links[STRATA_ORDER_LEVELS];
    const strata_order_link_t *own = strata_order_link(order, node);
    (void)descend(order, &own->key, links);
    for (uint32_t i = 0; i < levels_of(node); i++) *links[i] = own->next[i];
    order->count--;
}

uint32_t strata_order_from(strata_order_t *order, const strata_order_key_t *key) {
    uint32_t *links[STRATA_ORDER_LEVELS];
    (void)descend(order, key, links);
    return *links[0];
}

uint32_t strata_order_before(strata_order_t *order, const strata_order_key_t *key) {
    uint32_t *links[STRATA_ORDER_LEVELS];
    return descend(order, key, links);
}

uint32_t strata_order_find(strata_order_t *order, const strata_order_key_t *key) {
    uint32_t node = strata_order_from(order, key);
    return node && !before(key, &strata_order_link(order, node)->key) ? node : 0;
}

/* Walks the lowest level. Where it ends, all other levels must have ended too. */
strata_status_t strata_order_validate(const strata_order_t *order) {
    uint32_t due[STRATA_ORDER_LEVELS], count = 0;
    const strata_order_key_t *last = NULL;
    memcpy(due, order->first, sizeof due);
    for (uint32_t node = due[0]; node; node = due[0]) {
        if (node >= order->nodes->used || ++count > order->count)
            return strata_fail(STRATA_E_CORRUPT, 0, "the order has more nodes than were added: it breaks at %u", node);
        const strata_order_link_t *own = strata_order_link(order, node);
        if (last && !before(last, &own->key))
            return strata_fail(STRATA_E_CORRUPT, 0, "the order does not increase at node %u", node);
        last = &own->key;
        for (uint32_t i = 0; i < levels_of(node); i++) {
            if (due[i] != node) return strata_fail(STRATA_E_CORRUPT, 0, "the order misses node %u in level %u", node, i);
            due[i] = own->next[i];
        }
    }
    for (uint32_t i = 1; i < STRATA_ORDER_LEVELS; i++)
        if (due[i]) return strata_fail(STRATA_E_CORRUPT, 0, "the order continues at node %u in level %u", due[i], i);
    return count == order->count ? STRATA_OK
                                 : strata_fail(STRATA_E_CORRUPT, 0, "the order has %u of %u nodes", count, order->count);
}

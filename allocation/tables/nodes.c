#include "allocation/tables/nodes.h"

#include <string.h>

#include "platform/arithmetic.h"

/* The size that a range starts with. */
enum { FIRST_BYTES = 16 << 10, MIN_NODES = 64 };

/* Each unused node begins with the number of the next unused node. */
static uint32_t next_of(const strata_nodes_t *nodes, uint32_t node) {
    uint32_t next;
    memcpy(&next, strata_node(nodes, node), sizeof next);
    return next;
}

static uint32_t room_now(const strata_nodes_t *nodes) {
    return (uint32_t)strata_min(UINT32_MAX, strata_growing_usable(&nodes->range) / nodes->node_size);
}

strata_status_t strata_nodes_init(strata_nodes_t *nodes, size_t node_size, uint32_t capacity) {
    uint64_t wanted;
    if (node_size == 0 || node_size % 8 != 0 || capacity == 0 || capacity == UINT32_MAX ||
        !strata_multiply(node_size, (uint64_t)capacity + 1, &wanted))
        return strata_fail(STRATA_E_INVALID, 0, "%u nodes of %zu bytes cannot be made", capacity, node_size);
    uint64_t first = strata_min(wanted, strata_max(FIRST_BYTES, node_size * MIN_NODES));
    strata_growing_t range;
    strata_status_t status = strata_growing_reserve(&range, first, wanted);
    if (status != STRATA_OK) return status;
    *nodes = (strata_nodes_t){.memory = range.memory, .node_size = node_size, .used = 1, .range = range};
    nodes->capacity = (uint32_t)(strata_min(wanted, strata_growing_max(&range)) / node_size);
    nodes->room = room_now(nodes);
    return STRATA_OK;
}

void strata_nodes_destroy(strata_nodes_t *nodes) {
    strata_growing_release(&nodes->range);
    *nodes = (strata_nodes_t){0};
}

static uint32_t touch(strata_nodes_t *nodes) {
    if (nodes->used >= nodes->room / 2 && nodes->room < nodes->capacity) {
        nodes->room = room_now(nodes);
        if (nodes->used >= nodes->room / 2) strata_growing_mark(&nodes->range, nodes->used >= nodes->room);
    }
    return nodes->used < strata_min(nodes->room, nodes->capacity) ? nodes->used++ : 0;
}

uint32_t strata_nodes_acquire(strata_nodes_t *nodes) {
    uint32_t node = nodes->free_head;
    if (node == 0) return touch(nodes);
    nodes->free_head = next_of(nodes, node);
    nodes->unused--;
    return node;
}

void strata_nodes_release(strata_nodes_t *nodes, uint32_t node) {
    memcpy(strata_node(nodes, node), &nodes->free_head, sizeof nodes->free_head);
    nodes->free_head = node;
    nodes->unused++;
}

strata_status_t strata_nodes_validate(const strata_nodes_t *nodes) {
    if (nodes->used == 0 || nodes->used > nodes->room || nodes->unused >= nodes->used || nodes->room > room_now(nodes) ||
        nodes->capacity > strata_growing_max(&nodes->range) / nodes->node_size)
        return strata_fail(STRATA_E_CORRUPT, 0, "the nodes count %u used, %u of them unused, of %u with room for %u", nodes->used,
                           nodes->unused, nodes->room, room_now(nodes));
    /* A list that ends cannot contain a node twice, because each node has only one link. */
    uint32_t node = nodes->free_head;
    for (uint32_t steps = 0; steps < nodes->unused; steps++) {
        if (node == 0 || node >= nodes->used)
            return strata_fail(STRATA_E_CORRUPT, 0, "the free list of the nodes breaks at %u after %u of %u", node, steps,
                               nodes->unused);
        node = next_of(nodes, node);
    }
    if (node != 0)
        return strata_fail(STRATA_E_CORRUPT, 0, "the free list of the nodes continues at %u after all %u", node, nodes->unused);
    return STRATA_OK;
}

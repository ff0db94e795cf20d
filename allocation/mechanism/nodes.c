#include "allocation/mechanism/nodes.h"

#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host_memory.h"

/* Each unused node begins with the number of the next. */
static uint32_t next_of(const strata_nodes_t *nodes, uint32_t node) {
    uint32_t next;
    memcpy(&next, strata_node(nodes, node), sizeof next);
    return next;
}

strata_status_t strata_nodes_init(strata_nodes_t *nodes, size_t node_size, uint32_t capacity) {
    uint64_t wanted;
    size_t reserved = 0;
    if (node_size == 0 || node_size % 8 != 0 || capacity == 0 || capacity == UINT32_MAX ||
        !strata_multiply(node_size, (uint64_t)capacity + 1, &wanted))
        return strata_fail(STRATA_E_INVALID, 0, "%u nodes of %zu bytes cannot be made", capacity, node_size);
    uint64_t least = node_size * (strata_min(capacity, 64) + 1);
    unsigned char *memory = strata_host_reserve(wanted, least, &reserved);
    if (!memory) return STRATA_E_HOST_MEMORY;
    *nodes = (strata_nodes_t){.memory = memory,
                              .node_size = node_size,
                              .used = 1,
                              .capacity = (uint32_t)(strata_min(wanted, reserved) / node_size),
                              .reserved = reserved};
    return STRATA_OK;
}

void strata_nodes_destroy(strata_nodes_t *nodes) {
    strata_host_unreserve(nodes->memory, nodes->reserved);
    *nodes = (strata_nodes_t){0};
}

uint32_t strata_nodes_take(strata_nodes_t *nodes) {
    uint32_t node = nodes->free_head;
    if (node == 0) return nodes->used < nodes->capacity ? nodes->used++ : 0;
    nodes->free_head = next_of(nodes, node);
    nodes->unused--;
    return node;
}

void strata_nodes_give(strata_nodes_t *nodes, uint32_t node) {
    memcpy(strata_node(nodes, node), &nodes->free_head, sizeof nodes->free_head);
    nodes->free_head = node;
    nodes->unused++;
}

strata_status_t strata_nodes_validate(const strata_nodes_t *nodes) {
    if (nodes->used == 0 || nodes->used > nodes->capacity || nodes->unused >= nodes->used ||
        nodes->reserved / nodes->node_size < nodes->capacity)
        return strata_fail(STRATA_E_CORRUPT, 0, "the nodes count %u used, %u of them unused, of %u in %zu bytes", nodes->used,
                           nodes->unused, nodes->capacity, nodes->reserved);
    /* A list that ends has no node twice: the link of a node decides all that follows. */
    uint32_t node = nodes->free_head;
    for (uint32_t steps = 0; steps < nodes->unused; steps++) {
        if (node == 0 || node >= nodes->used)
            return strata_fail(STRATA_E_CORRUPT, 0, "the free list of the nodes breaks at %u after %u of %u", node, steps,
                               nodes->unused);
        node = next_of(nodes, node);
    }
    if (node != 0)
        return strata_fail(STRATA_E_CORRUPT, 0, "the free list of the nodes goes on at %u after all %u", node, nodes->unused);
    return STRATA_OK;
}

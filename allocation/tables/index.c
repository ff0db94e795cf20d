#include "allocation/tables/index.h"

void strata_index_init(strata_index_t *index, const strata_nodes_t *nodes, size_t at) {
    *index = (strata_index_t){.nodes = nodes, .at = at, .chains = 1};
}

static void push(strata_index_t *index, uint32_t node) {
    strata_index_link_t *link = strata_index_link(index, node);
    strata_index_link_t *chain = strata_index_link(index, strata_index_chain(index, link->hash));
    link->next = chain->head;
    chain->head = node;
}

/* Adds a chain, which gets its nodes from the chain that it is split from. */
static void split(strata_index_t *index) {
    uint32_t fresh = index->chains++;
    if (fresh > index->mask) index->mask = 2 * index->mask + 1;
    uint32_t *head = &strata_index_link(index, fresh & index->mask >> 1)->head, node = *head;
    *head = 0;
    while (node) {
        uint32_t next = strata_index_link(index, node)->next;
        push(index, node);
        node = next;
    }
}

void strata_index_add(strata_index_t *index, uint32_t node, uint32_t hash) {
    while (index->chains < index->nodes->used) split(index);
    strata_index_link(index, node)->hash = hash;
    push(index, node);
    index->count++;
}

void strata_index_remove(strata_index_t *index, uint32_t node) {
    uint32_t *at = &strata_index_link(index, strata_index_chain(index, strata_index_link(index, node)->hash))->head;
    for (; *at != node; at = &strata_index_link(index, *at)->next) index->examined++;
    *at = strata_index_link(index, node)->next;
    index->count--;
}

static strata_status_t validate_chain(const strata_index_t *index, uint32_t chain, uint32_t *count) {
    for (uint32_t node = strata_index_link(index, chain)->head; node; node = strata_index_link(index, node)->next) {
        if (node >= index->nodes->used || ++*count > index->count)
            return strata_fail(STRATA_E_CORRUPT, 0, "the index has more nodes than were added: chain %u breaks at %u", chain, node);
        if (strata_index_chain(index, strata_index_link(index, node)->hash) != chain)
            return strata_fail(STRATA_E_CORRUPT, 0, "the index has node %u in chain %u, not in that of its hash", node, chain);
    }
    return STRATA_OK;
}

strata_status_t strata_index_validate(const strata_index_t *index) {
    uint32_t count = 0;
    strata_status_t status = STRATA_OK;
    if (index->chains == 0 || index->chains > index->nodes->used || index->mask < index->chains - 1 ||
        index->mask / 2 >= index->chains)
        return strata_fail(STRATA_E_CORRUPT, 0, "the index has %u chains among %u nodes, with mask %u", index->chains,
                           index->nodes->used, index->mask);
    for (uint32_t chain = 0; chain < index->chains && status == STRATA_OK; chain++) status = validate_chain(index, chain, &count);
    if (status != STRATA_OK || count == index->count) return status;
    return strata_fail(STRATA_E_CORRUPT, 0, "the index has %u of %u nodes", count, index->count);
}

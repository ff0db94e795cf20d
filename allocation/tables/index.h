/* Nodes found by a hash. The heads of the chains are in the nodes themselves, one in each, number 0 included: there are as many
 * chains as nodes were ever taken. So an index needs no memory of its own, and adding to one never fails. With each new node one
 * chain is split in two (linear hashing), so no call does the work of many.
 *
 * Whoever owns the nodes keeps a link in each, and never writes to it: the head in it belongs to another chain, even while the node
 * is unused. Guarded by the owner of the nodes. `looked` counts the nodes that look-ups and removals have passed; tests check
 * it. */
#ifndef STRATA_ALLOCATION_MECHANISM_INDEX_H
#define STRATA_ALLOCATION_MECHANISM_INDEX_H

#include "allocation/tables/nodes.h"

/* Not in the first 4 bytes of a node: those are the free list's. */
typedef struct strata_index_link {
    uint32_t head; /* of the chain with this node's number; 0: empty */
    uint32_t next; /* after this node in its own chain */
    uint32_t hash; /* its own */
} strata_index_link_t;

typedef struct strata_index {
    const strata_nodes_t *nodes;
    size_t at; /* the offset of the link in a node */
    uint32_t chains; /* not 0 */
    uint32_t mask; /* the least 2^n - 1 that is not below the last chain's number */
    uint32_t count;
    uint64_t looked;
} strata_index_t;

/* Of nodes that were just made, none of them taken. */
void strata_index_init(strata_index_t *index, const strata_nodes_t *nodes, size_t at);
void strata_index_add(strata_index_t *index, uint32_t node, uint32_t hash);
/* The node is in the index. */
void strata_index_remove(strata_index_t *index, uint32_t node);
/* Each of `count` nodes is in the chain of its hash, once. E_CORRUPT. */
strata_status_t strata_index_validate(const strata_index_t *index);

/* Spreads a key of two words. */
static inline uint32_t strata_index_hash(uint64_t a, uint64_t b) {
    uint64_t mixed = (a * 0x9e3779b97f4a7c15u ^ b) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(mixed >> 32);
}

static inline strata_index_link_t *strata_index_link(const strata_index_t *index, uint32_t node) {
    return (strata_index_link_t *)((unsigned char *)strata_node(index->nodes, node) + index->at);
}

/* The chains from `chains` to `mask` are not split off yet. */
static inline uint32_t strata_index_chain(const strata_index_t *index, uint32_t hash) {
    uint32_t chain = hash & index->mask;
    return chain < index->chains ? chain : hash & index->mask >> 1;
}

static inline uint32_t strata_index_seek(strata_index_t *index, uint32_t node, uint32_t hash) {
    for (; node; node = strata_index_link(index, node)->next) {
        index->looked++;
        if (strata_index_link(index, node)->hash == hash) break;
    }
    return node;
}

/* A node of this hash, and the next one of the same; 0: none. The caller checks whether it is the right one. */
static inline uint32_t strata_index_first(strata_index_t *index, uint32_t hash) {
    return strata_index_seek(index, strata_index_link(index, strata_index_chain(index, hash))->head, hash);
}
static inline uint32_t strata_index_next(strata_index_t *index, uint32_t node) {
    const strata_index_link_t *link = strata_index_link(index, node);
    return strata_index_seek(index, link->next, link->hash);
}

#endif

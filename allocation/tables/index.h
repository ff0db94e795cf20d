/* Finds nodes by a hash. The heads of the chains are in the nodes themselves, one in each, number 0
 * included. So there are as many chains as nodes were ever taken, an index needs no memory of its own, and
 * adding never fails. With each new node one chain is split in two (linear hashing), so no single call
 * rehashes many nodes.
 *
 * The owner of the nodes keeps a link in each, and never writes to it. The head in it belongs to another
 * chain, even while the node is unused. Guarded by the owner of the nodes. `examined` counts the nodes that
 * look-ups and removals have passed; tests check it. */
#ifndef STRATA_ALLOCATION_MECHANISM_INDEX_H
#define STRATA_ALLOCATION_MECHANISM_INDEX_H

#include "allocation/tables/nodes.h"

/* It must not overlap the first 4 bytes of a node, which belong to the free list. */
typedef struct strata_index_link {
    uint32_t head; /* of the chain with this node's number; 0 if the chain is empty */
    uint32_t next; /* the next node in this node's own chain */
    uint32_t hash; /* of this node */
} strata_index_link_t;

typedef struct strata_index {
    const strata_nodes_t *nodes;
    size_t at; /* offset of the link in a node */
    uint32_t chains; /* never 0 */
    uint32_t mask; /* the smallest 2^n - 1 that is at least the last chain's number */
    uint32_t count;
    uint64_t examined;
} strata_index_t;

/* Requires new nodes of which none is taken. */
void strata_index_init(strata_index_t *index, const strata_nodes_t *nodes, size_t at);
void strata_index_add(strata_index_t *index, uint32_t node, uint32_t hash);
/* Removes a node, which must be in the index. */
void strata_index_remove(strata_index_t *index, uint32_t node);
/* Checks that each of `count` nodes is once in the chain of its hash. E_CORRUPT. */
strata_status_t strata_index_validate(const strata_index_t *index);

/* Hashes a key of two words. */
static inline uint32_t strata_index_hash(uint64_t a, uint64_t b) {
    uint64_t mixed = (a * 0x9e3779b97f4a7c15u ^ b) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(mixed >> 32);
}

static inline strata_index_link_t *strata_index_link(const strata_index_t *index, uint32_t node) {
    return (strata_index_link_t *)((unsigned char *)strata_node(index->nodes, node) + index->at);
}

/* Chains with numbers from `chains` to `mask` are not split off yet. */
static inline uint32_t strata_index_chain(const strata_index_t *index, uint32_t hash) {
    uint32_t chain = hash & index->mask;
    return chain < index->chains ? chain : hash & index->mask >> 1;
}

static inline uint32_t strata_index_seek(strata_index_t *index, uint32_t node, uint32_t hash) {
    for (; node; node = strata_index_link(index, node)->next) {
        index->examined++;
        if (strata_index_link(index, node)->hash == hash) break;
    }
    return node;
}

/* Return a node of this hash, and the next node of the same hash, or 0 if there is none. Hashes may
 * collide, so the caller compares the key. */
static inline uint32_t strata_index_first(strata_index_t *index, uint32_t hash) {
    return strata_index_seek(index, strata_index_link(index, strata_index_chain(index, hash))->head, hash);
}
static inline uint32_t strata_index_next(strata_index_t *index, uint32_t node) {
    const strata_index_link_t *link = strata_index_link(index, node);
    return strata_index_seek(index, link->next, link->hash);
}

#endif

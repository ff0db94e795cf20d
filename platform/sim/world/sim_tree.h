/* An ordered set of nodes that are embedded in their owners. It is a treap with a hash of the key as
 * priority. So its shape, and with it the time of every operation, depends only on its contents. */
#ifndef STRATA_PLATFORM_SIM_TREE_H
#define STRATA_PLATFORM_SIM_TREE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sim_node sim_node_t;
struct sim_node {
    uint64_t key, tie; /* ordered by key, then tie */
    sim_node_t *left, *right;
    uint64_t priority;
};

typedef struct sim_tree {
    sim_node_t *root;
    uint64_t count;
} sim_tree_t;

/* Adds a node. The tree must have no node with the same key and tie. */
void sim_tree_insert(sim_tree_t *tree, sim_node_t *node);
/* Removes `node`, which is in the tree. */
void sim_tree_remove(sim_tree_t *tree, sim_node_t *node);
/* Returns the last node with a key of at most `key`, or NULL. */
sim_node_t *sim_tree_floor(const sim_tree_t *tree, uint64_t key);
/* Returns the first node of at least (key, tie), or NULL. */
sim_node_t *sim_tree_ceiling(const sim_tree_t *tree, uint64_t key, uint64_t tie);
/* Returns the node after `node`, or NULL if it is the last. */
sim_node_t *sim_tree_next(const sim_tree_t *tree, const sim_node_t *node);
/* Returns true if the order, the priorities and the count are consistent. */
bool sim_tree_valid(const sim_tree_t *tree);

#endif

/* An ordered set of nodes that are part of their owners. It is a treap whose priorities are a hash of the keys, so its shape, and
 * with it every time, depends only on its contents. */
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

/* No node of the same key and tie may be in the tree. */
void sim_tree_insert(sim_tree_t *tree, sim_node_t *node);
/* `node` is in the tree. */
void sim_tree_remove(sim_tree_t *tree, sim_node_t *node);
/* The greatest node of a key of at most `key`, NULL if none. */
sim_node_t *sim_tree_floor(const sim_tree_t *tree, uint64_t key);
/* The least node of at least (key, tie), NULL if none. */
sim_node_t *sim_tree_ceiling(const sim_tree_t *tree, uint64_t key, uint64_t tie);
/* The node after `node`; NULL if it is the last. */
sim_node_t *sim_tree_next(const sim_tree_t *tree, const sim_node_t *node);
/* Order, priorities and count hold. */
bool sim_tree_valid(const sim_tree_t *tree);

#endif

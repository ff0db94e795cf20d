#include "platform/sim/world/sim_tree.h"

#include <stddef.h>

static bool less(const sim_node_t *a, uint64_t key, uint64_t tie) { return a->key != key ? a->key < key : a->tie < tie; }

static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

void sim_tree_insert(sim_tree_t *tree, sim_node_t *node) {
    node->priority = mix(node->key + mix(node->tie));
    sim_node_t **link = &tree->root;
    while (*link && (*link)->priority > node->priority) link = less(*link, node->key, node->tie) ? &(*link)->right : &(*link)->left;
    /* Splits the subtree here into the nodes that are less than the new one and the others. */
    sim_node_t *rest = *link, **low = &node->left, **high = &node->right;
    *link = node;
    while (rest) {
        if (less(rest, node->key, node->tie)) {
            *low = rest;
            low = &rest->right;
            rest = rest->right;
        } else {
            *high = rest;
            high = &rest->left;
            rest = rest->left;
        }
    }
    *low = *high = NULL;
    tree->count++;
}

void sim_tree_remove(sim_tree_t *tree, sim_node_t *node) {
    sim_node_t **link = &tree->root;
    while (*link != node) link = less(*link, node->key, node->tie) ? &(*link)->right : &(*link)->left;
    sim_node_t *low = node->left, *high = node->right;
    while (low && high) {
        if (low->priority > high->priority) {
            *link = low;
            link = &low->right;
            low = low->right;
        } else {
            *link = high;
            link = &high->left;
            high = high->left;
        }
    }
    *link = low ? low : high;
    node->left = node->right = NULL;
    tree->count--;
}

sim_node_t *sim_tree_floor(const sim_tree_t *tree, uint64_t key) {
    sim_node_t *best = NULL;
    for (sim_node_t *at = tree->root; at;) {
        if (at->key <= key) {
            best = at;
            at = at->right;
        } else {
            at = at->left;
        }
    }
    return best;
}

sim_node_t *sim_tree_ceiling(const sim_tree_t *tree, uint64_t key, uint64_t tie) {
    sim_node_t *best = NULL;
    for (sim_node_t *at = tree->root; at;) {
        if (less(at, key, tie)) {
            at = at->right;
        } else {
            best = at;
            at = at->left;
        }
    }
    return best;
}

sim_node_t *sim_tree_next(const sim_tree_t *tree, const sim_node_t *node) {
    if (node->tie == UINT64_MAX) return node->key == UINT64_MAX ? NULL : sim_tree_ceiling(tree, node->key + 1, 0);
    return sim_tree_ceiling(tree, node->key, node->tie + 1);
}

static bool valid(const sim_node_t *node, const sim_node_t *low, const sim_node_t *high, uint64_t *count) {
    if (!node) return true;
    if (low && !less(low, node->key, node->tie)) return false;
    if (high && !less(node, high->key, high->tie)) return false;
    if ((node->left && node->left->priority > node->priority) || (node->right && node->right->priority > node->priority))
        return false;
    ++*count;
    return valid(node->left, low, node, count) && valid(node->right, node, high, count);
}

bool sim_tree_valid(const sim_tree_t *tree) {
    uint64_t count = 0;
    return valid(tree->root, NULL, NULL, &count) && count == tree->count;
}

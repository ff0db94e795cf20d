#include "allocation/mechanism/ranges.h"

static strata_range_t *at(const strata_ranges_t *ranges, uint32_t node) { return strata_node(&ranges->nodes, node); }

strata_status_t strata_ranges_init(strata_ranges_t *ranges, uint32_t capacity) {
    *ranges = (strata_ranges_t){.random = 1};
    return strata_nodes_init(&ranges->nodes, sizeof(strata_range_t), capacity);
}

void strata_ranges_destroy(strata_ranges_t *ranges) { strata_nodes_destroy(&ranges->nodes); }

/* ---- the treap ---- */

/* Returns a tree of one range, or 0 if no node is left. */
static uint32_t make(strata_ranges_t *ranges, uint64_t from, uint64_t to, uint64_t word) {
    uint32_t node = strata_nodes_acquire(&ranges->nodes);
    if (node == 0) return 0;
    ranges->random = ranges->random * 6364136223846793005u + 1442695040888963407u;
    *at(ranges, node) = (strata_range_t){.from = from, .to = to, .word = word, .priority = (uint32_t)(ranges->random >> 32)};
    ranges->count++;
    return node;
}

/* Splits a tree into the ranges that begin before `key` and the others. */
static void split(strata_ranges_t *ranges, uint32_t node, uint64_t key, uint32_t *before, uint32_t *rest) {
    uint32_t *low = before, *high = rest;
    while (node) {
        strata_range_t *range = at(ranges, node);
        if (range->from < key) {
            *low = node;
            low = &range->right;
            node = range->right;
        } else {
            *high = node;
            high = &range->left;
            node = range->left;
        }
    }
    *low = *high = 0;
}

/* Joins two trees. All of `low` must be before all of `high`. */
static uint32_t join(strata_ranges_t *ranges, uint32_t low, uint32_t high) {
    uint32_t root = 0, *link = &root;
    while (low && high) {
        if (at(ranges, low)->priority >= at(ranges, high)->priority) {
            *link = low;
            link = &at(ranges, low)->right;
            low = *link;
        } else {
            *link = high;
            link = &at(ranges, high)->left;
            high = *link;
        }
    }
    *link = low ? low : high;
    return root;
}

static uint32_t last_of(const strata_ranges_t *ranges, uint32_t node) {
    while (node && at(ranges, node)->right) node = at(ranges, node)->right;
    return node;
}

/* Frees every node of a tree, without recursion: it rotates left children up until there are none. */
static void drop(strata_ranges_t *ranges, uint32_t node) {
    while (node) {
        uint32_t left = at(ranges, node)->left, right = at(ranges, node)->right;
        if (left) {
            at(ranges, node)->left = at(ranges, left)->right;
            at(ranges, left)->right = node;
            node = left;
            continue;
        }
        strata_nodes_release(&ranges->nodes, node);
        ranges->count--;
        node = right;
    }
}

/* Cuts off the part of a tree beyond `end`, and returns it as a range from `from` on. Only the tree's last
 * range can reach there. */
static uint32_t cut_tail(strata_ranges_t *ranges, uint32_t tree, uint64_t end, uint64_t from) {
    uint32_t last = last_of(ranges, tree);
    if (!last || at(ranges, last)->to <= end) return 0;
    uint64_t to = at(ranges, last)->to, word = at(ranges, last)->word;
    at(ranges, last)->to = end;
    return to > from ? make(ranges, from, to, word) : 0;
}

/* ---- words ---- */

bool strata_ranges_have(const strata_ranges_t *ranges, uint64_t from, uint64_t to, uint64_t word) {
    while (from < to) {
        uint32_t found = 0;
        for (uint32_t node = ranges->root; node;) {
            const strata_range_t *range = at(ranges, node);
            if (range->from <= from) found = node;
            node = range->from <= from ? range->right : range->left;
        }
        if (!found || at(ranges, found)->to <= from || at(ranges, found)->word != word) return false;
        from = at(ranges, found)->to;
    }
    return true;
}

/* Absorbs the neighbors that touch [*from, *to) and have the same word. */
static void take_neighbours(strata_ranges_t *ranges, uint32_t *low, uint32_t *high, uint64_t *from, uint64_t *to, uint64_t word) {
    uint32_t before = last_of(ranges, *low), one, rest;
    if (before && at(ranges, before)->to == *from && at(ranges, before)->word == word) {
        *from = at(ranges, before)->from;
        split(ranges, *low, *from, &one, &rest);
        *low = one;
        drop(ranges, rest);
    }
    split(ranges, *high, *to + 1, &one, &rest);
    if (one && at(ranges, one)->word == word) {
        *to = at(ranges, one)->to;
        drop(ranges, one);
        *high = rest;
    } else {
        *high = join(ranges, one, rest);
    }
}

void strata_ranges_set(strata_ranges_t *ranges, uint64_t from, uint64_t to, uint64_t word) {
    uint32_t low, middle, high;
    split(ranges, ranges->root, from, &low, &middle);
    split(ranges, middle, to, &middle, &high);
    /* At most one of `low` and `middle` reaches beyond `to`. */
    uint32_t tail = cut_tail(ranges, low, from, to);
    if (!tail) tail = cut_tail(ranges, middle, to, to);
    drop(ranges, middle);
    high = join(ranges, tail, high);
    take_neighbours(ranges, &low, &high, &from, &to, word);
    ranges->root = join(ranges, join(ranges, low, make(ranges, from, to, word)), high);
}

void strata_ranges_clear(strata_ranges_t *ranges) {
    drop(ranges, ranges->root);
    ranges->root = 0;
}

/* ---- validate ---- */

static strata_status_t corrupt(const char *what, uint32_t node) {
    return strata_fail(STRATA_E_CORRUPT, 0, "ranges: %s (node %u)", what, node);
}

strata_status_t strata_ranges_validate(const strata_ranges_t *ranges) {
    uint64_t end = 0;
    uint32_t count = 0;
    /* Walks the ranges in order, and finds each one from the root, so no stack is needed. */
    for (;;) {
        uint32_t next = 0, steps = 0;
        for (uint32_t node = ranges->root; node;) {
            const strata_range_t *range = at(ranges, node);
            if (++steps > ranges->count) return corrupt("the tree has a cycle", node);
            uint32_t children[] = {range->left, range->right};
            for (int i = 0; i < 2; i++)
                if (children[i] && at(ranges, children[i])->priority > range->priority)
                    return corrupt("a child is above its parent", node);
            bool after = count == 0 || range->from >= end;
            if (after) next = node;
            node = after ? range->left : range->right;
        }
        if (!next) break;
        if (at(ranges, next)->from >= at(ranges, next)->to) return corrupt("a range is empty", next);
        end = at(ranges, next)->to;
        count++;
        if (count > ranges->count) return corrupt("there are more ranges than counted", next);
    }
    if (count != ranges->count) return corrupt("ranges overlap, or are not in order", ranges->root);
    return strata_nodes_validate(&ranges->nodes);
}

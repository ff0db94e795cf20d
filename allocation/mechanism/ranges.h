/* Disjoint address ranges, each with a word (whose bytes are there). What is in no range is unknown. It is a treap by address over
 * nodes: no host allocation. When the nodes are used up ranges are forgotten, never invented. Guarded by the owner. */
#ifndef STRATA_ALLOCATION_MECHANISM_RANGES_H
#define STRATA_ALLOCATION_MECHANISM_RANGES_H

#include <stdbool.h>

#include "allocation/tables/nodes.h"

typedef struct strata_range {
    uint64_t from, to;
    uint64_t word;
    uint32_t left, right;
    uint32_t priority; /* never below that of its children */
    uint32_t unused;
} strata_range_t;

typedef struct strata_ranges {
    strata_nodes_t nodes;
    uint32_t root;
    uint32_t count;
    uint64_t random;
} strata_ranges_t;

/* E_HOST_MEMORY. */
strata_status_t strata_ranges_init(strata_ranges_t *ranges, uint32_t capacity);
void strata_ranges_destroy(strata_ranges_t *ranges);
/* Whether all of [from, to) is known to have this word. */
bool strata_ranges_have(const strata_ranges_t *ranges, uint64_t from, uint64_t to, uint64_t word);
/* From now on [from, to) has this word, whatever it had before. from < to. */
void strata_ranges_set(strata_ranges_t *ranges, uint64_t from, uint64_t to, uint64_t word);
/* Nothing is known any more. */
void strata_ranges_clear(strata_ranges_t *ranges);
/* Order, priorities, count. E_CORRUPT. */
strata_status_t strata_ranges_validate(const strata_ranges_t *ranges);

#endif

/* Disjoint address ranges, each with a word that identifies its contents. Addresses outside all ranges are
 * unknown.
 *
 * The ranges are a treap by address over a fixed set of nodes, so no operation allocates host memory. If no
 * node is left, ranges are forgotten but never invented. Guarded by the owner. */
#ifndef STRATA_ALLOCATION_MECHANISM_RANGES_H
#define STRATA_ALLOCATION_MECHANISM_RANGES_H

#include <stdbool.h>

#include "allocation/tables/nodes.h"

typedef struct strata_range {
    uint64_t from, to;
    uint64_t word;
    uint32_t left, right;
    uint32_t priority; /* at least that of each child */
    uint32_t unused;
} strata_range_t;

typedef struct strata_ranges {
    strata_nodes_t nodes;
    uint32_t root;
    uint32_t count;
    uint64_t random;
} strata_ranges_t;

/* Fails with E_HOST_MEMORY. */
strata_status_t strata_ranges_init(strata_ranges_t *ranges, uint32_t capacity);
void strata_ranges_destroy(strata_ranges_t *ranges);
/* Returns true if all of [from, to) is known to have this word. */
bool strata_ranges_have(const strata_ranges_t *ranges, uint64_t from, uint64_t to, uint64_t word);
/* Sets the word of [from, to), and overwrites any earlier one. Requires from < to. */
void strata_ranges_set(strata_ranges_t *ranges, uint64_t from, uint64_t to, uint64_t word);
/* Forgets all ranges. */
void strata_ranges_clear(strata_ranges_t *ranges);
/* Checks the order, the priorities and the count. Fails with E_CORRUPT. */
strata_status_t strata_ranges_validate(const strata_ranges_t *ranges);

#endif

/* Sorts numbers by a 64-bit key, stable, in time that does not depend on the values of the keys. */
#ifndef STRATA_PLANNING_SORT_H
#define STRATA_PLANNING_SORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct strata_keyed {
    uint64_t key;
    uint32_t value;
} strata_keyed_t;

/* Sorts by key, ascending; equal keys keep their order. `scratch` has room for `count` elements. */
void strata_sort_keyed(strata_keyed_t *keyed, strata_keyed_t *scratch, size_t count);

#endif

/* Numbers sorted by a 64-bit key, stable, in a time that does not depend on what the keys are. */
#ifndef STRATA_PLANNING_SORT_H
#define STRATA_PLANNING_SORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct strata_keyed {
    uint64_t key;
    uint32_t value;
} strata_keyed_t;

/* By key, ascending; equal keys keep their order. `scratch` has room for as many. */
void strata_sort_keyed(strata_keyed_t *keyed, strata_keyed_t *scratch, size_t count);

#endif

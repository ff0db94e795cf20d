/* A set of refs with open addressing. The caller provides the memory and the lock, and must keep the set at most half full. */
#ifndef STRATA_INTEGRATION_REFS_H
#define STRATA_INTEGRATION_REFS_H

#include "strata/strata.h"

typedef struct strata_refs {
    strata_ref_t *slots; /* an empty slot is 0 */
    size_t room; /* a power of two, or 0 with no slots */
} strata_refs_t;

bool strata_refs_contain(const strata_refs_t *refs, strata_ref_t ref);
/* Requires that the ref is not in the set and that a slot is empty. */
void strata_refs_add(strata_refs_t *refs, strata_ref_t ref);
/* Removes a ref. A ref that is not in the set is ignored. */
void strata_refs_remove(strata_refs_t *refs, strata_ref_t ref);

#endif

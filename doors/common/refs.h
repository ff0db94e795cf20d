/* A set of refs with open addressing, in memory that the caller provides and guards. Keep it at most half full. */
#ifndef STRATA_INTEGRATION_REFS_H
#define STRATA_INTEGRATION_REFS_H

#include "strata/strata.h"

typedef struct strata_refs {
    strata_ref_t *slots; /* 0: empty */
    size_t room; /* a power of two, or 0 with no slots */
} strata_refs_t;

bool strata_refs_contain(const strata_refs_t *refs, strata_ref_t ref);
/* Requires that the ref is not in the set and that a slot is empty. */
void strata_refs_add(strata_refs_t *refs, strata_ref_t ref);
/* A ref that is not in the set is ignored. */
void strata_refs_remove(strata_refs_t *refs, strata_ref_t ref);

#endif

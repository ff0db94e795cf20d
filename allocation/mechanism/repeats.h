/* Remembers where a program that repeats itself was served in its last step. As long as a step requests the
 * same sizes in the same order as the step before, each request recalls the place of its predecessor. The cache
 * tries that place first. If it is in use, the cache serves the request elsewhere and notes the new place. So
 * addresses are stable if the earlier block is freed in time, in any order.
 *
 * The owner numbers its *users* (streams, or banks of a cache). Each user has a sequence of its own, so that
 * threads that take turns do not disturb each other. A step that requests another size stops following the last
 * one, but its places are noted.
 *
 * A zeroed struct is off. Guarded by the owner. A recall or a note looks its user up once, and allocates no
 * host memory. */
#ifndef STRATA_ALLOCATION_MECHANISM_REPEATS_H
#define STRATA_ALLOCATION_MECHANISM_REPEATS_H

#include "allocation/tables/index.h"
#include "allocation/tables/slab.h"

/* The place for a block. `slot` is that of a block that may be near, or 0 if none is known. */
typedef struct strata_extent {
    uint64_t ptr, size;
    uint32_t slot;
} strata_extent_t;

typedef struct strata_repeats {
    strata_nodes_t users, places;
    strata_index_t index; /* of the users, by number */
    uint64_t step; /* the current step, from 1 on; 0 if this is off */
} strata_repeats_t;

/* Fails with E_HOST_MEMORY. The caller holds no lock. */
strata_status_t strata_repeats_init(strata_repeats_t *repeats);
void strata_repeats_destroy(strata_repeats_t *repeats);
static inline bool strata_repeats_are_on(const strata_repeats_t *repeats) { return repeats->step != 0; }

/* Finds the place for the user's next request of this size. Returns false if none is known. */
bool strata_repeats_recall(strata_repeats_t *repeats, uint32_t user, uint64_t size, strata_extent_t *place);
/* Notes where the request was served. It is forgotten if there is no room for it. */
void strata_repeats_note(strata_repeats_t *repeats, const strata_slab_t *slab, uint32_t user, uint64_t size,
                         const strata_record_t *block);
/* Ends the program's step. */
void strata_repeats_step(strata_repeats_t *repeats);
/* Checks that every place is in exactly one list of one user. Fails with E_CORRUPT. */
strata_status_t strata_repeats_validate(const strata_repeats_t *repeats);

#endif

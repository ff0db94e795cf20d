/* What a program that repeats itself was served in its last step. As long as a step asks for the same sizes in the same order as the
 * one before, each request learns where that one was served. Whoever serves it asks for that place first; if it is not free, any
 * other will do, and is learnt instead. So addresses stay as long as what was there is freed in time, in whatever order.
 *
 * Requests of different *users* (streams, banks of a cache: a number of the owner's) are apart, so threads that take turns do not
 * disturb each other. A step that asks for something else follows the last one no further; what it is served is learnt all the same.
 *
 * All zero is one that is off. Guarded by the owner. A recall or a note takes one look-up of the user, and no host allocation. */
#ifndef STRATA_ALLOCATION_MECHANISM_REPEATS_H
#define STRATA_ALLOCATION_MECHANISM_REPEATS_H

#include "allocation/tables/index.h"
#include "allocation/tables/slab.h"

/* A place: where a block is to be. `slot` is that of a block that may be near; 0: none is known. */
typedef struct strata_extent {
    uint64_t ptr, size;
    uint32_t slot;
} strata_extent_t;

typedef struct strata_repeats {
    strata_nodes_t users, places;
    strata_index_t index; /* of the users, by number */
    uint64_t step; /* 1, 2, ... */
} strata_repeats_t;

/* E_HOST_MEMORY. No lock is held. */
strata_status_t strata_repeats_init(strata_repeats_t *repeats);
void strata_repeats_destroy(strata_repeats_t *repeats);
static inline bool strata_repeats_are_on(const strata_repeats_t *repeats) { return repeats->step != 0; }

/* Where the user's next request, of this size, should be served; false: nothing is known. */
bool strata_repeats_recall(strata_repeats_t *repeats, uint32_t user, uint64_t size, strata_extent_t *place);
/* Where it was served. Without room for it, it is forgotten. */
void strata_repeats_note(strata_repeats_t *repeats, const strata_slab_t *slab, uint32_t user, uint64_t size,
                         const strata_record_t *block);
/* The program's step has ended. */
void strata_repeats_step(strata_repeats_t *repeats);
/* Every place is in one list of one user. E_CORRUPT. */
strata_status_t strata_repeats_validate(const strata_repeats_t *repeats);

#endif

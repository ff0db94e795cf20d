/* Properties that follow from the kind of a place alone. */
#ifndef STRATA_PLATFORM_PLACE_H
#define STRATA_PLATFORM_PLACE_H

#include "strata/strata.h"

/* Returns true for pinned and host memory. Their blocks have no owner stream, and one stack serves all
 * streams of all devices. */
static inline bool strata_place_is_ownerless(strata_place_kind_t kind) {
    return kind == STRATA_PLACE_PINNED || kind == STRATA_PLACE_HOST;
}

/* Returns "gpu", "managed", "pinned" or "host". */
const char *strata_place_name(strata_place_kind_t kind);
/* Returns the kind with this name, or STRATA_PLACE_KINDS if it is unknown. */
strata_place_kind_t strata_place_find(const char *name);

enum { STRATA_PLACE_LETTERS = 24 };
/* Writes "gpu:0", "managed:1", "pinned" or "host". */
void strata_place_text(strata_place_t place, char text[STRATA_PLACE_LETTERS]);

#endif

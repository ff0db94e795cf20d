#include "platform/place.h"

#include <stdio.h>
#include <string.h>

static const char *const names[STRATA_PLACE_KINDS] = {"gpu", "managed", "pinned", "host"};

const char *strata_place_name(strata_place_kind_t kind) { return names[kind]; }

strata_place_kind_t strata_place_find(const char *name) {
    strata_place_kind_t kind = STRATA_PLACE_GPU;
    while (kind < STRATA_PLACE_KINDS && strcmp(names[kind], name) != 0) kind++;
    return kind;
}

void strata_place_text(strata_place_t place, char text[STRATA_PLACE_LETTERS]) {
    strata_place_kind_t kind = strata_place_kind(place);
    bool numbered = !strata_place_is_ownerless(kind);
    snprintf(text, STRATA_PLACE_LETTERS, numbered ? "%s:%u" : "%s", names[kind], (unsigned)strata_place_device(place));
}

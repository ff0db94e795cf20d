/* A slab with room for so many blocks more, as near its end: the slots that nobody has are kept from it meanwhile. */
#ifndef STRATA_TESTS_SLOTS_H
#define STRATA_TESTS_SLOTS_H

#include "allocation/tables/slab.h"
#include "tests/harness/test.h"

typedef struct slots {
    strata_slab_t *slab;
    uint32_t capacity, kept[64], count;
} slots_t;

static inline slots_t slots_limit(strata_slab_t *slab, uint32_t room) {
    slots_t slots = {.slab = slab, .capacity = slab->capacity};
    while (slab->unused > room && slots.count < sizeof slots.kept / sizeof *slots.kept)
        slots.kept[slots.count++] = strata_slab_acquire(slab);
    EXPECT_LE(slab->unused, room);
    slab->capacity = slab->used + (room - slab->unused);
    return slots;
}

static inline void slots_restore(slots_t *slots) {
    slots->slab->capacity = slots->capacity;
    while (slots->count > 0) strata_slab_release(slots->slab, slots->kept[--slots->count]);
}

#endif

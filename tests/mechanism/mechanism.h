/* What the tests of the mechanisms share: random numbers, free blocks over made-up offsets, planted faults. */
#ifndef STRATA_TESTS_MECHANISM_H
#define STRATA_TESTS_MECHANISM_H

#include "allocation/tables/slab.h"
#include "tests/harness/test.h"

/* Never 0 as a state; the same numbers for the same seed everywhere. */
static inline uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline uint64_t random_below(uint64_t *state, uint64_t bound) { return (random_next(state) >> 11) % bound; }

/* A free block of the slab; 0: the slab is full. */
static inline uint32_t make_free(strata_slab_t *slab, uint64_t ptr, uint64_t size) {
    strata_growing_grow_if_marked();
    uint32_t slot = strata_slab_acquire(slab);
    if (slot == 0) return 0;
    strata_record_t *record = strata_slab_record(slab, slot);
    record->state = STRATA_RECORD_FREE;
    record->ptr = ptr;
    record->size = size;
    return slot;
}

/* A test of a slab: TEST_SLAB(suite, name, home, generation, capacity) */
#define TEST_SLAB(suite, name, ...)                                                                                                \
    TEST_WITH(suite, name, strata_slab_t, slab, strata_slab_destroy, ASSERT_OK(strata_slab_init(slab, __VA_ARGS__)))

/* `validate` is clean, finds `place` set to `value`, and is clean again with what was there before. */
#define EXPECT_CAUGHT(validate, place, value)                                                                                      \
    do {                                                                                                                           \
        EXPECT_OK(validate);                                                                                                       \
        __typeof__(place) before_ = (place);                                                                                       \
        (place) = (value);                                                                                                         \
        EXPECT_NE(before_, place);                                                                                                 \
        EXPECT_STATUS(STRATA_E_CORRUPT, validate);                                                                                 \
        (place) = before_;                                                                                                         \
        EXPECT_OK(validate);                                                                                                       \
    } while (0)

#endif

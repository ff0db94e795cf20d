/* Faults planted for a check to find. */
#ifndef STRATA_TESTS_PLANTED_H
#define STRATA_TESTS_PLANTED_H

#include "tests/harness/test.h"

/* `validate` is clean, is E_CORRUPT with `what` in its text while `place` holds `value`, and is clean again with what was there. */
#define EXPECT_PLANTED(validate, place, value, what)                                                                               \
    do {                                                                                                                           \
        EXPECT_OK(validate);                                                                                                       \
        __typeof__(place) before_ = (place);                                                                                       \
        (place) = (__typeof__(place))(value);                                                                                      \
        EXPECT_NE(before_, place);                                                                                                 \
        EXPECT_STATUS(STRATA_E_CORRUPT, validate);                                                                                 \
        EXPECT_CONTAINS(strata_last_error()->text, what);                                                                          \
        (place) = before_;                                                                                                         \
        EXPECT_OK(validate);                                                                                                       \
    } while (0)

#endif

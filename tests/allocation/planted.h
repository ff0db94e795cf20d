/* Faults planted in a stack, for the tests of validate. */
#ifndef STRATA_TESTS_ALLOCATION_PLANTED_H
#define STRATA_TESTS_ALLOCATION_PLANTED_H

#include "tests/allocation/bench.h"

/* The stack of `bench` is found corrupt while `place` holds another value. */
#define EXPECT_FOUND(place, value)                                                                                                 \
    do {                                                                                                                           \
        EXPECT_OK(strata_stack_validate(bench.stack));                                                                             \
        __typeof__(place) before_ = (place);                                                                                       \
        (place) = (__typeof__(place))(value);                                                                                      \
        EXPECT_NE(before_, place);                                                                                                 \
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_stack_validate(bench.stack));                                                       \
        (place) = before_;                                                                                                         \
        EXPECT_OK(strata_stack_validate(bench.stack));                                                                             \
    } while (0)

#endif

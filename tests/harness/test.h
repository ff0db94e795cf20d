/* Tests in C under GoogleTest: TEST(suite, name) { ... } registers itself; a failure shows this file and line.
 * EXPECT_* and ASSERT_* are those of the conformance checks.
 */
#ifndef STRATA_TESTS_TEST_H
#define STRATA_TESTS_TEST_H

#include "conform/expect.h"

typedef void (*strata_test_fn)(void);
void strata_test_register(const char *suite, const char *name, const char *file, int line, strata_test_fn run);
/* Skips the running test, visibly. Return right after it. */
void strata_test_skipped(const char *file, int line, const char *why);

#define TEST(suite, name)                                                                                                          \
    static void suite##_##name(void);                                                                                              \
    __attribute__((constructor)) static void suite##_##name##_register(void) {                                                     \
        strata_test_register(#suite, #name, __FILE__, __LINE__, suite##_##name);                                                   \
    }                                                                                                                              \
    static void suite##_##name(void)

#define TEST_SKIP(why)                                                                                                             \
    do {                                                                                                                           \
        strata_test_skipped(__FILE__, __LINE__, why);                                                                              \
        return;                                                                                                                    \
    } while (0)

#endif

/* Tests in C under GoogleTest: TEST(suite, name) { ... } registers itself; a failure shows this file and line.
 * EXPECT_* and ASSERT_* are those of the conformance checks.
 */
#ifndef STRATA_TESTS_TEST_H
#define STRATA_TESTS_TEST_H

#include "lab/conform/rig/expect.h"

typedef void (*strata_test_fn)(void);
void strata_test_register(const char *suite, const char *name, const char *file, int line, strata_test_fn run);
/* Runs with `subject`, which must outlive the program's tests. The names are copied. */
typedef void (*strata_test_of_fn)(const void *subject);
void strata_test_register_of(const char *suite, const char *name, const char *file, int line, strata_test_of_fn run,
                             const void *subject);
void strata_test_register_row(const char *suite, const char *name, const char *row, const char *file, int line,
                              strata_test_of_fn run, const void *subject);
/* Skips the running test, visibly. Return right after it. */
void strata_test_skipped(const char *file, int line, const char *why);

#define TEST(suite, name)                                                                                                          \
    static void suite##_##name(void);                                                                                              \
    __attribute__((constructor)) static void suite##_##name##_register(void) {                                                     \
        strata_test_register(#suite, #name, __FILE__, __LINE__, suite##_##name);                                                   \
    }                                                                                                                              \
    static void suite##_##name(void)

/* One test for each row of a static array, as suite.name/NAME of the row: TEST_EACH(suite, name, row_t, rows) { ... row->capacity ... } */
#define TEST_EACH(suite, test, row_t, rows)                                                                                        \
    static void suite##_##test(const row_t *row);                                                                                  \
    static void suite##_##test##_of(const void *row) { suite##_##test(row); }                                                      \
    __attribute__((constructor)) static void suite##_##test##_register(void) {                                                     \
        for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++)                                                                 \
            strata_test_register_row(#suite, #test, (rows)[i].name, __FILE__, __LINE__, suite##_##test##_of, &(rows)[i]);          \
    }                                                                                                                              \
    static void suite##_##test(const row_t *row)

/* On a variable: `close` takes its address where its scope ends, however that is left. */
#define CLOSED_BY(close) __attribute__((cleanup(close)))
/* A variable that is opened here and closed where its scope ends: OPENED(bench_t, bench, bench_close, bench_open(&bench, 0)); */
#define OPENED(type, name, close, ...)                                                                                             \
    type name CLOSED_BY(close);                                                                                                    \
    __VA_ARGS__

/* Opens a thing before the body of a test, and closes it after:
 * TEST_WITH(suite, name, bench_t, bench, bench_close, bench_open(bench, 0)) { ... } */
#define TEST_WITH(suite, test, type, thing, close, ...)                                                                            \
    static void suite##_##test##_with(type *thing);                                                                                \
    TEST(suite, test) {                                                                                                            \
        type opened CLOSED_BY(close) = {0}, *thing = &opened;                                                                      \
        __VA_ARGS__;                                                                                                               \
        suite##_##test##_with(thing);                                                                                              \
    }                                                                                                                              \
    static void suite##_##test##_with(type *thing)

/* Works like TEST_WITH, once for each `way` from 0 to below `ways`. The body has `way` too, as an int. */
#define TEST_WAYS(suite, test, way, ways, type, thing, close, ...)                                                                 \
    static void suite##_##test##_with(type *thing, __attribute__((unused)) int way);                                               \
    TEST(suite, test) {                                                                                                            \
        for (int way = 0; way < (int)(ways); way++) {                                                                              \
            type opened CLOSED_BY(close) = {0}, *thing = &opened;                                                                  \
            __VA_ARGS__;                                                                                                           \
            suite##_##test##_with(thing, way);                                                                                     \
        }                                                                                                                          \
    }                                                                                                                              \
    static void suite##_##test##_with(type *thing, __attribute__((unused)) int way)

#define TEST_SKIP(why)                                                                                                             \
    do {                                                                                                                           \
        strata_test_skipped(__FILE__, __LINE__, why);                                                                              \
        return;                                                                                                                    \
    } while (0)

#endif

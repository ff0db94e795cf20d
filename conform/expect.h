/* Expectations of a check: EXPECT_* go on after a failure, ASSERT_* return from the function (use them in void functions only).
 *
 * Where a failure goes is for the program that runs the checks: GoogleTest in the tests, a line of output in `strata conform`.
 */
#ifndef STRATA_CONFORM_EXPECT_H
#define STRATA_CONFORM_EXPECT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* printf-like; marks the running check failed. */
void strata_test_failed(const char *file, int line, const char *format, ...) __attribute__((__format__(__printf__, 3, 4)));
/* Whether the running check has failed so far. */
bool strata_test_has_failed(void);

#define FAIL_TEST(...) strata_test_failed(__FILE__, __LINE__, __VA_ARGS__)

#define TEST_CHECK_(ok, then, ...)                                                                                                 \
    do {                                                                                                                           \
        if (!(ok)) {                                                                                                               \
            FAIL_TEST(__VA_ARGS__);                                                                                                \
            then;                                                                                                                  \
        }                                                                                                                          \
    } while (0)

#define TEST_COMPARE_(a, op, b, then)                                                                                              \
    do {                                                                                                                           \
        uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b);                                                                           \
        TEST_CHECK_(a_ op b_, then, "%s %s %s: %" PRIu64 " against %" PRIu64, #a, #op, #b, a_, b_);                                \
    } while (0)

#define EXPECT_TRUE(condition)  TEST_CHECK_(condition, (void)0, "not true: %s", #condition)
#define EXPECT_FALSE(condition) TEST_CHECK_(!(condition), (void)0, "not false: %s", #condition)
#define EXPECT_EQ(a, b)         TEST_COMPARE_(a, ==, b, (void)0)
#define EXPECT_NE(a, b)         TEST_COMPARE_(a, !=, b, (void)0)
#define EXPECT_LT(a, b)         TEST_COMPARE_(a, <, b, (void)0)
#define EXPECT_LE(a, b)         TEST_COMPARE_(a, <=, b, (void)0)
#define EXPECT_GT(a, b)         TEST_COMPARE_(a, >, b, (void)0)
#define EXPECT_GE(a, b)         TEST_COMPARE_(a, >=, b, (void)0)
#define EXPECT_NEAR(a, b, tolerance)                                                                                               \
    do {                                                                                                                           \
        double a_ = (double)(a), b_ = (double)(b), d_ = a_ > b_ ? a_ - b_ : b_ - a_;                                               \
        TEST_CHECK_(d_ <= (double)(tolerance), (void)0, "%s is %g, not near %g", #a, a_, b_);                                      \
    } while (0)
#define EXPECT_STREQ(a, b)                                                                                                         \
    do {                                                                                                                           \
        const char *a_ = (a), *b_ = (b);                                                                                           \
        TEST_CHECK_(a_ &&b_ &&strcmp(a_, b_) == 0, (void)0, "%s is \"%s\", not \"%s\"", #a, a_ ? a_ : "(null)",                    \
                    b_ ? b_ : "(null)");                                                                                           \
    } while (0)
/* `part` occurs in `text`. */
#define EXPECT_CONTAINS(text, part)                                                                                                \
    do {                                                                                                                           \
        const char *t_ = (text), *p_ = (part);                                                                                     \
        TEST_CHECK_(t_ &&strstr(t_, p_), (void)0, "\"%s\" is not in \"%s\"", p_, t_ ? t_ : "(null)");                              \
    } while (0)
#define ASSERT_TRUE(condition) TEST_CHECK_(condition, return, "not true: %s", #condition)
#define ASSERT_EQ(a, b)        TEST_COMPARE_(a, ==, b, return )
#define ASSERT_NE(a, b)        TEST_COMPARE_(a, !=, b, return )

/* A strata_status_t; needs platform/status.h. */
#define TEST_STATUS_(call, wanted, then)                                                                                           \
    do {                                                                                                                           \
        strata_status_t s_ = (call), w_ = (wanted);                                                                                \
        TEST_CHECK_(s_ == w_, then, "%s answered %s (%s), not %s", #call, strata_status_name(s_),                                  \
                    s_ == STRATA_OK ? "" : strata_last_error()->text, strata_status_name(w_));                                     \
    } while (0)
#define EXPECT_OK(call)             TEST_STATUS_(call, STRATA_OK, (void)0)
#define ASSERT_OK(call)             TEST_STATUS_(call, STRATA_OK, return )
#define EXPECT_STATUS(wanted, call) TEST_STATUS_(call, wanted, (void)0)
#define ASSERT_STATUS(wanted, call) TEST_STATUS_(call, wanted, return )

#endif

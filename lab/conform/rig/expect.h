/* Expectations of a check. EXPECT_* continue after a failure. ASSERT_* return from the function, so use them
 * only in void functions.
 *
 * The program that runs the checks decides where a failure is reported: GoogleTest in the tests, a line of
 * output in `strata conform`. */
#ifndef STRATA_CONFORM_EXPECT_H
#define STRATA_CONFORM_EXPECT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Like printf(). Marks the running check as failed. */
void strata_test_failed(const char *file, int line, const char *format, ...) __attribute__((__format__(__printf__, 3, 4)));
/* Returns true if the running check has failed so far. */
bool strata_test_has_failed(void);

#define FAIL_TEST(...) strata_test_failed(__FILE__, __LINE__, __VA_ARGS__)

#define TEST_CHECK_(ok, then, ...)                                                                                                 \
    do {                                                                                                                           \
        if (!(ok)) {                                                                                                               \
            FAIL_TEST(__VA_ARGS__);                                                                                                \
            then;                                                                                                                  \
        }                                                                                                                          \
    } while (0)

/* A number or an address in a form for comparison and printing. A negative number is below all unsigned ones. */
typedef enum strata_test_kind_t { TEST_NATURAL, TEST_INTEGER, TEST_REAL, TEST_ADDRESS } strata_test_kind_t;
typedef struct strata_test_value_t {
    strata_test_kind_t kind;
    uint64_t bits;
    double real;
} strata_test_value_t;

/* clang-format off */
#define TEST_KIND_(x)                                                                                                              \
    _Generic((x), char: TEST_INTEGER, signed char: TEST_INTEGER, short: TEST_INTEGER, int: TEST_INTEGER, long: TEST_INTEGER,       \
             long long: TEST_INTEGER, unsigned char: TEST_NATURAL, unsigned short: TEST_NATURAL, unsigned: TEST_NATURAL,           \
             unsigned long: TEST_NATURAL, unsigned long long: TEST_NATURAL, _Bool: TEST_NATURAL, float: TEST_REAL,                 \
             double: TEST_REAL, default: TEST_ADDRESS)
#define TEST_VALUE_(x)                                                                                                             \
    ((strata_test_value_t){TEST_KIND_(x), (uint64_t)_Generic((x), float: 0, double: 0, default: (x)),                              \
                           _Generic((x), float: (x), double: (x), default: 0.0)})
/* clang-format on */

static inline bool strata_test_is_negative(strata_test_value_t x) { return x.kind == TEST_INTEGER && (int64_t)x.bits < 0; }

static inline double strata_test_as_real(strata_test_value_t x) {
    if (x.kind == TEST_REAL) return x.real;
    return strata_test_is_negative(x) ? (double)(int64_t)x.bits : (double)x.bits;
}

/* Returns a negative number, 0 or a positive number, like memcmp(). */
static inline int strata_test_order(strata_test_value_t a, strata_test_value_t b) {
    if (a.kind == TEST_REAL || b.kind == TEST_REAL) {
        double x = strata_test_as_real(a), y = strata_test_as_real(b);
        return x == y ? 0 : x < y ? -1 : 1;
    }
    if (strata_test_is_negative(a) != strata_test_is_negative(b)) return strata_test_is_negative(a) ? -1 : 1;
    return a.bits == b.bits ? 0 : a.bits < b.bits ? -1 : 1;
}

enum { TEST_VALUE_TEXT = 32 };

static inline const char *strata_test_value_text(strata_test_value_t x, char text[TEST_VALUE_TEXT]) {
    if (x.kind == TEST_REAL) snprintf(text, TEST_VALUE_TEXT, "%g", x.real);
    else if (x.kind == TEST_INTEGER) snprintf(text, TEST_VALUE_TEXT, "%" PRIi64, (int64_t)x.bits);
    else snprintf(text, TEST_VALUE_TEXT, x.kind == TEST_ADDRESS ? "0x%" PRIx64 : "%" PRIu64, x.bits);
    return text;
}

#define TEST_COMPARE_(a, op, b, then)                                                                                              \
    do {                                                                                                                           \
        strata_test_value_t a_ = TEST_VALUE_(a), b_ = TEST_VALUE_(b);                                                              \
        char a_text_[TEST_VALUE_TEXT], b_text_[TEST_VALUE_TEXT];                                                                   \
        TEST_CHECK_(strata_test_order(a_, b_) op 0, then, "%s %s %s: %s against %s", #a, #op, #b,                                  \
                    strata_test_value_text(a_, a_text_), strata_test_value_text(b_, b_text_));                                     \
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
/* Expects that `part` occurs in `text`. */
#define EXPECT_CONTAINS(text, part)                                                                                                \
    do {                                                                                                                           \
        const char *t_ = (text), *p_ = (part);                                                                                     \
        TEST_CHECK_(t_ &&strstr(t_, p_), (void)0, "\"%s\" is not in \"%s\"", p_, t_ ? t_ : "(null)");                              \
    } while (0)
/* Expects that it does not. */
#define EXPECT_LACKS(text, part)                                                                                                   \
    do {                                                                                                                           \
        const char *t_ = (text), *p_ = (part);                                                                                     \
        TEST_CHECK_(t_ && !strstr(t_, p_), (void)0, "\"%s\" is in \"%s\"", p_, t_ ? t_ : "(null)");                                \
    } while (0)
#define ASSERT_TRUE(condition) TEST_CHECK_(condition, return, "not true: %s", #condition)
#define ASSERT_EQ(a, b)        TEST_COMPARE_(a, ==, b, return )
#define ASSERT_NE(a, b)        TEST_COMPARE_(a, !=, b, return )
#define ASSERT_LT(a, b)        TEST_COMPARE_(a, <, b, return )
#define ASSERT_LE(a, b)        TEST_COMPARE_(a, <=, b, return )
#define ASSERT_GT(a, b)        TEST_COMPARE_(a, >, b, return )
#define ASSERT_GE(a, b)        TEST_COMPARE_(a, >=, b, return )

/* For a strata_status_t; needs platform/status.h. */
#define TEST_STATUS_(call, wanted, then)                                                                                           \
    do {                                                                                                                           \
        strata_status_t s_ = (call), w_ = (wanted);                                                                                \
        TEST_CHECK_(s_ == w_, then, "%s returned %s (%s), not %s", #call, strata_status_name(s_),                                  \
                    s_ == STRATA_OK ? "" : strata_last_error()->text, strata_status_name(w_));                                     \
    } while (0)
#define EXPECT_OK(call) TEST_STATUS_(call, STRATA_OK, (void)0)
/* Also expects that `part` occurs in the text of the error. */
#define EXPECT_SAYS(wanted, call, part)                                                                                            \
    do {                                                                                                                           \
        EXPECT_STATUS(wanted, call);                                                                                               \
        EXPECT_CONTAINS(strata_last_error()->text, part);                                                                          \
    } while (0)
#define ASSERT_OK(call)             TEST_STATUS_(call, STRATA_OK, return )
#define EXPECT_STATUS(wanted, call) TEST_STATUS_(call, wanted, (void)0)
#define ASSERT_STATUS(wanted, call) TEST_STATUS_(call, wanted, return )

#endif

/* What expectations compare and print. */
#include "tests/harness/test.h"

static void expect_shown(strata_test_value_t value, const char *wanted) {
    char text[TEST_VALUE_TEXT];
    EXPECT_STREQ(strata_test_value_text(value, text), wanted);
}

TEST(expectations, show_a_value_as_what_it_is) {
    expect_shown(TEST_VALUE_(-1), "-1");
    expect_shown(TEST_VALUE_(UINT64_MAX), "18446744073709551615");
    expect_shown(TEST_VALUE_(0.25), "0.25");
    expect_shown(TEST_VALUE_(true), "1");
    expect_shown(TEST_VALUE_((void *)(uintptr_t)4096), "0x1000");
}

TEST(expectations, compare_what_has_a_sign_with_what_has_none) {
    EXPECT_LT(strata_test_order(TEST_VALUE_(-1), TEST_VALUE_(1u)), 0);
    EXPECT_GT(strata_test_order(TEST_VALUE_(UINT64_MAX), TEST_VALUE_(-1)), 0);
    EXPECT_EQ(strata_test_order(TEST_VALUE_((uint8_t)7), TEST_VALUE_(7ll)), 0);
    EXPECT_LT(strata_test_order(TEST_VALUE_(0.25), TEST_VALUE_(0.5)), 0);
    EXPECT_GT(strata_test_order(TEST_VALUE_(1), TEST_VALUE_(-0.5)), 0);
    EXPECT_NE(strata_test_order(TEST_VALUE_(&(int){0}), TEST_VALUE_(NULL)), 0);
}

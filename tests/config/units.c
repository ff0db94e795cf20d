/* Sizes and times: exact in both directions, and every wrong one told. */
#include "allocation/options/option.h"
#include "platform/status.h"
#include "tests/harness/test.h"

typedef strata_status_t (*parse_fn)(const char *, uint64_t *);

static void expect_value(parse_fn parse, const char *text, uint64_t wanted) {
    uint64_t value = 12345;
    EXPECT_OK(parse(text, &value));
    if (value != wanted) FAIL_TEST("\"%s\" is %" PRIu64 ", not %" PRIu64, text, value, wanted);
}

static void expect_wrong(parse_fn parse, const char *text, const char *what) {
    uint64_t value = 12345;
    EXPECT_SAYS(STRATA_E_STRATEGY, parse(text, &value), what);
    EXPECT_CONTAINS(strata_last_error()->text, "; write ");
    EXPECT_EQ(value, 12345);
}

TEST(units, sizes_are_exact) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {{"0", 0},
                {"512", 512},
                {"512B", 512},
                {"1KiB", 1024},
                {"20MiB", 20971520},
                {"20 MiB", 20971520},
                {"1.5GiB", 1610612736},
                {"0.5KiB", 512},
                {"1.50GiB", 1610612736},
                {"0.00097656250TiB", 1073741824},
                {"3TiB", 3ull << 40},
                {"16777215TiB", 16777215ull << 40},
                {"18446744073709551614", UINT64_MAX - 1},
                {"unlimited", UINT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) expect_value(strata_parse_size, rows[i].text, rows[i].bytes);
}

TEST(units, times_are_exact) {
    static const struct {
        const char *text;
        uint64_t ns;
    } rows[] = {{"0", 0},
                {"0.0", 0},
                {"20ns", 20},
                {"20us", 20000},
                {"100ms", 100000000},
                {"2s", 2000000000},
                {"1.25us", 1250},
                {"0.001ms", 1000},
                {"1000000000000ms", 1000000000000000000},
                {"18446744073s", 18446744073000000000ull},
                {"never", UINT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) expect_value(strata_parse_time, rows[i].text, rows[i].ns);
}

TEST(units, what_does_not_fit_is_refused) {
    expect_wrong(strata_parse_size, "18446744073709551615", "64 bits");
    expect_wrong(strata_parse_size, "18446744073709551616", "64 bits");
    expect_wrong(strata_parse_size, "16777216TiB", "64 bits");
    expect_wrong(strata_parse_size, "16777215.9999999999999TiB", "64 bits");
    expect_wrong(strata_parse_size, "99999999999999999999999999999GiB", "64 bits");
    expect_wrong(strata_parse_size, "1.0000000000000000001GiB", "64 bits");
    expect_wrong(strata_parse_time, "18446744074s", "64 bits");
}

TEST(units, what_is_left_of_a_byte_is_dropped) {
    expect_value(strata_parse_size, "0.1KiB", 102);
    /* As many digits as are read: 18. */
    expect_value(strata_parse_size, "0.100000000000000001KiB", 102);
    expect_value(strata_parse_size, "13.7GiB", 14710262988);
    expect_wrong(strata_parse_size, "1.5B", "not a whole number of bytes");
    expect_wrong(strata_parse_size, "1.5", "not a whole number of bytes");
    expect_wrong(strata_parse_time, "0.5ns", "not a whole number of nanoseconds");
}

TEST(units, a_wrong_unit_is_told_with_the_right_one) {
    expect_wrong(strata_parse_size, "20MB", "unknown unit \"MB\"; write 20MiB");
    expect_wrong(strata_parse_size, "1.5gib", "unknown unit \"gib\"; write 1.5GiB");
    expect_wrong(strata_parse_size, "64k", "write 64KiB");
    expect_wrong(strata_parse_size, "20ms", "unknown unit \"ms\"; write one of TiB, GiB, MiB, KiB, B");
    expect_wrong(strata_parse_time, "3sec", "write 3s");
    expect_wrong(strata_parse_time, "3\xc2\xb5s", "write 3us");
    expect_wrong(strata_parse_time, "100", "has no unit; write one of s, ms, us, ns after it, as in 100ms");
    expect_wrong(strata_parse_time, "20MiB", "unknown unit \"MiB\"; write one of s, ms, us, ns");
}

TEST(units, what_is_no_number_is_refused) {
    static const char *const texts[] = {"", " ", "-1", "+1", "MiB", ".5GiB", "nan", "0x10", "1e3", "1..5GiB", "1.GiB", "Unlimited"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect_wrong(strata_parse_size, texts[i], "\"");
        expect_wrong(strata_parse_time, texts[i], "\"");
    }
}

static void expect_printed(uint64_t bytes, const char *size, uint64_t ns, const char *time) {
    char text[64];
    strata_print_size(bytes, text, sizeof text);
    EXPECT_STREQ(text, size);
    strata_print_time(ns, text, sizeof text);
    EXPECT_STREQ(text, time);
}

TEST(units, are_printed_short) {
    expect_printed(0, "0", 0, "0");
    expect_printed(512, "512", 20, "20ns");
    expect_printed(1024, "1KiB", 100000000, "100ms");
    expect_printed(20971520, "20MiB", 1500000000, "1.5s");
    expect_printed(1610612736, "1.5GiB", 88000, "88us");
    expect_printed(1000001, "1000001", 1250, "1.25us");
    expect_printed(UINT64_MAX, "unlimited", UINT64_MAX, "never");
    expect_printed(UINT64_MAX - 1, "18446744073709551614", UINT64_MAX - 1, "18446744073.709551614s");
}

TEST(units, printing_and_parsing_are_inverse) {
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        char text[64];
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint64_t value = (state >> (state % 61)) << (i % 23), back = 0;
        strata_print_size(value, text, sizeof text);
        ASSERT_OK(strata_parse_size(text, &back));
        ASSERT_EQ(back, value);
        strata_print_time(value, text, sizeof text);
        ASSERT_OK(strata_parse_time(text, &back));
        ASSERT_EQ(back, value);
    }
}

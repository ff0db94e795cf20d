/* Sizes of one sentence: in one unit, readable, and never alike where they differ. */
#include "facade/figures/amounts.h"
#include "tests/facade/support/fixture.h"

static const char *said(const char *format, const uint64_t *bytes, size_t count) {
    static char line[200];
    strata_text_t text = {.text = line, .capacity = sizeof line};
    line[0] = '\0';
    strata_text_append_amounts(&text, format, bytes, count);
    return line;
}

TEST(facade_amounts, of_one_sentence_have_one_unit) {
    static const struct {
        uint64_t bytes[3];
        const char *text;
    } rows[] = {
        {{81200 * MIB, 80 * GIB, 0}, "79.29GiB of 80GiB, 0"},
        {{6 * MIB, 80 * GIB, 500 * MIB}, "6MiB of 81,920MiB, 500MiB"},
        {{500 * MIB, 80 * GIB, 10 * GIB}, "0.48GiB of 80GiB, 10GiB"},
        {{1, 40 * MIB, 100 * MIB}, "1B of 40MiB, 100MiB"},
        {{9740 * MIB, 9741 * MIB, 80 * GIB}, "9,740MiB of 9,741MiB, 81,920MiB"}, /* a hundredth of a GiB tells them not apart */
        {{1536, 1024, 100}, "1,536B of 1,024B, 100B"},
        {{UINT64_MAX, GIB, 0}, "17,179,869,183.99GiB of 1GiB, 0"},
        {{0, 0, 0}, "0 of 0, 0"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) EXPECT_STREQ(said("% of %, %", rows[i].bytes, 3), rows[i].text);
}

/* A format with more places than sizes, or fewer. */
TEST(facade_amounts, of_a_format_that_does_not_fit_are_0_or_left_out) {
    const uint64_t bytes[] = {MIB, 2 * MIB};
    EXPECT_STREQ(said("%, %, %", bytes, 2), "1MiB, 2MiB, 0");
    EXPECT_STREQ(said("only %", bytes, 2), "only 1MiB");
    EXPECT_STREQ(said("none", bytes, 2), "none");
}

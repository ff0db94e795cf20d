#include "allocation/mechanism/marks.h"

#include "tests/mechanism/mechanism.h"

TEST(marks, keep_48_bits_and_a_stream) {
    strata_record_t block = {.size = 256};
    strata_mark(&block, 0x123456789abcull, 0xfffe);
    EXPECT_EQ(strata_mark_count(&block), 0x123456789abcull);
    EXPECT_EQ(strata_mark_stream(&block), 0xfffe);
    strata_mark(&block, 7, 0);
    EXPECT_EQ(strata_mark_count(&block), 7);
    EXPECT_EQ(strata_mark_stream(&block), 0);
}

/* Of two the later count stays; the stream too, unless both count and differ. */
TEST(marks, merge_to_what_covers_both) {
    static const struct {
        uint64_t own, its, waited, count;
        uint32_t own_stream, its_stream, stream;
    } cases[] = {
        {5, 6, 0, 6, 1, 1, 1}, {6, 5, 0, 6, 1, 1, 1}, {5, 6, 0, 6, 1, 2, 0}, {6, 5, 0, 6, 2, 1, 0},
        {5, 6, 5, 6, 1, 2, 2}, {6, 5, 5, 6, 2, 1, 2}, {5, 6, 6, 5, 1, 2, 1}, {6, 7, 5, 7, 0, 2, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strata_record_t own = {.size = 1}, its = {.size = 1};
        strata_mark(&own, cases[i].own, cases[i].own_stream);
        strata_mark(&its, cases[i].its, cases[i].its_stream);
        strata_mark_merge(&own, &its, cases[i].waited);
        EXPECT_EQ(strata_mark_count(&own), cases[i].count);
        EXPECT_EQ(strata_mark_stream(&own), cases[i].stream);
    }
}

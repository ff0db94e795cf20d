#include "allocation/mechanism/ranges.h"

#include "tests/harness/test.h"

enum { UNITS = 300 };

static uint64_t next(uint64_t *random) {
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return *random >> 33;
}

/* Every question has the answer of a plain array, one word a unit (0: not known). */
static void compare(const strata_ranges_t *ranges, const uint64_t *words) {
    for (uint64_t from = 0; from < UNITS && !strata_test_has_failed(); from += 7)
        for (uint64_t to = from + 1; to <= UNITS && to < from + 40; to++)
            for (uint64_t word = 1; word <= 3; word++) {
                bool all = true;
                for (uint64_t u = from; u < to; u++) all = all && words[u] == word;
                EXPECT_EQ(strata_ranges_have(ranges, from, to, word), all);
            }
}

#define TEST_RANGES(name)                                                                                                          \
    TEST_WITH(ranges, name, strata_ranges_t, ranges, strata_ranges_destroy, ASSERT_OK(strata_ranges_init(ranges, 1024)))

TEST_RANGES(answers_as_a_plain_array_does) {
    uint64_t words[UNITS] = {0}, random = 9;
    for (int i = 0; i < 1500 && !strata_test_has_failed(); i++) {
        uint64_t from = next(&random) % UNITS, to = from + 1 + next(&random) % 30, word = 1 + next(&random) % 3;
        if (to > UNITS) to = UNITS;
        strata_ranges_set(ranges, from, to, word);
        for (uint64_t u = from; u < to; u++) words[u] = word;
        EXPECT_OK(strata_ranges_validate(ranges));
        if (i % 50 == 0) compare(ranges, words);
    }
    uint32_t runs = 0;
    for (int u = 0; u < UNITS; u++) runs += words[u] != 0 && (u == 0 || words[u] != words[u - 1]);
    EXPECT_EQ(ranges->count, runs);
    strata_ranges_clear(ranges);
    EXPECT_EQ(ranges->count, 0);
    EXPECT_FALSE(strata_ranges_have(ranges, 5, 6, words[5]));
    EXPECT_OK(strata_ranges_validate(ranges));
}

/* Without nodes ranges are forgotten: nothing is said that was not set. */
TEST_RANGES(used_up_nodes_make_nothing_up) {
    ranges->nodes.capacity = 6;
    uint64_t words[UNITS] = {0}, random = 4;
    for (int i = 0; i < 500; i++) {
        uint64_t from = next(&random) % (UNITS - 20), to = from + 1 + next(&random) % 20, word = 1 + next(&random) % 3;
        strata_ranges_set(ranges, from, to, word);
        for (uint64_t u = from; u < to; u++) words[u] = word;
        EXPECT_OK(strata_ranges_validate(ranges));
        EXPECT_LE(ranges->count, 5);
        for (uint64_t u = 0; u < UNITS; u++)
            for (word = 1; word <= 3; word++)
                if (strata_ranges_have(ranges, u, u + 1, word)) EXPECT_EQ(words[u], word);
    }
}

TEST_RANGES(validate_finds_what_was_broken) {
    for (uint64_t i = 0; i < 50; i++) strata_ranges_set(ranges, i * 10, i * 10 + 5, i);
    EXPECT_OK(strata_ranges_validate(ranges));
    strata_range_t *root = strata_node(&ranges->nodes, ranges->root), whole = *root;
    root->to = root->from;
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_ranges_validate(ranges));
    *root = whole;
    root->to += 10;
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_ranges_validate(ranges));
    *root = whole;
    root->priority = 0;
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_ranges_validate(ranges));
    *root = whole;
    ranges->count++;
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_ranges_validate(ranges));
    ranges->count--;
    EXPECT_OK(strata_ranges_validate(ranges));
}

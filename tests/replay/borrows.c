/* Tests the lists of borrows entry by entry. */
#include "lab/replay/run/borrows.h"

#include "tests/harness/test.h"

static void expect_streams(strata_borrows_t *borrows, uint32_t lifetime, const uint32_t *streams, size_t count) {
    size_t at = 0;
    for (uint32_t entry = borrows->first[lifetime]; entry != STRATA_BORROWS_END; entry = borrows->all[entry].next, at++) {
        ASSERT_LT(at, count);
        EXPECT_EQ(borrows->all[entry].stream, streams[at]);
    }
    EXPECT_EQ(at, count);
}

TEST(borrows, are_kept_by_lifetime) {
    strata_borrows_t borrows;
    bool added = false;
    uint32_t stream = 99;
    ASSERT_OK(strata_borrows_begin(&borrows, 3));
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_OK(strata_borrows_add(&borrows, 1, i, &added));
        EXPECT_TRUE(added);
        EXPECT_OK(strata_borrows_add(&borrows, 1, i, &added));
        EXPECT_FALSE(added);
    }
    EXPECT_OK(strata_borrows_add(&borrows, 3, 1, &added));
    EXPECT_TRUE(added);
    expect_streams(&borrows, 1, (const uint32_t[]){2, 1, 0}, 3);
    expect_streams(&borrows, 3, (const uint32_t[]){1}, 1);
    expect_streams(&borrows, 0, NULL, 0);
    EXPECT_TRUE(strata_borrows_remove(&borrows, 1, 1));
    EXPECT_FALSE(strata_borrows_remove(&borrows, 1, 1));
    EXPECT_FALSE(strata_borrows_remove(&borrows, 2, 1));
    expect_streams(&borrows, 1, (const uint32_t[]){2, 0}, 2);
    EXPECT_TRUE(strata_borrows_pop(&borrows, 1, &stream));
    EXPECT_EQ(stream, 2);
    EXPECT_TRUE(strata_borrows_pop(&borrows, 1, &stream));
    EXPECT_EQ(stream, 0);
    EXPECT_FALSE(strata_borrows_pop(&borrows, 1, &stream));
    EXPECT_EQ(stream, 0);
    expect_streams(&borrows, 3, (const uint32_t[]){1}, 1);
    strata_borrows_end(&borrows);
}

/* Released entries are reused, for any number of borrows in a trace. */
TEST(borrows, entries_are_used_again) {
    strata_borrows_t borrows;
    bool added;
    uint32_t stream;
    ASSERT_OK(strata_borrows_begin(&borrows, 1));
    for (uint32_t i = 0; i < 500; i++) {
        EXPECT_OK(strata_borrows_add(&borrows, i % 2, i, &added));
        EXPECT_OK(strata_borrows_add(&borrows, i % 2, i + 1, &added));
        EXPECT_TRUE(strata_borrows_remove(&borrows, i % 2, i));
        EXPECT_TRUE(strata_borrows_pop(&borrows, i % 2, &stream));
        EXPECT_EQ(stream, i + 1);
    }
    EXPECT_EQ(borrows.count, 3); /* the unused first entry and two more */
    strata_borrows_end(&borrows);
}

/* New lifetimes get empty lists, and existing lists stay. */
TEST(borrows, grow_with_the_lifetimes) {
    strata_borrows_t borrows;
    bool added;
    ASSERT_OK(strata_borrows_begin(&borrows, 1));
    EXPECT_OK(strata_borrows_add(&borrows, 0, 5, &added));
    ASSERT_OK(strata_borrows_grow(&borrows, 2, 1000));
    expect_streams(&borrows, 0, (const uint32_t[]){5}, 1);
    for (uint32_t i = 1; i < 1000; i++) expect_streams(&borrows, i, NULL, 0);
    strata_borrows_end(&borrows);
}

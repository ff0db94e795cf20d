/* The validator finds what was planted, and lets through what is a plan. */
#include <stdlib.h>

#include "platform/status.h"
#include "tests/planning/plans.h"

static const strata_plan_buffer_t three[] = {
    {.lower = 0, .upper = 4, .size = 100},
    {.lower = 2, .upper = 6, .size = 50},
    {.lower = 4, .upper = 8, .size = 100},
};

static void expect_wrong(const strata_plan_buffer_t *buffers, size_t count, const uint64_t *offsets, const char *what) {
    EXPECT_SAYS(STRATA_E_CORRUPT, strata_plan_check(buffers, count, offsets, NULL), what);
}

TEST(plan_check, a_plan_is_let_through_with_its_peak) {
    uint64_t peak = 0;
    EXPECT_OK(strata_plan_check(three, 3, (const uint64_t[]){0, 100, 0}, &peak));
    EXPECT_EQ(peak, 150);
    EXPECT_OK(strata_plan_check(three, 3, (const uint64_t[]){50, 0, 1000}, &peak));
    EXPECT_EQ(peak, 1100);
    EXPECT_OK(strata_plan_check(NULL, 0, NULL, &peak));
    EXPECT_EQ(peak, 0);
}

TEST(plan_check, one_shared_byte_is_found) {
    expect_wrong(three, 3, (const uint64_t[]){0, 99, 0}, "buffers 0 and 1 share bytes: one ends at 100, the other begins at 99");
    expect_wrong(three, 3, (const uint64_t[]){0, 100, 149}, "buffers 1 and 2 share bytes");
    expect_wrong(three, 3, (const uint64_t[]){49, 0, 1000}, "buffers 1 and 0 share bytes");
    expect_wrong(three, 3, (const uint64_t[]){0, 0, 200}, "share bytes");
    expect_wrong(three, 3, (const uint64_t[]){UINT64_MAX, 0, 0}, "buffer 0 has no offset");
}

TEST(plan_check, alignment_and_fixed_offsets_are_held) {
    strata_plan_buffer_t b[] = {{.upper = 1, .size = 8, .alignment = 16},
                                {.upper = 1, .size = 8, .offset = 32, .flags = STRATA_PLAN_FIXED}};
    EXPECT_OK(strata_plan_check(b, 2, (const uint64_t[]){16, 32}, NULL));
    expect_wrong(b, 2, (const uint64_t[]){8, 32}, "buffer 0 is at 8, which is not a multiple of 16");
    expect_wrong(b, 2, (const uint64_t[]){0, 48}, "buffer 1 is at 48, but is fixed at 32");
}

TEST(plan_check, what_takes_no_memory_shares_nothing) {
    strata_plan_buffer_t b[] = {
        {.upper = 4, .size = 8}, {.upper = 4, .size = 0}, {.upper = 4, .size = 8, .flags = STRATA_PLAN_REMOVED}};
    EXPECT_OK(strata_plan_check(b, 3, (const uint64_t[]){0, 0, 0}, NULL));
}

TEST(plan_check, branches_of_a_fork_share_nothing_whatever_their_times) {
    strata_plan_buffer_t b[] = {{.lower = 0, .upper = 1, .size = 8, .fork = 1, .branch = 1},
                                {.lower = 4, .upper = 5, .size = 8, .fork = 1, .branch = 2},
                                {.lower = 8, .upper = 9, .size = 8, .fork = 1, .branch = 1},
                                {.lower = 12, .upper = 13, .size = 8, .fork = 2, .branch = 7}};
    EXPECT_OK(strata_plan_check(b, 4, (const uint64_t[]){0, 8, 0, 0}, NULL));
    expect_wrong(b, 4, (const uint64_t[]){0, 7, 0, 0}, "share bytes");
    expect_wrong(b, 4, (const uint64_t[]){0, 8, 9, 0}, "buffers 1 and 2 share bytes");
    expect_wrong(b, 4, (const uint64_t[]){20, 16, 12, 0}, "share bytes");
}

TEST(plan_check, buffers_that_cannot_be_are_refused) {
    uint64_t offset = 0;
    strata_plan_buffer_t b = {.lower = 3, .upper = 3, .size = 8};
    EXPECT_SAYS(STRATA_E_INVALID, strata_plan_check(&b, 1, &offset, NULL), "buffer 0 lives from 3 to 3");
    b = (strata_plan_buffer_t){.upper = 3, .size = UINT64_C(1) << 49};
    EXPECT_SAYS(STRATA_E_INVALID, strata_plan_check(&b, 1, &offset, NULL), "2^48");
    b = (strata_plan_buffer_t){.upper = 3, .size = 1, .alignment = 24};
    EXPECT_SAYS(STRATA_E_INVALID, strata_plan_check(&b, 1, &offset, NULL), "alignment 24");
    b = (strata_plan_buffer_t){.upper = 3, .size = 1, .flags = 64};
    EXPECT_SAYS(STRATA_E_INVALID, strata_plan_check(&b, 1, &offset, NULL), "flags 0x40");
    b = (strata_plan_buffer_t){.upper = 3, .size = 1, .flags = STRATA_PLAN_FIXED, .offset = 9, .alignment = 8};
    EXPECT_SAYS(STRATA_E_INVALID, strata_plan_check(&b, 1, &offset, NULL), "fixed at 9");
    EXPECT_SAYS(STRATA_E_LIMIT, strata_plan_check(&b, STRATA_PLAN_BUFFERS + 1, &offset, NULL), "buffers");
}

/* The rule written out: every pair. */
static bool naive_is_plan(const strata_plan_buffer_t *b, size_t count, const uint64_t *o) {
    for (size_t i = 0; i < count; i++) {
        if (b[i].alignment && o[i] % b[i].alignment) return false;
        if ((b[i].flags & STRATA_PLAN_FIXED) && o[i] != b[i].offset) return false;
        for (size_t k = 0; k < i; k++) {
            bool meet = (b[i].lower < b[k].upper && b[k].lower < b[i].upper) ||
                        (b[i].fork && b[i].fork == b[k].fork && b[i].branch != b[k].branch);
            if (meet && o[i] < o[k] + b[k].size && o[k] < o[i] + b[i].size) return false;
        }
    }
    return true;
}

TEST(plan_check, it_agrees_with_the_rule_written_out) {
    plans_random_t random = {1};
    strata_plan_buffer_t b[12];
    uint64_t o[12];
    size_t plans = 0, wrong = 0;
    for (int round = 0; round < 20000; round++) {
        size_t count = 1 + plans_draw(&random, 12);
        plans_shape_t shape = {.times = 1 + plans_draw(&random, 20), .sizes = 8, .alignments = 10, .fixed = 5, .forks = 30};
        plans_random_buffers(&random, &shape, b, count);
        for (size_t i = 0; i < count; i++) o[i] = b[i].flags ? b[i].offset : plans_draw(&random, 60);
        bool is = naive_is_plan(b, count, o);
        plans += is;
        wrong += !is;
        EXPECT_EQ(strata_plan_check(b, count, o, NULL) == STRATA_OK, is);
    }
    EXPECT_GT(plans, 1000);
    EXPECT_GT(wrong, 1000);
}

/* Any one buffer of a good plan moved by one unit into another is seen. */
TEST(plan_check, overlaps_planted_into_a_large_plan_are_found) {
    strata_plan_table_t table CLOSED_BY(plans_cleanup) = plans_instance("minimalloc-C");
    ASSERT_GT(table.count, 100);
    uint64_t *o = calloc(table.count, sizeof *o);
    plans_make("exact", table.buffers, table.count, o);
    size_t found = 0;
    for (size_t i = 0; i < table.count; i++) {
        uint64_t kept = o[i];
        o[i] = kept >= 1024 ? kept - 1024 : kept + 1024;
        bool is = naive_is_plan(table.buffers, table.count, o);
        EXPECT_EQ(strata_plan_check(table.buffers, table.count, o, NULL) == STRATA_OK, is);
        found += !is;
        o[i] = kept;
    }
    EXPECT_GT(found, 100);
    free(o);
}

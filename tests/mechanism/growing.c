#include "platform/host/growing.h"

#include <string.h>

#include "platform/host/host_memory.h"
#include "tests/harness/address_space.h"
#include "tests/mechanism/mechanism.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

#define TEST_GROWING(name, ...)                                                                                                    \
    TEST_WITH(growing, name, strata_growing_t, range, strata_growing_release, ASSERT_OK(strata_growing_reserve(range, __VA_ARGS__)))

TEST_GROWING(begins_small_and_stays_where_it_is, 4 * KIB, 64 * MIB) {
    unsigned char *memory = range->memory;
    EXPECT_GE(strata_growing_usable(range), 4 * KIB);
    memory[4 * KIB - 1] = 7;
    ASSERT_OK(strata_growing_grow(range, 64 * MIB));
    EXPECT_EQ(strata_growing_usable(range), 64 * MIB);
    EXPECT_EQ(range->memory, (void *)memory);
    EXPECT_EQ(memory[4 * KIB - 1], 7);
    EXPECT_EQ(memory[64 * MIB - 1], 0);
    EXPECT_EQ(strata_growing_max(range), 64 * MIB);
    strata_growing_release(range);
}

TEST(growing, is_zero_where_another_range_was) {
    strata_growing_t range;
    for (int life = 0; life < 3; life++) {
        ASSERT_OK(strata_growing_reserve(&range, 8 * KIB, 2 * MIB));
        unsigned char *memory = range.memory;
        for (int i = 0; i < 8 * KIB; i += 512) EXPECT_EQ(memory[i], 0);
        memset(memory, 0xaa, 8 * KIB);
        strata_growing_release(&range);
    }
}

TEST(growing, ranges_do_not_meet) {
    enum { RANGES = 64 };
    strata_growing_t ranges[RANGES];
    for (int i = 0; i < RANGES; i++) ASSERT_OK(strata_growing_reserve(&ranges[i], 4 * KIB, (size_t)(64 * KIB) << i % 6));
    for (int i = 0; i < RANGES; i++) {
        ASSERT_OK(strata_growing_grow(&ranges[i], (size_t)(64 * KIB) << i % 6));
        memset(ranges[i].memory, i, strata_growing_usable(&ranges[i]));
    }
    for (int i = 0; i < RANGES; i++) {
        const unsigned char *memory = ranges[i].memory;
        for (size_t at = 0; at < strata_growing_usable(&ranges[i]); at += 1000) EXPECT_EQ(memory[at], i);
        strata_growing_release(&ranges[i]);
    }
}

/* What wants to grow under a lock does when somebody holds none. */
TEST_GROWING(grows_what_wanted_to, 4 * KIB, 64 * MIB) {
    size_t before = strata_growing_usable(range);
    if (before == 64 * MIB) TEST_SKIP("address space comes in one piece here");
    strata_growing_mark(range, false);
    strata_growing_mark(range, false);
    EXPECT_EQ(strata_growing_usable(range), before);
    strata_growing_grow_if_marked();
    EXPECT_GT(strata_growing_usable(range), before);
    EXPECT_EQ(atomic_load(&strata_growing_marked), NULL);
}

TEST(growing, one_that_ended_before_it_grew_is_passed_over) {
    strata_growing_t first, second;
    ASSERT_OK(strata_growing_reserve(&first, 4 * KIB, 64 * MIB));
    ASSERT_OK(strata_growing_reserve(&second, 4 * KIB, 64 * MIB));
    size_t before = strata_growing_usable(&second);
    if (before == 64 * MIB) TEST_SKIP("address space comes in one piece here");
    strata_growing_mark(&first, false);
    strata_growing_mark(&second, false);
    strata_growing_release(&first);
    EXPECT_OK(strata_growing_grow_marked());
    EXPECT_GT(strata_growing_usable(&second), before);
    strata_growing_release(&second);
}

TEST(growing, a_refusal_leaves_all_as_it_was) {
    strata_growing_t range;
    for (int k = 1; k <= 2; k++) {
        strata_host_fail_at((uint64_t)k, 0);
        EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_growing_reserve(&range, 4 * KIB, MIB));
        strata_host_fail_at(0, 0);
    }
    ASSERT_OK(strata_growing_reserve(&range, 4 * KIB, MIB));
    size_t before = strata_growing_usable(&range);
    if (before == MIB) TEST_SKIP("address space comes in one piece here");
    strata_growing_mark(&range, true);
    strata_host_fail_at(1, 1);
    EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_growing_grow(&range, MIB));
    strata_status_t status = STRATA_E_LIMIT;
    EXPECT_FALSE(strata_growing_try_again(&status));
    EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    strata_host_fail_at(0, 0);
    EXPECT_EQ(strata_growing_usable(&range), before);
    status = STRATA_E_LIMIT;
    EXPECT_FALSE(strata_growing_try_again(&status)); /* told once */
    EXPECT_EQ(status, STRATA_E_LIMIT);
    strata_growing_mark(&range, true);
    EXPECT_TRUE(strata_growing_try_again(&status));
    EXPECT_GT(strata_growing_usable(&range), before);
    strata_growing_release(&range);
}

/* A range never grows beyond its limit or below its least size. All of its pages are unmapped with it. */
TEST(growing, keeps_to_its_bounds) {
    static const struct {
        size_t least, most, grown, usable;
    } rows[] = {{4 * KIB, MIB, MIB + 1, MIB}, {64 * KIB, 4 * KIB, MIB, 64 * KIB}, {1, 1, 4 * KIB + 1, 4 * KIB}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_growing_t range;
        uint64_t mapped = strata_host_live().mapped;
        ASSERT_OK(strata_growing_reserve(&range, rows[i].least, rows[i].most));
        EXPECT_EQ(strata_growing_max(&range), rows[i].usable);
        ASSERT_OK(strata_growing_grow(&range, rows[i].most));
        EXPECT_OK(strata_growing_grow(&range, rows[i].grown));
        EXPECT_EQ(strata_growing_usable(&range), rows[i].usable);
        EXPECT_EQ(strata_host_live().mapped, mapped + rows[i].usable);
        strata_growing_release(&range);
        EXPECT_EQ(strata_host_live().mapped, mapped);
    }
}

TEST(growing, one_that_ended_maps_nothing_more) {
    strata_growing_t range;
    uint64_t mapped = strata_host_live().mapped;
    ASSERT_OK(strata_growing_reserve(&range, 4 * KIB, 64 * MIB));
    strata_growing_mark(&range, false);
    strata_growing_release(&range);
    EXPECT_OK(strata_growing_grow_marked());
    EXPECT_EQ(strata_host_live().mapped, mapped);
}

/* What a process that may map no more asks for in vain takes no window from what it asks for later. */
TEST(growing, refusals_use_up_no_window) {
    const size_t most = (size_t)1 << 40;
    strata_growing_t range;
    struct rlimit before;
    ASSERT_OK(strata_growing_reserve(&range, 4 * KIB, most));
    bool steps = strata_growing_usable(&range) < strata_growing_max(&range);
    if (!steps || !bound_address_space(16 * MIB, &before)) {
        strata_growing_release(&range);
        TEST_SKIP("address space comes in one piece here, or cannot be bounded");
    }
    strata_growing_t refused = {NULL, NULL};
    int refusals = 0;
    while (refusals < 100 && strata_growing_reserve(&refused, 64 * MIB, most) == STRATA_E_HOST_MEMORY) refusals++;
    unbound_address_space(&before);
    EXPECT_EQ(refusals, 100);
    strata_growing_t second;
    ASSERT_OK(strata_growing_reserve(&second, 4 * KIB, most));
    EXPECT_LT(strata_growing_usable(&second), strata_growing_max(&second));
    strata_growing_release(&second);
    strata_growing_release(&range);
}

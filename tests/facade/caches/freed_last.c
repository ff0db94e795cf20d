/* The block that was freed last stands apart in its cache until the next request: one of its size gets it as it is, and to everybody else
 * it is free memory like any other. */
#include "allocation/cache/policies/auto_growth/auto_growth_state.h"
#include "tests/facade/support/fixture.h"

#define SIZE (64ull << 10)
#define ANY                                                                                                                        \
    "strategy: any\nstack: [stream_safe, auto_growth: {chunk_size: 1MiB, order: any}, system]\n",                                  \
        "strategy: vmm\nstack: [stream_safe, auto_growth_vmm, vmm]\n"

/* Three blocks with live ones between them, so that none merges with another. */
static void three(rig_t *rig, strata_block_t blocks[3], strata_block_t between[3]) {
    for (int i = 0; i < 3; i++) {
        blocks[i] = rig_allocate(rig, NULL, SIZE);
        between[i] = rig_allocate(rig, NULL, SIZE);
    }
}

TEST_RIG(freed_last, comes_back_for_its_size, 0, ANY) {
    strata_block_t blocks[3], between[3];
    three(rig, blocks, between);
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    for (int i = 0; i < 3; i++) {
        strata_block_t again = rig_allocate(rig, NULL, SIZE);
        EXPECT_EQ(again.ptr, blocks[2].ptr);
        EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, blocks[2].ref));
        EXPECT_OK(strata_free(rig->s, again.ref));
        EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, again.ref));
    }
    RIG_FREE(rig, between[0], between[1], between[2]);
}

/* Sizes that round to the same are the same, and what was asked is noted anew. */
TEST_RIG(freed_last, tells_what_was_asked_this_time, 0, ANY) {
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_free(rig->s, block.ref));
    strata_block_t less = rig_allocate(rig, NULL, SIZE - 100);
    EXPECT_EQ(less.ptr, block.ptr);
    EXPECT_EQ(rig_figures(rig).requested_bytes, SIZE - 100);
    EXPECT_EQ(rig_figures(rig).allocated_bytes, SIZE);
    EXPECT_EQ(rig_figures(rig).cache_hits, 1);
    EXPECT_OK(strata_free(rig->s, less.ref));
    EXPECT_EQ(rig_figures(rig).requested_bytes, 0);
}

/* The nearest fit is exact there. */
TEST_RIG(freed_last, comes_back_before_others_only_where_any_fit_will_do, 0,
         "strategy: exact\nstack: [stream_safe, auto_growth: {chunk_size: 1MiB, order: address}, system]\n") {
    strata_block_t blocks[3], between[3];
    three(rig, blocks, between);
    for (int i = 2; i >= 0; i--) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    strata_block_t lowest = rig_allocate(rig, NULL, SIZE);
    for (int i = 0; i < 3; i++) EXPECT_LE((uintptr_t)lowest.ptr, (uintptr_t)blocks[i].ptr);
    RIG_FREE(rig, lowest, between[0], between[1], between[2]);
}

/* It merges with its neighbours for whoever asks for more, and is cut for whoever asks for less. */
TEST_RIG(freed_last, is_a_part_of_what_lies_around_it, 0, ANY) {
    strata_block_t a = rig_allocate(rig, NULL, SIZE), b = rig_allocate(rig, NULL, SIZE), c = rig_allocate(rig, NULL, SIZE);
    uint64_t reserved = rig_figures(rig).reserved_bytes, growths = rig_figures(rig).growths;
    RIG_FREE(rig, a, c, b);
    strata_block_t all = rig_allocate(rig, NULL, 3 * SIZE);
    EXPECT_OK(strata_free(rig->s, all.ref));
    strata_block_t less = rig_allocate(rig, NULL, SIZE / 2), rest = rig_allocate(rig, NULL, 5 * SIZE / 2);
    EXPECT_EQ(less.size, SIZE / 2);
    EXPECT_EQ(rig_figures(rig).allocated_bytes, 3 * SIZE);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, reserved);
    EXPECT_EQ(rig_figures(rig).growths, growths);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, less, rest);
}

/* A request that may not grow is not served by the quick way, which merges by itself. */
TEST_RIG(freed_last, is_a_part_for_whoever_takes_the_long_way, 0,
         "strategy: any\nstack: [stream_safe, auto_growth: {chunk_size: 1MiB, order: any}, system]\n") {
    strata_block_t a = rig_allocate(rig, NULL, SIZE), b = rig_allocate(rig, NULL, SIZE), rest;
    uint64_t left = rig_figures(rig).reserved_bytes - 2 * SIZE;
    rest = rig_allocate(rig, NULL, left);
    RIG_FREE(rig, a, b);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 2 * SIZE, .flags = STRATA_NO_GROW};
    strata_block_t both;
    ASSERT_OK(strata_allocate_with(rig->s, rig->gpu, NULL, &options, &both));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, left + 2 * SIZE);
    RIG_FREE(rig, both, rest);
}

TEST_RIG(freed_last, is_idle_and_goes_back, 0, ANY) {
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_free(rig->s, block.ref));
    uint64_t reserved = rig_figures(rig).reserved_bytes;
    EXPECT_EQ(rig_cached(rig), reserved); /* first: a check of the whole joins it */
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_EQ(rig_release(rig), reserved);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
}

TEST_RIG(freed_last, serves_no_other_stream, 0, ANY) {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, one, SIZE);
    rig_work(rig, one, 1000 * 1000, block.ref);
    EXPECT_OK(strata_free(rig->s, block.ref));
    strata_block_t other = rig_allocate(rig, two, SIZE);
    EXPECT_NE(other.ptr, block.ptr);
    rig_work(rig, two, 1000 * 1000, other.ref);
    EXPECT_OK(strata_free(rig->s, other.ref));
    strata_block_t again = rig_allocate(rig, one, SIZE);
    EXPECT_EQ(again.ptr, block.ptr);
    EXPECT_OK(strata_free(rig->s, again.ref));
}

/* What another stream still uses waits, as ever. */
TEST_RIG(freed_last, is_none_that_another_stream_has_borrowed, 0, ANY) {
    strata_stream_t borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_record_stream(rig->s, block.ref, borrower));
    rig_work(rig, borrower, 1000 * 1000, block.ref);
    EXPECT_OK(strata_free(rig->s, block.ref));
    strata_block_t next = rig_allocate(rig, NULL, SIZE);
    EXPECT_NE(next.ptr, block.ptr);
    EXPECT_OK(strata_free(rig->s, next.ref));
}

/* By pointer the way is the same. */
TEST_RIG(freed_last, is_found_by_its_pointer_once_it_lives_again, 0, ANY) {
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_free_pointer(rig->s, block.ptr));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig->s, block.ptr));
    strata_block_t again = rig_allocate(rig, NULL, SIZE);
    EXPECT_EQ(again.ptr, block.ptr);
    EXPECT_OK(strata_free_pointer(rig->s, again.ptr));
}

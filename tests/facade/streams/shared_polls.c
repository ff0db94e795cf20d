/* `poll: seldom`: frees of borrowed blocks share their queries, and nothing waits for long that somebody could use. */
#include "tests/facade/support/fixture.h"

enum { PAIRS = 320, LONG = 1000 * 1000 };

#define SELDOM "retry, stream_safe: {poll: seldom}, auto_growth: {chunk_size: 64MiB}, system"

static void lend_and_free(rig_t *rig, const strata_block_t *block, strata_stream_t borrower) {
    EXPECT_OK(strata_record_stream(rig->s, block->ref, borrower));
    EXPECT_OK(strata_free(rig->s, block->ref));
}

static uint64_t queries(rig_t *rig) { return rig_calls(rig, STRATA_CALL_event_query); }

TEST_RIG(seldom, a_borrowed_pair_takes_one_record_and_a_tenth_of_a_query, 0, "strata", "strata-malloc",
         "strategy: s\nstack: [" SELDOM "]\n") {
    strata_stream_t borrower = rig_stream(rig);
    for (int i = 0; i < PAIRS; i++) {
        strata_block_t block = rig_allocate(rig, NULL, 64 << 10);
        rig_work(rig, borrower, 1000, block.ref);
        lend_and_free(rig, &block, borrower);
        rig_advance(rig, 2000);
    }
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_event_record), PAIRS);
    EXPECT_LE(queries(rig), PAIRS / 10);
    EXPECT_LE(rig_figures(rig).deferred_bytes, 32 * (64 << 10));
}

/* Before a cache grows everything is asked that could serve the request. */
TEST_STACK(seldom, a_miss_finds_what_has_passed, 0, SELDOM) {
    strata_stream_t borrower = rig_stream(rig);
    strata_block_t most = rig_allocate(rig, NULL, 61 * MIB), block = rig_allocate(rig, NULL, 3 * MIB);
    rig_work(rig, borrower, LONG, block.ref);
    lend_and_free(rig, &block, borrower);
    rig_advance(rig, 2 * LONG);
    strata_block_t next = rig_allocate(rig, NULL, 3 * MIB);
    EXPECT_EQ(next.ptr, block.ptr);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 64 * MIB);
    RIG_FREE(rig, most, next);
}

/* What cannot help is not asked: more is wanted than waits. */
TEST_STACK(seldom, a_miss_does_not_ask_for_less_than_it_wants, 0, SELDOM) {
    strata_stream_t borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    lend_and_free(rig, &block, borrower);
    strata_block_t large = rig_allocate(rig, NULL, 64 * MIB);
    EXPECT_EQ(queries(rig), 0);
    RIG_FREE(rig, large);
}

/* A large share of the memory does not wait for the next miss: the next request asks, though it could be served without. */
TEST_STACK(seldom, much_is_asked_for_by_the_next_request, 0, SELDOM) {
    strata_stream_t borrower = rig_stream(rig);
    strata_block_t large = rig_allocate(rig, NULL, 16 * MIB);
    lend_and_free(rig, &large, borrower);
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 16 * MIB);
    strata_block_t small = rig_allocate(rig, NULL, MIB);
    EXPECT_EQ(queries(rig), 1);
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
    RIG_FREE(rig, small);
}

/* The way of a hit stays open meanwhile. */
TEST_STACK(seldom, a_hit_does_not_notice_what_waits, 0, SELDOM) {
    strata_stream_t borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    rig_work(rig, borrower, LONG, block.ref);
    lend_and_free(rig, &block, borrower);
    EXPECT_EQ(rig_stack(rig, NULL)->attention_allocate, 0);
    EXPECT_OK(strata_validate(rig->s));
    strata_block_t next = rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_NE(next.ptr, block.ptr);
    EXPECT_EQ(queries(rig), 0);
    RIG_FREE(rig, next);
}

/* A release asks for everything first. */
TEST_STACK(seldom, a_release_finds_what_has_passed, 0, SELDOM) {
    strata_stream_t borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    lend_and_free(rig, &block, borrower);
    uint64_t released = 0;
    EXPECT_OK(strata_release(rig->s, rig->gpu, &released));
    EXPECT_EQ(released, 64 * MIB);
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
}

/* Tests reused names and the limits of a trace. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "trace/stacks.h"

#define HEADER "op,id,size,stream,time_us\n"

static strata_status_t load(const char *text, strata_trace_t **trace) {
    return strata_trace_load(write_text("reused.csv", text), trace);
}

/* A stream can borrow a block again after it ended a borrow, and each end closes one borrow. */
TEST(trace_reused, a_borrow_begins_and_ends_as_often_as_it_is_written) {
#define AGAIN "borrow,1,,1,1\nunborrow,1,,1,1\n"
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(load(HEADER "alloc,1,8,0,0\n" AGAIN AGAIN AGAIN "free,1,,0,3\n", &trace));
    EXPECT_EQ(trace->count, 8);
    strata_trace_t *twice CLOSED_BY(trace_cleanup) = NULL;
    EXPECT_SAYS(STRATA_E_FORMAT, load(HEADER "alloc,1,8,0,0\n" AGAIN AGAIN "unborrow,1,,1,3\n", &twice), "reused.csv:7:");
    EXPECT_CONTAINS(strata_last_error()->text, "which does not borrow it");
    /* Borrows of another id or by another stream are independent. */
    strata_trace_t *other CLOSED_BY(trace_cleanup) = NULL;
    EXPECT_SAYS(STRATA_E_FORMAT, load(HEADER "alloc,1,8,0,0\nalloc,2,8,0,0\nborrow,1,,1,1\nunborrow,2,,1,2\n", &other),
                "reused.csv:5:");
    EXPECT_SAYS(STRATA_E_FORMAT, load(HEADER "alloc,1,8,0,0\nborrow,1,,1,1\nunborrow,1,,2,2\n", &other), "reused.csv:4:");
#undef AGAIN
}

/* The maximum number of pools, and one more. */
TEST(trace_reused, the_last_pool) {
    for (size_t more = 0; more < 2; more++) {
        size_t pools = STRATA_TRACE_POOLS + more;
        strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
        char *text CLOSED_BY(text_cleanup) = malloc((pools + 1) * 40);
        ASSERT_TRUE(text);
        size_t length = (size_t)sprintf(text, "op,id,size,stream,time_us,pool\n");
        for (size_t i = 0; i < pools; i++) length += (size_t)sprintf(text + length, "alloc,%zu,8,0,0,%zu\n", i, 2 * i);
        if (more > 0) {
            EXPECT_SAYS(STRATA_E_FORMAT, load(text, &trace), "more than 4000 pools");
            continue;
        }
        ASSERT_OK(load(text, &trace));
        EXPECT_EQ(trace->pool_count, STRATA_TRACE_POOLS);
        EXPECT_EQ(trace->pools[STRATA_TRACE_POOLS - 1], 2 * (STRATA_TRACE_POOLS - 1));
        EXPECT_EQ(trace->events[STRATA_TRACE_POOLS - 1].pool, STRATA_TRACE_POOLS - 1);
    }
}

/* Stacks are kept up to the maximum. Later rows have no stack, and nothing fails. */
TEST(trace_reused, the_last_stack) {
    strata_stacks_t stacks = {.count = 0};
    const char *added = NULL;
    char text[16];
    for (int i = 0; i < STRATA_TRACE_STACKS; i++) {
        snprintf(text, sizeof text, "f%d", i);
        if (strata_stacks_add(&stacks, text, &added) != STRATA_OK || !added) FAIL_TEST("stack %d has no room", i);
    }
    EXPECT_STREQ(added, "f65534");
    EXPECT_OK(strata_stacks_add(&stacks, "beyond", &added));
    EXPECT_EQ(added, NULL);
    EXPECT_EQ(stacks.count, STRATA_TRACE_STACKS);
    strata_stacks_clear(&stacks);
}

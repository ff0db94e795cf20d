/* The stream on which cuda_malloc_async frees what others borrowed: made once, and drawn into no capture. */
#include "tests/facade/support/interleaving.h"

enum { SIZE = 3 * 1024 * 1024 };

typedef struct other {
    rig_t *rig;
    strata_ref_t ref;
} other_t;

static void free_it(void *context) {
    const other_t *other = context;
    EXPECT_OK(strata_free(other->rig->s, other->ref));
}

/* Of two that are made at once one is destroyed again, and the frees stand on the other. */
TEST_RIG(facade_free_streams, two_threads_that_free_at_once_leave_one_stream, 0, "stack: [cuda_malloc_async]") {
    between_t between;
    strata_block_t blocks[2];
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    for (int n = 0; n < 2; n++) {
        blocks[n] = rig_allocate(rig, owner, SIZE);
        rig_borrow(rig, blocks[n].ref, borrower, 1000 * 1000);
    }
    uint64_t made = rig_calls(rig, STRATA_CALL_stream_create), ended = rig_calls(rig, STRATA_CALL_stream_destroy);
    other_t other = {rig, blocks[1].ref};
    between_begin(&between, rig, STRATA_CALL_stream_create, free_it, &other);
    EXPECT_OK(strata_free(rig->s, blocks[0].ref));
    EXPECT_TRUE(between_end(&between));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_stream_create) - made, 2);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_stream_destroy) - ended, 1);
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 2 * SIZE);
    rig_advance(rig, 9 * 1000 * 1000);
    strata_pending_t pending;
    EXPECT_EQ(strata_domain_poll(rig_domain(rig), &pending), 2 * SIZE);
}

/* A wait for what was recorded in a capture would draw the free stream in, and end the program's capture. */
TEST_RIG(facade_free_streams, a_captured_borrower_draws_it_into_no_capture, 0, "stack: [cuda_malloc_async]") {
    strata_stream_t owner = rig_stream(rig), captured = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t first = rig_allocate(rig, owner, SIZE), second = rig_allocate(rig, owner, SIZE);
    EXPECT_OK(strata_record_stream(rig->s, first.ref, captured));
    EXPECT_OK(strata_record_stream(rig->s, second.ref, borrower));
    uint64_t waits = rig_calls(rig, STRATA_CALL_stream_wait);
    rig_begin_capture(rig, captured);
    EXPECT_OK(strata_free(rig->s, first.ref));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_stream_wait) - waits, 1); /* for the owner alone */
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, SIZE);
    /* The stream goes on for others meanwhile. */
    EXPECT_OK(strata_free(rig->s, second.ref));
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, SIZE);
    rig_end_capture(rig, captured);
    rig_advance(rig, 9 * 1000 * 1000);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
}

/* Blocks of caching that are given up while their free has the locks open. */
#include "tests/caching/caching.h"
#include "tests/facade/support/interleaving.h"

typedef struct poller {
    rig_t *rig;
    strata_stream_t stream;
    strata_block_t block;
} poller_t;

/* A request polls. */
static void request(void *context) {
    poller_t *poller = context;
    poller->block = rig_allocate(poller->rig, poller->stream, 1000);
}

/* The first borrower's use was captured, which a poll finds out while an event is made for the second one: the block is quarantined, and
 * is not deferred beside. */
TEST(caching_given_up, a_block_that_is_given_up_in_its_free_is_not_deferred_too) {
    between_t between;
    strata_handle_t taken[64];
    uint32_t count = 0;
    RIG(rig, "stack: [caching, system]\n", 0);
    strata_stream_t owner = rig_stream(&rig), captured = rig_stream(&rig), other = rig_stream(&rig);
    strata_events_t *events = &rig_domain(&rig)->events;
    strata_block_t block = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_OK(strata_record_stream(rig.s, block.ref, captured));
    rig_borrow(&rig, block.ref, other, MILLISECOND);
    /* One event is left, for the first. */
    EXPECT_OK(strata_events_ensure(events, 1));
    for (strata_handle_t event; count < 64 && (event = strata_events_acquire(events)) != NULL;) taken[count++] = event;
    ASSERT_TRUE(count > 0 && count < 64);
    strata_events_release(events, taken[--count]);
    rig_begin_capture(&rig, captured);
    poller_t poller = {.rig = &rig, .stream = owner};
    between_begin(&between, &rig, STRATA_CALL_event_create, request, &poller);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_TRUE(between_end(&between));
    rig_end_capture(&rig, captured);
    for (int round = 0; round < 2; round++) {
        EXPECT_EQ(rig_figures(&rig).quarantined_bytes, block.size);
        EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
        EXPECT_EQ(rig_figures(&rig).deferred_frees, 0);
        EXPECT_EQ(caching_of(&rig)->uses.pending_bytes, 0);
        EXPECT_OK(strata_validate(rig.s));
        rig_advance(&rig, 3 * MILLISECOND);
        /* It polls: the second one's use is over, and the block is nobody's all the same. */
        strata_block_t again = rig_allocate(&rig, owner, 5 * MIB);
        EXPECT_NE(again.ptr, block.ptr);
        EXPECT_OK(strata_free(rig.s, again.ref));
    }
    while (count > 0) strata_events_release(events, taken[--count]);
    EXPECT_OK(strata_free(rig.s, poller.block.ref));
}

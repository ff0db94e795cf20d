/* Streams that end: what they leave behind, and handles that the driver gives out again. */
#include "tests/facade/support/fixture.h"
#include "tests/harness/owned.h"

enum { SIZE = 300 * 1024, LONG = 1000 * 1000 };

/* A stream whose handle is `handle`: the simulated driver gives handles out again. */
static strata_stream_t recycled(rig_t *rig, strata_stream_t handle) {
    strata_stream_t stream = rig_stream(rig);
    EXPECT_EQ(stream, handle);
    return stream;
}

TEST_RIG(facade_forget, live_blocks_stay_valid_under_every_strategy, 0, "strata", "paddle", "system") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, stream, SIZE), b = rig_allocate(rig, stream, SIZE);
    strata_stack_t *stack = rig_stack(rig, stream);
    rig_end_stream(rig, stream);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(rig_figures(rig).live_allocations, 2);
    EXPECT_TRUE(stack->open);
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_stream_of(rig->s, a.ref, &stream));
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_free_pointer(rig->s, b.ptr));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, b.ref));
    /* With the last of them the stack ends. */
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_FALSE(stack->open);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
    EXPECT_EQ(rig_domain(rig)->orphans, 0);
}

TEST_RIG(facade_forget, what_it_cached_is_anybodys_once_its_work_is_done, 32 * MIB, "strata") {
    strata_stream_t stream = rig_stream(rig), other = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, stream, SIZE);
    rig_work(rig, stream, LONG, a.ref);
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    strata_block_t early = rig_allocate(rig, other, SIZE);
    EXPECT_NE(early.ptr, a.ptr);
    rig_advance(rig, 2 * LONG);
    uint64_t mallocs = rig_calls(rig, STRATA_CALL_malloc);
    strata_block_t large = rig_allocate(rig, other, 15 * MIB);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), mallocs);
    /* It goes home to the forgotten stream's stack, and with the last block that stack ends. */
    rig_work(rig, other, LONG, large.ref);
    RIG_FREE(rig, large, early);
    rig_advance(rig, 2 * LONG);
    rig_expect_empty(rig);
}

TEST_RIG(facade_forget, what_it_cached_is_pending_until_its_work_is_done, 0, "strata") {
    strata_pending_t pending;
    strata_stream_t stream = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, stream, SIZE);
    rig_work(rig, stream, LONG, a.ref);
    uint64_t done = strata_sim_stream_end(rig->devices[0], stream), cached = rig_figures(rig).reserved_bytes;
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_EQ(strata_domain_poll(rig_domain(rig), &pending), 0);
    EXPECT_EQ(pending.pending_bytes, cached);
    EXPECT_EQ(pending.ready_at, done);
    rig_advance(rig, 2 * LONG);
    EXPECT_EQ(strata_domain_poll(rig_domain(rig), &pending), cached);
    EXPECT_EQ(pending.pending_bytes, 0);
}

TEST_RIG(facade_forget, a_recycled_handle_is_another_stream_with_another_stack, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, stream, SIZE);
    rig_work(rig, stream, LONG, a.ref);
    uint16_t before = strata_ref_home(a.ref);
    rig_end_stream(rig, stream);
    stream = recycled(rig, stream);
    EXPECT_NE(rig_stack(rig, stream)->number, before);
    strata_block_t b = rig_allocate(rig, stream, SIZE);
    EXPECT_NE(strata_ref_home(b.ref), before);
}

TEST_STACK(facade_forget, a_borrow_of_the_old_stream_does_not_stand_for_the_new_one, 0, ASKING) {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, owner, SIZE);
    EXPECT_OK(strata_record_stream(rig->s, a.ref, borrower));
    rig_end_stream(rig, borrower);
    borrower = recycled(rig, borrower);
    rig_borrow(rig, a.ref, borrower, LONG);
    EXPECT_OK(strata_free(rig->s, a.ref));
    strata_block_t b = rig_allocate(rig, owner, SIZE);
    EXPECT_NE(b.ptr, a.ptr);
    rig_advance(rig, 2 * LONG);
    strata_block_t c = rig_allocate(rig, owner, SIZE);
    EXPECT_EQ(c.ptr, a.ptr);
}

TEST_RIG(facade_forget, taking_the_new_streams_borrow_back_leaves_the_old_ones, 0, "strata") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, owner, SIZE);
    rig_borrow(rig, a.ref, borrower, LONG);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, borrower));
    EXPECT_OK(strata_erase_stream(rig->s, a.ref, borrower));
    EXPECT_OK(strata_free(rig->s, a.ref));
    strata_block_t b = rig_allocate(rig, owner, SIZE);
    EXPECT_NE(b.ptr, a.ptr);
}

TEST_RIG(facade_forget, a_borrow_of_a_dead_stream_costs_no_memory, 0, "strata") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, owner, SIZE);
    rig_borrow(rig, a.ref, borrower, LONG);
    /* No event can be had: the host waits instead, and that settles it. */
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_event_record, 1, true, STRATA_E_DEVICE));
    uint64_t done = strata_sim_stream_end(rig->devices[0], borrower);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, borrower));
    EXPECT_GE(strata_sim_now(rig->world), done);
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, borrower));
    uint64_t waits = rig_calls(rig, STRATA_CALL_synchronise);
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_synchronise), waits);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, 0);
    strata_block_t b = rig_allocate(rig, owner, SIZE);
    EXPECT_EQ(b.ptr, a.ptr);
}

TEST_RIG(facade_forget, without_an_event_and_a_wait_its_memory_is_nobodys, 0, "strata-malloc") {
    strata_stream_t stream = rig_stream(rig), other = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, stream, SIZE);
    rig_work(rig, stream, LONG, a.ref);
    EXPECT_OK(strata_free(rig->s, a.ref));
    static const strata_device_call_t calls[] = {STRATA_CALL_event_record, STRATA_CALL_stream_synchronise, STRATA_CALL_synchronise};
    for (int i = 0; i < 3; i++) ASSERT_OK(strata_sim_fail(rig->devices[0], calls[i], 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    strata_sim_clear_faults(rig->devices[0]);
    uint64_t mallocs = rig_calls(rig, STRATA_CALL_malloc);
    (void)rig_allocate(rig, other, SIZE);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), mallocs + 1);
}

TEST(facade_forget, ids_are_asked_for_only_where_they_are_checked) {
    for (uint32_t flags = 0; flags <= STRATA_OPEN_CHECK_STREAM_IDS; flags += STRATA_OPEN_CHECK_STREAM_IDS) {
        RIG_BY(rig, rig_open_with(&rig, "strata", &(strata_sim_options_t){.devices = 1}, flags));
        strata_stream_t stream = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, stream, 1000);
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_stream_id) > 0, flags != 0);
    }
}

TEST_STACK(facade_forget, a_block_of_many_streams_outlives_them_all, 0, ASKING) {
    strata_stream_t owner = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, owner, SIZE);
    for (int i = 0; i < 50; i++) {
        strata_stream_t borrower = rig_stream(rig);
        strata_block_t own = rig_allocate(rig, borrower, SIZE);
        rig_borrow(rig, a.ref, borrower, LONG);
        EXPECT_OK(strata_free(rig->s, own.ref));
        rig_end_stream(rig, borrower);
        EXPECT_OK(strata_validate(rig->s));
    }
    EXPECT_OK(strata_free(rig->s, a.ref));
    rig_advance(rig, 100ull * LONG);
    strata_block_t b = rig_allocate(rig, owner, SIZE);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_OK(strata_free(rig->s, b.ref));
    rig_expect_empty(rig);
}

/* Its work goes on, whatever the place: a borrow by it may not end here. */
TEST_RIG(facade_forget, a_default_stream_is_refused_in_every_place, 0, "strata") {
    static const strata_stream_t defaults[] = {NULL, STRATA_STREAM_LEGACY, STRATA_STREAM_PER_THREAD};
    const strata_place_t places[] = {rig->gpu, strata_managed(0), strata_pinned(), strata_host()};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            EXPECT_SAYS(STRATA_E_INVALID, strata_stream_forget(rig->s, places[i], defaults[k]), "never destroyed");
        }
}

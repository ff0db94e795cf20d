/* caching with several streams: whose blocks serve whom, borrows, streams that end. */
#include "tests/caching/caching.h"

TEST(caching_streams, each_stream_has_segments_of_its_own) {
    RIG(rig, "pytorch", 0);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 1000), b = rig_allocate(&rig, two, 1000);
    EXPECT_EQ(caching_reserved(&rig), 4 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t c = rig_allocate(&rig, two, 1000);
    EXPECT_EQ((uintptr_t)c.ptr, (uintptr_t)b.ptr + 1024);
    strata_block_t d = rig_allocate(&rig, one, 1000);
    EXPECT_EQ(d.ptr, a.ptr);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 2);
    RIG_FREE(&rig, b, c, d);
}

TEST(caching_streams, the_fraction_counts_all_streams) {
    RIG_BY(rig, caching_open(&rig, "memory_fraction: 0.5", 0));
    uint64_t available, total;
    EXPECT_OK(strata_device_mem_info(rig.devices[0], &available, &total));
    EXPECT_EQ(caching_of(&rig)->allowed, total / 2);
    caching_of(&rig)->allowed = 48 * MIB;
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 24 * MIB), b = rig_allocate(&rig, two, 24 * MIB), c;
    uint64_t mallocs = rig_calls(&rig, STRATA_CALL_malloc);
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, two, 1000, &c),
                "caching.memory_fraction allows 48MiB, of which 48MiB are used");
    EXPECT_CONTAINS(strata_last_error()->text, "shared by all streams: reserved 48MiB, deferred 0");
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), mallocs);
    /* What one stream has idle makes room for the other. */
    EXPECT_OK(strata_free(rig.s, a.ref));
    c = rig_allocate(&rig, two, 1000);
    EXPECT_EQ(caching_reserved(&rig), 26 * MIB);
    RIG_FREE(&rig, b, c);
}

/* What the device refuses is not reserved. */
TEST(caching_streams, a_refused_segment_is_not_of_the_fraction) {
    RIG_BY(rig, caching_open(&rig, "memory_fraction: 0.5", 0));
    caching_of(&rig)->allowed = 48 * MIB;
    strata_block_t none;
    EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_malloc, 1, true, STRATA_E_NO_MEMORY));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 48 * MIB, &none));
    strata_sim_clear_faults(rig.devices[0]);
    strata_block_t all = rig_allocate(&rig, NULL, 48 * MIB);
    EXPECT_OK(strata_free(rig.s, all.ref));
}

/* ---- borrows ---- */

TEST(caching_streams, a_borrowed_block_waits_for_one_event_of_each_borrower) {
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), first = rig_stream(&rig), second = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 5 * MIB);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(strata_record_stream(rig.s, a.ref, first));
        EXPECT_OK(strata_record_stream(rig.s, a.ref, second));
        EXPECT_OK(strata_record_stream(rig.s, a.ref, owner));
    }
    rig_work(&rig, first, MILLISECOND, a.ref);
    rig_work(&rig, second, 3 * MILLISECOND, a.ref);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_record), 0);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_record), 2);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 5 * MIB);
    rig_advance(&rig, 2 * MILLISECOND);
    strata_block_t b = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_NE(b.ptr, a.ptr);
    rig_advance(&rig, 2 * MILLISECOND);
    /* A request of any stream polls. */
    strata_block_t c = rig_allocate(&rig, second, 1000);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    strata_block_t d = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_EQ(d.ptr, a.ptr);
    RIG_FREE(&rig, b, c, d);
}

TEST(caching_streams, a_poll_asks_each_stream_once) {
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t blocks[10];
    for (int i = 0; i < 10; i++) blocks[i] = rig_allocate(&rig, owner, 1000);
    rig_work(&rig, borrower, MILLISECOND, blocks[0].ref);
    for (int i = 0; i < 10; i++) {
        EXPECT_OK(strata_record_stream(rig.s, blocks[i].ref, borrower));
        EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    }
    uint64_t before = rig_calls(&rig, STRATA_CALL_event_query);
    strata_block_t b = rig_allocate(&rig, owner, 1000);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_query) - before, 1);
    rig_advance(&rig, 2 * MILLISECOND);
    EXPECT_OK(strata_free(rig.s, b.ref));
    b = rig_allocate(&rig, owner, 1000);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_query) - before, 11);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(caching_streams, what_is_deferred_is_pending) {
    strata_pending_t pending;
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 5 * MIB);
    rig_borrow(&rig, a.ref, borrower, MILLISECOND);
    uint64_t done = strata_sim_stream_end(rig.devices[0], borrower);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(strata_domain_poll(rig_domain(&rig), &pending), 0);
    EXPECT_EQ(pending.pending_bytes, 5 * MIB);
    EXPECT_EQ(pending.ready_at, done);
    rig_advance(&rig, 2 * MILLISECOND);
    EXPECT_EQ(strata_domain_poll(rig_domain(&rig), &pending), 5 * MIB);
    EXPECT_EQ(pending.pending_bytes, 0);
}

TEST(caching_streams, a_borrow_that_was_taken_back_is_not_waited_for) {
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 5 * MIB);
    rig_borrow(&rig, a.ref, borrower, MILLISECOND);
    EXPECT_OK(strata_stream_synchronize(rig.s, rig.gpu, borrower));
    EXPECT_OK(strata_erase_stream(rig.s, a.ref, borrower));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_record), 0);
    strata_block_t b = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_OK(strata_free_on(rig.s, b.ref, borrower));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_record), 1);
}

/* ---- streams that end ---- */

TEST(caching_streams, what_a_destroyed_stream_left_is_anybodys_once_its_work_is_done) {
    RIG(rig, "pytorch", 0);
    strata_stream_t gone = rig_stream(&rig), other = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, gone, 5 * MIB), live = rig_allocate(&rig, gone, 3 * MIB);
    rig_work(&rig, gone, 2 * MILLISECOND, a.ref);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    strata_block_t early = rig_allocate(&rig, other, 5 * MIB);
    EXPECT_NE(early.ptr, a.ptr);
    strata_block_t fill = rig_allocate(&rig, other, 15 * MIB);
    rig_advance(&rig, 3 * MILLISECOND);
    uint64_t mallocs = rig_calls(&rig, STRATA_CALL_malloc);
    strata_block_t late = rig_allocate(&rig, other, 5 * MIB);
    EXPECT_EQ(late.ptr, a.ptr);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), mallocs);
    EXPECT_OK(strata_validate(rig.s));
    /* It is used on a stream that does not own it: its free waits for that one, whatever its holder takes back. */
    rig_work(&rig, other, MILLISECOND, late.ref);
    EXPECT_OK(strata_erase_stream(rig.s, late.ref, other));
    EXPECT_OK(strata_free(rig.s, late.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 5 * MIB);
    EXPECT_OK(strata_free(rig.s, live.ref));
    rig_advance(&rig, 2 * MILLISECOND);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_of(&rig)->first_orphan, 0);
    EXPECT_EQ(caching_reserved(&rig), 20 * MIB);
    /* Its name ended with the last of its memory: the other stream's is left. */
    EXPECT_EQ(caching_of(&rig)->uses.users.nodes.used - 1 - caching_of(&rig)->uses.users.nodes.unused, 1);
    RIG_FREE(&rig, early, fill);
}

/* A layer above may take any borrow back: that of the stream that was served memory of another is none. */
TEST(caching_streams, nobody_takes_back_the_use_of_the_stream_that_was_served) {
    strata_call_t call;
    strata_record_t *record;
    RIG(rig, "pytorch", 0);
    strata_stream_t gone = rig_stream(&rig), other = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, gone, 5 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    strata_block_t b = rig_allocate(&rig, other, 5 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    rig_work(&rig, other, MILLISECOND, b.ref);
    ASSERT_OK(strata_record_find(rig.s, b.ref, &call, &record));
    EXPECT_OK(strata_record_unborrow(&call, record, other));
    (void)strata_call_unlock(&call);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 5 * MIB);
    rig_advance(&rig, 2 * MILLISECOND);
}

TEST(caching_streams, a_recycled_handle_is_another_stream) {
    RIG(rig, "pytorch", 0);
    strata_stream_t gone = rig_stream(&rig), again = NULL;
    strata_block_t a = rig_allocate(&rig, gone, 5 * MIB);
    rig_work(&rig, gone, 2 * MILLISECOND, a.ref);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, gone));
    for (int i = 0; i < 4 && again != gone; i++) again = rig_stream(&rig);
    EXPECT_EQ(again, gone);
    strata_block_t b = rig_allocate(&rig, again, 5 * MIB);
    EXPECT_NE(b.ptr, a.ptr);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(caching_streams, a_borrow_by_a_destroyed_stream_goes_by_the_event_that_it_left) {
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), gone = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 5 * MIB);
    rig_borrow(&rig, a.ref, gone, 2 * MILLISECOND);
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 5 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    rig_advance(&rig, 3 * MILLISECOND);
    strata_block_t b = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* The uses of a destroyed stream have one event, which is asked, not waited for: who finds no memory waits for the whole device. */
TEST(caching_streams, a_borrow_by_a_destroyed_stream_is_waited_for_when_nothing_fits) {
    RIG(rig, "pytorch", 24 * MIB);
    strata_stream_t owner = rig_stream(&rig), gone = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 16 * MIB);
    rig_borrow(&rig, a.ref, gone, 2 * MILLISECOND);
    uint64_t end = strata_sim_stream_end(rig.devices[0], gone);
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_LT(strata_sim_now(rig.world), end);
    strata_block_t b = rig_allocate(&rig, owner, 20 * MIB);
    EXPECT_GE(strata_sim_now(rig.world), end);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* Where it was captured no wait helps, and any would end the program's capture. */
TEST(caching_streams, a_borrow_by_a_stream_that_ended_in_a_capture_is_not_waited_for) {
    RIG(rig, "pytorch", 24 * MIB);
    strata_stream_t owner = rig_stream(&rig), gone = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 16 * MIB), none;
    EXPECT_OK(strata_record_stream(rig.s, a.ref, gone));
    rig_begin_capture(&rig, gone);
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, owner, 20 * MIB, &none));
    rig_end_capture(&rig, gone);
    EXPECT_OK(strata_validate(rig.s));
}

TEST(caching_streams, a_block_whose_borrowers_ended_long_ago_is_free_at_once) {
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), gone = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 5 * MIB);
    rig_borrow(&rig, a.ref, gone, MILLISECOND);
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, gone));
    rig_advance(&rig, 2 * MILLISECOND);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_frees, 0);
    strata_block_t b = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* The borrower's work cannot be marked: the free waits for it instead. */
TEST(caching_streams, a_borrow_without_an_event_is_waited_for) {
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 5 * MIB);
    rig_borrow(&rig, a.ref, borrower, 5 * MILLISECOND);
    uint64_t done = strata_sim_stream_end(rig.devices[0], borrower);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_event_record, 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_GE(strata_sim_now(rig.world), done);
    strata_sim_clear_faults(rig.devices[0]);
    strata_block_t b = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* Nor can it be waited for: the block is never reused. */
/* Its graph may be launched again and again: the block is nobody's, and no longer pending. */
TEST(caching_streams, a_block_whose_borrower_was_captured_is_quarantined) {
    RIG(rig, "stack: [caching, system]\n", 0);
    strata_stream_t owner = rig_stream(&rig), captured = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_OK(strata_record_stream(rig.s, a.ref, captured));
    rig_begin_capture(&rig, captured);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, a.size);
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t small = rig_allocate(&rig, owner, 1000); /* it polls */
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, a.size);
    EXPECT_EQ(caching_of(&rig)->uses.pending_bytes, 0);
    EXPECT_OK(strata_validate(rig.s));
    rig_end_capture(&rig, captured);
    EXPECT_OK(strata_free(rig.s, small.ref));
}

/* One borrower's use was captured, and of the other one nothing tells: the block is given up once, and was never pending. */
TEST(caching_streams, a_block_that_is_given_up_for_two_reasons_is_quarantined_once) {
    RIG(rig, "stack: [caching, system]\n", 0);
    strata_stream_t owner = rig_stream(&rig), captured = rig_stream(&rig), other = rig_stream(&rig);
    strata_device_t *device = rig.devices[0];
    strata_block_t a = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_OK(strata_record_stream(rig.s, a.ref, captured));
    EXPECT_OK(strata_record_stream(rig.s, a.ref, other));
    rig_begin_capture(&rig, captured);
    ASSERT_OK(strata_sim_fail(device, STRATA_CALL_event_record, 2, false, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(device, STRATA_CALL_stream_synchronise, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_sim_clear_faults(device);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, a.size);
    strata_block_t small = rig_allocate(&rig, owner, 1000); /* it polls */
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, a.size);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, small.ref));
    strata_handle_t graph = NULL;
    if (strata_device_capture_end(device, captured, &graph) == STRATA_OK) EXPECT_OK(strata_device_graph_destroy(device, graph));
}

TEST(caching_streams, a_borrow_that_nothing_tells_the_end_of_is_quarantined) {
    static const strata_device_call_t refused[] = {STRATA_CALL_event_record, STRATA_CALL_stream_synchronise,
                                                   STRATA_CALL_synchronise};
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 5 * MIB);
    rig_borrow(&rig, a.ref, borrower, 5 * MILLISECOND);
    for (int i = 0; i < 3; i++) ASSERT_OK(strata_sim_fail(rig.devices[0], refused[i], 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 5 * MIB);
    rig_advance(&rig, 10 * MILLISECOND);
    strata_block_t b = rig_allocate(&rig, owner, 5 * MIB);
    EXPECT_NE(b.ptr, a.ptr);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* A stack's number lives again, and so does a bank's node: what the one stack knew of the other is forgotten. The new stream has a
 * name, as a borrower, before it has a bank. */
TEST(caching_streams, a_stack_in_the_place_of_another_finds_its_own_bank) {
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), gone = rig_stream(&rig);
    strata_block_t held = rig_allocate(&rig, owner, 5 * MIB), a = rig_allocate(&rig, gone, 5 * MIB);
    uint16_t number = rig_stack(&rig, gone)->number;
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, gone));
    rig_advance(&rig, MILLISECOND);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_of(&rig)->first_orphan, 0);
    strata_stream_t stream = rig_stream(&rig);
    EXPECT_OK(strata_record_stream(rig.s, held.ref, stream));
    strata_block_t b = rig_allocate(&rig, stream, 5 * MIB);
    EXPECT_EQ(rig_stack(&rig, stream)->number, number);
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t c = rig_allocate(&rig, rig_stream(&rig), 5 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, held, b, c);
}

/* ---- streams ignored ---- */

TEST(caching_streams, ignored_a_block_moves_to_another_stream_after_a_wait) {
    RIG(rig, "tinytorch", 0);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 5 * MIB);
    rig_work(&rig, one, MILLISECOND, a.ref);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t b = rig_allocate(&rig, one, 5 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), 0);
    EXPECT_EQ(b.ptr, a.ptr);
    rig_work(&rig, one, MILLISECOND, b.ref);
    uint64_t end = strata_sim_stream_end(rig.devices[0], one);
    EXPECT_OK(strata_free(rig.s, b.ref));
    strata_block_t c = rig_allocate(&rig, two, 5 * MIB);
    EXPECT_EQ(c.ptr, a.ptr);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), 1);
    EXPECT_GE(strata_sim_now(rig.world), end);
    EXPECT_EQ(caching_reserved(&rig), 20 * MIB);
    /* Its parts have been waited for; what is merged of two streams' blocks has not. */
    strata_block_t d = rig_allocate(&rig, two, 6 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), 1);
    EXPECT_OK(strata_free(rig.s, c.ref));
    strata_block_t e = rig_allocate(&rig, two, 2 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), 1);
    strata_block_t f = rig_allocate(&rig, one, 2 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), 2);
    const strata_block_t *all[] = {&d, &e, &f};
    for (size_t i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, all[i]->ref));
}

TEST(caching_streams, ignored_the_merged_blocks_of_two_streams_are_waited_for_by_both) {
    RIG(rig, "tinytorch", 0);
    strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
    for (int i = 0; i < 2; i++) {
        strata_block_t a = rig_allocate(&rig, streams[0], 8 * MIB), b = rig_allocate(&rig, streams[1], 8 * MIB);
        rig_work(&rig, streams[0], MILLISECOND, a.ref);
        rig_work(&rig, streams[1], MILLISECOND, b.ref);
        RIG_FREE(&rig, a, b);
        uint64_t waits = rig_calls(&rig, STRATA_CALL_synchronise);
        strata_block_t c = rig_allocate(&rig, streams[i], 16 * MIB);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise) - waits, 1);
        EXPECT_EQ(caching_reserved(&rig), 20 * MIB);
        EXPECT_OK(strata_free(rig.s, c.ref));
        EXPECT_OK(strata_validate(rig.s));
        rig_advance(&rig, 10 * MILLISECOND);
        EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    }
}

/* The marks of a destroyed stream's blocks are not those of the next one that gets its place. */
TEST(caching_streams, ignored_a_destroyed_streams_blocks_are_waited_for) {
    RIG(rig, "tinytorch", 0);
    strata_stream_t gone = rig_stream(&rig);
    strata_block_t freed = rig_allocate(&rig, gone, 8 * MIB), kept = rig_allocate(&rig, gone, 8 * MIB);
    rig_work(&rig, gone, 5 * MILLISECOND, freed.ref);
    uint64_t end = strata_sim_stream_end(rig.devices[0], gone);
    EXPECT_OK(strata_free(rig.s, freed.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_free(rig.s, kept.ref));
    strata_stream_t next = rig_stream(&rig);
    strata_block_t small = rig_allocate(&rig, next, 1000);
    EXPECT_LT(strata_sim_now(rig.world), end);
    strata_block_t b = rig_allocate(&rig, next, 16 * MIB);
    EXPECT_EQ(b.ptr, freed.ptr);
    EXPECT_GE(strata_sim_now(rig.world), end);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, small, b);
    /* With the wait their node is free for another stream. */
    uint32_t used = caching_of(&rig)->last.users.nodes.used;
    EXPECT_NE(rig_stream(&rig), NULL);
    strata_block_t c = rig_allocate(&rig, rig_stream(&rig), 1000);
    EXPECT_EQ(caching_of(&rig)->last.users.nodes.used, used);
    EXPECT_OK(strata_free(rig.s, c.ref));
}

/* Both hang borrows on a block: each on a word of its own. */
TEST(caching_streams, under_stream_safe_a_destroyed_streams_block_may_be_borrowed_twice) {
    RIG(rig, "stack: [stream_safe, caching, system]\n", 0);
    strata_stream_t ending = rig_stream(&rig), other = rig_stream(&rig), third = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, ending, 3000), keep = rig_allocate(&rig, ending, 3000);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, ending));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, ending));
    rig_advance(&rig, 1000 * 1000);
    strata_block_t b = rig_allocate(&rig, other, 3000);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_OK(strata_validate(rig.s));
    rig_borrow(&rig, b.ref, third, 1000 * 1000);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_OK(strata_validate(rig.s));
    rig_advance(&rig, 10 * 1000 * 1000);
    EXPECT_OK(strata_free(rig.s, keep.ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

/* An allocator object asks the cache at once, with the bank that the number of its stack had in an earlier life: that is another
 * stream's, and what it has is borrowed. */
TEST(caching_streams, an_allocator_borrows_from_the_stream_that_had_its_number) {
    RIG_BY(rig, caching_open(&rig, "", 0));
    strata_allocator_t allocator;
    strata_stream_t ends = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, ends, 5 * MIB), b;
    uint16_t number = rig_stack(&rig, ends)->number;
    EXPECT_OK(strata_free(rig.s, a.ref));
    rig_end_stream(&rig, ends);
    EXPECT_EQ(rig_trim(&rig, GIB), 0); /* its stack ends */
    strata_stream_t next = rig_stream(&rig);
    EXPECT_OK(strata_allocator_get(rig.s, rig.gpu, next, 0, &allocator));
    EXPECT_EQ(rig_stack(&rig, next)->number, number);
    EXPECT_OK(strata_allocator_allocate(allocator, 5 * MIB, &b));
    EXPECT_EQ(b.ptr, a.ptr);
    const caching_t *self = caching_of(&rig);
    EXPECT_TRUE(strata_caching_is_borrowed(&self->base, caching_block(self, strata_ref_slot(b.ref))));
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_allocator_free(allocator, b.ref));
}

/* A captured stream cannot be waited for, so the segment that it used last stays. */
TEST(caching, a_segment_stays_under_a_user_that_cannot_be_waited_for) {
    RIG(rig, "stack: [caching: {streams: ignored}, cuda_malloc_async]", 0);
    strata_stream_t stream = rig_stream(&rig);
    strata_handle_t graph;
    strata_block_t block = rig_allocate(&rig, stream, 24 * MIB);
    rig_work(&rig, stream, 1000 * 1000, block.ref);
    EXPECT_OK(strata_free(rig.s, block.ref));
    ASSERT_OK(strata_device_capture_begin(rig.devices[0], stream, STRATA_CAPTURE_RELAXED));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 24 * MIB);
    EXPECT_OK(strata_device_capture_end(rig.devices[0], stream, &graph));
    EXPECT_OK(strata_device_graph_destroy(rig.devices[0], graph));
    EXPECT_OK(strata_stream_synchronize(rig.s, rig.gpu, stream));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

/* Frees that wait on the host, in stacks in which the strategy names no layer that handles borrows. */
#include "tests/facade/support/fixture.h"

#define MILLISECOND (1000ull * 1000)
enum { SIZE = 3 * 1024 * 1024 };

static void refuse_waits(rig_t *rig, uint32_t stream_wait, bool persistent) {
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_stream_synchronise, stream_wait, persistent, STRATA_E_DEVICE));
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_synchronise, 1, persistent, STRATA_E_DEVICE));
}

/* The wait at the forgetting fails: nobody can name the stream at the free, which waits for the whole device. */
TEST_RIG(facade_host_waits, a_borrower_that_could_not_be_waited_for_when_it_ended_is_waited_for_at_the_free, 0,
         "stack: [auto_growth, system]") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, SIZE);
    rig_borrow(rig, block.ref, borrower, 5 * MILLISECOND);
    uint64_t end = strata_sim_stream_end(rig->devices[0], borrower);
    refuse_waits(rig, 1, true);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, borrower));
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_LT(strata_sim_now(rig->world), end);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_GE(strata_sim_now(rig->world), end);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, 0);
    EXPECT_EQ(rig_allocate(rig, owner, SIZE).ptr, block.ptr);
}

/* One that was waited for then costs the free nothing. */
TEST_RIG(facade_host_waits, a_borrower_that_was_waited_for_when_it_ended_is_over, 0, "stack: [auto_growth, system]") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig), busy = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, SIZE);
    rig_borrow(rig, block.ref, borrower, MILLISECOND);
    rig_work(rig, busy, 9 * MILLISECOND, 0);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, borrower));
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_LT(strata_sim_now(rig->world), strata_sim_stream_end(rig->devices[0], busy));
    EXPECT_EQ(rig_figures(rig).host_waits, 1); /* that of the forgetting */
}

/* Whichever of two borrowers it is that nothing tells the end of, and the other one was waited for. */
TEST(facade_host_waits, one_borrower_that_cannot_be_waited_for_keeps_the_block_from_everybody) {
    for (uint32_t refused = 1; refused <= 2; refused++) {
        RIG(rig, "stack: [auto_growth, system]", 0);
        strata_stream_t owner = rig_stream(&rig), users[2] = {rig_stream(&rig), rig_stream(&rig)};
        strata_block_t block = rig_allocate(&rig, owner, SIZE);
        for (int n = 0; n < 2; n++) { rig_borrow(&rig, block.ref, users[n], MILLISECOND); }
        refuse_waits(&rig, refused, false);
        EXPECT_OK(strata_free(rig.s, block.ref));
        strata_sim_clear_faults(rig.devices[0]);
        EXPECT_EQ(rig_figures(&rig).quarantined_bytes, block.size);
        EXPECT_EQ(rig_figures(&rig).host_waits, 2);
        rig_advance(&rig, 9 * MILLISECOND);
        EXPECT_NE(rig_allocate(&rig, owner, SIZE).ptr, block.ptr);
        if (strata_test_has_failed()) FAIL_TEST("wait %u refused", refused);
    }
}

/* So it is where the driver's pool would have freed it: whichever of the owner and two borrowers that nothing tells the end of. */
TEST(facade_host_waits, one_user_that_nothing_tells_the_end_of_keeps_a_pools_block_from_everybody) {
    for (uint32_t refused = 1; refused <= 3; refused++) {
        RIG(rig, "stack: [cuda_malloc_async]", 0);
        strata_stream_t owner = rig_stream(&rig), users[2] = {rig_stream(&rig), rig_stream(&rig)};
        strata_block_t block = rig_allocate(&rig, owner, SIZE);
        for (int n = 0; n < 2; n++) { rig_borrow(&rig, block.ref, users[n], MILLISECOND); }
        EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_event_record, refused, false, STRATA_E_DEVICE));
        refuse_waits(&rig, 1, false);
        EXPECT_OK(strata_free(rig.s, block.ref));
        strata_sim_clear_faults(rig.devices[0]);
        EXPECT_EQ(rig_figures(&rig).quarantined_bytes, block.size);
        EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
        if (strata_test_has_failed()) FAIL_TEST("mark %u refused", refused);
    }
}

/* The program's capture goes on, whichever layer would wait for the stream, and nobody gets the block. */
TEST(facade_host_waits, a_free_leaves_its_borrowers_capture_as_it_is) {
    static const char *const stacks[] = {"stack: [auto_growth, system]",
                                         "stack: [cuda_malloc_async]",
                                         "stack: [bfc, system]",
                                         "stack: [naive_best_fit, system]",
                                         "stack: [stream_safe, auto_growth, system]",
                                         "stack: [caching, system]",
                                         "stack: [caching: {streams: ignored}, system]"};
    for (int i = 0; i < 7; i++) {
        RIG(rig, stacks[i], 0);
        strata_stream_t owner = rig_stream(&rig), captured = rig_stream(&rig);
        strata_block_t block = rig_allocate(&rig, owner, SIZE);
        EXPECT_OK(strata_record_stream(rig.s, block.ref, captured));
        rig_begin_capture(&rig, captured);
        EXPECT_OK(strata_free(rig.s, block.ref));
        rig_end_capture(&rig, captured);
        rig_advance(&rig, 9 * MILLISECOND);
        EXPECT_NE(rig_allocate(&rig, owner, SIZE).ptr, block.ptr);
        EXPECT_OK(strata_validate(rig.s));
        if (strata_test_has_failed()) FAIL_TEST("%s", stacks[i]);
    }
}

/* ---- the layer that the builder adds ---- */

/* It closes no direct way: a borrow concerns its own block alone. */
TEST(facade_host_waits, a_block_that_nobody_borrowed_is_served_and_freed_directly) {
    static const char *const stacks[] = {"stack: [auto_growth, system]", "stack: [stat, bfc, system]",
                                         "stack: [caching: {streams: ignored}, system]"};
    for (int i = 0; i < 3; i++) {
        RIG(rig, stacks[i], 0);
        strata_stream_t owner = rig_stream(&rig);
        strata_block_t borrowed = rig_allocate(&rig, owner, SIZE), other = rig_allocate(&rig, owner, SIZE);
        rig_borrow(&rig, borrowed.ref, rig_stream(&rig), MILLISECOND);
        const strata_stack_t *stack = rig_stack(&rig, owner);
        const strata_record_t *record = strata_slab_record(&strata_stack_of(strata_ref_home(other.ref))->slab,
                                                           strata_ref_slot(other.ref));
        EXPECT_TRUE(stack->hit != NULL);
        EXPECT_EQ(stack->attention_allocate, 0);
        EXPECT_TRUE(record->attention == 0 && record->route == stack->route);
        EXPECT_OK(strata_free(rig.s, other.ref));
        EXPECT_EQ(rig_figures(&rig).host_waits, 0);
        EXPECT_OK(strata_free(rig.s, borrowed.ref));
        EXPECT_EQ(rig_figures(&rig).host_waits, 1);
        if (strata_test_has_failed()) FAIL_TEST("%s", stacks[i]);
    }
}

/* The cache serves all streams, so the stack of one may end while a free of its block is deferred to the end of a capture. */
TEST(facade_host_waits, a_deferred_free_outlives_the_stack_of_its_stream) {
    static const char *const stacks[] = {"stack: [bfc, system]", "stack: [caching: {streams: ignored}, system]"};
    for (int i = 0; i < 2; i++) {
        RIG(rig, stacks[i], 0);
        strata_graph_t graph;
        uint64_t pool = 0;
        strata_stream_t owner = rig_stream(&rig), captured = rig_stream(&rig);
        strata_block_t block = rig_allocate(&rig, owner, SIZE);
        EXPECT_OK(strata_record_stream(rig.s, block.ref, captured));
        EXPECT_OK(strata_graph_pool_begin(rig.s, rig.gpu, captured, &pool));
        EXPECT_OK(strata_capture_begin(rig.s, rig.gpu, captured));
        EXPECT_OK(strata_free(rig.s, block.ref));
        EXPECT_EQ(rig_figures(&rig).deferred_bytes, block.size);
        uint32_t count = rig_domain(&rig)->stack_count;
        EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, owner));
        EXPECT_EQ(rig_domain(&rig)->stack_count, count - 1);
        EXPECT_OK(strata_capture_end(rig.s, rig.gpu, captured, &graph));
        EXPECT_OK(strata_graph_pool_end(rig.s, rig.gpu, pool));
        EXPECT_OK(strata_graph_pool_remove(rig.s, rig.gpu, pool));
        (void)strata_domain_poll(rig_domain(&rig), &(strata_pending_t){0});
        EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
        EXPECT_OK(strata_validate(rig.s));
        EXPECT_OK(strata_graph_destroy(rig.s, rig.gpu, graph));
        if (strata_test_has_failed()) FAIL_TEST("%s", stacks[i]);
    }
}

/* A free that waited for the end of a capture continues in a release, which visits the stack without a free. */
TEST_RIG(facade_host_waits, waits_in_a_release_are_counted, GIB, "stack: [bfc, system]") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, SIZE);
    uint64_t pool = 0;
    rig_borrow(rig, block.ref, borrower, MILLISECOND);
    ASSERT_OK(strata_graph_pool_begin(rig->s, rig->gpu, borrower, &pool));
    rig_begin_capture(rig, borrower);
    EXPECT_OK(strata_free(rig->s, block.ref));
    rig_end_capture(rig, borrower);
    EXPECT_OK(strata_graph_pool_end(rig->s, rig->gpu, pool));
    EXPECT_OK(strata_graph_pool_remove(rig->s, rig->gpu, pool));
    EXPECT_EQ(rig_figures(rig).host_waits, 0);
    (void)rig_release(rig);
    EXPECT_EQ(rig_figures(rig).host_waits, 1);
    EXPECT_OK(strata_validate(rig->s));
}

/* ---- forgotten streams' memory ---- */

/* Half of the only chunk that a forgotten stream left is live, so that it cannot go back; its other half serves a request that had to
 * wait for the stream's work, whatever layer did the waiting. */
TEST_RIG(facade_host_waits, what_was_waited_for_in_a_forgotten_streams_stack_serves, 64 * MIB,
         "stack: [retry: {timeout: 1s}, stream_safe, auto_growth, system]",
         "stack: [retry: {timeout: 1s, wait_first: true}, stream_safe, auto_growth, system]") {
    strata_stream_t gone = rig_stream(rig), next = rig_stream(rig);
    strata_block_t whole = rig_allocate(rig, gone, 50 * MIB);
    EXPECT_OK(strata_free(rig->s, whole.ref));
    (void)rig_allocate(rig, gone, 20 * MIB);
    strata_block_t used = rig_allocate(rig, gone, 30 * MIB);
    rig_work(rig, gone, 5 * MILLISECOND, used.ref);
    uint64_t end = strata_sim_stream_end(rig->devices[0], gone);
    EXPECT_OK(strata_free(rig->s, used.ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, gone));
    strata_block_t block = rig_allocate(rig, next, 30 * MIB);
    EXPECT_EQ(block.ptr, used.ptr);
    EXPECT_GE(strata_sim_now(rig->world), end);
}

/* The recorder passes the end of the borrow to the layer below, which would wait for the borrower. */
TEST_RIG(facade_host_waits, a_borrow_that_was_taken_back_below_a_recorder_is_not_waited_for, 0,
         "stack: [trace: {path: /dev/null}, auto_growth, system]") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, SIZE);
    EXPECT_OK(strata_record_stream(rig->s, block.ref, borrower));
    EXPECT_OK(strata_erase_stream(rig->s, block.ref, borrower));
    rig_work(rig, borrower, 9 * MILLISECOND, 0);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_LT(strata_sim_now(rig->world), strata_sim_stream_end(rig->devices[0], borrower));
    EXPECT_EQ(rig_figures(rig).host_waits, 0);
}

/* One pool of several streams: a block that another stream used is served after a wait of the host; and pools of their own. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/naive/naive.h"

static uint64_t waits(rig_t *rig) { return naive_of(rig, NULL)->waits; }

static void give(rig_t *rig, strata_block_t b) { EXPECT_OK(strata_free(rig->s, b.ref)); }

#define IGNORED "streams: ignored, initial: 64MiB"

TEST(naive_streams, a_block_that_another_stream_used_waits_for_it) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", IGNORED, 0));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 2 * MIB), keep = rig_allocate(&rig, one, 1000);
    rig_work(&rig, one, 5 * MILLISECOND, a.ref);
    uint64_t end = strata_sim_stream_end(rig.devices[0], one);
    give(&rig, a);
    /* Its own stream needs no wait. */
    strata_block_t b = rig_allocate(&rig, one, 2 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_EQ(waits(&rig), 0);
    give(&rig, b);
    EXPECT_LT(strata_sim_now(rig.world), end);
    b = rig_allocate(&rig, two, 2 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_EQ(waits(&rig), 1);
    EXPECT_GE(strata_sim_now(rig.world), end);
    give(&rig, b);
    give(&rig, keep);
}

TEST(naive_streams, what_nobody_has_used_waits_for_nobody) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", IGNORED, 0));
    strata_block_t blocks[8];
    for (int i = 0; i < 8; i++) {
        strata_stream_t stream = rig_stream(&rig);
        blocks[i] = rig_allocate(&rig, stream, MIB);
        rig_work(&rig, stream, 5 * MILLISECOND, blocks[i].ref);
    }
    EXPECT_EQ(waits(&rig), 0);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
    for (int i = 0; i < 8; i++) give(&rig, blocks[i]);
}

TEST(naive_streams, one_wait_is_for_all_that_is_free) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", IGNORED, 0));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t used[4], between[4];
    for (int i = 0; i < 4; i++) {
        used[i] = rig_allocate(&rig, one, MIB);
        between[i] = rig_allocate(&rig, two, MIB);
    }
    for (int i = 0; i < 4; i++) give(&rig, used[i]);
    for (int i = 0; i < 4; i++) used[i] = rig_allocate(&rig, two, MIB);
    EXPECT_EQ(waits(&rig), 1);
    /* What two streams used is nobody's, not even after they are the only ones. */
    for (int i = 0; i < 4; i++) give(&rig, used[i]);
    used[0] = rig_allocate(&rig, one, MIB);
    EXPECT_EQ(waits(&rig), 2);
    give(&rig, used[0]);
    for (int i = 0; i < 4; i++) give(&rig, between[i]);
    used[0] = rig_allocate(&rig, two, 7 * MIB);
    EXPECT_EQ(waits(&rig), 3);
    give(&rig, used[0]);
    EXPECT_OK(strata_validate(rig.s));
}

TEST(naive_streams, a_stream_that_was_forgotten_is_waited_for) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", IGNORED, 0));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, MIB), live = rig_allocate(&rig, one, MIB);
    naive_t *self = naive_of(&rig, one);
    rig_work(&rig, one, 5 * MILLISECOND, a.ref);
    rig_work(&rig, one, 5 * MILLISECOND, live.ref);
    give(&rig, a);
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, one));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, one));
    EXPECT_OK(strata_validate(rig.s));
    give(&rig, live);
    /* The handle names another stream now. */
    strata_stream_t again = rig_stream(&rig);
    EXPECT_EQ(again, one);
    strata_block_t b = rig_allocate(&rig, again, 2 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_EQ(self->waits, 1);
    EXPECT_EQ(self->last.users.nodes.unused, 1); /* no mark names it any more */
    EXPECT_GE(strata_sim_now(rig.world), 10 * MILLISECOND);
    give(&rig, b);
    (void)two;
}

TEST(naive_streams, a_borrow_is_waited_for_by_the_free) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", IGNORED, 0));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, MIB);
    rig_borrow(&rig, a.ref, two, 5 * MILLISECOND);
    give(&rig, a);
    EXPECT_GE(strata_sim_now(rig.world), 5 * MILLISECOND);
    EXPECT_EQ(rig_figures(&rig).host_waits, 1);
}

TEST(naive_streams, a_wait_that_fails_fails_the_request) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", IGNORED, 0));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, MIB), keep = rig_allocate(&rig, one, 1000), b = {.ref = 3};
    give(&rig, a);
    uint64_t allocated = rig_figures(&rig).allocated_bytes;
    EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_synchronise, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig.s, rig.gpu, two, MIB, &b));
    EXPECT_EQ(b.ref, 3);
    EXPECT_EQ(rig_figures(&rig).allocated_bytes, allocated);
    EXPECT_OK(strata_validate(rig.s));
    b = rig_allocate(&rig, two, MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    give(&rig, b);
    give(&rig, keep);
}

TEST(naive_streams, each_has_a_pool_of_its_own_where_they_are_not_ignored) {
    static const char *const layers[] = {"naive_best_fit", "thread_local"};
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, naive_open(&rig, layers[i], "initial: 4MiB", 0));
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, one, MIB), b = rig_allocate(&rig, two, MIB);
        EXPECT_NE(naive_of(&rig, one), naive_of(&rig, two));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
        give(&rig, a);
        strata_block_t c = rig_allocate(&rig, two, MIB), d = rig_allocate(&rig, one, MIB);
        EXPECT_NE(c.ptr, a.ptr);
        EXPECT_EQ(d.ptr, a.ptr);
        EXPECT_EQ(naive_of(&rig, one)->waits + naive_of(&rig, two)->waits, 0);
        EXPECT_EQ(naive_of(&rig, one)->last.users.nodes.used, 0); /* whose a block was is told by the pool */
        give(&rig, b);
        give(&rig, c);
        give(&rig, d);
    }
}

/* A pool of several streams over the driver's: a chunk is its requester's at first, and idle when it goes back. */
TEST(naive_streams, a_chunk_of_the_drivers_pool_is_its_requesters_at_first) {
    RIG(rig, "version: 1\nstack:\n  - naive_best_fit: {streams: ignored, initial: 8MiB}\n  - cuda_malloc_async\n", 0);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, MIB);
    EXPECT_EQ(naive_of(&rig, one)->waits, 0);
    strata_block_t b = rig_allocate(&rig, two, MIB);
    EXPECT_EQ(naive_of(&rig, one)->waits, 1);
    rig_work(&rig, two, 5 * MILLISECOND, b.ref);
    give(&rig, a);
    give(&rig, b);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(naive_of(&rig, one)->waits, 2);
    EXPECT_GE(strata_sim_now(rig.world), 5 * MILLISECOND);
}

/* The host cannot wait for the other users: what they may be using stays, what nobody uses goes. */
TEST(naive_streams, chunks_stay_where_their_users_cannot_be_waited_for) {
    for (int trims = 0; trims < 2; trims++) {
        RIG(rig, "stack: [naive_best_fit: {streams: ignored, initial: 8MiB}, cuda_malloc_async]\n", 0);
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, one, MIB), b = rig_allocate(&rig, two, MIB);
        uint64_t released = 7, waited = naive_of(&rig, one)->waits;
        rig_work(&rig, two, 5 * MILLISECOND, b.ref);
        give(&rig, a);
        give(&rig, b);
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_synchronise, 1, false, STRATA_E_DEVICE));
        if (trims) EXPECT_OK(strata_trim(rig.s, rig.gpu, MIB, &released));
        else EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
        EXPECT_EQ(naive_of(&rig, one)->waits, waited + 1);
        EXPECT_OK(strata_validate(rig.s));
        if (trims) EXPECT_OK(strata_trim(rig.s, rig.gpu, MIB, &released));
        else EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
        EXPECT_EQ(naive_of(&rig, one)->waits, waited + 2);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    }
}

static void *use_and_leave(void *argument) {
    rig_t *rig = argument;
    strata_block_t *b = malloc(sizeof *b);
    *b = rig_allocate(rig, STRATA_STREAM_PER_THREAD, 2 * MIB);
    rig_work(rig, STRATA_STREAM_PER_THREAD, 5 * MILLISECOND, b->ref);
    give(rig, *b);
    return b;
}

static strata_block_t used_by_an_exited_thread(rig_t *rig) {
    pthread_t thread;
    void *theirs = NULL;
    strata_block_t b = {.ref = 0};
    if (pthread_create(&thread, NULL, use_and_leave, rig) == 0) pthread_join(thread, &theirs);
    if (theirs) b = *(strata_block_t *)theirs;
    else FAIL_TEST("no thread");
    free(theirs);
    return b;
}

/* Nobody can name its stream any more: what it used is served after a wait for all. */
TEST(naive_streams, the_own_stream_of_a_thread_that_exited_is_waited_for) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", IGNORED, 0));
    strata_block_t theirs = used_by_an_exited_thread(&rig);
    uint64_t end = strata_sim_device_end(rig.devices[0]);
    strata_block_t b = rig_allocate(&rig, STRATA_STREAM_PER_THREAD, 2 * MIB);
    EXPECT_EQ(b.ptr, theirs.ptr);
    EXPECT_EQ(waits(&rig), 1);
    EXPECT_GE(strata_sim_now(rig.world), end);
    EXPECT_OK(strata_validate(rig.s));
    give(&rig, b);
}

/* Each has an entry of the pool's table, which does not grow with the threads that there ever were. */
TEST(naive_streams, threads_that_exited_leave_no_entries_after) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", IGNORED, 0));
    for (int i = 0; i < 20; i++) (void)used_by_an_exited_thread(&rig);
    EXPECT_LE(naive_of(&rig, NULL)->last.users.nodes.used, 4);
    EXPECT_OK(strata_validate(rig.s));
}

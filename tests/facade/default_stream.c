/* The stream that NULL stands for. */
#include <pthread.h>

#include "tests/facade/fixture.h"

static void expect_owner(rig_t *rig, strata_block_t block, strata_stream_t wanted) {
    strata_stream_t owner = (void *)77;
    EXPECT_OK(strata_stream_of(rig->s, block.ref, &owner));
    EXPECT_EQ(owner, wanted);
}

TEST(facade_default_stream, null_stands_for_it) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t before = rig_allocate(&rig, NULL, 1000);
    expect_owner(&rig, before, NULL);
    EXPECT_OK(strata_set_default_stream(rig.s, rig.gpu, stream));
    strata_block_t after = rig_allocate(&rig, NULL, 1000), named = rig_allocate(&rig, stream, 1000);
    strata_block_t legacy = rig_allocate(&rig, STRATA_STREAM_LEGACY, 1000);
    expect_owner(&rig, before, STRATA_STREAM_LEGACY);
    expect_owner(&rig, after, stream);
    expect_owner(&rig, named, stream);
    expect_owner(&rig, legacy, STRATA_STREAM_LEGACY);
    bool same = false;
    EXPECT_OK(strata_same_stream(rig.s, rig.gpu, NULL, stream, &same));
    EXPECT_TRUE(same);
    EXPECT_OK(strata_same_stream(rig.s, rig.gpu, NULL, STRATA_STREAM_LEGACY, &same));
    EXPECT_FALSE(same);
    strata_statistics_t f = {.struct_size = sizeof f};
    EXPECT_OK(strata_statistics(rig.s, rig.gpu, NULL, &f));
    EXPECT_EQ(f.live_allocations, 2);
    strata_block_t blocks[] = {before, after, named, legacy};
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    rig_close(&rig);
}

/* A block that the legacy stream owned is borrowed by NULL from now on; one of the new default stream is not. */
TEST(facade_default_stream, borrows_go_by_it) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t before = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_set_default_stream(rig.s, rig.gpu, stream));
    strata_block_t after = rig_allocate(&rig, NULL, 1000);
    rig_work(&rig, NULL, 50 * 1000, before.ref);
    EXPECT_GT(strata_sim_stream_end(rig.devices[0], stream), strata_sim_now(rig.world));
    EXPECT_OK(strata_record_stream(rig.s, after.ref, NULL));
    EXPECT_OK(strata_record_stream(rig.s, after.ref, stream));
    EXPECT_EQ(rig_figures(&rig).borrows, 0);
    EXPECT_OK(strata_record_stream(rig.s, before.ref, NULL));
    EXPECT_OK(strata_record_stream(rig.s, before.ref, stream));
    EXPECT_EQ(rig_figures(&rig).borrows, 1);
    EXPECT_OK(strata_free(rig.s, before.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_frees, 1);
    EXPECT_OK(strata_free(rig.s, after.ref));
    EXPECT_OK(strata_stream_synchronize(rig.s, rig.gpu, NULL));
    rig_close(&rig);
}

/* SetDefaultStream of Paddle throws at the second call; the same one again is no change. */
TEST(facade_default_stream, is_set_once) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 2);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    EXPECT_OK(strata_set_default_stream(rig.s, rig.gpu, NULL));
    EXPECT_OK(strata_set_default_stream(rig.s, rig.gpu, one));
    EXPECT_OK(strata_set_default_stream(rig.s, rig.gpu, one));
    EXPECT_STATUS(STRATA_E_BUSY, strata_set_default_stream(rig.s, rig.gpu, two));
    EXPECT_CONTAINS(strata_last_error()->text, "it is set once");
    EXPECT_STATUS(STRATA_E_BUSY, strata_set_default_stream(rig.s, rig.gpu, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_stream_forget(rig.s, rig.gpu, one));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, two));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_set_default_stream(rig.s, strata_pinned(), one));
    bool same = false;
    EXPECT_OK(strata_same_stream(rig.s, strata_gpu(1), NULL, STRATA_STREAM_LEGACY, &same));
    EXPECT_TRUE(same);
    rig_close(&rig);
}

/* ---- each thread's own ---- */

typedef struct own {
    rig_t *rig;
    strata_block_t block;
} own_t;

static void *use_and_leave(void *argument) {
    own_t *own = argument;
    EXPECT_OK(strata_free(own->rig->s, rig_allocate(own->rig, STRATA_STREAM_PER_THREAD, 1000).ref));
    return NULL;
}

static void in_another_thread(void *(*body)(void *), own_t *own) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, body, own), 0);
    pthread_join(thread, NULL);
}

/* Nobody can name the stream of a thread that has exited: its cache is given back once all work is over, which a device that
 * answers no wait does not say. */
TEST(facade_default_stream, what_an_exited_thread_cached_stays_until_a_wait_for_all_succeeds) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    own_t own = {.rig = &rig};
    in_another_thread(use_and_leave, &own);
    uint64_t cached = rig_figures(&rig).reserved_bytes;
    EXPECT_GT(cached, 0);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_synchronise, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, STRATA_STREAM_PER_THREAD, 1000).ref));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 2 * cached);
    in_another_thread(use_and_leave, &own);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 2 * cached);
    EXPECT_OK(strata_validate(rig.s));
    rig_close(&rig);
}

static void *borrow_and_leave(void *argument) {
    own_t *own = argument;
    EXPECT_OK(strata_record_stream(own->rig->s, own->block.ref, STRATA_STREAM_PER_THREAD));
    return NULL;
}

/* One handle, a stream of each thread: each is a borrower, and takes back its own borrow alone. */
TEST(facade_default_stream, the_same_handle_in_two_threads_is_two_borrowers) {
    for (int others = 0; others < 3; others++) {
        rig_t rig;
        rig_open(&rig, "strata", NULL, 0, 0, 1);
        own_t own = {.rig = &rig, .block = rig_allocate(&rig, rig_stream(&rig), 1000)};
        for (int i = 0; i < others; i++) in_another_thread(borrow_and_leave, &own);
        EXPECT_OK(strata_record_stream(rig.s, own.block.ref, STRATA_STREAM_PER_THREAD));
        EXPECT_OK(strata_record_stream(rig.s, own.block.ref, STRATA_STREAM_PER_THREAD));
        EXPECT_EQ(rig_figures(&rig).borrows, 1 + others);
        EXPECT_OK(strata_erase_stream(rig.s, own.block.ref, STRATA_STREAM_PER_THREAD));
        uint64_t waits = rig_calls(&rig, STRATA_CALL_synchronise);
        EXPECT_OK(strata_free(rig.s, own.block.ref));
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise) > waits, others > 0);
        rig_close(&rig);
    }
}

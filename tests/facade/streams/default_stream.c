/* The stream that NULL stands for. */
#include <pthread.h>

#include "tests/facade/support/interleaving.h"

TEST_RIG(facade_default_stream, null_stands_for_it, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t before = rig_allocate(rig, NULL, 1000);
    expect_owner(rig, before, NULL);
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, stream));
    strata_block_t after = rig_allocate(rig, NULL, 1000), named = rig_allocate(rig, stream, 1000);
    strata_block_t legacy = rig_allocate(rig, STRATA_STREAM_LEGACY, 1000);
    expect_owner(rig, before, STRATA_STREAM_LEGACY);
    expect_owner(rig, after, stream);
    expect_owner(rig, named, stream);
    expect_owner(rig, legacy, STRATA_STREAM_LEGACY);
    bool same = false;
    EXPECT_OK(strata_same_stream(rig->s, rig->gpu, NULL, stream, &same));
    EXPECT_TRUE(same);
    EXPECT_OK(strata_same_stream(rig->s, rig->gpu, NULL, STRATA_STREAM_LEGACY, &same));
    EXPECT_FALSE(same);
    strata_statistics_t f = {.struct_size = sizeof f};
    EXPECT_OK(strata_statistics(rig->s, rig->gpu, NULL, &f));
    EXPECT_EQ(f.live_allocations, 2);
}

/* A block that the legacy stream owned is borrowed by NULL from now on; one of the new default stream is not. */
TEST_RIG(facade_default_stream, borrows_go_by_it, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t before = rig_allocate(rig, NULL, 1000);
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, stream));
    strata_block_t after = rig_allocate(rig, NULL, 1000);
    rig_work(rig, NULL, 50 * 1000, before.ref);
    EXPECT_GT(strata_sim_stream_end(rig->devices[0], stream), strata_sim_now(rig->world));
    EXPECT_OK(strata_record_stream(rig->s, after.ref, NULL));
    EXPECT_OK(strata_record_stream(rig->s, after.ref, stream));
    EXPECT_EQ(rig_figures(rig).borrows, 0);
    EXPECT_OK(strata_record_stream(rig->s, before.ref, NULL));
    EXPECT_OK(strata_record_stream(rig->s, before.ref, stream));
    EXPECT_EQ(rig_figures(rig).borrows, 1);
    EXPECT_OK(strata_free(rig->s, before.ref));
    EXPECT_EQ(rig_figures(rig).deferred_frees, 1);
    EXPECT_OK(strata_free(rig->s, after.ref));
    EXPECT_OK(strata_stream_synchronize(rig->s, rig->gpu, NULL));
}

/* SetDefaultStream of Paddle throws at the second call; the same one again is no change. */
TEST_BY(facade_default_stream, is_set_once, rig_open(rig, "strata", NULL, 0, 0, 2)) {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, NULL));
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, one));
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, one));
    EXPECT_SAYS(STRATA_E_BUSY, strata_set_default_stream(rig->s, rig->gpu, two), "it can be set only once");
    EXPECT_STATUS(STRATA_E_BUSY, strata_set_default_stream(rig->s, rig->gpu, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_stream_forget(rig->s, rig->gpu, one));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, two));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_set_default_stream(rig->s, strata_pinned(), one));
    bool same = false;
    EXPECT_OK(strata_same_stream(rig->s, strata_gpu(1), NULL, STRATA_STREAM_LEGACY, &same));
    EXPECT_TRUE(same);
}

/* ---- each thread's own ---- */

typedef struct own {
    rig_t *rig;
    strata_block_t block;
    uint64_t at; /* when the thread had it */
} own_t;

static void *use_and_leave(void *argument) {
    own_t *own = argument;
    EXPECT_OK(strata_free(own->rig->s, rig_allocate(own->rig, STRATA_STREAM_PER_THREAD, 1000).ref));
    return NULL;
}

/* Nobody can name the stream of a thread that has exited: its cache is given back once all work is over, which a device that
 * answers no wait does not say. */
TEST_RIG(facade_default_stream, what_an_exited_thread_cached_stays_until_a_wait_for_all_succeeds, 0, "strata") {
    own_t own = {.rig = rig};
    in_another_thread(use_and_leave, &own);
    uint64_t cached = rig_figures(rig).reserved_bytes;
    EXPECT_GT(cached, 0);
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_synchronise, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, STRATA_STREAM_PER_THREAD, 1000).ref));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 2 * cached);
    in_another_thread(use_and_leave, &own);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 2 * cached);
}

static void *borrow_and_leave(void *argument) {
    own_t *own = argument;
    EXPECT_OK(strata_record_stream(own->rig->s, own->block.ref, STRATA_STREAM_PER_THREAD));
    return NULL;
}

/* One handle, a stream of each thread: each is a borrower, and takes back its own borrow alone. */
TEST_RIG_WAYS(facade_default_stream, the_same_handle_in_two_threads_is_two_borrowers, others, 3, 0, "strata") {
    own_t own = {.rig = rig, .block = rig_allocate(rig, rig_stream(rig), 1000)};
    for (int i = 0; i < others; i++) in_another_thread(borrow_and_leave, &own);
    EXPECT_OK(strata_record_stream(rig->s, own.block.ref, STRATA_STREAM_PER_THREAD));
    EXPECT_OK(strata_record_stream(rig->s, own.block.ref, STRATA_STREAM_PER_THREAD));
    EXPECT_EQ(rig_figures(rig).borrows, 1 + others);
    EXPECT_OK(strata_erase_stream(rig->s, own.block.ref, STRATA_STREAM_PER_THREAD));
    uint64_t waits = rig_calls(rig, STRATA_CALL_synchronise);
    EXPECT_OK(strata_free(rig->s, own.block.ref));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_synchronise) > waits, others > 0);
}

static void *ask_for_the_owner(void *argument) {
    own_t *own = argument;
    strata_stream_t owner = (void *)77;
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_stream_of(own->rig->s, own->block.ref, &owner),
                "another thread's per-thread default stream");
    EXPECT_EQ(owner, (void *)77);
    return NULL;
}

/* The handle would mean the asking thread's own there. */
TEST_RIG(facade_default_stream, a_threads_own_is_named_to_that_thread_alone, 0, "strata") {
    own_t own = {.rig = rig, .block = rig_allocate(rig, STRATA_STREAM_PER_THREAD, 1000)};
    expect_owner(rig, own.block, STRATA_STREAM_PER_THREAD);
    in_another_thread(ask_for_the_owner, &own);
}

/* ---- a thread that exits while others are waited for ---- */

/* More than half of a chunk: one has room for one of them. */
#define PART (12 * MIB)

typedef struct late {
    own_t own;
    pthread_t thread;
    pthread_barrier_t ready, go;
    size_t keeps, frees;
    uint64_t works; /* ns */
    strata_block_t kept;
    uint64_t end; /* of its work */
} late_t;

/* What it keeps keeps its chunk, so that what it frees lies in its stack's cache. */
static void *work_and_leave(void *argument) {
    late_t *late = argument;
    rig_t *rig = late->own.rig;
    late->kept = rig_allocate(rig, STRATA_STREAM_PER_THREAD, late->keeps);
    late->own.block = rig_allocate(rig, STRATA_STREAM_PER_THREAD, late->frees);
    pthread_barrier_wait(&late->ready);
    pthread_barrier_wait(&late->go);
    rig_work(rig, STRATA_STREAM_PER_THREAD, late->works, late->own.block.ref);
    late->end = strata_sim_device_end(rig->devices[0]);
    EXPECT_OK(strata_free(rig->s, late->own.block.ref));
    return NULL;
}

static void begin_late(late_t *late, rig_t *rig, size_t keeps, size_t frees, uint64_t works) {
    *late = (late_t){.own = {.rig = rig}, .keeps = keeps, .frees = frees, .works = works};
    ASSERT_EQ(pthread_barrier_init(&late->ready, NULL, 2), 0);
    ASSERT_EQ(pthread_barrier_init(&late->go, NULL, 2), 0);
    ASSERT_EQ(pthread_create(&late->thread, NULL, work_and_leave, late), 0);
    pthread_barrier_wait(&late->ready);
}

static void let_it_leave(void *context) {
    late_t *late = context;
    pthread_barrier_wait(&late->go);
    pthread_join(late->thread, NULL);
    pthread_barrier_destroy(&late->ready);
    pthread_barrier_destroy(&late->go);
}

static void *allocate_and_leave(void *argument) {
    own_t *own = argument;
    own->block = rig_allocate(own->rig, STRATA_STREAM_PER_THREAD, PART);
    own->at = strata_sim_now(own->rig->world);
    return NULL;
}

/* A new stack of a thread gives up those of exited ones. One that exits after the wait for the others' work, with work of its own
 * under way, is waited for itself. */
TEST_RIG(facade_default_stream, a_thread_that_exits_after_the_wait_for_others_is_waited_for_itself, 0, "strata-malloc") {
    between_t between;
    late_t first, second;
    begin_late(&first, rig, PART, 1000, 10 * 1000 * 1000);
    begin_late(&second, rig, 1000, PART, 100 * 1000 * 1000);
    let_it_leave(&first);
    between_begin(&between, rig, STRATA_CALL_synchronise, let_it_leave, &second);
    own_t mine = {.rig = rig}, next = {.rig = rig};
    (void)allocate_and_leave(&mine);
    ASSERT_TRUE(between_end(&between));
    EXPECT_GE(mine.at, first.end);
    EXPECT_LT(mine.at, second.end);
    EXPECT_NE(mine.block.ptr, second.own.block.ptr);
    /* The next thread's first request waits for it, and is served what it has left. */
    in_another_thread(allocate_and_leave, &next);
    EXPECT_GE(next.at, second.end);
    EXPECT_EQ(next.block.ptr, second.own.block.ptr);
    const strata_block_t *left[] = {&first.kept, &second.kept, &mine.block, &next.block};
    for (size_t i = 0; i < 4; i++) EXPECT_OK(strata_free(rig->s, left[i]->ref));
}

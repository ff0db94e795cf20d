/* caching and threads that exit: what their own default streams leave behind. */
#include <pthread.h>

#include "tests/caching/caching.h"
#include "tests/facade/support/interleaving.h"
#include "tests/facade/support/many_threads.h"

static void *use_own_stream(void *context) {
    rig_t *rig = context;
    strata_block_t b = rig_allocate(rig, STRATA_STREAM_PER_THREAD, 5 * MIB);
    rig_work(rig, STRATA_STREAM_PER_THREAD, 2 * MILLISECOND, b.ref);
    EXPECT_OK(strata_free(rig->s, b.ref));
    return NULL;
}

/* When the work ends that an exited thread has left. */
static uint64_t open_after_a_thread(rig_t *rig) {
    pthread_t thread;
    rig_open(rig, "pytorch", NULL, 0, 0, 1);
    EXPECT_EQ(pthread_create(&thread, NULL, use_own_stream, rig), 0);
    pthread_join(thread, NULL);
    return strata_sim_device_end(rig->devices[0]);
}

TEST(caching_exited, what_an_exited_thread_left_is_anybodys) {
    rig_t rig;
    uint64_t end = open_after_a_thread(&rig);
    strata_stream_t other = rig_stream(&rig);
    strata_block_t b = rig_allocate(&rig, other, 5 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
    EXPECT_GE(strata_sim_now(rig.world), end);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
}

/* The wait for its work fails: it is waited for again. */
TEST(caching_exited, what_an_exited_thread_left_is_waited_for_until_a_wait_succeeds) {
    rig_t rig;
    uint64_t end = open_after_a_thread(&rig);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_synchronise, 1, false, STRATA_E_DEVICE));
    strata_block_t a = rig_allocate(&rig, rig_stream(&rig), 5 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 2);
    EXPECT_LT(strata_sim_now(rig.world), end);
    strata_block_t b = rig_allocate(&rig, rig_stream(&rig), 5 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 2);
    EXPECT_GE(strata_sim_now(rig.world), end);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, a, b);
    rig_close(&rig);
}

static void *use_a_little(void *context) {
    rig_t *rig = context;
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, STRATA_STREAM_PER_THREAD, 1000).ref));
    return NULL;
}

typedef struct late {
    rig_t *rig;
    pthread_t thread;
    pthread_barrier_t ready, go;
    strata_block_t block, borrowed;
    uint64_t end;
} late_t;

static void *leave_late(void *context) {
    late_t *late = context;
    late->block = rig_allocate(late->rig, STRATA_STREAM_PER_THREAD, 5 * MIB);
    pthread_barrier_wait(&late->ready);
    pthread_barrier_wait(&late->go);
    rig_work(late->rig, STRATA_STREAM_PER_THREAD, 50 * MILLISECOND, late->block.ref);
    late->end = strata_sim_device_end(late->rig->devices[0]);
    EXPECT_OK(strata_free(late->rig->s, late->block.ref));
    return NULL;
}

/* Yet another thread's stream comes in: what exited threads have left is given up. */
static void let_it_leave_and_borrow(void *context) {
    late_t *late = context;
    pthread_barrier_wait(&late->go);
    pthread_join(late->thread, NULL);
    EXPECT_OK(strata_record_stream(late->rig->s, late->borrowed.ref, STRATA_STREAM_PER_THREAD));
}

TEST(caching_exited, a_thread_that_exits_after_the_wait_for_others_is_waited_for_itself) {
    between_t between;
    RIG(rig, "pytorch", 0);
    strata_stream_t other = rig_stream(&rig);
    late_t late = {.rig = &rig, .borrowed = rig_allocate(&rig, other, 1000)};
    ASSERT_EQ(pthread_barrier_init(&late.ready, NULL, 2) + pthread_barrier_init(&late.go, NULL, 2), 0);
    ASSERT_EQ(pthread_create(&late.thread, NULL, leave_late, &late), 0);
    pthread_barrier_wait(&late.ready);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, use_a_little, &rig), 0);
    pthread_join(thread, NULL);
    between_begin(&between, &rig, STRATA_CALL_synchronise, let_it_leave_and_borrow, &late);
    strata_block_t b = rig_allocate(&rig, other, 5 * MIB);
    ASSERT_TRUE(between_end(&between));
    EXPECT_LT(strata_sim_now(rig.world), late.end);
    EXPECT_NE(b.ptr, late.block.ptr);
    strata_block_t c = rig_allocate(&rig, rig_stream(&rig), 5 * MIB);
    EXPECT_GE(strata_sim_now(rig.world), late.end);
    EXPECT_EQ(c.ptr, late.block.ptr);
    const strata_block_t *left[] = {&late.borrowed, &b, &c};
    for (size_t i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, left[i]->ref));
    pthread_barrier_destroy(&late.ready);
    pthread_barrier_destroy(&late.go);
    EXPECT_OK(strata_validate(rig.s));
}

/* ---- the table of streams does not grow with the threads that there ever were ---- */

static uint32_t entries_of(rig_t *rig) {
    const caching_t *self = caching_of(rig);
    const strata_nodes_t *nodes = caching_ignores_streams(self) ? &self->last.users.nodes : &self->uses.users.nodes;
    return nodes->used - 1 - nodes->unused;
}

static void *own_and_leave(void *context) {
    turns_t *turns = context;
    return use_own_stream(turns->rig);
}

TEST(caching_exited, owners_that_exited_leave_no_entries_after) {
    RIG(rig, "pytorch", 0);
    turns_t turns = {.rig = &rig};
    turns_each(own_and_leave, &turns);
    EXPECT_LE(entries_of(&rig), 6);
    EXPECT_LE(caching_of(&rig)->banks.used, 8);
    EXPECT_OK(strata_validate(rig.s));
}

static void *borrow_and_leave(void *context) {
    turns_t *turns = context;
    rig_borrow(turns->rig, turns->block.ref, STRATA_STREAM_PER_THREAD, MILLISECOND);
    EXPECT_OK(strata_erase_stream(turns->rig->s, turns->block.ref, STRATA_STREAM_PER_THREAD));
    return NULL;
}

TEST(caching_exited, borrowers_that_exited_leave_no_entries_after) {
    RIG(rig, "pytorch", 0);
    turns_t turns = {.rig = &rig, .block = rig_allocate(&rig, rig_stream(&rig), 5 * MIB)};
    turns_each(borrow_and_leave, &turns);
    EXPECT_EQ(entries_of(&rig), 2);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, turns.block.ref));
}

TEST(caching_exited, ignored_threads_that_exited_leave_no_entries_after) {
    RIG(rig, "tinytorch", 0);
    turns_t turns = {.rig = &rig, .size = 5 * MIB};
    turns_each(turns_use_the_same, &turns);
    EXPECT_LE(entries_of(&rig), 3);
    EXPECT_OK(strata_validate(rig.s));
}

/* Names of things that are gone: refs, facades, and all of them in a child of fork(). */
#include <pthread.h>
#include <sched.h>

#include "tests/facade/support/ends.h"
#include "tests/facade/support/fixture.h"

TEST(facade_refs, a_number_that_lives_again_knows_no_earlier_refs) {
    strata_ref_t old[20];
    rig_t rig;
    for (int life = 0; life < 20; life++) {
        rig_open(&rig, "strata", NULL, 0, 0, 1);
        strata_block_t b = rig_allocate(&rig, NULL, 1000);
        old[life] = b.ref;
        for (int i = 0; i < life; i++) {
            EXPECT_NE(old[i], b.ref);
            EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, old[i]));
        }
        /* The same stack number and slot again, with a generation above those of all its lives. */
        if (life > 0) {
            EXPECT_EQ(strata_ref_home(old[life]), strata_ref_home(old[0]));
            EXPECT_EQ(strata_ref_slot(old[life]), strata_ref_slot(old[0]));
            EXPECT_GT(strata_ref_generation(old[life]), strata_ref_generation(old[life - 1]));
        }
        if (life % 2) EXPECT_OK(strata_free(rig.s, b.ref));
        rig_close_by_force(&rig);
    }
}

TEST_RIG(facade_refs, a_double_free_by_pointer_is_found_until_the_address_is_served_again, 0, "strata") {
    strata_block_t a = rig_allocate(rig, NULL, 1000), keep = rig_allocate(rig, NULL, 1000);
    EXPECT_OK(strata_free_pointer(rig->s, a.ptr));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig->s, a.ptr));
    strata_block_t larger = rig_allocate(rig, NULL, 4000);
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig->s, (char *)larger.ptr + 256));
    EXPECT_OK(strata_free_pointer(rig->s, larger.ptr));
    EXPECT_OK(strata_free_pointer(rig->s, keep.ptr));
}

TEST_RIG(facade_refs, a_slot_whose_generations_are_used_up_never_wraps, 0, "strata-malloc") {
    strata_stack_t *stack = rig_stack(rig, NULL);
    strata_block_t a = rig_allocate(rig, NULL, 1000);
    uint32_t slot = strata_ref_slot(a.ref);
    EXPECT_OK(strata_free(rig->s, a.ref));
    /* The free block merged: its slot is unused. Two lives are left to it. */
    strata_slab_record(&stack->slab, slot)->generation = STRATA_GENERATION_LAST - 2;
    strata_ref_t last = 0;
    for (int life = 0; life < 2; life++) {
        a = rig_allocate(rig, NULL, 1000);
        EXPECT_EQ(strata_ref_slot(a.ref), slot);
        EXPECT_EQ(strata_ref_generation(a.ref), STRATA_GENERATION_LAST - 2 + (uint32_t)life);
        last = a.ref;
        EXPECT_OK(strata_free(rig->s, a.ref));
    }
    a = rig_allocate(rig, NULL, 1000);
    EXPECT_NE(strata_ref_slot(a.ref), slot);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, last));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, last + 1));
    EXPECT_EQ(stack->slab.retired, 1);
}

/* ---- threads with old names ---- */

typedef struct old_names {
    strata_t s;
    strata_block_t block;
    _Atomic bool stop;
    _Atomic uint32_t rounds;
} old_names_t;

static void *use_old_names(void *argument) {
    old_names_t *old = argument;
    strata_block_t none;
    while (!atomic_load(&old->stop)) {
        EXPECT_STATUS(STRATA_E_STALE, strata_free(old->s, old->block.ref));
        EXPECT_STATUS(STRATA_E_STALE, strata_record_stream(old->s, old->block.ref, NULL));
        EXPECT_STATUS(STRATA_E_STALE, strata_allocate(old->s, strata_gpu(0), NULL, 8, &none));
        atomic_fetch_add(&old->rounds, 1);
    }
    return NULL;
}

/* A whole one: the old names are used while the new ones live, whatever the schedule. */
static void see_a_round(old_names_t *old) {
    uint32_t seen = atomic_load(&old->rounds);
    while (atomic_load(&old->rounds) - seen < 2) (void)sched_yield();
}

TEST(facade_refs, old_names_may_be_used_while_their_numbers_live_again) {
    old_names_t old = {0};
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    old.s = rig.s;
    old.block = rig_allocate(&rig, NULL, 1000);
    rig_close_by_force(&rig);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, use_old_names, &old), 0);
    for (int life = 0; life < 10; life++) {
        RIG(next, "strata", 0);
        (void)rig_allocate(&next, NULL, 1000);
        see_a_round(&old);
    }
    atomic_store(&old.stop, true);
    pthread_join(thread, NULL);
}

/* ---- fork ---- */

static int open_in_a_child(const ends_t *ends) {
    (void)ends;
    RIG(rig, "strata", 0);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 1000).ref));
    return strata_test_has_failed();
}

TEST(facade_refs, a_child_of_a_process_that_opened_nothing_may_open) {
    if (strata_facade_ever_opened()) TEST_SKIP("this process has opened a facade before: run this test alone");
    EXPECT_EQ(ends_in_child(open_in_a_child, NULL), 0);
}

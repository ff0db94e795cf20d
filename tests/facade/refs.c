/* Names of things that are gone: refs, facades, and all of them in a child of fork(). */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/facade/fixture.h"

static void expect_stale_to_calls_of_blocks(strata_t s, strata_block_t a) {
    strata_block_t b;
    strata_stream_t stream;
    uint64_t pool;
    char text[16];
    EXPECT_STATUS(STRATA_E_STALE, strata_allocate(s, strata_gpu(0), NULL, 8, &b));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free_on(s, a.ref, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_free_pointer(s, a.ptr));
    EXPECT_STATUS(STRATA_E_STALE, strata_free_pointer(s, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_block_of(s, a.ptr, &b));
    EXPECT_STATUS(STRATA_E_STALE, strata_base_pointer(s, a.ptr, &b));
    EXPECT_STATUS(STRATA_E_STALE, strata_allocation_route(s, a.ref, text, sizeof text));
    EXPECT_STATUS(STRATA_E_STALE, strata_retain(s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_record_stream(s, a.ref, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_erase_stream(s, a.ref, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_stream_of(s, a.ref, &stream));
    EXPECT_STATUS(STRATA_E_STALE, strata_pool_of(s, a.ref, &pool));
}

static void expect_stale_to_calls_of_streams(strata_t s) {
    strata_stream_t stream;
    bool same;
    EXPECT_STATUS(STRATA_E_STALE, strata_same_stream(s, strata_gpu(0), NULL, NULL, &same));
    EXPECT_STATUS(STRATA_E_STALE, strata_set_default_stream(s, strata_gpu(0), (strata_stream_t)64));
    EXPECT_STATUS(STRATA_E_STALE, strata_stream_create(s, strata_gpu(0), 0, &stream));
    EXPECT_STATUS(STRATA_E_STALE, strata_stream_synchronize(s, strata_gpu(0), NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_stream_forget(s, strata_gpu(0), (strata_stream_t)64));
    EXPECT_STATUS(STRATA_E_STALE, strata_stream_name(s, strata_gpu(0), (strata_stream_t)64, "copy0"));
}

static void expect_stale_to_other_calls(strata_t s) {
    strata_statistics_t f = {.struct_size = sizeof f};
    uint64_t pool;
    char text[16];
    EXPECT_STATUS(STRATA_E_STALE, strata_trim(s, strata_gpu(0), 0, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_explain(s, text, sizeof text, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_statistics_json(s, text, sizeof text, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_statistics_prometheus(s, text, sizeof text, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_step(s));
    EXPECT_STATUS(STRATA_E_STALE, strata_facade_ready(s));
    EXPECT_STATUS(STRATA_E_STALE, strata_annotate(s, "operator"));
    EXPECT_STATUS(STRATA_E_STALE, strata_release(s, strata_gpu(0), NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_statistics_all(s, strata_gpu(0), &f));
    EXPECT_STATUS(STRATA_E_STALE, strata_statistics_pool(s, strata_gpu(0), STRATA_POOL_ORDINARY, &f));
    EXPECT_STATUS(STRATA_E_STALE, strata_pool(s, "weights", &pool));
    EXPECT_STATUS(STRATA_E_STALE, strata_pool_begin(s, strata_gpu(0), STRATA_POOL_ORDINARY));
    EXPECT_STATUS(STRATA_E_STALE, strata_pool_end(s, strata_gpu(0)));
    EXPECT_STATUS(STRATA_E_STALE, strata_pool_current(s, strata_gpu(0), &pool));
    EXPECT_STATUS(STRATA_E_STALE, strata_validate(s));
    EXPECT_STATUS(STRATA_E_STALE, strata_close(s, STRATA_CLOSE_FORCE, NULL, NULL));
}

TEST(facade_refs, a_closed_facade_is_stale_to_every_call) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free_pointer(rig.s, a.ptr));
    strata_t closed = rig.s;
    rig_close(&rig);
    const strata_t names[] = {closed, 0, UINT64_MAX, closed + 256};
    for (size_t i = 0; i < 4; i++) {
        expect_stale_to_calls_of_blocks(names[i], a);
        expect_stale_to_calls_of_streams(names[i]);
        expect_stale_to_other_calls(names[i]);
    }
}

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

TEST(facade_refs, a_double_free_by_pointer_is_found_until_the_address_is_served_again) {
    RIG(rig, "strata", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 1000), keep = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free_pointer(rig.s, a.ptr));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig.s, a.ptr));
    strata_block_t larger = rig_allocate(&rig, NULL, 4000);
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig.s, (char *)larger.ptr + 256));
    EXPECT_OK(strata_free_pointer(rig.s, larger.ptr));
    EXPECT_OK(strata_free_pointer(rig.s, keep.ptr));
}

TEST(facade_refs, a_chunk_has_no_ref) {
    RIG(rig, "strata", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    strata_stack_t *shared = rig_domain(&rig)->stacks[0];
    ASSERT_TRUE(shared->is_shared);
    EXPECT_EQ(strata_slab_record(&shared->slab, 1)->state, STRATA_RECORD_CHUNK);
    strata_ref_t chunk = strata_ref_of(strata_slab_record(&shared->slab, 1));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, chunk));
    EXPECT_STATUS(STRATA_E_STALE, strata_record_stream(rig.s, chunk, NULL));
    /* The block at the chunk's base is none of the caller's. */
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER,
                  strata_free_pointer(rig.s, (void *)(uintptr_t)strata_slab_record(&shared->slab, 1)->ptr));
    EXPECT_OK(strata_free(rig.s, a.ref));
}

TEST(facade_refs, a_slot_whose_generations_are_used_up_never_wraps) {
    RIG(rig, "strata", 0);
    strata_stack_t *stack = rig_stack(&rig, NULL);
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    uint32_t slot = strata_ref_slot(a.ref);
    EXPECT_OK(strata_free(rig.s, a.ref));
    /* The free block merged: its slot is unused. Two lives are left to it. */
    strata_slab_record(&stack->slab, slot)->generation = STRATA_GENERATION_LAST - 2;
    strata_ref_t last = 0;
    for (int life = 0; life < 2; life++) {
        a = rig_allocate(&rig, NULL, 1000);
        EXPECT_EQ(strata_ref_slot(a.ref), slot);
        EXPECT_EQ(strata_ref_generation(a.ref), STRATA_GENERATION_LAST - 2 + (uint32_t)life);
        last = a.ref;
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
    a = rig_allocate(&rig, NULL, 1000);
    EXPECT_NE(strata_ref_slot(a.ref), slot);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, last));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, last + 1));
    EXPECT_EQ(stack->slab.retired, 1);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_validate(rig.s));
}

/* A block that stays alone between live neighbours keeps its slot: used up, the block moves to another one. */
TEST(facade_refs, a_block_leaves_a_slot_that_is_used_up) {
    static const char *const presets[] = {"strata", "paddle"};
    for (int i = 0; i < 2; i++) {
        static const char *const set[] = {"auto_growth.chunk_size=1MiB"};
        RIG_BY(rig, rig_open(&rig, presets[i], set, 1, 0, 1));
        strata_block_t high = rig_allocate(&rig, NULL, 1024), a = rig_allocate(&rig, NULL, 1024), low;
        low = rig_allocate(&rig, NULL, 1024);
        strata_stack_t *stack = rig_stack(&rig, NULL);
        uint32_t slot = strata_ref_slot(a.ref);
        strata_slab_record(&stack->slab, slot)->generation = STRATA_GENERATION_LAST - 1;
        strata_ref_t ref = strata_ref_make(strata_ref_home(a.ref), slot, STRATA_GENERATION_LAST - 1);
        EXPECT_OK(strata_free(rig.s, ref));
        EXPECT_OK(strata_validate(rig.s));
        EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, ref + 1));
        strata_block_t again = rig_allocate(&rig, NULL, 1024);
        EXPECT_EQ(again.ptr, a.ptr);
        EXPECT_NE(strata_ref_slot(again.ref), slot);
        RIG_FREE(&rig, low, again, high);
        uint64_t released;
        EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
        EXPECT_EQ(released, MIB);
        EXPECT_EQ(stack->slab.retired, 1);
    }
}

/* The block at the chunk's base: the chunk knows it by its slot. */
TEST(facade_refs, the_first_block_of_a_chunk_leaves_a_slot_that_is_used_up) {
    static const char *const set[] = {"auto_growth.chunk_size=4KiB"};
    RIG_BY(rig, rig_open(&rig, "strata", set, 1, 0, 1));
    strata_block_t blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = rig_allocate(&rig, NULL, 1024);
    strata_stack_t *stack = rig_stack(&rig, NULL);
    uint32_t slot = strata_ref_slot(blocks[3].ref);
    EXPECT_LT(blocks[3].ptr, blocks[2].ptr);
    strata_slab_record(&stack->slab, slot)->generation = STRATA_GENERATION_LAST - 1;
    EXPECT_OK(strata_free(rig.s, strata_ref_make(stack->number, slot, STRATA_GENERATION_LAST - 1)));
    EXPECT_OK(strata_validate(rig.s));
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    uint64_t released;
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    EXPECT_EQ(released, 4096);
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
        rig_open(&rig, "strata", NULL, 0, 0, 1);
        strata_block_t a = rig_allocate(&rig, NULL, 1000);
        see_a_round(&old);
        EXPECT_OK(strata_free(rig.s, a.ref));
        rig_close(&rig);
    }
    atomic_store(&old.stop, true);
    pthread_join(thread, NULL);
}

/* ---- fork ---- */

/* Runs `body` in a child; the bits of its answer. */
static int in_child(int (*body)(rig_t *, strata_block_t), rig_t *rig, strata_block_t block) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(body(rig, block));
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define BIT(n, call) ((call) == STRATA_E_FORKED ? 0 : 1 << (n))

static int calls_of_a_child(rig_t *rig, strata_block_t block) {
    strata_block_t b;
    strata_t other;
    strata_statistics_t f = {.struct_size = sizeof f};
    int wrong = BIT(0, strata_allocate(rig->s, rig->gpu, NULL, 1000, &b)) | BIT(1, strata_free(rig->s, block.ref)) |
                BIT(2, strata_free_pointer(rig->s, block.ptr)) | BIT(3, strata_release(rig->s, rig->gpu, NULL)) |
                BIT(4, strata_close(rig->s, STRATA_CLOSE_FORCE, NULL, NULL)) | BIT(5, strata_open(NULL, &other)) |
                BIT(6, strata_statistics_all(rig->s, rig->gpu, &f));
    return wrong | (strata_last_error()->status == STRATA_E_FORKED ? 0 : 1 << 7);
}

static int more_calls_of_a_child(rig_t *rig, strata_block_t block) {
    strata_block_t b;
    return BIT(0, strata_free_on(rig->s, block.ref, NULL)) | BIT(1, strata_record_stream(rig->s, block.ref, (void *)64)) |
           BIT(2, strata_erase_stream(rig->s, block.ref, NULL)) | BIT(3, strata_block_of(rig->s, block.ptr, &b)) |
           BIT(4, strata_stream_forget(rig->s, rig->gpu, (void *)64)) | BIT(5, strata_validate(rig->s)) |
           BIT(6, strata_free_pointer(rig->s, NULL)) | BIT(7, strata_change_strategy(rig->s, NULL));
}

static int open_in_a_child(rig_t *rig, strata_block_t block) {
    (void)block;
    rig_open(rig, "strata", NULL, 0, 0, 1);
    strata_block_t b = rig_allocate(rig, NULL, 1000);
    EXPECT_OK(strata_free(rig->s, b.ref));
    rig_close(rig);
    return strata_test_has_failed();
}

TEST(facade_refs, a_child_of_a_process_that_opened_nothing_may_open) {
    if (strata_facade_ever_opened()) TEST_SKIP("this process has opened a facade before: run this test alone");
    rig_t rig;
    EXPECT_EQ(in_child(open_in_a_child, &rig, (strata_block_t){0}), 0);
}

TEST(facade_refs, a_forked_child_is_told_so_by_every_call) {
    RIG(rig, "strata", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(in_child(calls_of_a_child, &rig, a), 0);
    EXPECT_EQ(in_child(more_calls_of_a_child, &rig, a), 0);
    /* Once pointers are noted their frees go another way. */
    strata_block_t b = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free_pointer(rig.s, b.ptr));
    EXPECT_EQ(in_child(calls_of_a_child, &rig, a), 0);
    EXPECT_OK(strata_free(rig.s, a.ref));
}

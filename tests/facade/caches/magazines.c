/* What threads that share a stream have freed is kept for them apart, and is free memory for everybody who looks. */
#include "allocation/stack/magazines.h"

#include <string.h>

#include "tests/facade/support/fixture.h"

#define SIZE (64ull << 10)
/* Whose caches allow it. */
#define KEEPING                                                                                                                    \
    "strategy: any\nstack: [retry: {timeout: 50ms}, stream_safe, auto_growth: {chunk_size: 1MiB, order: any}, system]\n",          \
        "strategy: vmm\nstack: [retry: {timeout: 50ms}, stream_safe, auto_growth_vmm, vmm]\n"

/* From now on the stream's stack has magazines. */
static strata_stack_t *begin(rig_t *rig, strata_stream_t stream) {
    RIG_FREE(rig, rig_allocate(rig, stream, SIZE));
    strata_stack_t *stack = rig_stack(rig, stream);
    strata_stack_lock_own(stack);
    strata_magazines_begin(stack);
    strata_unlock(&stack->lock);
    return stack;
}

/* Freed, and kept: the cache does not have it. */
static strata_block_t keep(rig_t *rig, strata_stack_t *stack, size_t size) {
    strata_block_t block = rig_allocate(rig, stack->stream, size);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_NE(stack->magazine_use.occupied, 0);
    return block;
}

TEST_RIG(magazines, a_freed_block_comes_back_under_a_new_ref, 0, KEEPING) {
    strata_stack_t *stack = begin(rig, NULL);
    strata_block_t block = keep(rig, stack, SIZE), last = block;
    for (int i = 0; i < 5; i++) {
        strata_block_t again = rig_allocate(rig, NULL, SIZE);
        EXPECT_EQ(again.ptr, block.ptr);
        EXPECT_EQ(again.size, block.size);
        EXPECT_NE(again.ref, last.ref);
        EXPECT_OK(strata_free(rig->s, again.ref));
        last = again;
    }
    EXPECT_NE(stack->magazine_use.occupied, 0);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, block.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, last.ref));
}

/* Otherwise its free would take the slow path. */
TEST_RIG(magazines, a_lent_block_whose_magazine_was_emptied_is_kept_again, 0, KEEPING) {
    strata_stack_t *stack = begin(rig, NULL);
    strata_block_t block = keep(rig, stack, SIZE), lent = rig_allocate(rig, NULL, SIZE);
    EXPECT_EQ(lent.ptr, block.ptr);
    strata_stack_lock_own(stack);
    strata_unlock(&stack->lock);
    EXPECT_EQ(stack->magazine_use.occupied, 0);
    EXPECT_OK(strata_free(rig->s, lent.ref));
    EXPECT_NE(stack->magazine_use.occupied, 0);
}

/* A stack whose every use is to be checked. */
TEST_BY(magazines, who_may_not_go_directly_does_not,
        rig_open_with(rig, "strata", &(strata_sim_options_t){.devices = 1}, STRATA_OPEN_CHECK_STREAM_IDS)) {
    strata_allocator_t allocator;
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_allocator_get(rig->s, rig->gpu, stream, 0, &allocator));
    strata_stack_t *stack = rig_stack(rig, stream);
    const strata_direct_t *never = stack->direct;
    strata_stack_lock_own(stack);
    strata_magazines_begin(stack);
    strata_unlock(&stack->lock);
    EXPECT_TRUE(stack->direct == never);
}

/* Before its refs would become those of another slot, the record counts them again. */
TEST_RIG(magazines, a_block_of_very_many_refs_goes_back_to_its_cache, 0, KEEPING) {
    enum { PAIRS = 100000, LEFT = 150000 };
    strata_stack_t *stack = begin(rig, NULL);
    strata_record_t *record = strata_slab_record(&stack->slab, strata_ref_slot(rig_allocate(rig, NULL, SIZE).ref));
    record->generation = STRATA_GENERATION_LAST - LEFT;
    strata_block_t block = {.ref = strata_ref_of(record)};
    for (int i = 0; i < PAIRS && !strata_test_has_failed(); i++) {
        EXPECT_OK(strata_free(rig->s, block.ref));
        block = rig_allocate(rig, NULL, SIZE);
        if (i == 0) EXPECT_NE(record->generation, strata_ref_generation(block.ref));
    }
    EXPECT_EQ(strata_slab_record(&stack->slab, strata_ref_slot(block.ref))->generation, strata_ref_generation(block.ref));
    EXPECT_OK(strata_free(rig->s, block.ref));
    record->generation = stack->slab.first_generation; /* else the next stack of the number would begin where this one ends */
}

/* With what is in the program's hands, what is kept, and neither. */
static void expect_live(rig_t *rig, uint64_t blocks, uint64_t allocations) {
    strata_statistics_t f = rig_figures(rig);
    EXPECT_EQ(f.requested_bytes, blocks * SIZE);
    EXPECT_EQ(f.allocated_bytes, blocks * SIZE);
    EXPECT_EQ(f.allocations, allocations);
    EXPECT_EQ(f.frees, allocations - blocks);
    EXPECT_EQ(f.peak_allocated_bytes, 2 * SIZE);
}

TEST_RIG(magazines, figures_are_those_of_the_calls, 0, KEEPING) {
    (void)begin(rig, NULL);
    for (int i = 0; i < 10; i++) EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, SIZE).ref));
    strata_block_t a = rig_allocate(rig, NULL, SIZE), b = rig_allocate(rig, NULL, SIZE);
    expect_live(rig, 2, 13);
    EXPECT_OK(strata_free(rig->s, a.ref));
    expect_live(rig, 1, 13);
    for (int i = 0; i < 10; i++) EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, SIZE).ref));
    expect_live(rig, 1, 23);
    EXPECT_OK(strata_free(rig->s, b.ref));
    expect_live(rig, 0, 23);
    EXPECT_GE(rig_figures(rig).cache_hits, 21);
    EXPECT_OK(strata_validate(rig->s));
}

/* Another size, asked while a block is kept, adds nothing to it. */
TEST_RIG(magazines, what_is_kept_is_no_part_of_a_peak, 0, KEEPING) {
    strata_stack_t *stack = begin(rig, NULL);
    EXPECT_OK(strata_reset_peaks(rig->s, rig->gpu));
    (void)keep(rig, stack, SIZE);
    strata_block_t other = rig_allocate(rig, NULL, SIZE / 2);
    EXPECT_EQ(rig_figures(rig).peak_allocated_bytes, SIZE);
    EXPECT_OK(strata_free(rig->s, other.ref));
}

/* Nor does it serve unseen what is one. */
TEST_RIG(magazines, what_comes_back_is_a_part_of_a_peak, 0, KEEPING) {
    strata_stack_t *stack = begin(rig, NULL);
    EXPECT_OK(strata_reset_peaks(rig->s, rig->gpu));
    (void)keep(rig, stack, SIZE);
    strata_block_t other = rig_allocate(rig, NULL, SIZE / 2), again = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_free(rig->s, again.ref));
    EXPECT_OK(strata_free(rig->s, other.ref));
    EXPECT_EQ(rig_figures(rig).peak_allocated_bytes, SIZE + SIZE / 2);
}

/* Nor of what several streams have at once. */
TEST_RIG(magazines, what_other_streams_keep_is_no_part_of_a_peak, 0, KEEPING) {
    strata_stream_t stream = rig_stream(rig);
    strata_stack_t *stack = begin(rig, NULL);
    (void)begin(rig, stream);
    EXPECT_OK(strata_reset_peaks(rig->s, rig->gpu));
    (void)keep(rig, stack, SIZE);
    strata_block_t other = rig_allocate(rig, stream, 2 * SIZE);
    EXPECT_EQ(rig_figures(rig).peak_allocated_bytes, 2 * SIZE);
    EXPECT_OK(strata_free(rig->s, other.ref));
}

TEST_RIG(magazines, what_is_kept_is_idle_and_goes_back, 0, KEEPING) {
    strata_stack_t *stack = begin(rig, NULL);
    (void)keep(rig, stack, SIZE);
    EXPECT_EQ(rig_cached(rig), rig_figures(rig).reserved_bytes);
    (void)keep(rig, stack, SIZE);
    rig_expect_empty(rig);
}

/* A larger request gets what is kept side by side, before the device is asked. */
TEST_RIG(magazines, what_is_kept_serves_a_miss, 0, KEEPING) {
    strata_block_t blocks[64];
    strata_stack_t *stack = begin(rig, NULL);
    uint64_t growths = rig_figures(rig).growths, count = rig_figures(rig).reserved_bytes / SIZE;
    ASSERT_LE(count, COUNT(blocks));
    for (uint64_t i = 0; i < count; i++) blocks[i] = rig_allocate(rig, NULL, SIZE);
    EXPECT_EQ(rig_figures(rig).growths, growths);
    EXPECT_OK(strata_free(rig->s, blocks[3].ref));
    EXPECT_OK(strata_free(rig->s, blocks[4].ref));
    EXPECT_NE(stack->magazine_use.occupied, 0);
    strata_block_t both = rig_allocate(rig, NULL, 2 * SIZE);
    EXPECT_EQ(rig_figures(rig).growths, growths);
    for (uint64_t i = 0; i < count; i++)
        if (i != 3 && i != 4) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_OK(strata_free(rig->s, both.ref));
}

/* What may be done with a block that was lent from a magazine, and not with one that is kept there. */
TEST_RIG(magazines, a_lent_block_is_a_block_and_a_kept_one_is_none, 0, KEEPING) {
    strata_stack_t *stack = begin(rig, NULL);
    strata_stream_t other = rig_stream(rig), owner = NULL;
    strata_block_t kept = keep(rig, stack, SIZE);
    EXPECT_STATUS(STRATA_E_STALE, strata_record_stream(rig->s, kept.ref, other));
    (void)keep(rig, stack, SIZE);
    strata_block_t lent = rig_allocate(rig, NULL, SIZE);
    EXPECT_NE(stack->magazine_use.occupied, 0);
    EXPECT_OK(strata_stream_of(rig->s, lent.ref, &owner));
    rig_borrow(rig, lent.ref, other, 1000000);
    EXPECT_OK(strata_free(rig->s, lent.ref));
    EXPECT_EQ(rig_figures(rig).deferred_frees, 1);
    strata_block_t next = rig_allocate(rig, NULL, SIZE);
    EXPECT_NE(next.ptr, lent.ptr);
    EXPECT_OK(strata_free(rig->s, next.ref));
}

TEST_RIG(magazines, by_pointer_too, 0, KEEPING) {
    strata_block_t first = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_free_pointer(rig->s, first.ptr));
    strata_stack_t *stack = begin(rig, NULL);
    (void)keep(rig, stack, SIZE);
    for (int i = 0; i < 3; i++) {
        strata_block_t block = rig_allocate(rig, NULL, SIZE);
        uint16_t keeps = stack->magazine_use.occupied;
        EXPECT_OK(strata_free_pointer(rig->s, block.ptr));
        EXPECT_NE(keeps & stack->magazine_use.occupied, 0);
        strata_block_t again = rig_allocate(rig, NULL, SIZE);
        EXPECT_EQ(again.ptr, block.ptr);
        EXPECT_OK(strata_free_pointer(rig->s, again.ptr));
    }
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_free_pointer(rig->s, block.ptr));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig->s, block.ptr));
    EXPECT_OK(strata_validate(rig->s));
}

TEST_RIG(magazines, an_allocator_object_has_the_same, 0, KEEPING) {
    strata_allocator_t allocator;
    ASSERT_OK(strata_allocator_get(rig->s, rig->gpu, NULL, 0, &allocator));
    strata_stack_t *stack = begin(rig, NULL);
    strata_block_t block, again;
    ASSERT_OK(strata_allocator_allocate(allocator, SIZE, &block));
    EXPECT_OK(strata_allocator_free(allocator, block.ref));
    EXPECT_NE(stack->magazine_use.occupied, 0);
    ASSERT_OK(strata_allocator_allocate(allocator, SIZE, &again));
    EXPECT_EQ(again.ptr, block.ptr);
    EXPECT_OK(strata_allocator_free(allocator, again.ref));
    EXPECT_NE(stack->magazine_use.occupied, 0);
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_free(allocator, again.ref));
}

/* The facade of another program may not free it, and has a stack of the same number in none of its calls. */
TEST_RIG(magazines, another_facade_is_refused, 0, KEEPING) {
    RIG_STACK(other, "stream_safe, auto_growth, system", 0);
    strata_stack_t *stack = begin(rig, NULL);
    (void)keep(rig, stack, SIZE);
    strata_block_t lent = rig_allocate(rig, NULL, SIZE);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(other.s, lent.ref));
    EXPECT_OK(strata_free(rig->s, lent.ref));
}

/* A handle of an earlier life of the stack's number gets nothing that the next one keeps. */
TEST_RIG(magazines, what_one_stream_keeps_no_other_gets, 0, KEEPING) {
    strata_stream_t gone = rig_stream(rig);
    strata_allocator_t allocator;
    strata_block_t block;
    ASSERT_OK(strata_allocator_get(rig->s, rig->gpu, gone, 0, &allocator));
    ASSERT_OK(strata_allocator_allocate(allocator, SIZE, &block));
    EXPECT_OK(strata_allocator_free(allocator, block.ref));
    uint16_t number = rig_stack(rig, gone)->number;
    rig_end_stream(rig, gone);
    rig_expect_empty(rig);
    strata_stack_t *next = begin(rig, rig_stream(rig));
    EXPECT_EQ(next->number, number);
    strata_block_t kept = keep(rig, next, SIZE);
    if (strata_allocator_allocate(allocator, SIZE, &block) == STRATA_OK) {
        EXPECT_NE(block.ptr, kept.ptr);
        EXPECT_OK(strata_free(rig->s, block.ref));
    }
    EXPECT_OK(strata_validate(rig->s));
}

/* ---- who stops it ---- */

/* What a forgotten stream's stack keeps is anybody's after the stream's work. */
TEST_RIG(magazines, a_forgotten_stream_keeps_nothing, 0, KEEPING) {
    strata_stream_t stream = rig_stream(rig);
    strata_stack_t *stack = begin(rig, stream);
    (void)keep(rig, stack, SIZE);
    strata_block_t live = rig_allocate(rig, stream, SIZE);
    rig_end_stream(rig, stream);
    EXPECT_OK(strata_free(rig->s, live.ref));
    rig_expect_empty(rig);
}

/* A lent block is live, and a kept one is not. */
TEST_RIG(magazines, a_change_of_strategy_waits_for_what_is_lent_alone, 0, KEEPING) {
    strata_stack_t *stack = begin(rig, NULL);
    (void)keep(rig, stack, SIZE);
    strata_block_t lent = rig_allocate(rig, NULL, SIZE);
    strata_open_options_t options = {
        .struct_size = sizeof options, .preset = "paddle", .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_STATUS(STRATA_E_BUSY, strata_change_strategy(rig->s, &options));
    EXPECT_OK(strata_free(rig->s, lent.ref));
    strata_block_t kept = keep(rig, stack, SIZE);
    EXPECT_OK(strata_change_strategy(rig->s, &options));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, kept.ref));
    RIG_FREE(rig, rig_allocate(rig, NULL, SIZE));
}

/* The peers' best fit by address has no magazines, and neither has a cache that several stacks share. */
TEST_RIG(magazines, other_caches_have_none, 0, "stack: [stream_safe, auto_growth: {order: address}, system]\n",
         "stack: [stream_safe, auto_growth: {order: any, free_idle_chunk: true}, system]\n", "paddle", "pytorch", "tensorflow",
         "cuda_malloc_async") {
    EXPECT_EQ(strata_magazines_of(begin(rig, NULL)), NULL);
}

/* ---- threads ---- */

typedef struct sharer {
    rig_t *rig;
    strata_ref_t ref;
    uint32_t pairs;
    uint64_t sizes; /* how many */
    strata_status_t status;
} sharer_t;

static void *free_it(void *context) {
    sharer_t *sharer = context;
    sharer->status = strata_free(sharer->rig->s, sharer->ref);
    return NULL;
}

/* Its lender finds it no more. */
TEST_RIG(magazines, another_thread_frees_what_was_lent, 0, KEEPING) {
    strata_stack_t *stack = begin(rig, NULL);
    (void)keep(rig, stack, SIZE);
    strata_block_t lent = rig_allocate(rig, NULL, SIZE);
    EXPECT_NE(stack->magazine_use.occupied, 0);
    sharer_t sharer = {.rig = rig, .ref = lent.ref};
    in_another_thread(free_it, &sharer);
    EXPECT_OK(sharer.status);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, lent.ref));
    strata_block_t a = rig_allocate(rig, NULL, SIZE), b = rig_allocate(rig, NULL, SIZE);
    EXPECT_NE(a.ptr, b.ptr);
    RIG_FREE(rig, a, b);
}

static void *share(void *context) {
    sharer_t *sharer = context;
    for (uint32_t i = 0; i < sharer->pairs && sharer->status == STRATA_OK; i++) {
        strata_block_t block;
        sharer->status = strata_allocate(sharer->rig->s, sharer->rig->gpu, NULL, SIZE * (1 + i % sharer->sizes), &block);
        if (sharer->status == STRATA_OK) sharer->status = strata_free(sharer->rig->s, block.ref);
    }
    return NULL;
}

/* Four threads at once, until the stack is as wanted, or for long enough to be sure. */
static bool share_until(rig_t *rig, uint64_t sizes, bool wanted) {
    strata_stack_t *stack = rig_stack(rig, NULL);
    for (int round = 0; round < 2000; round++) {
        sharer_t sharers[4];
        for (int i = 0; i < 4; i++) sharers[i] = (sharer_t){.rig = rig, .pairs = 2000, .sizes = sizes};
        in_threads(share, sharers, sizeof *sharers, 4);
        for (int i = 0; i < 4; i++) EXPECT_OK(sharers[i].status);
        if ((strata_magazines_of(stack) != NULL) == wanted) return true;
    }
    return false;
}

/* Its layers may be gone already. */
TEST_RIG(magazines, a_stack_that_is_being_ended_gets_none, 0, KEEPING) {
    strata_stack_t *stack = rig_stack(rig, NULL);
    strata_stack_lock_own(stack);
    stack->open = false;
    for (int i = 0; i < 1000; i++) strata_magazines_note_contention(stack);
    EXPECT_EQ(strata_magazines_of(stack), NULL);
    stack->open = true;
    for (int i = 0; i < 1000; i++) strata_magazines_note_contention(stack);
    EXPECT_NE(strata_magazines_of(stack), NULL);
    strata_unlock(&stack->lock);
}

TEST_RIG(magazines, threads_that_meet_get_them, 0, KEEPING) {
    RIG_FREE(rig, rig_allocate(rig, NULL, SIZE));
    EXPECT_EQ(strata_magazines_of(rig_stack(rig, NULL)), NULL);
    EXPECT_TRUE(share_until(rig, 1, true));
    EXPECT_EQ(rig_figures(rig).allocated_bytes, 0);
    EXPECT_EQ(rig_figures(rig).allocations, rig_figures(rig).frees);
    EXPECT_OK(strata_validate(rig->s));
}

/* Sizes that come in turn are more than a magazine keeps: each block goes for the next, and nothing is served. */
TEST_RIG(magazines, those_that_serve_little_are_given_up, 0, KEEPING) {
    strata_stack_t *stack = begin(rig, NULL);
    sharer_t alone = {.rig = rig, .pairs = 1000, .sizes = 9};
    (void)share(&alone);
    EXPECT_EQ(strata_magazines_of(stack), NULL);
    EXPECT_GT(stack->magazine_use.extra_contended, 0);
    EXPECT_EQ(stack->magazine_use.occupied, 0);
    strata_stack_lock_own(stack);
    strata_magazines_begin(stack);
    strata_unlock(&stack->lock);
    alone = (sharer_t){.rig = rig, .pairs = 1000, .sizes = 3};
    (void)share(&alone);
    EXPECT_NE(strata_magazines_of(stack), NULL);
}

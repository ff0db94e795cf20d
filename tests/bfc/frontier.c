/* Frees of bfc that carry a count, and the frontier that passes them. */
#include <pthread.h>

#include "tests/bfc/bfc.h"
#include "tests/facade/support/sleepers.h"

static uint64_t count_of(rig_t *rig) {
    uint64_t count = 0;
    EXPECT_OK(strata_next_count(rig->s, rig->gpu, &count));
    return count;
}

static void pass(rig_t *rig, uint64_t count) { EXPECT_OK(strata_set_safe_frontier(rig->s, rig->gpu, count)); }

/* Blocks of a MiB side by side at the low end of the first region. */
static void fill(rig_t *rig, const char *options, strata_block_t *blocks, size_t count) {
    bfc_open(rig, options, 0);
    for (size_t i = 0; i < count; i++) blocks[i] = rig_allocate(rig, NULL, MIB);
}

#define FIXED "timestamps: true, memory_limit: 16MiB, allow_growth: false"

TEST(bfc_frontier, what_it_has_not_passed_keeps_to_itself) {
    rig_t rig;
    strata_block_t b[4];
    fill(&rig, FIXED, b, 4);
    const bfc_t *self = bfc_of(&rig);
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, b[i].ref));
    uint64_t mine = count_of(&rig);
    EXPECT_EQ(self->stamp_count, 3);
    EXPECT_EQ(self->idle.count, 4); /* and what was never served */
    EXPECT_OK(strata_validate(rig.s));
    pass(&rig, mine);
    strata_block_t all = rig_allocate(&rig, NULL, 3 * MIB);
    EXPECT_EQ(all.ptr, b[0].ptr);
    EXPECT_EQ(self->stamp_count, 0);
    EXPECT_EQ(self->forced_merges, 0);
    RIG_FREE(&rig, all, b[3]);
    EXPECT_OK(strata_validate(rig.s));
    rig_close(&rig);
}

/* A count is passed by larger frontiers alone. */
TEST(bfc_frontier, stands_after_smaller_counts_alone) {
    rig_t rig;
    strata_block_t b[3];
    fill(&rig, FIXED, b, 3);
    const bfc_t *self = bfc_of(&rig);
    uint64_t before = count_of(&rig);
    EXPECT_OK(strata_free(rig.s, b[0].ref)); /* at before + 1 */
    EXPECT_OK(strata_free(rig.s, b[1].ref)); /* at before + 2 */
    pass(&rig, before + 1);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 8 * MIB).ref));
    EXPECT_EQ(self->stamp_count, 3);
    pass(&rig, before + 2);
    pass(&rig, before); /* ignored */
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 8 * MIB).ref));
    EXPECT_EQ(self->frontier, before + 2);
    EXPECT_EQ(bfc_freed_at(self, bfc_block(self, strata_ref_slot(b[0].ref))), 0);
    EXPECT_EQ(bfc_freed_at(self, bfc_block(self, strata_ref_slot(b[1].ref))), before + 2);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, b[2].ref));
    rig_close(&rig);
}

/* The smallest block that fits was freed too late: the next one serves. */
TEST(bfc_frontier, a_request_says_up_to_which_count_it_may_have_memory) {
    strata_block_t b[6];
    RIG_BY(rig, bfc_open(&rig, FIXED, 0));
    static const size_t sizes[] = {3, 1, 2, 1, 1, 1};
    for (size_t i = 0; i < 6; i++) b[i] = rig_allocate(&rig, NULL, sizes[i] * MIB);
    EXPECT_OK(strata_free(rig.s, b[0].ref));
    uint64_t mine = count_of(&rig);
    EXPECT_OK(strata_free(rig.s, b[2].ref));
    strata_block_t early = bfc_before(&rig, NULL, 3 * MIB / 2 + 1, mine);
    EXPECT_EQ(early.ptr, b[0].ptr);
    strata_block_t none = bfc_before(&rig, NULL, 3 * MIB / 2 + 1, 1);
    EXPECT_GT((char *)none.ptr, (char *)b[5].ptr);
    strata_block_t any = rig_allocate(&rig, NULL, 3 * MIB / 2 + 1);
    EXPECT_EQ(any.ptr, b[2].ptr);
    strata_block_t rest[] = {early, none, any, b[1], b[3], b[4], b[5]};
    bfc_free_all(&rig, rest, 7);
}

/* The place of the last step serves a request that says exactly the count of its free, and none that says less. */
TEST(bfc_frontier, a_step_repeats_what_was_freed_exactly_then) {
    for (uint64_t less = 0; less <= 1; less++) {
        RIG_BY(rig, bfc_open(&rig, FIXED ", stable_addresses: true", 0));
        const bfc_t *self = bfc_of(&rig);
        strata_block_t low = rig_allocate(&rig, NULL, MIB), guard = rig_allocate(&rig, NULL, 256);
        EXPECT_OK(strata_step(rig.s));
        strata_block_t high = rig_allocate(&rig, NULL, MIB);
        EXPECT_OK(strata_free(rig.s, low.ref));
        EXPECT_OK(strata_free(rig.s, high.ref));
        uint64_t freed = bfc_freed_at(self, bfc_block(self, strata_ref_slot(high.ref)));
        EXPECT_OK(strata_step(rig.s));
        strata_block_t again = bfc_before(&rig, NULL, MIB, freed - less);
        EXPECT_EQ(again.ptr, less ? low.ptr : high.ptr);
        RIG_FREE(&rig, guard, again);
    }
}

/* What is left of a block that was cut was freed when the block was. */
TEST(bfc_frontier, the_rest_of_a_block_inherits_its_count) {
    strata_block_t b[2];
    RIG_BY(rig, bfc_open(&rig, FIXED, 0));
    b[0] = rig_allocate(&rig, NULL, 4 * MIB);
    b[1] = rig_allocate(&rig, NULL, MIB);
    uint64_t mine = count_of(&rig);
    EXPECT_OK(strata_free(rig.s, b[0].ref));
    strata_block_t low = bfc_before(&rig, NULL, MIB, mine + 1), other = bfc_before(&rig, NULL, MIB, mine);
    EXPECT_EQ(low.ptr, b[0].ptr);
    EXPECT_GT((char *)other.ptr, (char *)b[1].ptr);
    EXPECT_EQ(bfc_of(&rig)->stamp_count, 1);
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t rest[] = {low, other, b[1]};
    bfc_free_all(&rig, rest, 3);
}

/* Rather than fail, a request without a count merges what is held apart, in the order of the frees, until it has enough. */
TEST(bfc_frontier, out_of_memory_merges_before_the_frontier_has_passed) {
    rig_t rig;
    strata_block_t b[16];
    fill(&rig, FIXED, b, 16);
    bfc_t *self = bfc_of(&rig);
    for (int i = 0; i < 12; i++) EXPECT_OK(strata_free(rig.s, b[i].ref));
    uint64_t mine = count_of(&rig);
    strata_allocate_options_t bounded = {.struct_size = sizeof bounded, .size = 3 * MIB, .freed_before = mine};
    strata_block_t three;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, NULL, &bounded, &three));
    EXPECT_EQ(self->forced_merges, 0);
    three = rig_allocate(&rig, NULL, 3 * MIB);
    EXPECT_EQ(three.ptr, b[0].ptr);
    EXPECT_EQ(three.size, 4 * MIB); /* the third of them took the two before it and the one after it */
    EXPECT_EQ(self->forced_merges, 1);
    EXPECT_GT(self->stamp_count, 6); /* the others wait on */
    EXPECT_OK(strata_validate(rig.s));
    pass(&rig, mine);
    strata_block_t eight = rig_allocate(&rig, NULL, 8 * MIB);
    EXPECT_EQ((char *)eight.ptr, (char *)b[0].ptr + 4 * MIB);
    EXPECT_EQ(self->stamp_count, 0);
    RIG_FREE(&rig, three, eight);
    bfc_free_all(&rig, b + 12, 4);
    rig_close(&rig);
}

/* Before any region goes back. */
TEST(bfc_frontier, what_is_held_apart_merges_before_regions_go_back) {
    strata_block_t b[4];
    RIG_BY(rig, bfc_open(&rig, "timestamps: true, memory_limit: 6MiB", 0));
    for (int i = 0; i < 4; i++) b[i] = rig_allocate(&rig, NULL, i < 2 ? MIB : 2 * MIB);
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 2);
    for (int i = 2; i < 4; i++) EXPECT_OK(strata_free(rig.s, b[i].ref));
    strata_block_t four = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_EQ(four.ptr, b[2].ptr);
    EXPECT_EQ(bfc_of(&rig)->forced_merges, 1);
    EXPECT_EQ(bfc_of(&rig)->collections, 0);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 2);
    EXPECT_OK(strata_free(rig.s, four.ref));
    bfc_free_all(&rig, b, 2);
}

/* Of two blocks that merge by force the later count stays. */
TEST(bfc_frontier, a_forced_merge_keeps_the_later_count) {
    rig_t rig;
    strata_block_t b[16], none;
    fill(&rig, FIXED, b, 16);
    EXPECT_OK(strata_free(rig.s, b[0].ref));
    uint64_t mine = count_of(&rig);
    EXPECT_OK(strata_free(rig.s, b[1].ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 3 * MIB, &none));
    strata_allocate_options_t bounded = {.struct_size = sizeof bounded, .size = 2 * MIB, .freed_before = mine};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, NULL, &bounded, &none));
    strata_block_t two = rig_allocate(&rig, NULL, 2 * MIB);
    EXPECT_EQ(two.ptr, b[0].ptr);
    EXPECT_OK(strata_free(rig.s, two.ref));
    bfc_free_all(&rig, b + 2, 14);
    rig_close(&rig);
}

/* ---- two streams ---- */

/* A block whose work the frontier has passed reaches another stream without a wait; one that it has not, after one. */
TEST(bfc_frontier, spares_another_stream_the_wait) {
    for (int passed = 0; passed < 2; passed++) {
        RIG_BY(rig, bfc_open(&rig, FIXED, 0));
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, one, 16 * MIB);
        rig_work(&rig, one, MILLISECOND, a.ref);
        EXPECT_OK(strata_free(rig.s, a.ref));
        uint64_t mine = count_of(&rig), waits = rig_calls(&rig, STRATA_CALL_synchronise);
        rig_advance(&rig, 2 * MILLISECOND);
        if (passed) pass(&rig, mine);
        strata_block_t b = rig_allocate(&rig, two, 16 * MIB);
        EXPECT_EQ(b.ptr, a.ptr);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise) > waits, !passed);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

/* So does a request that says what it may have. */
TEST(bfc_frontier, a_request_that_knows_is_not_made_to_wait) {
    RIG_BY(rig, bfc_open(&rig, FIXED, 0));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 16 * MIB);
    rig_work(&rig, one, MILLISECOND, a.ref);
    EXPECT_OK(strata_free(rig.s, a.ref));
    uint64_t mine = count_of(&rig), waits = rig_calls(&rig, STRATA_CALL_synchronise);
    rig_advance(&rig, 2 * MILLISECOND);
    strata_block_t b = bfc_before(&rig, two, 16 * MIB, mine);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), waits);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* A block that could not be given a count merges by force with none that has one: that other's would vouch for its work too. */
TEST(bfc_frontier, vouches_for_no_work_of_a_block_without_a_count) {
    for (int low = 0; low < 2; low++) {
        RIG_BY(rig, bfc_open(&rig, FIXED, 0));
        bfc_t *self = bfc_of(&rig);
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        strata_block_t b[2] = {rig_allocate(&rig, one, 8 * MIB), rig_allocate(&rig, one, 8 * MIB)}, none;
        EXPECT_OK(strata_free(rig.s, b[!low].ref));
        uint64_t mine = count_of(&rig), capacity = self->stamps.capacity;
        rig_work(&rig, one, MILLISECOND, b[low].ref);
        uint64_t end = strata_sim_stream_end(rig.devices[0], one);
        self->stamps.capacity = self->stamps.used;
        EXPECT_OK(strata_free(rig.s, b[low].ref));
        self->stamps.capacity = (uint32_t)capacity;
        EXPECT_EQ(self->stamp_count, 1);
        (void)strata_allocate(rig.s, rig.gpu, two, 17 * MIB, &none); /* too much: all merges by force that may */
        EXPECT_EQ(self->forced_merges, 1);
        EXPECT_OK(strata_validate(rig.s));
        strata_block_t got[2];
        for (int i = 0; i < 2; i++) {
            got[i] = bfc_before(&rig, two, 8 * MIB, mine);
            EXPECT_TRUE(got[i].ptr == b[!low].ptr || strata_sim_now(rig.world) >= end);
        }
        bfc_free_all(&rig, got, 2);
    }
}

/* ---- waiting ---- */

typedef struct waiter {
    rig_t *rig;
    pthread_t thread;
    strata_status_t status;
    strata_block_t block;
    uint64_t mine;
} waiter_t;

static void *ask(void *context) {
    waiter_t *w = context;
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 12 * MIB, .freed_before = 1};
    w->status = strata_allocate_with(w->rig->s, w->rig->gpu, NULL, &options, &w->block);
    return NULL;
}

/* A request that may have nothing of what was freed waits until the frontier moves. */
TEST(bfc_frontier, wakes_who_waits_for_memory) {
    RIG(rig,
        "version: 1\nstack:\n  - retry: {timeout: 20s, steps: wait}\n  - bfc: {garbage_collection: false, " FIXED "}\n  - system\n",
        0);
    (void)count_of(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 8 * MIB), b = rig_allocate(&rig, NULL, 8 * MIB);
    RIG_FREE(&rig, a, b);
    uint64_t mine = count_of(&rig);
    waiter_t w = {.rig = &rig, .mine = mine};
    ASSERT_EQ(pthread_create(&w.thread, NULL, ask, &w), 0);
    wait_for_sleeper(&rig);
    pass(&rig, mine);
    pthread_join(w.thread, NULL);
    EXPECT_OK(w.status);
    EXPECT_OK(strata_free(rig.s, w.block.ref));
}

/* ---- what is not there ---- */

TEST(bfc_frontier, is_refused_where_frees_carry_no_count) {
    static const char *const presets[] = {"tensorflow", "strata"};
    for (size_t i = 0; i < 2; i++) {
        RIG(rig, presets[i], 0);
        uint64_t first = count_of(&rig);
        EXPECT_EQ(count_of(&rig), first + 1);
        EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_set_safe_frontier(rig.s, rig.gpu, first), "bfc.timestamps: true");
    }
}

/* A frontier that is ahead of the counter stands for what is freed later too. */
TEST(bfc_frontier, may_be_ahead) {
    rig_t rig;
    strata_block_t b[2];
    fill(&rig, FIXED, b, 2);
    pass(&rig, 1000);
    bfc_free_all(&rig, b, 2);
    EXPECT_EQ(bfc_of(&rig)->stamp_count, 2);
    strata_block_t two = rig_allocate(&rig, NULL, 16 * MIB);
    EXPECT_EQ(two.ptr, b[0].ptr);
    EXPECT_OK(strata_free(rig.s, two.ref));
    rig_close(&rig);
}

/* Counts of random frees: in any order of requests, merges and frontiers the structure holds. */
TEST(bfc_frontier, random_programs_keep_the_structure) {
    for (uint64_t seed = 1; seed <= 12; seed++) {
        strata_block_t held[40] = {{.ref = 0}};
        uint64_t random = seed;
        RIG_BY(rig, bfc_open(&rig, "timestamps: true, memory_limit: 24MiB, memory_debug: true", 0));
        for (int i = 0; i < 40; i++) (void)count_of(&rig);
        for (int i = 0; i < 1500; i++) {
            strata_block_t *b = &held[bfc_next(&random, 40)];
            if (b->ref) EXPECT_OK(strata_free(rig.s, b->ref));
            b->ref = 0;
            strata_allocate_options_t o = {.struct_size = sizeof o, .size = 1 + bfc_next(&random, MIB)};
            if (bfc_next(&random, 3) == 0) o.freed_before = count_of(&rig) - bfc_next(&random, 30);
            strata_status_t status = strata_allocate_with(rig.s, rig.gpu, NULL, &o, b);
            EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_NO_MEMORY);
            if (bfc_next(&random, 20) == 0) pass(&rig, count_of(&rig) - bfc_next(&random, 20));
            if (i % 50 == 0) EXPECT_OK(strata_validate(rig.s));
        }
        bfc_free_all(&rig, held, 40);
        pass(&rig, count_of(&rig));
        strata_block_t last = rig_allocate(&rig, NULL, 256);
        EXPECT_EQ(bfc_of(&rig)->stamp_count, 0);
        EXPECT_OK(strata_free(rig.s, last.ref));
    }
}

/* Patience: growth waits for what is freed already and only waits for the GPU. */
#include <stdio.h>

#include "tests/facade/support/fixture.h"

static const uint64_t ms = 1000 * 1000;

/* Patience is for what will do: once a part has come that does not serve, and what is left is too little, the cache grows. */
TEST_RIG(facade_patience, it_waits_for_enough_alone, 0,
         "stack: [retry: {patience: true, depth: 1}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]") {
    strata_stream_t owner = rig_stream(rig), soon = rig_stream(rig), late = rig_stream(rig);
    strata_block_t blocks[2] = {rig_allocate(rig, owner, 5 * MIB), rig_allocate(rig, owner, 5 * MIB)};
    rig_borrow(rig, blocks[0].ref, soon, 2 * ms);
    rig_borrow(rig, blocks[1].ref, late, 100 * ms);
    RIG_FREE(rig, blocks[0], blocks[1]);
    uint64_t began = strata_sim_now(rig->world), end = strata_sim_stream_end(rig->devices[0], soon);
    strata_block_t block = rig_allocate(rig, owner, 6 * MIB);
    EXPECT_EQ(rig_figures(rig).growths, 3);
    EXPECT_GE(strata_sim_now(rig->world), end);
    EXPECT_LT(strata_sim_now(rig->world), began + 4 * ms);
    EXPECT_OK(strata_free(rig->s, block.ref));
    rig_advance(rig, 100 * ms);
}

/* As long as what is left may do, the wait goes on: two parts side by side serve what neither does. */
TEST_RIG(facade_patience, a_part_that_does_not_do_is_no_end_of_the_wait, 0,
         "stack: [retry: {patience: true, depth: 1}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]") {
    strata_block_t parts[4];
    strata_stream_t owner = rig_stream(rig), borrowers[3] = {rig_stream(rig), rig_stream(rig), rig_stream(rig)};
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, owner, 20 * MIB).ref));
    for (int i = 0; i < 4; i++) parts[i] = rig_allocate(rig, owner, 5 * MIB);
    for (int i = 0; i < 4; i++)
        rig_borrow(rig, parts[i].ref, borrowers[i < 2 ? i : 2], i < 2 ? (uint64_t)(2 + 2 * i) * ms : 50 * ms);
    rig_free(rig, parts, 4);
    uint64_t end = rig_stream_end(rig, borrowers[1]);
    strata_block_t block = rig_allocate(rig, owner, 8 * MIB);
    EXPECT_EQ(rig_figures(rig).growths, 1);
    EXPECT_GE(strata_sim_now(rig->world), end);
    EXPECT_LT(strata_sim_now(rig->world), end + 4 * ms);
    EXPECT_OK(strata_free(rig->s, block.ref));
    rig_advance(rig, 100 * ms);
}

/* A host that polls cannot predict the end of the work. It waits until the timeout once for each size, and again much later. */
TEST_BY(facade_patience, it_waits_no_longer_than_the_timeout_and_not_again_for_that_size,
        rig_open_with(rig, "stack: [retry: {patience: true, depth: 1, timeout: 5ms}, stream_safe, auto_growth, system]\n",
                      &(strata_sim_options_t){.host_jitter = 2}, 0)) {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    static const struct {
        uint64_t size, quiet; /* bytes, and ns before the request */
        bool waits;
    } rounds[] = {{5 * MIB, 0, true},  {5 * MIB, 0, false}, {6 * MIB, 0, true},
                  {5 * MIB, 0, false}, {6 * MIB, 0, false}, {5 * MIB, UINT64_C(600) * 1000 * 1000, true}};
    for (size_t i = 0; i < COUNT(rounds); i++) {
        rig_advance(rig, rounds[i].quiet);
        (void)rig_free_deferred(rig, owner, borrower, rounds[i].size, 50 * ms);
        uint64_t began = strata_sim_now(rig->world), growths = rig_figures(rig).growths;
        strata_block_t block = rig_allocate(rig, owner, rounds[i].size);
        EXPECT_EQ(rig_figures(rig).growths, growths + 1);
        uint64_t waited = strata_sim_now(rig->world) - began;
        if (rounds[i].waits) EXPECT_GE(waited, 5 * ms);
        EXPECT_LT(waited, rounds[i].waits ? 9 * ms : ms);
        EXPECT_OK(strata_free(rig->s, block.ref));
        rig_advance(rig, 100 * ms);
        EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    }
}

/* A simulated device predicts when work ends. A wait that would time out does not begin, but a later one does. */
TEST_RIG(facade_patience, it_begins_no_wait_that_would_time_out, 0,
         "stack: [retry: {patience: true, depth: 1, timeout: 5ms}, stream_safe, auto_growth, system]") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    static const struct {
        uint64_t work;
        bool waits;
    } rounds[] = {{10 * ms, false}, {3 * ms, true}};
    for (size_t i = 0; i < COUNT(rounds); i++) {
        (void)rig_free_deferred(rig, owner, borrower, 5 * MIB, rounds[i].work);
        uint64_t began = strata_sim_now(rig->world), growths = rig_figures(rig).growths;
        strata_block_t block = rig_allocate(rig, owner, 5 * MIB);
        EXPECT_EQ(rig_figures(rig).growths, growths + !rounds[i].waits);
        if (!rounds[i].waits) EXPECT_LT(strata_sim_now(rig->world), began + ms);
        EXPECT_OK(strata_free(rig->s, block.ref));
        rig_advance(rig, 10 * ms);
        EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    }
}

/* Enough must be free in time: one block of two ends within the timeout, and the request needs both. */
TEST_RIG(facade_patience, a_prediction_counts_the_bytes_that_are_free_in_time, 0,
         "stack: [retry: {patience: true, depth: 1, timeout: 5ms}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]") {
    strata_stream_t owner = rig_stream(rig), borrowers[2] = {rig_stream(rig), rig_stream(rig)};
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, owner, 10 * MIB).ref));
    strata_block_t parts[2] = {rig_allocate(rig, owner, 5 * MIB), rig_allocate(rig, owner, 5 * MIB)};
    rig_borrow(rig, parts[0].ref, borrowers[0], 3 * ms);
    rig_borrow(rig, parts[1].ref, borrowers[1], 50 * ms);
    RIG_FREE(rig, parts[0], parts[1]);
    uint64_t began = strata_sim_now(rig->world);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, owner, 9 * MIB).ref));
    EXPECT_EQ(rig_figures(rig).growths, 2);
    EXPECT_LT(strata_sim_now(rig->world), began + ms);
    rig_advance(rig, 100 * ms);
}

/* One chunk in the cache waits for its borrower's work, which runs until `end` ns after the request began: does the cache grow? */
static bool grows(const char *retry, uint64_t end) {
    char preset[256];
    snprintf(preset, sizeof preset, "version: 1\nstack:\n  - retry: {%s}\n  - stream_safe\n  - auto_growth\n  - system\n", retry);
    RIG(rig, preset, 0);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_free_deferred(&rig, owner, borrower, 5 * MIB, 1000 * 1000);
    uint64_t runs_until = strata_sim_stream_end(rig.devices[0], borrower);
    strata_sim_advance_to(rig.world, runs_until - end);
    strata_block_t b = rig_allocate(&rig, owner, 5 * MIB);
    bool grew = rig_figures(&rig).growths == 2;
    EXPECT_EQ(grew, b.ptr != a.ptr);
    return grew;
}

/* Other memory is for when there is none: that the device's own may come back soon is no reason to leave it. */
TEST_RIG(facade_patience, a_growth_that_waits_is_no_reason_to_fall_back, 0,
         "version: 1\nstack:\n  - retry: {patience: true, depth: 1}\n  - fallback: {stacks: [[stream_safe, auto_growth, system], "
         "[system: {memory: managed}]]}\n") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    (void)rig_free_deferred(rig, owner, borrower, 5 * MIB, 1000 * 1000);
    strata_block_t b = rig_allocate(rig, owner, 5 * MIB);
    expect_route(rig, b, "retry > fallback > stream_safe > auto_growth | system");
}

/* The patience of a `retry` ends with its branch, and that of the one around it goes on. */
TEST_RIG(facade_patience, a_refused_branch_leaves_the_patience_around_it, 0,
         "stack: [retry: {patience: true, depth: 1}, fallback: {stacks: [[retry: {timeout: 0}, limit: {bytes: 1MiB}, "
         "system: {memory: managed}], [stream_safe, auto_growth, system]]}]\n") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t a = rig_free_deferred(rig, owner, borrower, 5 * MIB, 1000 * 1000), b = rig_allocate(rig, owner, 5 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_EQ(rig_figures(rig).growths, 1);
    expect_route(rig, b, "retry > fallback > stream_safe > auto_growth | system");
}

/* Without time to wait it is one more look before the cache grows, whatever steps the ladder has. A query takes a microsecond. */
TEST(facade_patience, with_no_timeout_it_looks_once_more) {
    static const char *const steps[] = {"all", "wait"};
    for (size_t i = 0; i < 2; i++) {
        char patient[100], impatient[100];
        snprintf(patient, sizeof patient, "patience: true, depth: 1, timeout: 0s, steps: %s", steps[i]);
        snprintf(impatient, sizeof impatient, "timeout: 0s, steps: %s", steps[i]);
        int avoided = 0;
        for (uint64_t end = 0; end < 5000; end += 200) {
            bool with = grows(patient, end), without = grows(impatient, end);
            EXPECT_LE(with, without);
            avoided += with < without;
        }
        EXPECT_GT(avoided, 0);
    }
}

/* What the program needed once it may have again without a wait, whatever it needs now: 5 MiB are on the way for a long time. */
TEST_RIG(facade_patience, growth_up_to_what_was_needed_once_never_waits, 0,
         "stack: [retry: {patience: true, depth: 1}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t much = rig_allocate(rig, owner, 40 * MIB), blocks[2];
    for (int round = 0; round < 2; round++) {
        strata_block_t pending = rig_allocate(rig, owner, 5 * MIB);
        rig_borrow(rig, pending.ref, borrower, 100 * ms);
        uint64_t end = strata_sim_stream_end(rig->devices[0], borrower);
        EXPECT_OK(strata_free(rig->s, pending.ref));
        blocks[round] = rig_allocate(rig, owner, 5 * MIB);
        /* Above all that was needed so far it waits; far below that it does not. */
        EXPECT_EQ(strata_sim_now(rig->world) >= end, round == 0);
        if (round == 0) EXPECT_OK(strata_free(rig->s, much.ref));
        EXPECT_OK(strata_free(rig->s, blocks[round].ref));
        if (round == 0) EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    }
    rig_advance(rig, 200 * ms);
}

/* Each round asks while two blocks are on the way, whose work ends at one moment: a wait leaves nothing. How many blocks the streams
 * get; two as long as they wait. */
static uint64_t blocks_of_rounds(rig_t *rig, int rounds, uint64_t pause) {
    uint64_t before = rig_figures(rig).growths;
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    for (int round = 0; round < rounds; round++) {
        strata_block_t blocks[2] = {rig_allocate(rig, owner, 5 * MIB), rig_allocate(rig, owner, 5 * MIB)};
        rig_borrow(rig, blocks[0].ref, borrower, 2 * ms);
        rig_borrow(rig, blocks[1].ref, borrower, 0);
        RIG_FREE(rig, blocks[0], blocks[1]);
        EXPECT_OK(strata_free(rig->s, rig_allocate(rig, owner, 5 * MIB).ref));
        rig_advance(rig, pause);
    }
    return rig_figures(rig).growths - before;
}

TEST_RIG(facade_patience, waits_that_lasted_too_long_deepen, 0,
         "stack: [retry: {patience: true}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]") {
    EXPECT_EQ(blocks_of_rounds(rig, 2, 10 * ms), 2);
    EXPECT_EQ(blocks_of_rounds(rig, 3, 10 * ms), 3); /* of other streams, which have learnt nothing yet */
    EXPECT_EQ(blocks_of_rounds(rig, 9, 10 * ms), 3);
}

/* The first wait of a stack has no wait before it to be compared with. One at a depth of 1 has no other block's work to wait through, and one
 * that ends before another thread's has no time between the two. */
typedef struct unmeasured {
    const char *name;
    int depth;
    uint64_t last_wait_at;
} unmeasured_t;

static const unmeasured_t unmeasured[] = {{"the_first", 2, 0}, {"at_depth_one", 1, 1}, {"before_another", 2, UINT64_MAX}};

enum { HELD = 4 };

/* Frees `pending` of four blocks while another stream uses them, at once or one after another. A request waits for the first. */
static void wait_for_one_of(rig_t *rig, strata_stream_t owner, size_t pending, bool at_once) {
    strata_stream_t borrower = rig_stream(rig);
    strata_block_t blocks[HELD];
    for (size_t i = 0; i < HELD; i++) blocks[i] = rig_allocate(rig, owner, 5 * MIB);
    for (size_t i = 0; i < pending; i++) {
        rig_borrow(rig, blocks[i].ref, borrower, 2 * ms);
        if (!at_once) rig_free(rig, &blocks[i], 1);
    }
    if (at_once) rig_free(rig, blocks, pending);
    uint64_t began = strata_sim_now(rig->world);
    strata_block_t block = rig_allocate(rig, owner, 5 * MIB);
    EXPECT_GE(strata_sim_now(rig->world), began + ms);
    EXPECT_EQ(block.ptr, blocks[0].ptr);
    EXPECT_OK(strata_free(rig->s, block.ref));
    rig_free(rig, blocks + pending, HELD - pending);
    rig_advance(rig, 20 * ms);
}

TEST_EACH(facade_patience, a_wait_that_nothing_measures_is_not_late, unmeasured_t, unmeasured) {
    char preset[160];
    snprintf(preset, sizeof preset,
             "stack: [retry: {patience: true, depth: %d}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]\n", row->depth);
    RIG(rig, preset, 0);
    strata_stream_t owner = rig_stream(&rig);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, owner, 5 * MIB).ref));
    strata_stack_t *stack = rig_stack(&rig, owner);
    stack->wait_history.last_wait_at = row->last_wait_at;
    wait_for_one_of(&rig, owner, HELD, false);
    EXPECT_EQ(stack->wait_history.last_late_at, 0);
    /* Two late waits are needed for more depth. */
    wait_for_one_of(&rig, owner, 2, true);
    EXPECT_EQ(stack->wait_history.extra_depth, 0);
    wait_for_one_of(&rig, owner, 2, true);
    EXPECT_EQ(stack->wait_history.extra_depth, 1);
}

TEST_RIG(facade_patience, one_late_wait_in_a_second_teaches_nothing, 0,
         "stack: [retry: {patience: true}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]") {
    EXPECT_EQ(blocks_of_rounds(rig, 9, 1000 * ms), 2);
    EXPECT_EQ(blocks_of_rounds(rig, 9, 900 * ms), 3);
}

TEST_RIG(facade_patience, it_deepens_no_further_than_it_may, 0,
         "stack: [retry: {patience: true, deepest: 2}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]",
         "stack: [retry: {patience: true, deepest: 1}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]") {
    EXPECT_EQ(blocks_of_rounds(rig, 9, 10 * ms), 2);
}

/* On a device that does not say when events pass, a wait is late by an eighth of its length, and by what the kernel is late. */
TEST(facade_patience, a_wait_that_polls_is_late_by_little) {
    static const uint64_t lengths[] = {200 * 1000, 1 * ms, 3 * ms, 7 * ms};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        RIG_BY(rig, rig_open_with(&rig, "stack: [retry: {patience: true, depth: 1}, stream_safe, auto_growth, system]\n",
                                  &(strata_sim_options_t){.host_jitter = 2}, 0));
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
        (void)rig_free_deferred(&rig, owner, borrower, 5 * MIB, lengths[i]);
        uint64_t end = rig_stream_end(&rig, borrower);
        EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, owner, 5 * MIB).ref));
        EXPECT_EQ(rig_figures(&rig).growths, 1);
        EXPECT_GE(strata_sim_now(rig.world), end);
        EXPECT_LT(strata_sim_now(rig.world), end + lengths[i] / 8 + 200 * 1000);
    }
}

/* A program of kernels of this length, each on a block that is freed at once, with a host that polls: how many blocks it gets. */
static uint64_t blocks_for_kernels_of(uint64_t ns) {
    RIG_BY(rig, rig_open_with(&rig, "stack: [retry: {patience: true}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]\n",
                              &(strata_sim_options_t){.host_jitter = 2}, 0));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    for (int i = 0; i < 20; i++) (void)rig_free_deferred(&rig, owner, borrower, 5 * MIB, ns);
    rig_advance(&rig, 100 * ms);
    return rig_figures(&rig).growths;
}

/* A sleep lasts 100 us at least: next to kernels of 150 us that is too long for two blocks, next to those of 2 ms it is not. */
TEST(facade_patience, it_deepens_where_a_sleep_is_as_long_as_the_work) {
    EXPECT_EQ(blocks_for_kernels_of(2 * ms), 2);
    EXPECT_EQ(blocks_for_kernels_of(150 * 1000), 3);
}

/* One block on the way is less than two. In its first steps a program is let grow; later such waits may take an eighth of the time.
 * A stack that has its place after another one begins anew. */
TEST_RIG(facade_patience, with_less_work_ahead_it_waits_seldom, 0,
         "stack: [retry: {patience: true}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]",
         "stack: [retry: {patience: true}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    (void)rig_free_deferred(rig, owner, borrower, 5 * MIB, 2 * ms);
    strata_block_t kept = rig_allocate(rig, owner, 5 * MIB);
    EXPECT_EQ(rig_figures(rig).growths, 2);
    rig_advance(rig, 200 * ms);
    (void)rig_free_deferred(rig, owner, borrower, 5 * MIB, 2 * ms);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, owner, 5 * MIB).ref));
    EXPECT_EQ(rig_figures(rig).growths, 2);
    (void)rig_free_deferred(rig, owner, borrower, 5 * MIB, 1000 * ms);
    uint64_t began = strata_sim_now(rig->world);
    strata_block_t last = rig_allocate(rig, owner, 5 * MIB);
    EXPECT_EQ(rig_figures(rig).growths, 3);
    EXPECT_LT(strata_sim_now(rig->world), began + 2 * ms);
    RIG_FREE(rig, kept, last);
    rig_advance(rig, 1000 * ms);
}

/* What a stack has earned, in quiet times too, is never more than one timeout, and less than 10 ms are not worth a wait. */
typedef struct budget {
    const char *name;
    uint64_t earned, quiet; /* ns */
    uint64_t waits; /* ns; 0: it grows at once */
} budget_t;

static const budget_t budgets[] = {
    {"nothing", 0, 0, 0},
    {"almost_enough", 10 * 1000 * 1000 - 1, 0, 0},
    {"just_enough", 10 * 1000 * 1000, 0, 10 * 1000 * 1000},
    {"more", 15 * 1000 * 1000, 0, 15 * 1000 * 1000},
    {"a_timeout", 20 * 1000 * 1000, 0, 20 * 1000 * 1000},
    {"a_quiet_second", 0, 1000 * 1000 * 1000, 20 * 1000 * 1000},
    {"a_quiet_hour", 0, UINT64_C(3600) * 1000 * 1000 * 1000, 20 * 1000 * 1000},
    {"a_timeout_and_a_quiet_hour", 20 * 1000 * 1000, UINT64_C(3600) * 1000 * 1000 * 1000, 20 * 1000 * 1000},
};

TEST_EACH(facade_patience, a_budget_is_at_most_one_timeout, budget_t, budgets) {
    RIG_BY(rig, rig_open_with(
                    &rig, "stack: [retry: {patience: true, timeout: 20ms}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]\n",
                    &(strata_sim_options_t){.host_jitter = 2}, 0));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, owner, 5 * MIB).ref));
    strata_stack_t *stack = rig_stack(&rig, owner);
    stack->wait_history.budget_ns = row->earned;
    stack->wait_history.budget_at = row->quiet ? strata_sim_now(rig.world) : 0; /* 0: no time counts before the request */
    rig_advance(&rig, row->quiet);
    (void)rig_free_deferred(&rig, owner, borrower, 5 * MIB, 1000 * ms);
    uint64_t began = strata_sim_now(rig.world);
    strata_block_t first = rig_allocate(&rig, owner, 5 * MIB);
    uint64_t waited = strata_sim_now(rig.world) - began;
    EXPECT_GE(waited, row->waits);
    EXPECT_LT(waited, row->waits + 2 * ms);
    /* The wait has used it up. */
    if (row->waits) EXPECT_LT(stack->wait_history.budget_ns, ms);
    began = strata_sim_now(rig.world);
    strata_block_t second = rig_allocate(&rig, owner, 4 * MIB); /* another size, since that of a timeout is not waited for again */
    if (row->waits) EXPECT_LT(strata_sim_now(rig.world), began + 2 * ms);
    RIG_FREE(&rig, first, second);
    rig_advance(&rig, 1000 * ms);
}

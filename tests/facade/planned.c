/* The layer `planned`: programs that repeat their steps, and those that do not. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/facade/planned_live.h"
#include "tests/paths.h"

enum { REPEATS = 5, SETTLED = 2 };

/* ---- repeated traces ---- */

/* From the third time on: nothing is asked of the device, and little more is reserved than must be. Where nobody tells the steps, the
 * first request of the third one makes room. */
static void expect_planned(const char *name, bool told) {
    char path[1024];
    strata_trace_t *trace = NULL;
    snprintf(path, sizeof path, "%s/traces/%s", STRATA_SOURCE_DIR, name);
    EXPECT_OK(strata_trace_load(path, &trace));
    strata_ref_t *refs = calloc(trace->lifetimes, sizeof *refs);
    uint64_t calls = 0, reserved = 0, beside = 0;
    int settled = told ? SETTLED : SETTLED + 1;
    RIG(rig, "planned", 0);
    if (told) EXPECT_OK(strata_step(rig.s));
    for (int i = 0; i < REPEATS && !strata_test_has_failed(); i++) {
        if (i == settled) calls = planned_device_calls(&rig);
        if (i == settled) beside = planned_figure(&rig, "beside");
        if (i == settled) EXPECT_OK(strata_reset_peaks(rig.s, rig.gpu));
        planned_play(&rig, trace, refs);
        if (told) EXPECT_OK(strata_step(rig.s));
    }
    reserved = rig_figures(&rig).peak_reserved_bytes;
    EXPECT_EQ(planned_figure(&rig, "pinned_bytes"), 0); /* the trace leaves nothing */
    EXPECT_EQ(planned_device_calls(&rig), calls);
    EXPECT_EQ(planned_figure(&rig, "beside"), beside);
    EXPECT_GT(planned_figure(&rig, "planned_hits"), trace->lifetimes);
    printf("%s: reserved %.4f of the bound\n", name, (double)reserved / (double)planned_bound(trace));
    EXPECT_LE(reserved, (uint64_t)(1.02 * (double)planned_bound(trace)));
    free(refs);
    strata_trace_delete(trace);
}

TEST(facade_planned, a_repeated_trace_is_served_at_its_bound) {
    expect_planned("ddp-2rank-v100.csv.gz", false);
    expect_planned("tinytorch-mnist.csv", false);
    expect_planned("lm-medium-ctx256-training.csv.gz", false);
    expect_planned("lm-benchmark-step.csv.gz", false);
}

TEST(facade_planned, so_it_is_where_the_program_tells_its_steps) {
    expect_planned("ddp-2rank-v100.csv.gz", true);
    expect_planned("tinytorch-mnist.csv", true);
    expect_planned("lm-medium-ctx256-training.csv.gz", true);
    expect_planned("lm-benchmark-step.csv.gz", true);
}

/* ---- small programs ---- */

TEST(facade_planned, a_step_gets_the_same_addresses_from_the_third_on) {
    void *first[BLOCKS] = {NULL};
    RIG(rig, "planned", 0);
    live_t live = {.rig = &rig};
    for (int step = 0; step < 6; step++) {
        for (uint32_t i = 0; i < BLOCKS; i++) take(&live, i, (i % 7 + 1) * MIB);
        for (uint32_t i = 0; i < BLOCKS && step >= 3; i++) EXPECT_EQ(live.blocks[i].ptr, first[i]);
        for (uint32_t i = 0; i < BLOCKS; i++) first[i] = live.blocks[i].ptr;
        drop_all(&live);
        EXPECT_OK(strata_step(rig.s));
    }
    EXPECT_EQ(planned_figure(&rig, "plans"), 1);
    EXPECT_EQ(planned_figure(&rig, "planned_steps"), 4);
    EXPECT_EQ(planned_figure(&rig, "left"), 0);
    EXPECT_EQ(planned_figure(&rig, "planned_hits"), 4 * BLOCKS);
}

/* Device calls in ms, the most reserved, what failed. */
typedef struct cost {
    double device_ms;
    uint64_t reserved, hits, plans;
} cost_t;

static cost_t change_shapes(const char *preset, bool told) {
    cost_t cost;
    RIG(rig, preset, 0);
    live_t live = {.rig = &rig};
    for (uint64_t step = 0; step < 120; step++) {
        small_step(&live, 1 + step / 10 % 4, 0);
        if (told) EXPECT_OK(strata_step(rig.s));
    }
    strata_sim_figures_t figures;
    strata_sim_figures(rig_domain(&rig)->device, &figures);
    cost.device_ms = (double)(figures.device_call_ns + figures.stall_ns) / 1e6;
    cost.reserved = rig_figures(&rig).peak_reserved_bytes;
    cost.hits = planned_figure(&rig, "planned_hits");
    cost.plans = planned_figure(&rig, "plans");
    return cost;
}

/* A program that changes its shape every ten steps, and comes back to each. */
TEST(facade_planned, changing_shapes_cost_little_more) {
    for (int told = 0; told < 2; told++) {
        cost_t plain = change_shapes("strata", told), planned = change_shapes("planned", told);
        printf("device ms %.3f and %.3f, reserved %.4f\n", plain.device_ms, planned.device_ms,
               (double)planned.reserved / (double)plain.reserved);
        EXPECT_GT(planned.hits, 0);
        EXPECT_EQ(planned.plans, 4);
        EXPECT_LE(planned.device_ms, 1.3 * plain.device_ms);
        EXPECT_LE((double)planned.reserved, 1.3 * (double)plain.reserved);
    }
}

/* Whatever the program does, nothing overlaps: frees that come late, requests that are missing, steps that are told wrongly, and
 * caches that are emptied in between. */
TEST(facade_planned, nothing_overlaps_when_a_program_leaves_its_plan) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        RIG(rig, seed % 2 ? "planned" : "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, system]\n", 0);
        live_t live = {.rig = &rig};
        for (uint64_t step = 0; step < 30; step++) {
            bool follows = mixed(seed * 77 + step) % 3 != 0;
            small_step(&live, 1 + mixed(seed + step / 6) % 3, follows ? 0 : seed * 100 + step);
            if (seed % 3 && mixed(seed * 7 + step) % 8) EXPECT_OK(strata_step(rig.s));
            if (mixed(seed * 13 + step) % 9 == 0) (void)strata_release(rig.s, rig.gpu, NULL);
            if (step % 10 == 9) EXPECT_OK(strata_validate(rig.s));
        }
        drop_all(&live);
    }
}

/* A block that a borrower still uses keeps its address: its successor in the plan is served beside it. */
TEST(facade_planned, a_block_that_is_freed_late_is_not_served_again) {
    RIG(rig, "planned", 0);
    strata_stream_t other = rig_stream(&rig);
    live_t live = {.rig = &rig};
    for (int step = 0; step < 6; step++) {
        uint64_t beside = planned_figure(&rig, "beside");
        take(&live, 0, 32 * MIB);
        void *ptr = live.blocks[0].ptr;
        if (step == 5) rig_borrow(&rig, live.blocks[0].ref, other, 10000000);
        drop(&live, 0);
        take(&live, 1, 31 * MIB);
        take(&live, 2, 3 * MIB);
        take(&live, 3, 5 * MIB);
        if (step == 4) EXPECT_EQ(live.blocks[1].ptr, ptr);
        if (step == 5) EXPECT_NE(live.blocks[1].ptr, ptr);
        EXPECT_EQ(planned_figure(&rig, "beside") > beside, step == 5);
        drop_all(&live);
        EXPECT_OK(strata_step(rig.s));
    }
}

/* Memory that is idle goes back like any other, and room is made again. */
TEST(facade_planned, a_release_takes_the_room_and_a_step_brings_it_back) {
    RIG(rig, "planned", 0);
    live_t live = {.rig = &rig};
    for (int step = 0; step < 10; step++) {
        for (uint32_t i = 0; i < 8; i++) take(&live, i, 8 * MIB);
        drop_all(&live);
        EXPECT_OK(strata_step(rig.s));
        if (step == 4) (void)strata_release(rig.s, rig.gpu, NULL);
        if (step == 4) EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    }
    EXPECT_EQ(planned_figure(&rig, "rooms"), 2);
    EXPECT_EQ(planned_figure(&rig, "beside"), 8);
    EXPECT_EQ(planned_figure(&rig, "planned_hits"), 7 * 8);
}

/* What lives longer than a step is not planned; what lives beyond its end is. */
TEST(facade_planned, blocks_that_live_beyond_the_step) {
    RIG(rig, "planned", 0);
    live_t live = {.rig = &rig};
    take(&live, 60, 100 * MIB);
    EXPECT_OK(strata_step(rig.s));
    for (int step = 0; step < 8; step++) {
        uint32_t carried = 10 + (uint32_t)step % 2;
        for (uint32_t i = 0; i < 4; i++) take(&live, i, (3 + i) * MIB);
        for (uint32_t i = 0; i < 4; i++) drop(&live, i);
        drop(&live, 21 - carried);
        take(&live, carried, 7 * MIB);
        take(&live, 5, 20 * MIB);
        drop(&live, 5);
        EXPECT_OK(strata_step(rig.s));
    }
    EXPECT_GT(planned_figure(&rig, "planned_steps"), 4);
    EXPECT_GT(planned_figure(&rig, "planned_hits"), 4 * 5);
    EXPECT_EQ(planned_figure(&rig, "beside"), 0);
    EXPECT_OK(strata_validate(rig.s));
    drop_all(&live);
}

/* What lives longer than a step lies outside the room; the figure tells it apart, with the whole of the handles or chunks that it
 * pins. */
TEST_RIG(facade_planned, what_is_pinned_beside_the_room_is_told_apart, 0, "planned",
         "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, system]\n") {
    live_t live = {.rig = rig};
    take(&live, 60, 100 * MIB);
    for (int step = 0; step < 6; step++) {
        for (uint32_t i = 0; i < 8; i++) take(&live, i, (3 + i) * MIB);
        for (uint32_t i = 0; i < 8; i++) drop(&live, i);
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_EQ(planned_figure(rig, "room_bytes"), 52 * MIB);
    uint64_t pinned = planned_figure(rig, "pinned_bytes"), reserved = rig_figures(rig).reserved_bytes;
    EXPECT_GE(pinned, 100 * MIB);
    EXPECT_LE(pinned, 104 * MIB);
    EXPECT_LE(reserved, 53 * MIB + pinned);
    take(&live, 0, 3 * MIB); /* planned: pins nothing more */
    EXPECT_EQ(planned_figure(rig, "pinned_bytes"), pinned);
    take(&live, 61, 512); /* another program: where there is room for it */
    EXPECT_LE(planned_figure(rig, "pinned_bytes"), pinned + 2 * MIB);
    drop_all(&live);
    EXPECT_EQ(planned_figure(rig, "pinned_bytes"), 0);
    EXPECT_OK(strata_validate(rig->s));
}

/* What is pinned is what a release cannot give back. */
TEST_STACK(facade_planned, what_is_pinned_is_what_a_release_leaves, 0, "planned: {learns: false}, auto_growth_vmm, vmm",
           "planned: {learns: false}, auto_growth: {chunk_size: 8MiB}, system") {
    live_t live = {.rig = rig};
    for (uint64_t round = 1; round < 60; round++) {
        for (uint64_t i = 0; i < 20; i++) {
            uint64_t drawn = mixed(round * 100 + i);
            uint32_t at = (uint32_t)(drawn % BLOCKS);
            if (live.held[at]) drop(&live, at);
            else take(&live, at, (drawn >> 8) % (drawn >> 40 & 1 ? 9 * MIB : 9000) + 1);
        }
        uint64_t pinned = planned_figure(rig, "pinned_bytes");
        (void)rig_release(rig);
        EXPECT_EQ(rig_figures(rig).reserved_bytes, pinned);
        EXPECT_EQ(planned_figure(rig, "pinned_bytes"), pinned);
    }
    drop_all(&live);
}

/* A loop that needs little beside what was in use of late is no step; nor is a step that needs less than `least`. */
TEST(facade_planned, small_steps_and_small_loops_are_not_planned) {
    RIG(rig, "planned", 0);
    live_t live = {.rig = &rig};
    for (uint32_t i = 0; i < 8; i++) take(&live, i, (8 + i) * MIB);
    for (uint32_t i = 2; i < 8; i++) drop(&live, i);
    for (int loop = 0; loop < 20; loop++) {
        for (uint32_t i = 10; i < 16; i++) take(&live, i, i * MIB / 8);
        for (uint32_t i = 10; i < 16; i++) drop(&live, i);
    }
    EXPECT_EQ(planned_figure(&rig, "plans"), 0);
    for (int step = 0; step < 4; step++) {
        for (uint32_t i = 10; i < 16; i++) take(&live, i, i * 4096);
        for (uint32_t i = 10; i < 16; i++) drop(&live, i);
        EXPECT_OK(strata_step(rig.s));
    }
    EXPECT_EQ(planned_figure(&rig, "plans"), 0);
    drop_all(&live);
}

/* A block that goes the long way back, since others borrowed it, is known to be free. */
TEST(facade_planned, what_was_borrowed_is_planned_too) {
    RIG(rig, "planned", 0);
    strata_stream_t other = rig_stream(&rig);
    live_t live = {.rig = &rig};
    for (int step = 0; step < 6; step++) {
        take(&live, 0, 9 * MIB);
        rig_borrow(&rig, live.blocks[0].ref, other, 1000);
        drop(&live, 0);
        rig_pass(&rig, 5000000);
        for (uint32_t i = 1; i < 5; i++) take(&live, i, 3 * MIB);
        drop_all(&live);
        EXPECT_OK(strata_step(rig.s));
        EXPECT_OK(strata_validate(rig.s));
    }
    EXPECT_EQ(planned_figure(&rig, "planned_hits"), 4 * 5);
    EXPECT_LT(planned_figure(&rig, "room_bytes"), 13 * MIB);
}

/* The second step is not free yet at its end: room comes when it is. */
TEST(facade_planned, no_room_is_made_while_others_use_the_step) {
    RIG(rig, "planned", 0);
    strata_stream_t other = rig_stream(&rig);
    live_t live = {.rig = &rig};
    for (int step = 0; step < 4; step++) {
        for (uint32_t i = 0; i < 4; i++) take(&live, i, 8 * MIB);
        for (uint32_t i = 0; i < 4 && step == 1; i++) rig_borrow(&rig, live.blocks[i].ref, other, 10000000);
        drop_all(&live);
        EXPECT_OK(strata_step(rig.s));
        EXPECT_EQ(planned_figure(&rig, "plans"), step >= 1);
        EXPECT_EQ(planned_figure(&rig, "rooms"), step >= 2);
        rig_pass(&rig, 100000000);
    }
}

static void one_of_two(live_t *live, uint32_t shape) {
    for (uint32_t i = 0; i < 4; i++) take(live, i, (i + 1) * MIB);
    take(live, 4, (5 + shape) * MIB);
    take(live, 5, 2 * MIB);
    drop_all(live);
    EXPECT_OK(strata_step(live->rig->s));
}

/* Two steps that begin alike and come in no order: whichever was expected, the one that comes is followed. */
TEST(facade_planned, a_step_that_begins_like_another_is_followed_to_its_end) {
    RIG(rig, "planned", 0);
    live_t live = {.rig = &rig};
    for (uint32_t step = 0; step < 8; step++) one_of_two(&live, step / 4);
    uint64_t steps = planned_figure(&rig, "planned_steps"), left = planned_figure(&rig, "left");
    for (uint64_t step = 0; step < 20; step++) one_of_two(&live, (uint32_t)(mixed(step) % 2));
    EXPECT_EQ(planned_figure(&rig, "planned_steps"), steps + 20);
    EXPECT_EQ(planned_figure(&rig, "left"), left);
    EXPECT_EQ(planned_figure(&rig, "plans"), 2);
}

TEST(facade_planned, without_learning_nothing_is_planned) {
    RIG_STACK(rig, "planned: {learns: false}, auto_growth, system", 0);
    live_t live = {.rig = &rig};
    for (uint64_t step = 0; step < 6; step++) small_step(&live, 1, 0);
    EXPECT_EQ(planned_figure(&rig, "plans"), 0);
}

TEST(facade_planned, the_plan_that_was_not_used_for_longest_goes) {
    RIG_STACK(rig, "planned: {plans: 2}, auto_growth, system", 0);
    live_t live = {.rig = &rig};
    for (uint64_t step = 0; step < 30; step++) {
        small_step(&live, 1 + step / 5 % 3, 0);
        EXPECT_OK(strata_step(rig.s));
    }
    EXPECT_EQ(planned_figure(&rig, "plans"), 6);
    EXPECT_OK(strata_validate(rig.s));
}

/* A room that the device has no memory for is done without. */
TEST(facade_planned, no_memory_for_a_room_is_no_error) {
    RIG(rig, "strategy: a\nstack: [planned, auto_growth: {chunk_size: 1MiB}, system]\n", 40 * MIB);
    live_t live = {.rig = &rig};
    take(&live, 63, 20 * MIB);
    for (int step = 0; step < 6; step++) {
        for (uint32_t i = 0; i < 6; i++) take(&live, i, 2 * MIB);
        for (uint32_t i = 0; i < 6; i++) drop(&live, i);
        EXPECT_OK(strata_step(rig.s));
    }
    drop_all(&live);
}

/* ---- threads ---- */

typedef struct worker {
    live_t live;
    uint64_t shape;
} worker_t;

static void *work(void *argument) {
    worker_t *worker = argument;
    for (uint64_t step = 0; step < 40; step++) {
        small_step(&worker->live, worker->shape + step / 10, 0);
        if (step % 5 == worker->shape) EXPECT_OK(strata_step(worker->live.rig->s));
    }
    return NULL;
}

/* Two on one stream, two on streams of their own, all of which tell steps. */
TEST(facade_planned, threads_share_streams_and_steps) {
    enum { THREADS = 4 };
    static worker_t workers[THREADS];
    pthread_t threads[THREADS];
    RIG(rig, "planned", 0);
    strata_stream_t streams[3] = {NULL, rig_stream(&rig), rig_stream(&rig)};
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.live = {.rig = &rig, .stream = streams[i % 3]}, .shape = i};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    EXPECT_OK(strata_validate(rig.s));
}

/* stat: what is live where it stands, at most, how many. */
#include <pthread.h>

#include "tests/decorators/decorators.h"

static strata_stack_t *stack_of(rig_t *rig, strata_place_t place) {
    strata_stack_t *stack = NULL;
    EXPECT_OK(strata_facade_stack(strata_facade_of(rig->s), place, NULL, &stack));
    return stack;
}

/* Paddle's memory_stats::host and memory_stats::device: 62 sizes, one at a time, one of them 0: current is the size, the peak
 * the largest so far. Here 0 bytes are served without the stack: they are not counted, and change nothing. */
static void one_size_at_a_time(rig_t *rig, strata_place_t place) {
    strata_stack_t *stack = stack_of(rig, place);
    uint64_t highest = 0;
    for (uint32_t i = 0; i < 62; i++) {
        size_t size = i == 31 ? 0 : 256 * ((size_t)i * 37 % 61 + 1);
        strata_block_t b;
        ASSERT_OK(strata_allocate(rig->s, place, NULL, size, &b));
        if (size > highest) highest = size;
        EXPECT_EQ(decorated_figure(stack, "stat", "current_bytes"), size);
        EXPECT_EQ(decorated_figure(stack, "stat", "peak_bytes"), highest);
        EXPECT_OK(strata_free(rig->s, b.ref));
        EXPECT_EQ(decorated_figure(stack, "stat", "current_bytes"), 0);
    }
    EXPECT_EQ(decorated_figure(stack, "stat", "served"), 61);
}

TEST(stat, paddle_memory_stats_host_and_device) {
    RIG_BY(rig, decorated_open(&rig, "[stat, system]", "[stat, system]", &(strata_sim_options_t){0}));
    one_size_at_a_time(&rig, rig.gpu);
    one_size_at_a_time(&rig, strata_host());
}

typedef struct adder {
    pthread_t thread;
    rig_t *rig;
    strata_block_t blocks[10];
} adder_t;

static void *add(void *context) {
    adder_t *adder = context;
    for (size_t i = 0; i < 10; i++)
        if (strata_allocate(adder->rig->s, adder->rig->gpu, NULL, i * 256, &adder->blocks[i]) != STRATA_OK) return adder;
    return NULL;
}

/* Paddle's stats_test: three threads add 0 to 9, 135 together; a series up and down has the peak of its highest prefix, in any
 * thread (the peer's sees a thread's own peak alone). The peer's reset is not here: a figure of Strata lives as long as its
 * stack, and whoever wants a window takes the difference. */
static void three_threads_and_a_series(const char *layers, uint64_t counted) {
    static const int series[] = {5, 3, -2, 4, -7, 1, 6, -10, 2};
    DECORATED(rig, layers, 0);
    strata_stack_t *stack = rig_stack(&rig, NULL);
    adder_t adders[3];
    void *failed = NULL;
    for (int i = 0; i < 3; i++) {
        adders[i] = (adder_t){.rig = &rig};
        ASSERT_EQ(pthread_create(&adders[i].thread, NULL, add, &adders[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(pthread_join(adders[i].thread, &failed), 0);
        EXPECT_EQ(failed, NULL);
    }
    EXPECT_EQ(decorated_figure(stack, "stat", "current_bytes"), 135 * 256);
    EXPECT_EQ(decorated_figure(stack, "stat", "peak_bytes"), 135 * 256);
    EXPECT_EQ(decorated_figure(stack, "stat", "live"), counted);
    uint64_t now = 135, highest = 135;
    strata_block_t units[16];
    uint32_t live = 0;
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) {
        for (int n = 0; n < series[i]; n++) units[live++] = rig_allocate(&rig, NULL, 256);
        for (int n = 0; n > series[i]; n--) EXPECT_OK(strata_free(rig.s, units[--live].ref));
        now = 135 + live;
        highest = now > highest ? now : highest;
        EXPECT_EQ(decorated_figure(stack, "stat", "current_bytes"), now * 256);
        EXPECT_EQ(decorated_figure(stack, "stat", "peak_bytes"), highest * 256);
    }
    EXPECT_EQ(highest, 135 + 10);
    while (live > 0) EXPECT_OK(strata_free(rig.s, units[--live].ref));
    for (int i = 0; i < 30; i++) EXPECT_OK(strata_free(rig.s, adders[i / 10].blocks[i % 10].ref));
    EXPECT_EQ(decorated_figure(stack, "stat", "current_bytes"), 0);
    EXPECT_EQ(decorated_figure(stack, "stat", "live"), 0);
}

/* Figures that are the stack's count the three of 0 bytes. */
TEST(stat, paddle_stats_test_three_threads_and_a_signed_series) {
    three_threads_and_a_series("[stat, system]", 27);
    three_threads_and_a_series("[stat, retry, stream_safe, auto_growth, system]", 30);
    three_threads_and_a_series("[retry, stat, {fault: {}}, system]", 27);
}

TEST(stat, costs_a_hit_nothing_and_counts_it_all_the_same) {
    DECORATED(rig, "[stat, retry, stream_safe, auto_growth, system]", 0);
    strata_stack_t *stack = rig_stack(&rig, NULL);
    EXPECT_NE(stack->hit, NULL);
    for (int i = 0; i < 100; i++) {
        strata_block_t b = rig_allocate(&rig, NULL, 4096);
        EXPECT_EQ(decorated_figure(stack, "stat", "current_bytes"), 4096);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
    EXPECT_EQ(rig_figures(&rig).cache_hits, 99);
    EXPECT_EQ(decorated_figure(stack, "stat", "served"), 100);
    EXPECT_EQ(decorated_figure(stack, "stat", "current_bytes"), 0);
    EXPECT_EQ(decorated_figure(stack, "stat", "peak_bytes"), 4096);
}

/* Below a cache it counts chunks; between a decorator that always works and a cache, what passes. */
TEST(stat, counts_what_passes_where_it_stands) {
    rig_t rig;
    decorated_open(&rig, "[{auto_growth: {chunk_size: 1MiB}}, stat, system]", NULL, &(strata_sim_options_t){0});
    strata_stack_t *stack = rig_stack(&rig, NULL);
    strata_block_t a = rig_allocate(&rig, NULL, 1000), b = rig_allocate(&rig, NULL, 3 * MIB);
    EXPECT_EQ(decorated_figure(stack, "stat", "current_bytes"), 4 * MIB);
    EXPECT_EQ(decorated_figure(stack, "stat", "live"), 2);
    RIG_FREE(&rig, a, b);
    EXPECT_EQ(decorated_figure(stack, "stat", "live"), 2);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(decorated_figure(stack, "stat", "current_bytes"), 0);
    EXPECT_EQ(decorated_figure(stack, "stat", "peak_bytes"), 4 * MIB);
    rig_close(&rig);
    decorated_open(&rig, "[{aligned: {alignment: 1KiB}}, stat, auto_growth, system]", NULL, &(strata_sim_options_t){0});
    a = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "stat", "current_bytes"), 1024 + 1024 - 256);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "stat", "current_bytes"), 0);
    rig_close(&rig);
}

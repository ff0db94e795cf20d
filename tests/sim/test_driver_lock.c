/* A lock of the driver that threads share: what a call costs beside those of others. The threads take turns, so that figures are exact. */
#include <pthread.h>

#include "tests/sim/sim_fixture.h"

enum { THREADS_MAX = 20, ROUNDS = 50 };

typedef struct turns {
    fixture_t f;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int threads, next;
    uint64_t began, took[THREADS_MAX];
} turns_t;

typedef struct turn {
    turns_t *turns;
    int number;
} turn_t;

static void wait_for_turn(turns_t *t, int number) {
    pthread_mutex_lock(&t->mutex);
    while (t->next % t->threads != number) pthread_cond_wait(&t->changed, &t->mutex);
}

static void pass_turn(turns_t *t) {
    t->next++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

/* Records and queries on a stream of its own, one call a turn. */
static void *call_in_turn(void *argument) {
    const turn_t *turn = argument;
    turns_t *t = turn->turns;
    strata_device_t *d = t->f.device;
    wait_for_turn(t, turn->number);
    strata_handle_t stream = stream_new(d, STRATA_STREAM_NON_BLOCKING), event = event_new(d);
    pass_turn(t);
    wait_for_turn(t, turn->number);
    strata_sim_advance_to(t->f.world, t->began);
    pass_turn(t);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        wait_for_turn(t, turn->number);
        EXPECT_OK(i % 2 ? strata_device_event_query(d, event) : strata_device_event_record(d, event, stream));
        pass_turn(t);
    }
    t->took[turn->number] = strata_sim_now(t->f.world) - t->began;
    return NULL;
}

/* What one thread's record and query cost, on average over the threads, ns. */
static double pair_of(double share, int threads) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.driver_lock_share = share;
    turns_t t = {.threads = threads, .began = 1000 * US};
    turn_t turn[THREADS_MAX];
    pthread_t started[THREADS_MAX];
    uint64_t sum = 0;
    t.f = fixture_open((strata_sim_options_t){.profile = &profile});
    pthread_mutex_init(&t.mutex, NULL);
    pthread_cond_init(&t.changed, NULL);
    for (int i = 0; i < threads; i++) {
        turn[i] = (turn_t){&t, i};
        EXPECT_EQ(pthread_create(&started[i], NULL, call_in_turn, &turn[i]), 0);
    }
    for (int i = 0; i < threads; i++) pthread_join(started[i], NULL);
    for (int i = 0; i < threads; i++) sum += t.took[i];
    pthread_cond_destroy(&t.changed);
    pthread_mutex_destroy(&t.mutex);
    fixture_close(&t.f);
    return (double)sum / threads / ROUNDS;
}

TEST(sim_driver_lock, without_a_share_threads_cost_each_other_nothing) {
    EXPECT_NEAR(pair_of(0, 1), 760, 0.1);
    EXPECT_NEAR(pair_of(0, 8), 760, 0.1);
}

TEST(sim_driver_lock, one_thread_never_waits) { EXPECT_NEAR(pair_of(1, 1), 760, 0.1); }

/* With the whole call under the lock, n threads take n times as long. */
TEST(sim_driver_lock, a_lock_for_the_whole_call_serves_one_thread_at_a_time) {
    for (int threads = 2; threads <= 16; threads *= 2) EXPECT_NEAR(pair_of(1, threads) / 760, threads, 0.03 * threads);
}

/* What an H100 showed (docs/profiles.md): 0.76, 1.4 and 4.5 us for each of 1, 2 and 8 threads. */
TEST(sim_driver_lock, a_share_of_0_8_is_within_15_percent_of_the_measured_cost) {
    EXPECT_NEAR(pair_of(0.8, 1) / 760, 1, 0.15);
    EXPECT_NEAR(pair_of(0.8, 2) / 1400, 1, 0.15);
    EXPECT_NEAR(pair_of(0.8, 8) / 4500, 1, 0.15);
}

/* The turns of 16 threads are remembered; more queue no longer than those. */
TEST(sim_driver_lock, a_queue_is_bounded) {
    double most = pair_of(1, 20) / 760;
    EXPECT_TRUE(most > 8 && most < 21);
}

typedef struct ahead {
    fixture_t *f;
    uint64_t until;
} ahead_t;

static void *call_ahead(void *argument) {
    const ahead_t *ahead = argument;
    strata_sim_advance_to(ahead->f->world, ahead->until);
    strata_device_mem_info(ahead->f->device, &(uint64_t){0}, &(uint64_t){0});
    return NULL;
}

/* However far ahead another thread's clock is, it costs one turn of its own. */
TEST(sim_driver_lock, a_thread_far_ahead_costs_one_turn) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.driver_lock_share = 1;
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
    uint64_t left, total, before = strata_sim_now(f.world);
    ahead_t ahead = {&f, 1000000 * US};
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, call_ahead, &ahead), 0);
    pthread_join(thread, NULL);
    ASSERT_OK(strata_device_mem_info(f.device, &left, &total));
    EXPECT_EQ(strata_sim_now(f.world) - before, 5500 + 5500);
    EXPECT_EQ(figures_of(f.device).device_call_ns, 3 * 5500); /* the wait is the call's own time */
    EXPECT_EQ(figures_of(f.device).stall_ns, 0);
}

/* Who comes in the middle of a turn waits for the rest of it, and who comes after it for nothing. */
TEST(sim_driver_lock, what_is_left_of_a_turn_is_waited_for) {
    for (uint64_t late = 0; late < 12000; late += 1500) {
        strata_sim_profile_t profile = *strata_sim_profile("h100");
        profile.driver_lock_share = 0.6; /* 3,300 of 5,500 ns */
        fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
        uint64_t left, total, before = strata_sim_now(f.world) + 1000 * US;
        ahead_t ahead = {&f, before};
        pthread_t thread;
        ASSERT_EQ(pthread_create(&thread, NULL, call_ahead, &ahead), 0);
        pthread_join(thread, NULL);
        strata_sim_advance_to(f.world, before + late);
        ASSERT_OK(strata_device_mem_info(f.device, &left, &total));
        EXPECT_EQ(strata_sim_now(f.world) - before, (late < 3300 ? 3300 : late) + 5500);
    }
}

/* A host that stumbles: hold-ups by a seed (docs/profiles.md, "A host that stumbles"). */
#include <pthread.h>

#include "tests/sim/sim_fixture.h"

#define MS (1000 * US)

static fixture_t stumbling(uint64_t seed) { return fixture_open((strata_sim_options_t){.host_jitter = seed}); }

/* Computes for `steps` times `ns`; returns how much longer it took. */
static uint64_t held_up(strata_sim_t *world, uint64_t steps, uint64_t ns) {
    uint64_t began = strata_sim_now(world);
    for (uint64_t i = 0; i < steps; i++) strata_sim_advance_to(world, strata_sim_now(world) + ns);
    return strata_sim_now(world) - began - steps * ns;
}

static uint64_t held_up_under(uint64_t seed, uint64_t steps, uint64_t ns) {
    fixture_t f CLOSED_BY(fixture_close) = stumbling(seed);
    return held_up(f.world, steps, ns);
}

TEST_WORLD(sim_jitter, without_a_seed_nothing_holds_up, 0) {
    EXPECT_EQ(held_up(f->world, 1000, 10 * MS), 0);
    EXPECT_FALSE(f->device->clock->polls);
}

TEST(sim_jitter, a_seed_is_one_sequence) {
    uint64_t first = held_up_under(7, 1000, MS);
    EXPECT_GT(first, 0);
    EXPECT_EQ(held_up_under(7, 1000, MS), first);
    for (uint64_t seed = 8; seed < 16; seed++) EXPECT_NE(held_up_under(seed, 1000, MS), first);
}

/* So it does not matter how often a program looks at the clock. */
TEST(sim_jitter, hold_ups_belong_to_moments) {
    for (uint64_t seed = 1; seed < 9; seed++) {
        uint64_t at_once = held_up_under(seed, 1, 2000 * MS);
        EXPECT_EQ(held_up_under(seed, 20000, 100 * US), at_once);
        EXPECT_EQ(held_up_under(seed, 400, 5 * MS), at_once);
    }
}

/* Half a second of computing, step by step: how many steps of 100 us took so much longer. */
static uint64_t longer_steps(uint64_t seed, uint64_t least) {
    uint64_t found = 0;
    fixture_t f CLOSED_BY(fixture_close) = stumbling(seed);
    for (int i = 0; i < 5000; i++) found += held_up(f.world, 1, 100 * US) >= least;
    return found;
}

TEST(sim_jitter, most_steps_meet_nothing_and_milliseconds_come_together) {
    uint64_t none = 0, calm = 0, most = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t found = longer_steps(seed, MS);
        none += 5000 - longer_steps(seed, 1);
        calm += found == 0;
        most = found > most ? found : most;
    }
    EXPECT_GT(none, 480000); /* of 500,000 */
    EXPECT_GT(calm, 60); /* of 100 */
    EXPECT_LT(calm, 90);
    EXPECT_GT(most, 40);
    EXPECT_GT(longer_steps(1, 20 * US), 30);
}

/* What holds the host up while it waits goes on beside the wait, and may outlast it. The stall is what the device caused. */
TEST(sim_jitter, a_wait_goes_on_beside_hold_ups) {
    uint64_t late = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fixture_t f CLOSED_BY(fixture_close) = stumbling(seed);
        strata_handle_t stream = stream_new(f.device, STRATA_STREAM_NON_BLOCKING);
        EXPECT_OK(strata_device_work(f.device, stream, 50 * MS, NULL, 0));
        uint64_t end = strata_sim_stream_end(f.device, stream), began = strata_sim_now(f.world);
        EXPECT_OK(strata_device_stream_synchronise(f.device, stream));
        uint64_t awake = strata_sim_now(f.world);
        EXPECT_GE(awake, end);
        EXPECT_LT(awake, end + 10 * MS);
        EXPECT_EQ(figures_of(f.device).stall_ns, end - began);
        late += awake > end + 100 * US;
    }
    EXPECT_GT(late, 0);
    EXPECT_LT(late, 20);
}

TEST(sim_jitter, who_sleeps_wakes_late_and_polls) {
    fixture_t f CLOSED_BY(fixture_close) = stumbling(3);
    strata_clock_t *clock = f.device->clock;
    EXPECT_TRUE(clock->polls);
    uint64_t until = clock->now(clock) + 20 * US;
    clock->sleep_until(clock, until);
    EXPECT_GE(clock->now(clock), until + 80 * US);
    EXPECT_LT(clock->now(clock), until + MS);
    EXPECT_EQ(figures_of(f.device).stall_ns, 20 * US);
    uint64_t now = clock->now(clock);
    clock->sleep_until(clock, until);
    EXPECT_EQ(clock->now(clock), now);
}

/* The price of a call is its own, whatever held up the host in it. */
TEST(sim_jitter, prices_stay_what_they_are) {
    strata_sim_figures_t figures[2];
    for (uint64_t seed = 0; seed < 2; seed++) {
        fixture_t f CLOSED_BY(fixture_close) = stumbling(seed);
        for (int i = 0; i < 1000; i++) put(f.device, get(f.device, MIB));
        figures[seed] = figures_of(f.device);
        EXPECT_EQ(strata_sim_now(f.world) > figures[seed].device_call_ns, seed != 0);
    }
    EXPECT_EQ(figures[0].device_call_ns, figures[1].device_call_ns);
}

static void *compute(void *context) {
    fixture_t *f = context;
    return (void *)(uintptr_t)held_up(f->world, 1000, MS);
}

TEST(sim_jitter, each_thread_has_its_own) {
    fixture_t f CLOSED_BY(fixture_close) = stumbling(7);
    pthread_t thread;
    void *other = NULL;
    EXPECT_EQ(strata_sim_now(f.world), 0);
    ASSERT_EQ(pthread_create(&thread, NULL, compute, &f), 0);
    pthread_join(thread, &other);
    EXPECT_NE((uintptr_t)other, held_up_under(7, 1000, MS));
}

TEST(sim_jitter, a_step_of_centuries_is_one_step) {
    fixture_t f CLOSED_BY(fixture_close) = stumbling(7);
    uint64_t far = UINT64_C(1) << 62;
    strata_sim_advance_to(f.world, far);
    EXPECT_GE(strata_sim_now(f.world), far);
    strata_sim_advance_to(f.world, UINT64_MAX - 5);
    EXPECT_EQ(strata_sim_now(f.world), UINT64_MAX - 5);
}

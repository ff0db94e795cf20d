/* Clocks of several threads, and their calls at once. */
#include <pthread.h>

#include "tests/sim/sim_fixture.h"

typedef struct shared {
    fixture_t *f;
    strata_lock_t lock;
    uint64_t started, joined, now;
    uint64_t advance_to;
    strata_handle_t stream;
} shared_t;

static void *look(void *argument) {
    shared_t *shared = argument;
    shared->started = strata_sim_now(shared->f->world);
    return NULL;
}

static void run(void *(*body)(void *), shared_t *shared) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, body, shared), 0);
    pthread_join(thread, NULL);
}

TEST_WORLD(sim_threads, a_new_thread_starts_at_the_latest_clock, 0) {
    shared_t shared = {.f = f};
    strata_sim_advance_to(f->world, 12345);
    run(look, &shared);
    EXPECT_EQ(shared.started, 12345);
}

static void *ahead(void *argument) {
    shared_t *shared = argument;
    strata_lock(&shared->lock);
    strata_sim_advance_to(shared->f->world, shared->advance_to);
    strata_unlock(&shared->lock);
    return NULL;
}

TEST_WORLD(sim_threads, clocks_join_when_a_lock_is_handed_over, 0) {
    shared_t shared = {.f = f, .advance_to = 70000};
    strata_lock_init(&shared.lock, STRATA_RANK_STACK, f->device->lock_observer);
    strata_sim_advance_to(f->world, 1000);
    run(ahead, &shared);
    EXPECT_EQ(strata_sim_now(f->world), 1000);
    strata_lock(&shared.lock);
    EXPECT_EQ(strata_sim_now(f->world), 70000);
    strata_unlock(&shared.lock);
    EXPECT_EQ(figures_of(f->device).stall_ns, 0);
    strata_lock_destroy(&shared.lock);
}

static void *submit(void *argument) {
    shared_t *shared = argument;
    strata_sim_advance_to(shared->f->world, shared->advance_to);
    EXPECT_OK(strata_device_work(shared->f->device, shared->stream, 500, NULL, 0));
    shared->now = strata_sim_stream_end(shared->f->device, shared->stream);
    return NULL;
}

TEST_WORLD(sim_threads, a_wait_for_the_device_joins_with_who_submitted, 0) {
    shared_t shared = {.f = f, .advance_to = 90000, .stream = stream_new(f->device, STRATA_STREAM_NON_BLOCKING)};
    uint64_t before = strata_sim_now(f->world);
    run(submit, &shared);
    EXPECT_EQ(strata_sim_now(f->world), before);
    ASSERT_OK(strata_device_synchronise(f->device));
    EXPECT_GE(strata_sim_now(f->world), shared.now);
    EXPECT_EQ(figures_of(f->device).stall_ns, shared.now - before);
}

static void *own_stream_id(void *argument) {
    shared_t *shared = argument;
    EXPECT_OK(strata_device_stream_id(shared->f->device, (strata_handle_t)2, &shared->now));
    EXPECT_OK(strata_device_work(shared->f->device, (strata_handle_t)2, 1000, NULL, 0));
    return NULL;
}

TEST_WORLD(sim_threads, the_threads_own_stream_is_one_per_thread, 0) {
    shared_t shared = {.f = f};
    uint64_t mine, again;
    ASSERT_OK(strata_device_stream_id(f->device, (strata_handle_t)2, &mine));
    run(own_stream_id, &shared);
    EXPECT_NE(shared.now, mine);
    EXPECT_EQ(strata_sim_stream_end(f->device, (strata_handle_t)2), 0);
    ASSERT_OK(strata_device_stream_id(f->device, (strata_handle_t)2, &again));
    EXPECT_EQ(mine, again);
}

TEST(sim_threads, worlds_keep_clocks_apart) {
    fixture_t f[6];
    for (uint64_t i = 0; i < 6; i++) {
        f[i] = fixture_open((strata_sim_options_t){0});
        strata_sim_advance_to(f[i].world, 100 * (i + 1));
    }
    for (uint64_t i = 0; i < 6; i++) EXPECT_EQ(strata_sim_now(f[i].world), 100 * (i + 1));
    for (uint64_t i = 0; i < 6; i++) fixture_close(&f[i]);
}

static void *churn(void *argument) {
    shared_t *shared = argument;
    strata_device_t *device = shared->f->device;
    strata_handle_t stream = stream_new(device, STRATA_STREAM_NON_BLOCKING), event = event_new(device);
    for (uint64_t i = 0; i < 300; i++) {
        strata_address_t a = get(device, 1 + i * 9000), p;
        const strata_access_t access = {a, 1 + i * 9000, true};
        EXPECT_OK(strata_device_work(device, stream, 1000, &access, 1));
        EXPECT_OK(strata_device_event_record(device, event, stream));
        strata_status_t status = strata_device_event_query(device, event);
        EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_NOT_READY);
        EXPECT_OK(strata_device_malloc_async(device, NULL, 5000 * i + 1, stream, &p));
        strata_lock(&shared->lock);
        EXPECT_OK(strata_device_stream_wait(device, stream, event));
        strata_unlock(&shared->lock);
        EXPECT_OK(strata_device_free_async(device, p, stream));
        put(device, a);
        if (i % 100 == 0) {
            mapped_t m = map_new(device, 2 * MIB);
            EXPECT_OK(strata_device_unmap(device, m.address, 2 * MIB));
            EXPECT_OK(strata_device_release(device, m.physical));
            EXPECT_OK(strata_device_unreserve(device, m.address, 2 * MIB));
        }
    }
    EXPECT_OK(strata_device_stream_destroy(device, stream));
    EXPECT_OK(strata_device_event_destroy(device, event));
    return NULL;
}

TEST_WORLD(sim_threads, many_threads_call_at_once, 0) {
    shared_t shared = {.f = f};
    pthread_t threads[4];
    strata_lock_init(&shared.lock, STRATA_RANK_STACK, f->device->lock_observer);
    for (int i = 0; i < 4; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, churn, &shared), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    ASSERT_OK(strata_device_synchronise(f->device));
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
    strata_lock_destroy(&shared.lock);
}

/* The same calls give the same addresses and figures. */
TEST(sim_threads, one_thread_is_deterministic) {
    strata_sim_figures_t figures[2];
    strata_address_t addresses[2] = {0};
    for (int turn = 0; turn < 2; turn++) {
        fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
        strata_handle_t stream = stream_new(f.device, STRATA_STREAM_BLOCKING);
        for (uint64_t i = 0; i < 500; i++) {
            strata_address_t a = get(f.device, 1 + i * 7919 % (3 * MIB)), p;
            EXPECT_OK(strata_device_work(f.device, stream, 100 * i, NULL, 0));
            EXPECT_OK(strata_device_malloc_async(f.device, NULL, 1 + i * 7919, stream, &p));
            if (i % 3) EXPECT_OK(strata_device_free_async(f.device, p, stream));
            if (i % 7) put(f.device, a);
            addresses[turn] = addresses[turn] * 31 + a + p;
        }
        figures[turn] = figures_of(f.device);
    }
    EXPECT_EQ(addresses[0], addresses[1]);
    EXPECT_EQ(figures[0].device_call_ns, figures[1].device_call_ns);
    EXPECT_EQ(figures[0].stall_ns, figures[1].stall_ns);
    EXPECT_EQ(figures[0].peak_used_bytes, figures[1].peak_used_bytes);
    EXPECT_GT(figures[0].stall_ns, 0);
}

/* A trace of a million events must replay in seconds: many live regions must not slow a call down. */
TEST(sim_threads, calls_stay_fast_with_many_live_regions) {
    enum { LIVE = 50000 };
    static strata_address_t live[LIVE];
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.capacity = STRATA_SIM_UNLIMITED});
    for (uint64_t i = 0; i < LIVE; i++) live[i] = get(f.device, i % 2 ? 100 : 3 * MIB);
    uint64_t began = strata_real_now();
    for (uint64_t i = 0; i < LIVE; i++) {
        uint64_t at = i * 7919 % LIVE;
        put(f.device, live[at]);
        live[at] = get(f.device, 3 * MIB);
    }
    uint64_t each = (strata_real_now() - began) / (2 * LIVE);
    EXPECT_LT(each, 50000); /* about 300 ns; a walk over all regions takes longer by far, on any machine */
    for (uint64_t i = 0; i < LIVE; i++) put(f.device, live[i]);
}

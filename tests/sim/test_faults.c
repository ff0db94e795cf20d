/* Faults on order. */
#include <pthread.h>

#include "tests/sim/sim_fixture.h"

static strata_status_t try_malloc(strata_device_t *device) {
    strata_address_t address;
    return strata_device_malloc(device, STRATA_MEMORY_DEVICE, MIB, &address);
}

TEST_WORLD(sim_faults, the_kth_call_of_a_kind_fails_once, 0) {
    ASSERT_OK(strata_sim_fail(f->device, STRATA_CALL_malloc, 3, false, STRATA_E_NO_MEMORY));
    EXPECT_OK(strata_device_synchronise(f->device));
    EXPECT_OK(try_malloc(f->device));
    EXPECT_OK(try_malloc(f->device));
    strata_sim_figures_t before = figures_of(f->device);
    uint64_t now = strata_sim_now(f->world);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try_malloc(f->device));
    EXPECT_EQ(strata_last_error()->device_code, 2);
    EXPECT_CONTAINS(strata_last_error()->text, "malloc");
    EXPECT_EQ(figures_of(f->device).used_bytes, before.used_bytes);
    EXPECT_EQ(strata_sim_now(f->world), now);
    EXPECT_OK(try_malloc(f->device));
}

TEST_WORLD(sim_faults, onward_means_every_later_call_until_cleared, 0) {
    ASSERT_OK(strata_sim_fail(f->device, STRATA_CALL_malloc, 2, true, STRATA_E_DEVICE));
    EXPECT_OK(try_malloc(f->device));
    for (int i = 0; i < 3; i++) EXPECT_STATUS(STRATA_E_DEVICE, try_malloc(f->device));
    EXPECT_NE(strata_last_error()->device_code, 2);
    EXPECT_OK(strata_device_synchronise(f->device));
    strata_sim_clear_faults(f->device);
    EXPECT_OK(try_malloc(f->device));
}

TEST_WORLD(sim_faults, any_call_is_counted_by_calls, 0) {
    uint64_t calls = strata_sim_calls(f->device), id;
    strata_handle_t e = event_new(f->device);
    EXPECT_OK(strata_device_stream_id(f->device, NULL, &id));
    strata_device_event_ready_at(f->device, e);
    strata_device_host_view(f->device, 1, 1);
    EXPECT_EQ(strata_sim_calls(f->device), calls + 2);
    ASSERT_OK(strata_sim_fail(f->device, STRATA_DEVICE_CALLS, 2, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_device_event_record(f->device, e, NULL));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_query(f->device, e));
    EXPECT_OK(strata_device_event_query(f->device, e));
}

static strata_status_t on_stream(strata_device_t *device, strata_device_call_t call, strata_handle_t stream) {
    uint64_t id;
    switch ((int)call) {
    case STRATA_CALL_work: return strata_device_work(device, stream, US, NULL, 0);
    case STRATA_CALL_stream_query: return strata_device_stream_query(device, stream);
    case STRATA_CALL_stream_synchronise: return strata_device_stream_synchronise(device, stream);
    case STRATA_CALL_stream_id: return strata_device_stream_id(device, stream, &id);
    default: return strata_device_stream_destroy(device, stream);
    }
}

TEST(sim_faults, a_call_on_a_stream_that_fails_does_nothing) {
    static const strata_device_call_t calls[] = {STRATA_CALL_work, STRATA_CALL_stream_query, STRATA_CALL_stream_synchronise,
                                                 STRATA_CALL_stream_id, STRATA_CALL_stream_destroy};
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
    strata_handle_t stream = stream_new(f.device, STRATA_STREAM_NON_BLOCKING);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        uint64_t now = strata_sim_now(f.world), end = strata_sim_stream_end(f.device, stream);
        ASSERT_OK(strata_sim_fail(f.device, calls[i], 1, false, STRATA_E_DEVICE));
        EXPECT_STATUS(STRATA_E_DEVICE, on_stream(f.device, calls[i], stream));
        EXPECT_EQ(strata_sim_now(f.world), now);
        EXPECT_EQ(strata_sim_stream_end(f.device, stream), end);
        ASSERT_OK(strata_device_stream_synchronise(f.device, stream));
        EXPECT_OK(on_stream(f.device, calls[i], stream));
    }
}

TEST_WORLD(sim_faults, a_lost_device_stays_lost, .devices = 2) {
    strata_address_t a = get(f->device, MIB);
    ASSERT_OK(strata_sim_fail(f->device, STRATA_CALL_event_create, 1, false, STRATA_E_DEVICE_LOST));
    EXPECT_OK(strata_device_synchronise(f->device));
    strata_handle_t none;
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_event_create(f->device, &none));
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_free(f->device, STRATA_MEMORY_DEVICE, a));
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_synchronise(f->device));
    EXPECT_OK(strata_device_synchronise(f->other));
    strata_sim_clear_faults(f->device);
    put(f->device, a);
}

TEST_WORLD(sim_faults, several_wait_side_by_side, 0) {
    ASSERT_OK(strata_sim_fail(f->device, STRATA_CALL_malloc, 1, false, STRATA_E_NO_MEMORY));
    ASSERT_OK(strata_sim_fail(f->device, STRATA_CALL_malloc, 3, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try_malloc(f->device));
    EXPECT_OK(try_malloc(f->device));
    EXPECT_STATUS(STRATA_E_DEVICE, try_malloc(f->device));
    EXPECT_STATUS(STRATA_E_INVALID, strata_sim_fail(f->device, STRATA_CALL_malloc, 0, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_INVALID, strata_sim_fail(f->device, STRATA_CALL_malloc, 1, false, STRATA_E_NOT_READY));
    for (int i = 0; i < 16; i++) EXPECT_OK(strata_sim_fail(f->device, STRATA_CALL_free, 9, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_sim_fail(f->device, STRATA_CALL_free, 9, false, STRATA_E_DEVICE));
}

typedef struct counter {
    strata_device_t *device;
    int failed;
} counter_t;

static void *hundred(void *argument) {
    counter_t *counter = argument;
    for (int i = 0; i < 100; i++) counter->failed += strata_device_synchronise(counter->device) != STRATA_OK;
    return NULL;
}

TEST_WORLD(sim_faults, calls_of_several_threads_are_counted_together, 0) {
    ASSERT_OK(strata_sim_fail(f->device, STRATA_CALL_synchronise, 351, true, STRATA_E_DEVICE));
    pthread_t threads[4];
    counter_t counters[4];
    int failed = 0;
    for (int i = 0; i < 4; i++) {
        counters[i] = (counter_t){f->device, 0};
        ASSERT_EQ(pthread_create(&threads[i], NULL, hundred, &counters[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        failed += counters[i].failed;
    }
    EXPECT_EQ(failed, 50);
}

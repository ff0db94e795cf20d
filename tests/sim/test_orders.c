/* Who sees whose work, and what a later step never undoes: legacy waits, waits in any order, captures of threads, shared pools. */
#include <pthread.h>

#include "tests/sim/sim_fixture.h"

#define LEGACY ((strata_handle_t)1)

/* ---- the legacy stream ---- */

typedef enum wait_how { BY_QUERY, BY_SYNCHRONISE, BY_END } wait_how_t;

/* Work of a blocking stream is the legacy stream's too, by whatever it is asked; that of others is not. */
static void legacy_wait(strata_handle_t name, wait_how_t how, strata_stream_flags_t flags) {
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
    strata_handle_t stream = stream_new(f.device, flags);
    bool seen = flags == STRATA_STREAM_BLOCKING;
    ASSERT_OK(strata_device_work(f.device, stream, 1000 * US, NULL, 0));
    uint64_t end = strata_sim_stream_end(f.device, stream);
    if (how == BY_QUERY) {
        EXPECT_STATUS(seen ? STRATA_E_NOT_READY : STRATA_OK, strata_device_stream_query(f.device, name));
        strata_sim_advance_to(f.world, end);
        EXPECT_OK(strata_device_stream_query(f.device, name));
    } else if (how == BY_SYNCHRONISE) {
        EXPECT_OK(strata_device_stream_synchronise(f.device, name));
        EXPECT_EQ(strata_sim_now(f.world) >= end, seen);
        EXPECT_EQ(figures_of(f.device).stall_ns, seen ? 1000 * US : 0);
    } else {
        EXPECT_EQ(strata_sim_stream_end(f.device, name), seen ? end : 0);
    }
}

TEST(sim_orders, a_legacy_wait_sees_the_work_of_blocking_streams_alone) {
    for (wait_how_t how = BY_QUERY; how <= BY_END; how++) {
        legacy_wait(NULL, how, STRATA_STREAM_BLOCKING);
        legacy_wait(LEGACY, how, STRATA_STREAM_BLOCKING);
        legacy_wait(NULL, how, STRATA_STREAM_NON_BLOCKING);
    }
}

/* Not the other way: what is asked of a blocking stream is its own work, though its next operation is after the legacy stream's. */
TEST_WORLD(sim_orders, a_blocking_stream_sees_its_own_work_alone, 0) {
    strata_handle_t stream = stream_new(f->device, STRATA_STREAM_BLOCKING), event = event_new(f->device);
    ASSERT_OK(strata_device_work(f->device, NULL, 1000 * US, NULL, 0));
    EXPECT_OK(strata_device_stream_query(f->device, stream));
    EXPECT_OK(strata_device_stream_synchronise(f->device, stream));
    EXPECT_EQ(strata_sim_stream_end(f->device, stream), 0);
    EXPECT_EQ(figures_of(f->device).stall_ns, 0);
    ASSERT_OK(strata_device_event_record(f->device, event, stream));
    EXPECT_EQ(strata_device_event_ready_at(f->device, event), strata_sim_stream_end(f->device, NULL));
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(f->device, stream));
}

/* A record or a wait there is an operation like work: both ways. */
TEST_WORLD(sim_orders, a_legacy_record_and_a_legacy_wait_stand_between_blocking_streams, 0) {
    strata_handle_t a = stream_new(f->device, STRATA_STREAM_BLOCKING), b = stream_new(f->device, STRATA_STREAM_BLOCKING);
    strata_handle_t n = stream_new(f->device, STRATA_STREAM_NON_BLOCKING), event = event_new(f->device);
    ASSERT_OK(strata_device_work(f->device, a, 1000 * US, NULL, 0));
    uint64_t end = strata_sim_stream_end(f->device, a);
    ASSERT_OK(strata_device_event_record(f->device, event, NULL));
    EXPECT_EQ(strata_device_event_ready_at(f->device, event), end);
    ASSERT_OK(strata_device_work(f->device, b, 10 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, b), end + 10 * US);
    ASSERT_OK(strata_device_work(f->device, n, 9000 * US, NULL, 0));
    uint64_t late = strata_sim_stream_end(f->device, n);
    ASSERT_OK(strata_device_event_record(f->device, event, n));
    ASSERT_OK(strata_device_stream_wait(f->device, NULL, event));
    ASSERT_OK(strata_device_work(f->device, a, 10 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, a), late + 10 * US);
}

/* All blocking streams count, whichever was given its work last; and a stream's wait is an operation, after legacy work. */
TEST_WORLD(sim_orders, the_latest_blocking_stream_counts_and_a_wait_is_after_legacy_work, 0) {
    strata_handle_t a = stream_new(f->device, STRATA_STREAM_BLOCKING), b = stream_new(f->device, STRATA_STREAM_BLOCKING);
    strata_handle_t event = event_new(f->device);
    ASSERT_OK(strata_device_event_record(f->device, event, b));
    ASSERT_OK(strata_device_work(f->device, a, 5000 * US, NULL, 0));
    uint64_t end = strata_sim_stream_end(f->device, a);
    ASSERT_OK(strata_device_work(f->device, b, 10 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, NULL), end);
    ASSERT_OK(strata_device_work(f->device, NULL, 10 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, NULL), end + 10 * US);
    ASSERT_OK(strata_device_stream_wait(f->device, b, event)); /* it has passed long since */
    EXPECT_EQ(strata_sim_stream_end(f->device, b), end + 10 * US);
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(f->device, b));
}

/* ---- waits ---- */

/* A stream that has waited for the later of two events, then waits for the earlier: its work begins after the later one. */
TEST_WORLD(sim_orders, an_older_wait_never_undoes_a_newer_one, 0) {
    strata_handle_t a = stream_new(f->device, STRATA_STREAM_NON_BLOCKING), b = stream_new(f->device, STRATA_STREAM_NON_BLOCKING);
    strata_handle_t old = event_new(f->device), fresh = event_new(f->device);
    ASSERT_OK(strata_device_work(f->device, a, 1000 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(f->device, old, a));
    ASSERT_OK(strata_device_work(f->device, a, 1000 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(f->device, fresh, a));
    uint64_t end = strata_device_event_ready_at(f->device, fresh);
    ASSERT_OK(strata_device_stream_wait(f->device, b, fresh));
    ASSERT_OK(strata_device_stream_wait(f->device, b, old));
    ASSERT_OK(strata_device_work(f->device, b, 10 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, b), end + 10 * US);
    EXPECT_EQ(strata_sim_device_end(f->device), end + 10 * US);
}

/* ---- captures of threads ---- */

typedef struct ending {
    strata_device_t *device;
    strata_handle_t stream, graph;
    strata_status_t status;
    int64_t code;
} ending_t;

static void *end_here(void *argument) {
    ending_t *ending = argument;
    ending->status = strata_device_capture_end(ending->device, ending->stream, &ending->graph);
    ending->code = strata_last_error()->device_code;
    return NULL;
}

TEST(sim_orders, a_global_and_a_thread_local_capture_end_on_their_own_thread_alone) {
    for (int mode = STRATA_CAPTURE_GLOBAL; mode <= STRATA_CAPTURE_RELAXED; mode++) {
        fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
        ending_t ending = {.device = f.device, .stream = stream_new(f.device, STRATA_STREAM_NON_BLOCKING)};
        pthread_t thread;
        bool anywhere = mode == STRATA_CAPTURE_RELAXED;
        ASSERT_OK(strata_device_capture_begin(f.device, ending.stream, (strata_capture_mode_t)mode));
        ASSERT_EQ(pthread_create(&thread, NULL, end_here, &ending), 0);
        pthread_join(thread, NULL);
        EXPECT_EQ(ending.status, anywhere ? STRATA_OK : STRATA_E_CAPTURE);
        if (!anywhere) {
            strata_capture_status_t status = STRATA_CAPTURE_NONE;
            EXPECT_EQ(ending.code, 908);
            EXPECT_OK(strata_device_capture_status(f.device, ending.stream, &status, NULL));
            EXPECT_EQ(status, STRATA_CAPTURE_ACTIVE); /* it goes on, whole */
            end_here(&ending);
            EXPECT_EQ(ending.status, STRATA_OK);
        }
        EXPECT_OK(strata_device_graph_destroy(f.device, ending.graph));
    }
}

/* ---- devices ---- */

/* A stream may wait for an event of any device of its world; a handle that was never given is none's. */
TEST_WORLD(sim_orders, streams_wait_for_events_of_every_device, .devices = 2) {
    strata_device_t *devices[] = {f->device, f->other};
    for (int from = 0; from < 2; from++) {
        strata_handle_t event = event_new(devices[from]), working = stream_new(devices[from], STRATA_STREAM_NON_BLOCKING);
        ASSERT_OK(strata_device_work(devices[from], working, 1000 * US, NULL, 0));
        ASSERT_OK(strata_device_event_record(devices[from], event, working));
        for (int to = 0; to < 2; to++) {
            strata_handle_t waiting = stream_new(devices[to], STRATA_STREAM_NON_BLOCKING);
            ASSERT_OK(strata_device_stream_wait(devices[to], waiting, event));
            EXPECT_EQ(strata_sim_stream_end(devices[to], waiting), strata_device_event_ready_at(devices[from], event));
        }
        strata_handle_t never = (strata_handle_t)((uintptr_t)event + 16);
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_stream_wait(devices[from], working, never));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_destroy(devices[from], never));
    }
}

/* Capture, graphs, graph memory. */
#include <pthread.h>

#include "tests/sim/sim_fixture.h"

#define RELAXED STRATA_CAPTURE_RELAXED

static strata_capture_status_t status_of(strata_device_t *device, strata_handle_t stream) {
    strata_capture_status_t status = STRATA_CAPTURE_NONE;
    EXPECT_OK(strata_device_capture_status(device, stream, &status, NULL));
    return status;
}

static strata_handle_t end_capture(strata_device_t *device, strata_handle_t stream) {
    strata_handle_t graph = NULL;
    EXPECT_OK(strata_device_capture_end(device, stream, &graph));
    return graph;
}

/* A device with two streams that do not block, and an event. */
typedef struct setup {
    fixture_t f;
    strata_device_t *device;
    strata_handle_t a, b, e;
} setup_t;

static void setup_close(setup_t *s) { fixture_close(&s->f); }

static setup_t setup_open(strata_sim_options_t options) {
    setup_t s = {.f = fixture_open(options)};
    s.device = s.f.device;
    s.a = stream_new(s.device, STRATA_STREAM_NON_BLOCKING);
    s.b = stream_new(s.device, STRATA_STREAM_NON_BLOCKING);
    s.e = event_new(s.device);
    return s;
}

#define TEST_SETUP(name, ...)                                                                                                      \
    TEST_WITH(sim_capture, name, setup_t, s, setup_close, *s = setup_open((strata_sim_options_t){__VA_ARGS__}))

TEST_SETUP(captured_work_runs_at_launch, .contents = true) {
    strata_address_t p = get(s->device, MIB);
    uint64_t id = 0, again = 0;
    strata_capture_status_t status;
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_capture_status(s->device, s->a, &status, &id));
    EXPECT_EQ(status, STRATA_CAPTURE_ACTIVE);
    EXPECT_NE(id, 0);
    ASSERT_OK(strata_device_work(s->device, s->a, 300 * US, NULL, 0));
    ASSERT_OK(strata_device_fill(s->device, p, 5, MIB, s->a));
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(s->device, p, 1), 0);
    strata_handle_t graph = end_capture(s->device, s->a);
    EXPECT_EQ(status_of(s->device, s->a), STRATA_CAPTURE_NONE);
    EXPECT_EQ(strata_sim_device_end(s->device), 0);
    ASSERT_OK(strata_device_graph_launch(s->device, graph, s->b));
    EXPECT_EQ(strata_sim_stream_end(s->device, s->b), strata_sim_now(s->f.world) + 300 * US);
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(s->device, p, 1), 5);
    uint64_t end = strata_sim_stream_end(s->device, s->b);
    ASSERT_OK(strata_device_graph_launch(s->device, graph, s->a));
    EXPECT_EQ(strata_sim_stream_end(s->device, s->a), end + 300 * US);
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_capture_status(s->device, s->a, &status, &again));
    EXPECT_NE(id, again);
    strata_handle_t second = end_capture(s->device, s->a);
    EXPECT_OK(strata_device_graph_destroy(s->device, second));
    EXPECT_OK(strata_device_graph_destroy(s->device, graph));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_graph_launch(s->device, graph, s->a));
}

TEST_SETUP(forks_join_and_the_longest_way_counts, 0) {
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_work(s->device, s->a, 100 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(s->device, s->e, s->a));
    ASSERT_OK(strata_device_stream_wait(s->device, s->b, s->e));
    EXPECT_EQ(status_of(s->device, s->b), STRATA_CAPTURE_ACTIVE);
    ASSERT_OK(strata_device_work(s->device, s->b, 500 * US, NULL, 0));
    ASSERT_OK(strata_device_work(s->device, s->a, 200 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(s->device, s->e, s->b));
    ASSERT_OK(strata_device_stream_wait(s->device, s->a, s->e));
    strata_handle_t graph = end_capture(s->device, s->a);
    EXPECT_EQ(status_of(s->device, s->b), STRATA_CAPTURE_NONE);
    ASSERT_OK(strata_device_graph_launch(s->device, graph, s->a));
    EXPECT_EQ(strata_sim_stream_end(s->device, s->a), strata_sim_now(s->f.world) + 600 * US);
    EXPECT_OK(strata_device_graph_destroy(s->device, graph));
}

TEST_SETUP(a_fork_that_is_not_joined_ends_in_failure, 0) {
    strata_handle_t graph = NULL;
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_event_record(s->device, s->e, s->a));
    ASSERT_OK(strata_device_stream_wait(s->device, s->b, s->e));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(s->device, s->b, &graph));
    EXPECT_EQ(strata_last_error()->device_code, 903);
    ASSERT_OK(strata_device_event_record(s->device, s->e, s->b));
    ASSERT_OK(strata_device_stream_wait(s->device, s->a, s->e));
    ASSERT_OK(strata_device_work(s->device, s->b, 1, NULL, 0));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(s->device, s->a, &graph));
    EXPECT_EQ(strata_last_error()->device_code, 904);
    EXPECT_EQ(status_of(s->device, s->a), STRATA_CAPTURE_NONE);
    EXPECT_EQ(status_of(s->device, s->b), STRATA_CAPTURE_NONE);
}

TEST_SETUP(captured_events_are_neither_queried_nor_waited_for, 0) {
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_event_record(s->device, s->e, s->a));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(s->device, s->e));
    EXPECT_EQ(strata_last_error()->device_code, 907);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_synchronise(s->device, s->e));
    EXPECT_EQ(strata_device_event_ready_at(s->device, s->e), STRATA_NEVER);
    EXPECT_TRUE(strata_device_event_is_captured(s->device, s->e));
    strata_handle_t graph = end_capture(s->device, s->a);
    EXPECT_TRUE(strata_device_event_is_captured(s->device, s->e));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_query(s->device, s->e));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_wait(s->device, s->b, s->e));
    ASSERT_OK(strata_device_event_record(s->device, s->e, s->b));
    EXPECT_OK(strata_device_event_query(s->device, s->e));
    EXPECT_FALSE(strata_device_event_is_captured(s->device, s->e));
    EXPECT_OK(strata_device_graph_destroy(s->device, graph));
}

static void *query_stream(void *argument) {
    setup_t *s = argument;
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_query(s->device, s->a));
    return NULL;
}

TEST_WAYS(sim_capture, what_asks_for_progress_breaks_the_capture, way, 5, setup_t, s, setup_close,
          *s = setup_open((strata_sim_options_t){0})) {
    strata_handle_t graph;
    pthread_t thread;
    ASSERT_OK(strata_device_event_record(s->device, s->e, s->b));
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    if (way == 0) EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_synchronise(s->device, s->a));
    if (way == 1) EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_synchronise(s->device));
    if (way == 2) EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_wait(s->device, s->a, s->e));
    if (way == 3) {
        ASSERT_EQ(pthread_create(&thread, NULL, query_stream, s), 0);
        pthread_join(thread, NULL);
    }
    if (way == 4) { /* memory calls and other streams do not */
        put(s->device, get(s->device, 3 * MIB));
        EXPECT_OK(strata_device_stream_synchronise(s->device, s->b));
        EXPECT_OK(strata_device_graph_destroy(s->device, end_capture(s->device, s->a)));
    } else {
        EXPECT_EQ(status_of(s->device, s->a), STRATA_CAPTURE_INVALIDATED);
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_work(s->device, s->a, 1, NULL, 0));
        EXPECT_EQ(strata_last_error()->device_code, 901);
        EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(s->device, s->a, &graph));
        EXPECT_EQ(strata_last_error()->device_code, 901);
    }
    EXPECT_EQ(status_of(s->device, s->a), STRATA_CAPTURE_NONE);
}

TEST_WORLD(sim_capture, the_legacy_stream_is_untouchable_while_a_blocking_one_is_captured, 0) {
    strata_handle_t b = stream_new(f->device, STRATA_STREAM_BLOCKING), graph;
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_begin(f->device, NULL, RELAXED));
    EXPECT_EQ(strata_last_error()->device_code, 900);
    ASSERT_OK(strata_device_capture_begin(f->device, b, RELAXED));
    EXPECT_EQ(status_of(f->device, NULL), STRATA_CAPTURE_IMPLICIT);
    EXPECT_EQ(status_of(f->device, b), STRATA_CAPTURE_ACTIVE);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_work(f->device, NULL, 1, NULL, 0));
    EXPECT_EQ(strata_last_error()->device_code, 906);
    EXPECT_EQ(status_of(f->device, b), STRATA_CAPTURE_INVALIDATED);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(f->device, b, &graph));
    EXPECT_OK(strata_device_work(f->device, NULL, 1, NULL, 0));
}

typedef struct death {
    pthread_t on;
    int times;
} death_t;

static void died(void *context) {
    death_t *death = context;
    death->on = pthread_self();
    death->times++;
}

TEST(sim_capture, a_dead_graph_calls_back_on_a_thread_of_the_drivers) {
    setup_t s = setup_open((strata_sim_options_t){0});
    death_t death = {0}, broken = {0}, closed = {0};
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_graph_on_destroy(s.device, s.a, died, &death));
    ASSERT_OK(strata_device_capture_begin(s.device, s.a, RELAXED));
    ASSERT_OK(strata_device_graph_on_destroy(s.device, s.a, died, &death));
    ASSERT_OK(strata_device_graph_on_destroy(s.device, s.a, died, &death));
    strata_handle_t graph = end_capture(s.device, s.a);
    ASSERT_OK(strata_device_graph_launch(s.device, graph, s.a));
    EXPECT_EQ(death.times, 0);
    ASSERT_OK(strata_device_graph_destroy(s.device, graph));
    EXPECT_EQ(death.times, 2);
    EXPECT_FALSE(pthread_equal(death.on, pthread_self()));
    ASSERT_OK(strata_device_capture_begin(s.device, s.a, RELAXED));
    ASSERT_OK(strata_device_graph_on_destroy(s.device, s.a, died, &broken));
    ASSERT_OK(strata_device_stream_destroy(s.device, s.a));
    EXPECT_EQ(broken.times, 1);
    ASSERT_OK(strata_device_capture_begin(s.device, s.b, RELAXED));
    ASSERT_OK(strata_device_graph_on_destroy(s.device, s.b, died, &closed));
    fixture_close(&s.f);
    EXPECT_EQ(closed.times, 1);
}

static void *end_elsewhere(void *argument) {
    setup_t *s = argument;
    strata_handle_t graph;
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(s->device, s->a, &graph));
    EXPECT_EQ(strata_last_error()->device_code, 908);
    return NULL;
}

TEST_SETUP(only_a_relaxed_capture_may_end_on_another_thread, 0) {
    pthread_t thread;
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, STRATA_CAPTURE_GLOBAL));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_EQ(pthread_create(&thread, NULL, end_elsewhere, s), 0);
    pthread_join(thread, NULL);
    EXPECT_OK(strata_device_graph_destroy(s->device, end_capture(s->device, s->a)));
}

TEST_SETUP(two_captures_do_not_merge, 0) {
    strata_handle_t graph;
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_capture_begin(s->device, s->b, RELAXED));
    ASSERT_OK(strata_device_event_record(s->device, s->e, s->a));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_wait(s->device, s->b, s->e));
    EXPECT_EQ(strata_last_error()->device_code, 902);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(s->device, s->a, &graph));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(s->device, s->b, &graph));
}

TEST_SETUP(memory_freed_inside_the_graph_lives_with_the_graph, 0) {
    strata_address_t inside;
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_malloc_async(s->device, NULL, 40 * MIB, s->a, &inside));
    ASSERT_OK(strata_device_free_async(s->device, inside, s->a));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->device, inside, s->a));
    strata_handle_t graph = end_capture(s->device, s->a);
    ASSERT_OK(strata_device_graph_launch(s->device, graph, s->a));
    ASSERT_OK(strata_device_graph_launch(s->device, graph, s->a));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->device, inside, s->a));
    EXPECT_EQ(figures_of(s->device).used_bytes, 40 * MIB);
    ASSERT_OK(strata_device_graph_destroy(s->device, graph));
    EXPECT_EQ(figures_of(s->device).used_bytes, 0);
}

TEST_SETUP(memory_not_freed_inside_outlives_the_graph, 0) {
    strata_address_t p;
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_malloc_async(s->device, NULL, 40 * MIB, s->a, &p));
    strata_handle_t graph = end_capture(s->device, s->a);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->device, p, s->a));
    ASSERT_OK(strata_device_graph_launch(s->device, graph, s->a));
    ASSERT_OK(strata_device_graph_launch(s->device, graph, s->a)); /* frees what the last one left */
    ASSERT_OK(strata_device_free_async(s->device, p, s->a));
    ASSERT_OK(strata_device_graph_launch(s->device, graph, s->a));
    ASSERT_OK(strata_device_graph_destroy(s->device, graph));
    EXPECT_EQ(figures_of(s->device).used_bytes, 40 * MIB);
    EXPECT_OK(strata_device_free_async(s->device, p, s->b));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->device, p, s->b));
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    strata_address_t again;
    ASSERT_OK(strata_device_malloc_async(s->device, NULL, 40 * MIB, s->a, &again));
    EXPECT_EQ(again, p);
    graph = end_capture(s->device, s->a);
    EXPECT_OK(strata_device_graph_launch(s->device, graph, s->a)); /* the graph has memory of its own, also after earlier owners */
    ASSERT_OK(strata_device_free_async(s->device, again, s->a));
    ASSERT_OK(strata_device_graph_destroy(s->device, graph));
    ASSERT_OK(strata_device_synchronise(s->device));
    EXPECT_EQ(figures_of(s->device).used_bytes, 0);
}

/* A stream that left a capture by its end is out of it once: the legacy stream is free again when the capture is over. */
TEST_SETUP(a_destroyed_branch_has_left, 0) {
    strata_handle_t branch = stream_new(s->device, STRATA_STREAM_BLOCKING), graph = NULL;
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_event_record(s->device, s->e, s->a));
    ASSERT_OK(strata_device_stream_wait(s->device, branch, s->e));
    EXPECT_EQ(status_of(s->device, NULL), STRATA_CAPTURE_IMPLICIT);
    ASSERT_OK(strata_device_stream_destroy(s->device, branch));
    EXPECT_EQ(status_of(s->device, NULL), STRATA_CAPTURE_NONE);
    EXPECT_EQ(status_of(s->device, s->a), STRATA_CAPTURE_INVALIDATED);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(s->device, s->a, &graph));
    EXPECT_EQ(status_of(s->device, NULL), STRATA_CAPTURE_NONE);
    EXPECT_EQ(status_of(s->device, s->a), STRATA_CAPTURE_NONE);
}

static uint64_t follows(setup_t *s, strata_handle_t stream, strata_handle_t other) {
    uint64_t id = 12345;
    EXPECT_OK(strata_device_capture_follows(s->device, stream, other, &id));
    return id;
}

static void join(setup_t *s, strata_handle_t stream, strata_handle_t other) {
    EXPECT_OK(strata_device_event_record(s->device, s->e, other));
    EXPECT_OK(strata_device_stream_wait(s->device, stream, s->e));
}

TEST_SETUP(a_stream_follows_what_it_has_joined, 0) {
    strata_capture_status_t status;
    uint64_t id;
    EXPECT_EQ(follows(s, s->a, s->b), 0);
    ASSERT_OK(strata_device_capture_begin(s->device, s->a, RELAXED));
    ASSERT_OK(strata_device_capture_status(s->device, s->a, &status, &id));
    EXPECT_EQ(follows(s, s->a, s->b), 0);
    ASSERT_OK(strata_device_work(s->device, s->a, US, NULL, 0));
    join(s, s->b, s->a);
    EXPECT_EQ(follows(s, s->b, s->a), id);
    ASSERT_OK(strata_device_work(s->device, s->b, US, NULL, 0));
    EXPECT_EQ(follows(s, s->a, s->b), 0);
    ASSERT_OK(strata_device_work(s->device, s->a, US, NULL, 0));
    EXPECT_EQ(follows(s, s->b, s->a), 0);
    join(s, s->a, s->b);
    ASSERT_OK(strata_device_work(s->device, s->a, US, NULL, 0));
    EXPECT_EQ(follows(s, s->a, s->b), id);
    ASSERT_OK(strata_device_graph_destroy(s->device, end_capture(s->device, s->a)));
    EXPECT_EQ(follows(s, s->a, s->b), 0);
}

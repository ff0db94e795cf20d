/* Captures to the letter: who is in one, what breaks which, what a graph then does and in which order. */
#include "tests/sim/sim_fixture.h"

#define RELAXED STRATA_CAPTURE_RELAXED

typedef struct captured {
    fixture_t f;
    strata_device_t *d;
    strata_handle_t a, b, c, e, late;
} captured_t;

static void captured_close(captured_t *s) { fixture_close(&s->f); }

static captured_t captured_open(strata_stream_flags_t b, strata_sim_options_t options) {
    captured_t s = {.f = fixture_open(options)};
    s.d = s.f.device;
    s.a = stream_new(s.d, STRATA_STREAM_NON_BLOCKING);
    s.b = stream_new(s.d, b);
    s.c = stream_new(s.d, STRATA_STREAM_NON_BLOCKING);
    s.e = event_new(s.d);
    s.late = event_new(s.d);
    EXPECT_OK(strata_device_capture_begin(s.d, s.a, RELAXED));
    return s;
}

/* A test of the capture `s`, in a world with these options. */
#define TEST_CAPTURED(name, b, ...)                                                                                                \
    TEST_WITH(sim_capture_rules, name, captured_t, s, captured_close, *s = captured_open(b, (strata_sim_options_t){__VA_ARGS__}))

static strata_capture_status_t status_of(captured_t *s, strata_handle_t stream) {
    strata_capture_status_t status = STRATA_CAPTURE_NONE;
    EXPECT_OK(strata_device_capture_status(s->d, stream, &status, NULL));
    return status;
}

/* `stream` waits for what `other` has been given. */
static strata_status_t join(captured_t *s, strata_handle_t stream, strata_handle_t other) {
    EXPECT_OK(strata_device_event_record(s->d, s->e, other));
    return strata_device_stream_wait(s->d, stream, s->e);
}

static strata_status_t end(captured_t *s, strata_handle_t *graph) { return strata_device_capture_end(s->d, s->a, graph); }

static int64_t code(void) { return strata_last_error()->device_code; }

/* ---- who is in one ---- */

TEST_CAPTURED(a_capture_holds_thirty_two_streams, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_handle_t last = NULL, graph = NULL;
    for (int i = 1; i < 32; i++) {
        last = stream_new(s->d, STRATA_STREAM_NON_BLOCKING);
        ASSERT_OK(join(s, last, s->a));
        ASSERT_OK(strata_device_work(s->d, last, 10 * US, NULL, 0));
        ASSERT_OK(join(s, s->a, last));
    }
    EXPECT_STATUS(STRATA_E_LIMIT, join(s, s->b, s->a));
    EXPECT_EQ(status_of(s, s->b), STRATA_CAPTURE_NONE);
    EXPECT_EQ(status_of(s, last), STRATA_CAPTURE_ACTIVE);
    ASSERT_OK(end(s, &graph));
    ASSERT_OK(strata_device_graph_launch(s->d, graph, s->b));
    EXPECT_EQ(strata_sim_stream_end(s->d, s->b), strata_sim_now(s->f.world) + 310 * US);
}

/* A blocking stream that is drawn into a capture later makes the legacy stream untouchable as one that began it would, until
 * it has left, by the end or by its own. */
TEST_WAYS(sim_capture_rules, a_blocking_stream_that_joins_counts, destroyed, 2, captured_t, s, captured_close,
          *s = captured_open(STRATA_STREAM_BLOCKING, (strata_sim_options_t){0})) {
    strata_handle_t graph = NULL;
    EXPECT_EQ(status_of(s, NULL), STRATA_CAPTURE_NONE);
    ASSERT_OK(join(s, s->b, s->a));
    EXPECT_EQ(status_of(s, NULL), STRATA_CAPTURE_IMPLICIT);
    ASSERT_OK(join(s, s->a, s->b));
    if (destroyed) ASSERT_OK(strata_device_stream_destroy(s->d, s->b));
    else ASSERT_OK(end(s, &graph));
    EXPECT_EQ(status_of(s, NULL), STRATA_CAPTURE_NONE);
    EXPECT_OK(strata_device_work(s->d, NULL, 1, NULL, 0));
}

/* Use of the legacy stream breaks the captures that a blocking stream is in, and leaves the others whole. */
TEST_CAPTURED(the_legacy_stream_breaks_captures_of_blocking_streams_alone, STRATA_STREAM_BLOCKING, 0) {
    strata_handle_t graph = NULL;
    ASSERT_OK(strata_device_capture_begin(s->d, s->b, RELAXED));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_work(s->d, NULL, 1, NULL, 0));
    EXPECT_EQ(status_of(s, s->b), STRATA_CAPTURE_INVALIDATED);
    EXPECT_EQ(status_of(s, s->a), STRATA_CAPTURE_ACTIVE);
    EXPECT_OK(end(s, &graph));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_capture_end(s->d, s->b, &graph));
}

/* Every use of it does: an event, a wait, a fill, memory, a query. */
TEST_WAYS(sim_capture_rules, every_use_of_the_legacy_stream_breaks_the_capture, way, 8, captured_t, s, captured_close,
          *s = captured_open(STRATA_STREAM_BLOCKING, (strata_sim_options_t){0})) {
    strata_address_t m = get(s->d, MIB), p;
    ASSERT_OK(strata_device_malloc_async(s->d, NULL, MIB, s->c, &p));
    ASSERT_OK(strata_device_event_record(s->d, s->late, s->c));
    ASSERT_OK(strata_device_capture_begin(s->d, s->b, RELAXED));
    strata_status_t status = way == 0   ? strata_device_event_record(s->d, s->e, NULL)
                             : way == 1 ? strata_device_stream_wait(s->d, NULL, s->late)
                             : way == 2 ? strata_device_fill(s->d, m, 1, 1, NULL)
                             : way == 3 ? strata_device_malloc_async(s->d, NULL, MIB, NULL, &m)
                             : way == 4 ? strata_device_free_async(s->d, p, NULL)
                             : way == 5 ? strata_device_stream_query(s->d, NULL)
                             : way == 6 ? strata_device_stream_synchronise(s->d, NULL)
                                        : strata_device_work(s->d, STRATA_STREAM_LEGACY, 1, NULL, 0);
    EXPECT_EQ(status, STRATA_E_CAPTURE);
    EXPECT_EQ(code(), 906);
    EXPECT_EQ(status_of(s, s->b), STRATA_CAPTURE_INVALIDATED);
}

/* A captured stream that is destroyed breaks the capture; only with the one that began it the capture is gone. */
TEST_CAPTURED(a_stream_destroyed_in_a_capture_breaks_it, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_handle_t graph;
    ASSERT_OK(join(s, s->b, s->a));
    ASSERT_OK(join(s, s->a, s->b));
    ASSERT_OK(strata_device_stream_destroy(s->d, s->b));
    EXPECT_EQ(status_of(s, s->a), STRATA_CAPTURE_INVALIDATED);
    EXPECT_STATUS(STRATA_E_CAPTURE, end(s, &graph));
    EXPECT_EQ(code(), 901);
    ASSERT_OK(strata_device_capture_begin(s->d, s->a, RELAXED));
    ASSERT_OK(join(s, s->c, s->a));
    ASSERT_OK(strata_device_stream_destroy(s->d, s->a));
    EXPECT_EQ(status_of(s, s->c), STRATA_CAPTURE_NONE);
    EXPECT_OK(strata_device_synchronise(s->d));
}

/* ---- waits in a capture ---- */

TEST_CAPTURED(an_event_that_was_never_recorded_holds_nobody_up, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_handle_t graph = NULL;
    EXPECT_OK(strata_device_stream_wait(s->d, s->a, s->late));
    EXPECT_OK(end(s, &graph));
}

TEST_CAPTURED(the_legacy_stream_cannot_be_drawn_in, STRATA_STREAM_NON_BLOCKING, 0) {
    EXPECT_STATUS(STRATA_E_CAPTURE, join(s, NULL, s->a));
    EXPECT_EQ(code(), 906);
    EXPECT_EQ(status_of(s, s->a), STRATA_CAPTURE_INVALIDATED);
    EXPECT_EQ(status_of(s, NULL), STRATA_CAPTURE_NONE);
}

/* A broken capture draws nobody in, records nothing, and takes neither memory nor work, host calls or not. */
TEST_CAPTURED(a_broken_capture_takes_nothing_more, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_address_t m, p = 0, got = 77, device = get(s->d, MIB);
    ASSERT_OK(strata_device_malloc(s->d, STRATA_MEMORY_MANAGED, MIB, &m));
    ASSERT_OK(strata_device_malloc_async(s->d, NULL, MIB, s->a, &p));
    ASSERT_OK(strata_device_event_record(s->d, s->e, s->a));
    uint64_t used = figures_of(s->d).used_bytes;
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_query(s->d, s->a));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_wait(s->d, s->b, s->e));
    EXPECT_EQ(code(), 901);
    EXPECT_EQ(status_of(s, s->b), STRATA_CAPTURE_NONE);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_event_record(s->d, s->late, s->a));
    EXPECT_OK(strata_device_event_query(s->d, s->late)); /* still never recorded */
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_work(s->d, s->a, 1, NULL, 0));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_fill(s->d, device, 1, MIB, s->a));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_prefetch(s->d, m, MIB, true, s->a));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_malloc_async(s->d, NULL, 64 * MIB, s->a, &got));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_free_async(s->d, p, s->a));
    EXPECT_EQ(code(), 901);
    EXPECT_EQ(got, 77);
    EXPECT_EQ(figures_of(s->d).used_bytes, used);
}

/* Which wait came last says nothing: a join stays one when an older event is waited for after it. */
TEST_CAPTURED(an_older_event_undoes_no_join, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_handle_t graph = NULL;
    ASSERT_OK(join(s, s->b, s->a));
    ASSERT_OK(strata_device_work(s->d, s->b, 100 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(s->d, s->e, s->b));
    ASSERT_OK(strata_device_work(s->d, s->b, 200 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(s->d, s->late, s->b));
    ASSERT_OK(strata_device_stream_wait(s->d, s->a, s->late));
    ASSERT_OK(strata_device_stream_wait(s->d, s->a, s->e));
    ASSERT_OK(end(s, &graph));
    ASSERT_OK(strata_device_graph_launch(s->d, graph, s->c));
    EXPECT_EQ(strata_sim_stream_end(s->d, s->c), strata_sim_now(s->f.world) + 300 * US);
}

/* The longest way is the graph's, be it the first stream's own or another's; every branch must be joined. */
TEST_CAPTURED(the_first_streams_own_way_may_be_the_longest, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_handle_t graph = NULL;
    ASSERT_OK(join(s, s->b, s->a));
    ASSERT_OK(join(s, s->c, s->a));
    ASSERT_OK(strata_device_work(s->d, s->a, 900 * US, NULL, 0));
    ASSERT_OK(strata_device_work(s->d, s->b, 100 * US, NULL, 0));
    ASSERT_OK(strata_device_work(s->d, s->c, 200 * US, NULL, 0));
    ASSERT_OK(join(s, s->a, s->b));
    ASSERT_OK(join(s, s->a, s->c));
    ASSERT_OK(end(s, &graph));
    ASSERT_OK(strata_device_graph_launch(s->d, graph, s->c));
    EXPECT_EQ(strata_sim_stream_end(s->d, s->c), strata_sim_now(s->f.world) + 900 * US);
}

TEST_WAYS(sim_capture_rules, each_branch_must_be_joined, left_out, 2, captured_t, s, captured_close,
          *s = captured_open(STRATA_STREAM_NON_BLOCKING, (strata_sim_options_t){0})) {
    strata_handle_t graph = NULL;
    ASSERT_OK(join(s, s->b, s->a));
    ASSERT_OK(join(s, s->c, s->a));
    ASSERT_OK(strata_device_work(s->d, s->b, 100 * US, NULL, 0));
    ASSERT_OK(strata_device_work(s->d, s->c, 200 * US, NULL, 0));
    ASSERT_OK(join(s, s->a, left_out ? s->b : s->c));
    EXPECT_STATUS(STRATA_E_CAPTURE, end(s, &graph));
    EXPECT_EQ(code(), 904);
}

/* A stream that was drawn in is part of the capture, be there work on it or not. */
TEST_WAYS(sim_capture_rules, a_branch_without_work_must_be_joined_too, joined, 2, captured_t, s, captured_close,
          *s = captured_open(STRATA_STREAM_NON_BLOCKING, (strata_sim_options_t){0})) {
    strata_handle_t graph = NULL;
    ASSERT_OK(join(s, s->b, s->a));
    if (joined) ASSERT_OK(join(s, s->a, s->b));
    EXPECT_EQ(end(s, &graph), joined ? STRATA_OK : STRATA_E_CAPTURE);
}

TEST_CAPTURED(a_stream_that_is_not_captured_has_no_id, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_capture_status_t status;
    uint64_t id = 77;
    EXPECT_OK(strata_device_capture_status(s->d, s->b, &status, &id));
    EXPECT_EQ(id, 0);
    EXPECT_OK(strata_device_capture_status(s->d, s->a, &status, &id));
    EXPECT_NE(id, 0);
}

/* ---- what a graph does ---- */

static strata_handle_t graph_of(captured_t *s) {
    strata_handle_t graph = NULL;
    EXPECT_OK(end(s, &graph));
    return graph;
}

TEST_CAPTURED(fills_happen_in_the_order_of_their_capture, STRATA_STREAM_NON_BLOCKING, .contents = true) {
    strata_address_t p = get(s->d, MIB);
    for (uint8_t byte = 1; byte <= 3; byte++) ASSERT_OK(strata_device_fill(s->d, p + byte, byte, 100, s->a));
    ASSERT_OK(strata_device_graph_launch(s->d, graph_of(s), s->b));
    const uint8_t *bytes = strata_device_host_view(s->d, p, 200);
    ASSERT_NE(bytes, NULL);
    for (int i = 0; i < 4; i++) EXPECT_EQ(bytes[i], i);
    EXPECT_EQ(bytes[102], 3);
    EXPECT_EQ(bytes[103], 0);
}

/* A launch after other work of its stream begins there, however early the last launch had ended. */
TEST_CAPTURED(a_launch_is_after_its_stream_and_after_the_last_launch, STRATA_STREAM_NON_BLOCKING, 0) {
    ASSERT_OK(strata_device_work(s->d, s->a, 100 * US, NULL, 0));
    strata_handle_t graph = graph_of(s);
    ASSERT_OK(strata_device_graph_launch(s->d, graph, s->a));
    ASSERT_OK(strata_device_work(s->d, s->b, 9000 * US, NULL, 0));
    uint64_t end_of_b = strata_sim_stream_end(s->d, s->b);
    ASSERT_OK(strata_device_graph_launch(s->d, graph, s->b));
    EXPECT_EQ(strata_sim_stream_end(s->d, s->b), end_of_b + 100 * US);
    ASSERT_OK(strata_device_graph_launch(s->d, graph, s->c));
    EXPECT_EQ(strata_sim_stream_end(s->d, s->c), end_of_b + 200 * US);
}

/* Whatever was freed in between. */
TEST_CAPTURED(a_launch_frees_what_the_last_one_left, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_address_t p[2];
    for (int i = 0; i < 2; i++) ASSERT_OK(strata_device_malloc_async(s->d, NULL, 4 * MIB, s->a, &p[i]));
    strata_handle_t graph = graph_of(s);
    for (int left = 0; left < 2; left++) {
        ASSERT_OK(strata_device_graph_launch(s->d, graph, s->b));
        ASSERT_OK(strata_device_free_async(s->d, p[!left], s->b));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->d, p[!left], s->b));
        ASSERT_OK(strata_device_graph_launch(s->d, graph, s->b));
        for (int i = 0; i < 2; i++) {
            ASSERT_OK(strata_device_free_async(s->d, p[i], s->b));
            EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->d, p[i], s->b));
        }
    }
    EXPECT_OK(strata_device_graph_destroy(s->d, graph));
}

/* ---- frees and memory of graphs ---- */

/* A captured free takes memory of graphs alone; any other breaks the capture, and the memory stays what it was. */
TEST_WAYS(sim_capture_rules, a_free_of_memory_that_no_graph_allocated_breaks_the_capture, pooled, 2, captured_t, s, captured_close,
          *s = captured_open(STRATA_STREAM_NON_BLOCKING, (strata_sim_options_t){0})) {
    strata_address_t outside = 0;
    strata_handle_t graph;
    if (pooled) ASSERT_OK(strata_device_malloc_async(s->d, NULL, MIB, s->b, &outside));
    else outside = get(s->d, MIB);
    uint64_t used = figures_of(s->d).used_bytes;
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_free_async(s->d, outside, s->a));
    EXPECT_EQ(code(), 905);
    EXPECT_EQ(status_of(s, s->a), STRATA_CAPTURE_INVALIDATED);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_free_async(s->d, outside, s->a));
    EXPECT_EQ(code(), 901);
    EXPECT_STATUS(STRATA_E_CAPTURE, end(s, &graph));
    EXPECT_EQ(figures_of(s->d).used_bytes, used);
    if (pooled) EXPECT_OK(strata_device_free_async(s->d, outside, s->a));
    else put(s->d, outside);
}

/* The capture of another graph that frees this memory; `s` is not capturing. */
static strata_handle_t graph_that_frees(captured_t *s, strata_address_t address) {
    EXPECT_OK(strata_device_capture_begin(s->d, s->a, RELAXED));
    EXPECT_OK(strata_device_fill(s->d, address, 1, 8, s->a));
    EXPECT_OK(strata_device_free_async(s->d, address, s->a));
    return graph_of(s);
}

/* What one graph leaves the launch of another may free, as often as it was allocated. */
TEST_CAPTURED(memory_of_one_graph_is_freed_by_the_launch_of_another, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_address_t p = 0;
    ASSERT_OK(strata_device_malloc_async(s->d, NULL, 4 * MIB, s->a, &p));
    strata_handle_t owner = graph_of(s), other = graph_that_frees(s, p);
    for (int i = 0; i < 2; i++) {
        uint64_t now = strata_sim_now(s->f.world);
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_graph_launch(s->d, other, s->b));
        EXPECT_EQ(strata_sim_now(s->f.world), now);
        ASSERT_OK(strata_device_graph_launch(s->d, owner, s->b));
        ASSERT_OK(strata_device_graph_launch(s->d, other, s->b));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->d, p, s->b));
    }
    ASSERT_OK(strata_device_graph_destroy(s->d, owner));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_graph_launch(s->d, other, s->b));
}

TEST_CAPTURED(memory_that_outlived_its_graph_is_freed_by_the_launch_of_another, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_address_t p = 0;
    ASSERT_OK(strata_device_malloc_async(s->d, NULL, 4 * MIB, s->a, &p));
    strata_handle_t owner = graph_of(s);
    ASSERT_OK(strata_device_graph_launch(s->d, owner, s->b));
    ASSERT_OK(strata_device_graph_destroy(s->d, owner));
    strata_handle_t other = graph_that_frees(s, p);
    EXPECT_NE(figures_of(s->d).used_bytes, 0);
    ASSERT_OK(strata_device_graph_launch(s->d, other, s->b));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_graph_launch(s->d, other, s->b));
    ASSERT_OK(strata_device_synchronise(s->d));
    EXPECT_EQ(figures_of(s->d).used_bytes, 0);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->d, p, s->b));
}

/* What its own graph frees nobody else may; the refusal leaves the other capture whole. */
TEST_CAPTURED(what_a_graph_frees_itself_no_other_frees, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_address_t p = 0;
    ASSERT_OK(strata_device_malloc_async(s->d, NULL, MIB, s->a, &p));
    ASSERT_OK(strata_device_free_async(s->d, p, s->a));
    ASSERT_OK(strata_device_graph_launch(s->d, graph_of(s), s->b));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(s->d, STRATA_MEMORY_DEVICE, p));
    ASSERT_OK(strata_device_capture_begin(s->d, s->a, RELAXED));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->d, p, s->a));
    EXPECT_EQ(status_of(s, s->a), STRATA_CAPTURE_ACTIVE);
}

/* A block that was freed inside one graph is as good as new in the next. */
TEST_CAPTURED(what_one_graph_freed_itself_another_may_leave, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_address_t kept = 0, first = 0, second = 0;
    ASSERT_OK(strata_device_malloc_async(s->d, NULL, MIB, s->a, &kept)); /* keeps the pool's chunk */
    graph_of(s);
    ASSERT_OK(strata_device_capture_begin(s->d, s->a, RELAXED));
    ASSERT_OK(strata_device_malloc_async(s->d, NULL, MIB, s->a, &first));
    ASSERT_OK(strata_device_free_async(s->d, first, s->a));
    ASSERT_OK(strata_device_graph_destroy(s->d, graph_of(s)));
    ASSERT_OK(strata_device_capture_begin(s->d, s->a, RELAXED));
    ASSERT_OK(strata_device_malloc_async(s->d, NULL, MIB, s->a, &second));
    ASSERT_EQ(first, second);
    ASSERT_OK(strata_device_graph_launch(s->d, graph_of(s), s->b));
    EXPECT_OK(strata_device_free_async(s->d, second, s->b));
}

/* Before its first launch there is nothing to free: the call is refused, and waits for nothing. */
TEST_CAPTURED(memory_of_a_graph_is_freed_outside_once_a_launch_has_allocated_it, STRATA_STREAM_NON_BLOCKING, 0) {
    strata_address_t p = 0;
    ASSERT_OK(strata_device_malloc_async(s->d, NULL, MIB, s->a, &p));
    strata_handle_t graph = graph_of(s);
    ASSERT_OK(strata_device_work(s->d, s->b, 900 * US, NULL, 0));
    uint64_t now = strata_sim_now(s->f.world);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(s->d, STRATA_MEMORY_DEVICE, p));
    EXPECT_EQ(strata_sim_now(s->f.world), now);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(s->d, p, s->b));
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(strata_device_graph_launch(s->d, graph, s->b));
        ASSERT_OK(strata_device_free(s->d, STRATA_MEMORY_DEVICE, p));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(s->d, STRATA_MEMORY_DEVICE, p));
    }
}

static void count_call(void *context) { ++*(int *)context; }

/* Several graphs that go in one call: all that was tied to each is called. */
TEST(sim_capture_rules, callbacks_of_several_graphs_are_all_called) {
    int called[3] = {0};
    captured_t s = captured_open(STRATA_STREAM_NON_BLOCKING, (strata_sim_options_t){0});
    ASSERT_OK(strata_device_graph_on_destroy(s.d, s.a, count_call, &called[0]));
    graph_of(&s);
    ASSERT_OK(strata_device_capture_begin(s.d, s.a, RELAXED));
    ASSERT_OK(strata_device_graph_on_destroy(s.d, s.a, count_call, &called[1]));
    ASSERT_OK(strata_device_capture_begin(s.d, s.b, RELAXED));
    ASSERT_OK(strata_device_graph_on_destroy(s.d, s.b, count_call, &called[2]));
    ASSERT_OK(strata_device_graph_on_destroy(s.d, s.b, count_call, &called[2]));
    fixture_close(&s.f);
    EXPECT_EQ(called[0], 1);
    EXPECT_EQ(called[1], 1);
    EXPECT_EQ(called[2], 2);
}

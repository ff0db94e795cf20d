/* Which captured stream comes after which, by the nodes of the graph: strata_device_capture_follows(). */
#include <string.h>

#include "tests/cuda/every_call.h"

typedef struct captured {
    every_call_t things;
    strata_device_t *d;
    strata_handle_t a, b;
    uint64_t id;
} captured_t;

static void captured_close(captured_t *c) { every_call_close(&c->things); }

/* Stream a is being captured. False: the test has failed. */
static bool captured_open(captured_t *c) {
    strata_capture_status_t status;
    fake_reset();
    memset(c, 0, sizeof *c);
    if (!every_call_prepare(&c->things, STRATA_CALL_capture_follows)) return false;
    c->d = c->things.device;
    c->a = c->things.stream;
    c->b = c->things.other_stream;
    EXPECT_OK(strata_device_capture_status(c->d, c->a, &status, &c->id));
    return true;
}

static uint64_t follows(captured_t *c, strata_handle_t stream, strata_handle_t other) {
    uint64_t id = 12345;
    EXPECT_OK(strata_device_capture_follows(c->d, stream, other, &id));
    return id;
}

static void join(captured_t *c, strata_handle_t stream, strata_handle_t other) {
    EXPECT_OK(strata_device_event_record(c->d, c->things.event, other));
    EXPECT_OK(strata_device_stream_wait(c->d, stream, c->things.event));
}

static void work(captured_t *c, strata_handle_t stream, int times) {
    while (times-- > 0) EXPECT_OK(strata_device_fill(c->d, c->things.address, 0, 64, stream));
}

#define CAPTURED(c)                                                                                                                \
    captured_t c CLOSED_BY(captured_close);                                                                                        \
    if (!captured_open(&c)) return

TEST(cuda_edges, a_stream_follows_what_it_has_joined) {
    CAPTURED(c);
    EXPECT_EQ(follows(&c, c.a, c.a), c.id);
    EXPECT_EQ(follows(&c, c.a, c.b), 0);
    work(&c, c.a, 2);
    join(&c, c.b, c.a);
    EXPECT_EQ(follows(&c, c.b, c.a), c.id);
    EXPECT_EQ(follows(&c, c.a, c.b), c.id);
    work(&c, c.b, 2);
    EXPECT_EQ(follows(&c, c.b, c.a), c.id);
    EXPECT_EQ(follows(&c, c.a, c.b), 0);
    work(&c, c.a, 1);
    EXPECT_EQ(follows(&c, c.b, c.a), 0);
    join(&c, c.a, c.b);
    EXPECT_EQ(follows(&c, c.a, c.b), c.id);
    work(&c, c.a, 3);
    EXPECT_EQ(follows(&c, c.a, c.b), c.id);
    work(&c, c.b, 1);
    EXPECT_EQ(follows(&c, c.a, c.b), 0);
}

TEST(cuda_edges, a_join_of_long_ago_is_not_looked_for) {
    CAPTURED(c);
    work(&c, c.a, 1);
    join(&c, c.b, c.a);
    work(&c, c.b, 1);
    join(&c, c.a, c.b);
    work(&c, c.a, 60);
    EXPECT_EQ(follows(&c, c.a, c.b), c.id);
    work(&c, c.a, 10);
    EXPECT_EQ(follows(&c, c.a, c.b), 0);
    EXPECT_LE(fake_count("GraphNodeGetDependencies"), 2 * 64);
}

TEST(cuda_edges, two_captures_do_not_follow_each_other) {
    CAPTURED(c);
    ASSERT_OK(strata_device_capture_begin(c.d, c.b, STRATA_CAPTURE_RELAXED));
    EXPECT_EQ(follows(&c, c.a, c.b), 0);
    EXPECT_EQ(follows(&c, NULL, c.a), 0);
}

/* Edges that carry data are not told to who does not ask for them. */
TEST(cuda_edges, what_the_driver_does_not_tell_is_not_joined) {
    static const char *const calls[] = {"StreamGetCaptureInfo", "GraphNodeGetDependencies"};
    for (int i = 0; i < 2; i++) {
        CAPTURED(c);
        work(&c, c.a, 1);
        join(&c, c.b, c.a);
        work(&c, c.b, 1);
        join(&c, c.a, c.b);
        work(&c, c.a, 1);
        fake_fail(calls[i], 1, CUDA_ERROR_LOSSY_QUERY);
        EXPECT_EQ(follows(&c, c.a, c.b), 0);
        EXPECT_EQ(follows(&c, c.a, c.b), c.id);
    }
}

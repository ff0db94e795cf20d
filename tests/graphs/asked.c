/* What the driver is asked about streams while pools are open, and what its answer makes of a request: the legacy stream, broken captures,
 * filters that choose anew. */
#include "allocation/graphs/graphs.h"
#include "tests/graphs/graphs.h"

enum { SIZE = 1 << 20 };

static void give(captured_t *c, const strata_block_t *block) { EXPECT_OK(strata_free(c->rig.s, block->ref)); }

static uint64_t pool_of(captured_t *c, const strata_block_t *block) {
    uint64_t pool = 0;
    EXPECT_OK(strata_pool_of(c->rig.s, block->ref, &pool));
    return pool;
}

static uint64_t asked(captured_t *c) { return rig_calls(&c->rig, STRATA_CALL_capture_status); }

static void break_capture(captured_t *c) {
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_synchronise(c->rig.devices[0], c->stream));
}

/* The capture is broken; the pool is ended after it. */
static void leave_broken(captured_t *c) {
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_capture_end(c->rig.s, c->rig.gpu, c->stream, &c->graph));
    EXPECT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, c->pool));
    EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, c->pool));
    captured_close(c);
}

/* It cannot be captured, and the driver refuses questions about it beside the capture of a stream that is ordered with it. */
TEST(graph_asked, the_pool_of_the_legacy_stream_asks_nothing) {
    captured_t c;
    captured_open(&c, "strata");
    uint64_t before = asked(&c);
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, NULL, &c.pool));
    for (int i = 0; i < 2; i++) {
        strata_block_t block = rig_allocate(&c.rig, i ? STRATA_STREAM_LEGACY : NULL, SIZE);
        EXPECT_EQ(pool_of(&c, &block), c.pool);
        give(&c, &block);
    }
    EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_EQ(asked(&c), before);
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    captured_close(&c);
}

/* Either name of the legacy stream begins its pool. */
TEST(graph_asked, the_legacy_stream_begins_its_pool_by_either_name) {
    captured_t c;
    captured_open(&c, "strata");
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, STRATA_STREAM_LEGACY, &c.pool));
    strata_block_t block = rig_allocate(&c.rig, NULL, SIZE);
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    give(&c, &block);
    EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    captured_close(&c);
}

/* No graph will come of it, so none keeps the pool. */
TEST(graph_asked, a_broken_capture_is_no_graph_of_the_pool) {
    captured_t c;
    captured_open(&c, "strata");
    captured_begin(&c);
    break_capture(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    EXPECT_EQ(captured_pool(&c).graphs, 0);
    EXPECT_EQ(rig_calls(&c.rig, STRATA_CALL_graph_on_destroy), 0);
    give(&c, &block);
    leave_broken(&c);
}

/* The stream is in the capture until that ends. */
TEST(graph_asked, a_stream_that_joined_a_broken_capture_is_refused) {
    captured_t c;
    strata_block_t none;
    captured_open(&c, "strata");
    captured_begin(&c);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.other, c.stream));
    break_capture(&c);
    EXPECT_SAYS(STRATA_E_CAPTURE, strata_allocate(c.rig.s, c.rig.gpu, c.other, SIZE, &none), "capture of this stream was broken");
    leave_broken(&c);
}

typedef struct choice {
    strata_stream_t streams[2];
} choice_t;

static bool is_chosen(strata_stream_t stream, void *context) {
    const choice_t *choice = context;
    return stream == choice->streams[0] || stream == choice->streams[1];
}

/* The filter's pool has no stream by name, not even the one whose name is NULL. */
TEST(graph_asked, a_filter_is_asked_about_each_request_of_the_legacy_stream) {
    captured_t c;
    captured_open(&c, "strata");
    choice_t choice = {.streams = {c.stream, NULL}};
    ASSERT_OK(strata_graph_pool_begin_filtered(c.rig.s, c.rig.gpu, is_chosen, &choice, &c.pool));
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
    give(&c, &block);
    for (int i = 0; i < 4; i++) {
        if (i == 2) choice.streams[1] = c.stream;
        block = rig_allocate(&c.rig, NULL, SIZE);
        EXPECT_EQ(pool_of(&c, &block), i < 2 ? c.pool : STRATA_POOL_ORDINARY);
        give(&c, &block);
    }
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

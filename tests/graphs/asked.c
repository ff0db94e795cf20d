/* Queries of the driver while pools are open, and requests that depend on the result: the legacy stream, broken captures, filters whose
 * choice changes, and borrowers that are captured later. */
#include "allocation/domain/layer.h"
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
    EXPECT_SAYS(STRATA_E_CAPTURE, strata_allocate(c.rig.s, c.rig.gpu, c.other, SIZE, &none),
                "capture of this stream was invalidated");
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

/* ---- borrowers that are captured after the borrow ---- */

typedef struct lent {
    const char *name, *strategy;
    bool second; /* of the two borrowers is captured */
} lent_t;

static const lent_t lents[] = {
    {"stream_safe_first", "stack: [stream_safe, auto_growth: {chunk_size: 64MiB}, system]", false},
    {"stream_safe_second", "stack: [stream_safe, auto_growth: {chunk_size: 64MiB}, system]", true},
    {"caching_first", "stack: [caching, system]", false},
    {"caching_second", "stack: [caching, system]", true},
};

/* An event of the captured stream would never pass. So the free waits for the end of the capture, whichever thread polls. */
TEST_EACH(graph_asked, a_block_waits_while_one_of_its_borrowers_is_captured, lent_t, lents) {
    captured_t c;
    captured_open(&c, row->strategy);
    strata_stream_t owner = rig_stream(&c.rig);
    if (row->second) {
        strata_stream_t first = c.stream;
        c.stream = c.other;
        c.other = first;
    }
    strata_block_t block = rig_allocate(&c.rig, owner, SIZE), next;
    EXPECT_OK(strata_record_stream(c.rig.s, block.ref, c.stream));
    EXPECT_OK(strata_record_stream(c.rig.s, block.ref, c.other));
    captured_begin(&c);
    give(&c, &block);
    for (int i = 0; i < 2; i++) {
        next = rig_allocate(&c.rig, owner, SIZE);
        EXPECT_NE(next.ptr, block.ptr);
        EXPECT_EQ(rig_figures(&c.rig).deferred_bytes, SIZE);
        EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, 0);
        give(&c, &next);
    }
    captured_end(&c);
    /* The first request marks the work of both borrowers, the second one sees that it is done. */
    for (int i = 0; i < 2; i++) {
        next = rig_allocate(&c.rig, owner, SIZE);
        give(&c, &next);
        EXPECT_OK(strata_device_synchronise(c.rig.devices[0]));
    }
    EXPECT_EQ(rig_figures(&c.rig).deferred_bytes, 0);
    EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, 0);
    EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, owner));
    EXPECT_OK(strata_stream_destroy(c.rig.s, c.rig.gpu, owner));
    captured_destroy(&c);
    captured_close(&c);
}

typedef struct marked {
    const char *name, *strategy;
    bool recycled; /* the borrower has ended, and the stream that is captured has its handle */
} marked_t;

static const marked_t marks[] = {
    {"event_at_use", "stack: [stream_safe: {event: use}, auto_growth: {chunk_size: 64MiB}, system]", false},
    {"recycled_stream_safe", "stack: [stream_safe, auto_growth: {chunk_size: 64MiB}, system]", true},
    {"recycled_caching", "stack: [caching, system]", true},
};

/* The end of the borrow was marked before the capture, so the free waits for that mark alone. */
TEST_EACH(graph_asked, a_block_whose_borrow_was_marked_before_the_capture_serves_inside_it, marked_t, marks) {
    captured_t c;
    captured_open(&c, row->strategy);
    strata_stream_t owner = rig_stream(&c.rig), borrower = c.stream;
    strata_block_t block = rig_allocate(&c.rig, owner, SIZE), next;
    rig_work(&c.rig, borrower, 1000 * 1000, block.ref);
    EXPECT_OK(strata_record_stream(c.rig.s, block.ref, borrower));
    if (row->recycled) {
        EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, borrower));
        EXPECT_OK(strata_stream_destroy(c.rig.s, c.rig.gpu, borrower));
        c.stream = rig_stream(&c.rig);
        ASSERT_EQ(c.stream, borrower);
    }
    captured_begin(&c);
    give(&c, &block);
    for (int passed = 0; passed < 2; passed++) {
        EXPECT_EQ(rig_figures(&c.rig).deferred_bytes, SIZE);
        if (passed) rig_advance(&c.rig, 2 * 1000 * 1000);
        next = rig_allocate(&c.rig, owner, SIZE);
        EXPECT_EQ(next.ptr == block.ptr, passed);
        give(&c, &next);
    }
    EXPECT_EQ(rig_figures(&c.rig).deferred_bytes + rig_figures(&c.rig).quarantined_bytes, 0);
    captured_end(&c);
    EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, owner));
    EXPECT_OK(strata_stream_destroy(c.rig.s, c.rig.gpu, owner));
    captured_destroy(&c);
    captured_close(&c);
}

/* ---- hits of other places ---- */

static uint16_t closed_by_graphs(const strata_block_t *block) {
    return strata_stack_of(strata_ref_home(block->ref))->closed & STRATA_CLOSED_BY_GRAPHS;
}

/* While a pool is open each request is looked up, in every place; from the last end on none is. */
TEST(graph_asked, the_hits_of_all_places_serve_directly_after_the_last_end) {
    captured_t c;
    strata_block_t own, managed;
    uint64_t second = 0;
    captured_open(&c, "strata");
    own = rig_allocate(&c.rig, c.other, SIZE);
    EXPECT_OK(strata_allocate(c.rig.s, strata_managed(0), c.other, SIZE, &managed));
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, strata_managed(0), c.stream, &second));
    for (int open = 2; open >= 0; open--) {
        EXPECT_EQ(closed_by_graphs(&own) != 0, open > 0);
        EXPECT_EQ(closed_by_graphs(&managed) != 0, open > 0);
        if (open == 2) EXPECT_OK(strata_graph_pool_end(c.rig.s, strata_managed(0), second));
        if (open == 1) EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    }
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, strata_managed(0), second));
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    give(&c, &own);
    give(&c, &managed);
    EXPECT_OK(strata_stream_forget(c.rig.s, strata_managed(0), c.other));
    captured_close(&c);
}

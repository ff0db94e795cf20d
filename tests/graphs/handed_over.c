/* Captures into one pool use the memory that earlier ones have left, whatever their streams were. */
#include "platform/host/host_memory.h"
#include "tests/facade/support/fixture.h"
#include "tests/graphs/peers/peers.h"

enum { CAPTURES = 11, LAYERS = 24, PAGE = 4 << 20 };

/* ---- programs ---- */

static void begin_on(captured_t *c, strata_stream_t stream) {
    ASSERT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, stream, &c->pool));
    ASSERT_OK(strata_capture_begin(c->rig.s, c->rig.gpu, stream));
}

static strata_graph_t end_on(captured_t *c, strata_stream_t stream) {
    strata_graph_t graph = NULL;
    EXPECT_OK(strata_capture_end(c->rig.s, c->rig.gpu, stream, &graph));
    EXPECT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, c->pool));
    EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, c->pool));
    return graph;
}

/* Captures one block, which is freed before the end. */
static strata_block_t capture_block(captured_t *c, strata_stream_t stream, size_t size, strata_graph_t *graph) {
    begin_on(c, stream);
    strata_block_t block = rig_allocate(&c->rig, stream, size);
    EXPECT_OK(strata_free(c->rig.s, block.ref));
    *graph = end_on(c, stream);
    return block;
}

static void work_on(captured_t *c, strata_stream_t stream, const strata_block_t *block) {
    EXPECT_OK(strata_stream_work(c->rig.s, c->rig.gpu, stream, 10 * 1000, &block->ref, 1));
}

static void join(captured_t *c, strata_stream_t stream, strata_stream_t other) {
    EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, stream, other));
}

static void launch_on(captured_t *c, strata_graph_t graph, strata_stream_t stream, bool waits) {
    EXPECT_OK(strata_graph_launch(c->rig.s, c->rig.gpu, graph, stream));
    if (waits) EXPECT_OK(strata_stream_synchronize(c->rig.s, c->rig.gpu, stream));
}

static void destroy(captured_t *c, strata_graph_t graph) { EXPECT_OK(strata_graph_destroy(c->rig.s, c->rig.gpu, graph)); }

/* A network of layers whose activations grow with `scale`. Returns the output of the last layer. */
static strata_block_t forward(captured_t *c, strata_stream_t stream, uint64_t scale) {
    strata_block_t kept[3];
    uint32_t count = 0;
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        strata_block_t scratch = rig_allocate(&c->rig, stream, scale * 4 << 18);
        strata_block_t output = rig_allocate(&c->rig, stream, scale * (6 + layer * layer % 3) << 18);
        work_on(c, stream, &output);
        EXPECT_OK(strata_free(c->rig.s, scratch.ref));
        if (count == 3) {
            EXPECT_OK(strata_free(c->rig.s, kept[0].ref));
            kept[0] = kept[1];
            kept[1] = kept[2];
            count--;
        }
        kept[count++] = output;
    }
    while (count > 1) EXPECT_OK(strata_free(c->rig.s, kept[--count - 1].ref));
    return kept[2];
}

/* ---- memory ---- */

typedef struct order {
    const char *name;
    uint64_t scale[CAPTURES];
} order_t;

static const order_t orders[] = {
    {"rising", {10, 22, 34, 46, 58, 70, 82, 94, 106, 118, 130}},
    {"falling", {130, 118, 106, 94, 82, 70, 58, 46, 34, 22, 10}},
    {"mixed", {58, 130, 10, 94, 22, 118, 46, 70, 34, 106, 82}},
};

/* How the captures of a program run. */
typedef struct captures {
    int count;
    bool own_streams; /* each capture has a stream of its own */
    bool keep_results; /* each output is live until the end of the program */
} captures_t;

/* Returns the bytes of the pool that are not in results, after all captures. */
static uint64_t held_by(const uint64_t *scale, captures_t how) {
    captured_t c;
    strata_stream_t streams[CAPTURES];
    strata_graph_t graphs[CAPTURES];
    strata_block_t results[CAPTURES];
    captured_open(&c, "strata");
    for (int i = 0; i < how.count; i++) {
        streams[i] = i == 0 || how.own_streams ? rig_stream(&c.rig) : streams[0];
        begin_on(&c, streams[i]);
        results[i] = forward(&c, streams[i], scale[i]);
        if (!how.keep_results) EXPECT_OK(strata_free(c.rig.s, results[i].ref));
        graphs[i] = end_on(&c, streams[i]);
        if (i > 0 && how.keep_results) EXPECT_FALSE(rig_overlap(&results[i], &results[i - 1]));
    }
    uint64_t held = captured_pool(&c).reserved_bytes;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < how.count; i++) launch_on(&c, graphs[i], streams[i], true);
    for (int i = 0; i < how.count && how.keep_results; i++) {
        if (i < how.count - 1) held -= results[i].size;
        EXPECT_OK(strata_free(c.rig.s, results[i].ref));
    }
    EXPECT_OK(strata_validate(c.rig.s));
    for (int i = 0; i < how.count; i++) destroy(&c, graphs[i]);
    captured_close(&c);
    return held;
}

/* The results that are live between captures are held in addition. */
TEST_EACH(graph_handed_over, eleven_captures_hold_the_largest, order_t, orders) {
    const uint64_t largest[] = {130};
    uint64_t most = held_by(largest, (captures_t){.count = 1});
    for (int how = 0; how < 4; how++) {
        const captures_t captures = {.count = CAPTURES, .own_streams = how & 1, .keep_results = how & 2};
        EXPECT_LE((double)held_by(row->scale, captures), 1.02 * (double)most + PAGE);
    }
}

/* ---- which stack ---- */

TEST(graph_handed_over, the_next_stream_gets_the_same_addresses) {
    captured_t c;
    captured_open(&c, "strata");
    strata_graph_t graph;
    strata_block_t first = capture_block(&c, c.stream, 8 * MIB, &graph);
    strata_graph_t next;
    strata_block_t second = capture_block(&c, c.other, 8 * MIB, &next);
    EXPECT_EQ(second.ptr, first.ptr);
    EXPECT_OK(strata_validate(c.rig.s));
    destroy(&c, graph);
    destroy(&c, next);
    captured_close(&c);
}

/* The next stream gets the larger of two stacks. */
TEST(graph_handed_over, the_next_stream_gets_the_largest_stack) {
    for (int side_is_larger = 0; side_is_larger < 2; side_is_larger++) {
        captured_t c;
        captured_open(&c, "strata");
        begin_on(&c, c.stream);
        join(&c, c.other, c.stream);
        strata_block_t first = rig_allocate(&c.rig, c.stream, side_is_larger ? 4 * MIB : 40 * MIB);
        strata_block_t side = rig_allocate(&c.rig, c.other, side_is_larger ? 40 * MIB : 4 * MIB);
        EXPECT_OK(strata_free(c.rig.s, first.ref));
        EXPECT_OK(strata_free(c.rig.s, side.ref));
        join(&c, c.stream, c.other);
        strata_graph_t graph = end_on(&c, c.stream);
        strata_stream_t stream = rig_stream(&c.rig);
        strata_graph_t second;
        strata_block_t next = capture_block(&c, stream, 40 * MIB, &second);
        EXPECT_EQ(next.ptr, side_is_larger ? side.ptr : first.ptr);
        destroy(&c, graph);
        destroy(&c, second);
        captured_close(&c);
    }
}

/* Nothing orders two streams of one capture. */
TEST(graph_handed_over, a_stream_of_the_same_capture_gets_other_memory) {
    captured_t c;
    captured_open(&c, "strata");
    begin_on(&c, c.stream);
    strata_block_t own = rig_allocate(&c.rig, c.stream, 8 * MIB);
    work_on(&c, c.stream, &own);
    EXPECT_OK(strata_free(c.rig.s, own.ref));
    join(&c, c.other, c.stream);
    strata_block_t theirs = rig_allocate(&c.rig, c.other, 8 * MIB);
    EXPECT_FALSE(rig_overlap(&own, &theirs));
    work_on(&c, c.other, &theirs);
    EXPECT_OK(strata_free(c.rig.s, theirs.ref));
    join(&c, c.stream, c.other);
    strata_graph_t graph = end_on(&c, c.stream);
    launch_on(&c, graph, c.stream, true);
    destroy(&c, graph);
    captured_close(&c);
}

/* The pool is also open between its begin and the capture, and that work is not part of a graph. */
TEST(graph_handed_over, a_stack_whose_work_runs_stays) {
    for (int done = 0; done < 2; done++) {
        captured_t c;
        captured_open(&c, "strata");
        EXPECT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
        strata_block_t eager = rig_allocate(&c.rig, c.stream, 8 * MIB);
        rig_work(&c.rig, c.stream, 1000 * 1000, eager.ref);
        EXPECT_OK(strata_free(c.rig.s, eager.ref));
        EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
        if (done) EXPECT_OK(strata_stream_synchronize(c.rig.s, c.rig.gpu, c.stream));
        strata_graph_t graph;
        strata_block_t next = capture_block(&c, c.other, 8 * MIB, &graph);
        EXPECT_EQ(rig_overlap(&eager, &next), done != 0);
        destroy(&c, graph);
        EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
        captured_close(&c);
    }
}

/* If the device cannot show that the work is done, the stream gets a stack of its own. */
TEST(graph_handed_over, a_refused_event_hands_nothing_over) {
    static const strata_device_call_t calls[] = {STRATA_CALL_event_record, STRATA_CALL_event_query};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        captured_t c;
        strata_graph_t graph;
        captured_open(&c, "strata");
        strata_block_t first = capture_block(&c, c.stream, 8 * MIB, &graph);
        begin_on(&c, c.other);
        ASSERT_OK(strata_sim_fail(c.rig.devices[0], calls[i], 1, true, STRATA_E_DEVICE));
        strata_block_t next = rig_allocate(&c.rig, c.other, 8 * MIB);
        strata_sim_clear_faults(c.rig.devices[0]);
        EXPECT_FALSE(rig_overlap(&first, &next));
        EXPECT_OK(strata_free(c.rig.s, next.ref));
        strata_graph_t second = end_on(&c, c.other);
        EXPECT_OK(strata_validate(c.rig.s));
        destroy(&c, graph);
        destroy(&c, second);
        captured_close(&c);
    }
}

/* A request that is not captured could use the memory while an earlier graph runs. */
TEST(graph_handed_over, a_stream_that_is_not_captured_gets_other_memory) {
    captured_t c;
    captured_open(&c, "strata");
    strata_graph_t graph;
    strata_block_t first = capture_block(&c, c.stream, 8 * MIB, &graph);
    EXPECT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.other, &c.pool));
    strata_block_t eager = rig_allocate(&c.rig, c.other, 8 * MIB);
    EXPECT_FALSE(rig_overlap(&first, &eager));
    EXPECT_OK(strata_free(c.rig.s, eager.ref));
    EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    destroy(&c, graph);
    captured_close(&c);
}

/* Captures two blocks, of which the larger one is free at the end. */
static strata_block_t capture_result(captured_t *c, strata_block_t *idle, strata_graph_t *graph) {
    begin_on(c, c->stream);
    strata_block_t result = rig_allocate(&c->rig, c->stream, MIB);
    *idle = rig_allocate(&c->rig, c->stream, 8 * MIB);
    EXPECT_OK(strata_free(c->rig.s, idle->ref));
    *graph = end_on(c, c->stream);
    return result;
}

/* The borrowers of a deferred block use it until an event that their captures would not have. */
TEST(graph_handed_over, a_stack_with_deferred_frees_stays) {
    captured_t c;
    strata_block_t idle;
    strata_graph_t graph, second;
    captured_open(&c, "strata");
    strata_block_t result = capture_result(&c, &idle, &graph);
    strata_stream_t borrower = rig_stream(&c.rig);
    rig_borrow(&c.rig, result.ref, borrower, 1000 * 1000);
    EXPECT_OK(strata_free(c.rig.s, result.ref));
    strata_block_t next = capture_block(&c, c.other, 8 * MIB, &second);
    EXPECT_FALSE(rig_overlap(&idle, &next));
    EXPECT_OK(strata_stream_synchronize(c.rig.s, c.rig.gpu, borrower));
    destroy(&c, graph);
    destroy(&c, second);
    captured_close(&c);
}

/* A live block belongs to the stream that requested it. Its free waits for the work of that stream, which may end first. */
TEST(graph_handed_over, a_live_block_waits_for_the_stream_that_requested_it) {
    for (int ends = 0; ends < 2; ends++) {
        captured_t c;
        strata_block_t idle;
        strata_graph_t graphs[4];
        captured_open(&c, "strata");
        strata_stream_t first = rig_stream(&c.rig), second = c.stream;
        c.stream = first;
        strata_block_t result = capture_result(&c, &idle, &graphs[0]);
        c.stream = second;
        strata_block_t next = capture_block(&c, c.other, 8 * MIB, &graphs[1]);
        EXPECT_EQ(next.ptr, idle.ptr);
        rig_work(&c.rig, first, 50 * 1000 * 1000, result.ref);
        if (ends) EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, first));
        if (ends) EXPECT_OK(strata_stream_destroy(c.rig.s, c.rig.gpu, first));
        EXPECT_OK(strata_free(c.rig.s, result.ref));
        EXPECT_EQ(rig_figures(&c.rig).deferred_bytes, result.size);
        next = capture_block(&c, c.other, MIB, &graphs[2]);
        EXPECT_FALSE(rig_overlap(&next, &result));
        EXPECT_OK(strata_validate(c.rig.s));
        rig_advance(&c.rig, 100 * 1000 * 1000);
        next = capture_block(&c, c.other, MIB, &graphs[3]);
        EXPECT_EQ(next.ptr, result.ptr);
        EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, 0);
        for (int i = 0; i < 4; i++) destroy(&c, graphs[i]);
        captured_close(&c);
    }
}

/* A capture with many results, and a larger block that is free at the end. */
static strata_block_t capture_results(captured_t *c, strata_block_t *results, int count, strata_graph_t *graph) {
    begin_on(c, c->stream);
    for (int i = 0; i < count; i++) results[i] = rig_allocate(&c->rig, c->stream, 4096);
    strata_block_t idle = rig_allocate(&c->rig, c->stream, 8 * MIB);
    EXPECT_OK(strata_free(c->rig.s, idle.ref));
    *graph = end_on(c, c->stream);
    return idle;
}

/* If the earlier stream cannot be noted as a user of each live block, the stack stays with it. */
TEST(graph_handed_over, a_refused_note_hands_nothing_over) {
    enum { RESULTS = 2000 };
    static strata_block_t results[RESULTS];
    int handed = 0;
    __attribute__((unused)) int stayed = 0;
    for (uint64_t k = 1; handed == 0 && k < 40 && !strata_test_has_failed(); k++) {
        captured_t c;
        strata_block_t next = {.ref = 0};
        strata_graph_t graph, second, third;
        captured_open(&c, "strata");
        strata_block_t idle = capture_results(&c, results, RESULTS, &graph);
        begin_on(&c, c.other);
        strata_host_fail_at(k, 1);
        strata_status_t status = strata_allocate(c.rig.s, c.rig.gpu, c.other, 8 * MIB, &next);
        strata_host_fail_at(0, 0);
        bool moves = status == STRATA_OK && next.ptr == idle.ptr;
        EXPECT_EQ(strata_stack_of(strata_ref_home(results[0].ref))->stream, moves ? c.other : c.stream);
        handed += moves;
        stayed += !moves;
        if (next.ref) EXPECT_OK(strata_free(c.rig.s, next.ref));
        second = end_on(&c, c.other);
        next = capture_block(&c, c.stream, 8 * MIB, &third);
        EXPECT_EQ(next.ptr, idle.ptr);
        EXPECT_OK(strata_validate(c.rig.s));
        for (int i = 0; i < RESULTS; i++) EXPECT_OK(strata_free(c.rig.s, results[i].ref));
        destroy(&c, graph);
        destroy(&c, second);
        destroy(&c, third);
        captured_close(&c);
    }
#ifndef __SANITIZE_THREAD__
    /* Under ThreadSanitizer a table has its full size from the start. */
    EXPECT_GE(stayed, 1);
#endif
    EXPECT_EQ(handed, 1);
}

/* A program may create a stream for each capture, and destroy it afterwards. */
TEST(graph_handed_over, the_stack_of_a_forgotten_stream_serves_the_next_one) {
    enum { TIMES = 5 };
    captured_t c;
    strata_graph_t graphs[TIMES];
    captured_open(&c, "strata");
    for (int i = 0; i < TIMES; i++) {
        strata_stream_t stream = NULL;
        EXPECT_OK(strata_stream_create(c.rig.s, c.rig.gpu, 0, &stream));
        begin_on(&c, stream);
        strata_block_t block = rig_allocate(&c.rig, stream, 40 * MIB);
        work_on(&c, stream, &block);
        EXPECT_OK(strata_free(c.rig.s, block.ref));
        graphs[i] = end_on(&c, stream);
        EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, stream));
        EXPECT_OK(strata_stream_destroy(c.rig.s, c.rig.gpu, stream));
    }
    EXPECT_EQ(captured_pool(&c).reserved_bytes, 40 * MIB);
    for (int i = 0; i < TIMES; i++) launch_on(&c, graphs[i], c.stream, true);
    for (int i = 0; i < TIMES; i++) destroy(&c, graphs[i]);
    captured_close(&c);
}

/* A cache that serves all streams keeps blocks by stream, the driver's memory belongs to a graph, a decorator may have
 * work of its stream, and the peers hand nothing over. The last two strategies do. */
TEST(graph_handed_over, some_stacks_stay_with_their_streams) {
    const char *const strategies[] = {
        "paddle",
        "paddle-vmm",
        "stack: [caching, system]",
        "stack: [bfc, system]",
        "stack: [cuda_malloc_async]",
        "stack: [stream_safe, guard, auto_growth, system]",
        "stack: [stream_safe, binning: {routes: [{up_to: 1MiB, stack: [auto_growth, system]}, {stack: [auto_growth, system]}]}]",
        "stack: [stream_safe, auto_growth, system]"};
    enum { STRATEGIES = sizeof strategies / sizeof *strategies, STAY = STRATEGIES - 2 };
    for (size_t i = 0; i < STRATEGIES; i++) {
        captured_t c;
        captured_open(&c, strategies[i]);
        strata_graph_t graph;
        strata_block_t first = capture_block(&c, c.stream, 8 * MIB, &graph);
        strata_graph_t next;
        strata_block_t second = capture_block(&c, c.other, 8 * MIB, &next);
        EXPECT_EQ(rig_overlap(&first, &second), i >= STAY);
        EXPECT_OK(strata_validate(c.rig.s));
        destroy(&c, graph);
        destroy(&c, next);
        captured_close(&c);
    }
}

/* A block belongs to the stream that requested it, so it is not restored in another stream's stack. */
TEST(graph_handed_over, a_block_is_restored_only_for_its_stream) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    strata_graph_t graphs[3];
    captured_open(&c, "strata");
    begin_on(&c, c.stream);
    strata_block_t block = rig_allocate(&c.rig, c.stream, 8 * MIB), found;
    graphs[0] = end_on(&c, c.stream);
    EXPECT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    for (int back = 0; back < 2; back++) {
        strata_stream_t stream = back ? c.stream : c.other;
        strata_block_t next = capture_block(&c, stream, 8 * MIB, &graphs[1 + back]);
        EXPECT_EQ(next.ptr, block.ptr);
        EXPECT_STATUS(back ? STRATA_OK : STRATA_E_STALE, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL));
    }
    strata_graph_checkpoint_drop(then);
    EXPECT_OK(strata_block_of(c.rig.s, block.ptr, &found));
    EXPECT_OK(strata_free(c.rig.s, found.ref));
    EXPECT_OK(strata_validate(c.rig.s));
    for (int i = 0; i < 3; i++) destroy(&c, graphs[i]);
    captured_close(&c);
}

/* ---- planted faults ---- */

/* Two graphs of a pool that were captured on different streams, and whose only block has the same memory. */
static strata_block_t capture_two(captured_t *c, uint32_t rules, strata_graph_t graphs[2]) {
    strata_block_t block = {.ref = 0};
    peer_open(c, "strata", 0, rules);
    for (int i = 0; i < 2; i++) {
        strata_stream_t stream = i ? c->other : c->stream;
        void *before = block.ptr;
        begin_on(c, stream);
        block = peer_made(c, stream, 8 * MIB, (uint8_t)(1 + i));
        if (i) EXPECT_EQ(block.ptr, before);
        EXPECT_OK(strata_free(c->rig.s, block.ref));
        graphs[i] = end_on(c, stream);
    }
    return block;
}

TEST(graph_handed_over, graphs_that_overlap_are_found) {
    for (int waits = 0; waits < 2; waits++) {
        captured_t c;
        strata_graph_t graphs[2];
        (void)capture_two(&c, STRATA_CHECKER_RULE(1), graphs);
        launch_on(&c, graphs[0], c.stream, waits);
        launch_on(&c, graphs[1], c.other, true);
        EXPECT_EQ(strata_checker_hazards_of(c.checker, STRATA_HAZARD_RACE) > 0, waits == 0);
        for (int i = 0; i < 2; i++) destroy(&c, graphs[i]);
        peer_close_raced(&c);
    }
}

/* The result of a graph must be read before the next graph of the pool is launched. */
TEST(graph_handed_over, a_later_graph_overwrites_the_result_of_an_earlier_one) {
    captured_t c;
    strata_graph_t graphs[2];
    strata_block_t block = capture_two(&c, STRATA_CHECKER_LIFETIMES, graphs);
    for (int i = 0; i < 2; i++) {
        launch_on(&c, graphs[i], i ? c.other : c.stream, true);
        EXPECT_TRUE(peer_holds(&c, &block, (uint8_t)(1 + i)));
    }
    for (int i = 0; i < 2; i++) destroy(&c, graphs[i]);
    captured_close(&c);
}

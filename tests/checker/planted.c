/* A fault for each rule of docs/contracts.md §9 that this rule alone finds: with all rules it is told once, with all but this
 * one nothing is, with any other one left out it is told still. */
#include <pthread.h>

#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])

/* Both streams hold the block; nothing orders their writes. */
static void two_writers(watched_t *w) {
    serve(w, 1, 0, A(w));
    strata_checker_borrowed(w->checker, 1, B(w));
    work_at(w, 0, A(w), true);
    work_at(w, 0, B(w), true);
    strata_checker_freed(w->checker, 1);
}

/* B waits for an event that was recorded before the work, and recorded again after the wait. */
static void early_event(watched_t *w) {
    strata_handle_t event = event_new(w->device);
    serve(w, 1, 0, A(w));
    EXPECT_OK(strata_device_event_record(w->device, event, A(w)));
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_stream_wait(w->device, B(w), event));
    EXPECT_OK(strata_device_event_record(w->device, event, A(w)));
    strata_checker_freed(w->checker, 1);
    serve(w, 2, 0, B(w));
    work_at(w, 0, B(w), true);
    EXPECT_OK(strata_device_event_destroy(w->device, event));
}

static void *serve_on_another_thread(void *context) {
    watched_t *w = context;
    serve(w, 2, 0, B(w));
    work_at(w, 0, B(w), true);
    return NULL;
}

/* One thread waits for the work, another serves the block again and has not heard of it. */
static void silent_thread(watched_t *w) {
    pthread_t thread;
    serve(w, 1, 0, A(w));
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
    strata_checker_freed(w->checker, 1);
    ASSERT_EQ(pthread_create(&thread, NULL, serve_on_another_thread, w), 0);
    pthread_join(thread, NULL);
}

/* The legacy stream does not order with a stream that is non-blocking. */
static void legacy_takes_over(watched_t *w) {
    serve(w, 1, 0, A(w));
    work_at(w, 0, A(w), true);
    strata_checker_freed(w->checker, 1);
    serve(w, 2, 0, NULL);
    work_at(w, 0, NULL, true);
}

/* Captured on A and launched on B, a graph is ordered on B alone; the block goes back in A's order. */
static void graph_elsewhere(watched_t *w) {
    strata_handle_t graph = NULL;
    serve(w, 1, 0, A(w));
    EXPECT_OK(strata_device_capture_begin(w->device, A(w), STRATA_CAPTURE_RELAXED));
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_capture_end(w->device, A(w), &graph));
    EXPECT_OK(strata_device_graph_launch(w->device, graph, B(w)));
    strata_checker_freed(w->checker, 1);
    EXPECT_OK(strata_device_graph_destroy(w->device, graph));
}

/* Memory of a pool, allocated on A, is used by B, which has not waited for A. */
static void outside_the_pool(watched_t *w) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &address));
    strata_access_t access = {address, MIB, true};
    EXPECT_OK(strata_device_work(w->device, B(w), 100 * US, &access, 1));
    order(w, A(w), B(w));
    EXPECT_OK(strata_device_free_async(w->device, address, A(w)));
}

/* Freed on A while A works, served to B at once. */
static void hasty_owner(watched_t *w) {
    serve(w, 1, 0, A(w));
    work_at(w, 0, A(w), true);
    strata_checker_freed(w->checker, 1);
    serve(w, 2, 0, B(w));
    work_at(w, 0, B(w), true);
}

/* Two planned owners of one place: nobody has used the first, yet its free must be ordered before the second's use. */
static void planned_overlap(watched_t *w) {
    strata_checker_block_t block = {
        .name = 1, .device = w->device, .stream = A(w), .address = w->chunk, .size = MIB, .planned = true};
    strata_checker_allocated(w->checker, &block);
    strata_checker_freed(w->checker, 1);
    block.name = 2;
    block.stream = B(w);
    strata_checker_allocated(w->checker, &block);
    work_at(w, 0, B(w), true);
}

static strata_handle_t graph_at(watched_t *w, strata_address_t address) {
    strata_handle_t graph = NULL;
    strata_access_t access = {address, MIB, true};
    EXPECT_OK(strata_device_capture_begin(w->device, A(w), STRATA_CAPTURE_RELAXED));
    EXPECT_OK(strata_device_work(w->device, A(w), 100 * US, &access, 1));
    EXPECT_OK(strata_device_capture_end(w->device, A(w), &graph));
    return graph;
}

/* What a graph uses is unmapped: nothing runs, no block is there, the graph is launched after it. */
static void released_under_a_graph(watched_t *w) {
    mapped_t m = map_new(w->device, 2 * MIB);
    strata_handle_t graph = graph_at(w, m.address);
    EXPECT_OK(strata_device_unmap(w->device, m.address, 2 * MIB));
    EXPECT_OK(strata_device_graph_launch(w->device, graph, A(w)));
    EXPECT_OK(strata_device_graph_destroy(w->device, graph));
}

/* The block of a graph is freed and served again; the launch is after all that the new owner did. */
static void served_under_a_graph(watched_t *w) {
    serve(w, 1, 0, A(w));
    strata_handle_t graph = graph_at(w, w->chunk);
    strata_checker_freed(w->checker, 1);
    serve(w, 2, 0, A(w));
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_graph_launch(w->device, graph, A(w)));
    EXPECT_OK(strata_device_graph_destroy(w->device, graph));
}

static void serve_for_pool(watched_t *w, uint64_t name, uint64_t pool) {
    strata_checker_block_t block = {
        .name = name, .device = w->device, .stream = A(w), .address = w->chunk, .size = MIB, .graph_pool = pool};
    strata_checker_allocated(w->checker, &block);
}

/* The graph of one pool, whose memory the next pool serves. */
static void block_crosses_pools(watched_t *w) {
    strata_handle_t graph = NULL;
    strata_capture_status_t status;
    strata_access_t access = {w->chunk, MIB, true};
    uint64_t capture = 0;
    serve_for_pool(w, 1, 7);
    EXPECT_OK(strata_device_capture_begin(w->device, A(w), STRATA_CAPTURE_RELAXED));
    EXPECT_OK(strata_device_capture_status(w->device, A(w), &status, &capture));
    strata_checker_capture_pool(w->checker, capture, 7);
    EXPECT_OK(strata_device_work(w->device, A(w), 100 * US, &access, 1));
    EXPECT_OK(strata_device_capture_end(w->device, A(w), &graph));
    strata_checker_freed(w->checker, 1);
    serve_for_pool(w, 2, 7);
    EXPECT_OK(strata_device_graph_launch(w->device, graph, A(w))); /* its own pool's */
    strata_checker_freed(w->checker, 2);
    serve_for_pool(w, 3, 8);
    EXPECT_OK(strata_device_graph_launch(w->device, graph, A(w)));
    EXPECT_OK(strata_device_graph_destroy(w->device, graph));
}

enum { CROSSING = 11 }; /* after the rules: a second fault of rule 10 */

/* By rule. */
static const struct planted {
    void (*fault)(watched_t *w);
    strata_hazard_t kind;
} planted[] = {{NULL, STRATA_HAZARDS},
               {two_writers, STRATA_HAZARD_RACE},
               {early_event, STRATA_HAZARD_NEW_OWNER},
               {silent_thread, STRATA_HAZARD_NEW_OWNER},
               {legacy_takes_over, STRATA_HAZARD_NEW_OWNER},
               {graph_elsewhere, STRATA_HAZARD_FREE},
               {outside_the_pool, STRATA_HAZARD_OUTSIDE},
               {hasty_owner, STRATA_HAZARD_NEW_OWNER},
               {planned_overlap, STRATA_HAZARD_NEW_OWNER},
               {released_under_a_graph, STRATA_HAZARD_GIVEN_BACK},
               {served_under_a_graph, STRATA_HAZARD_SERVED_SINCE},
               {block_crosses_pools, STRATA_HAZARD_SERVED_SINCE}};

static uint64_t found(int fault, uint32_t rules) {
    watched_t w;
    watched_open(&w, rules);
    planted[fault].fault(&w);
    uint64_t of_kind = strata_checker_hazards_of(w.checker, planted[fault].kind), all = strata_checker_hazards(w.checker);
    EXPECT_EQ(of_kind, all);
    watched_close(&w);
    return all;
}

/* Rules 2 to 5 say what is an order: their faults are faults of another rule, in which the order counts. */
static void expect_of_rule(int fault, int rule, int in_which) {
    EXPECT_EQ(found(fault, STRATA_CHECKER_ALL), 1);
    for (int out = 1; out <= 10; out++) {
        uint64_t wanted = out == rule || out == in_which ? 0 : 1;
        EXPECT_EQ(found(fault, STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(out)), wanted);
    }
}

static void expect_only(int rule, int in_which) { expect_of_rule(rule, rule, in_which); }

TEST(planted, rule_1_two_writers_without_an_order) { expect_only(1, 0); }

TEST(planted, rule_2_an_event_says_what_was_before_its_record) { expect_only(2, 7); }

TEST(planted, rule_3_what_one_thread_saw_another_does_not_know) { expect_only(3, 7); }

TEST(planted, rule_4_the_legacy_stream_orders_with_blocking_ones_alone) { expect_only(4, 7); }

TEST(planted, rule_5_a_graph_is_ordered_on_its_launch_stream_alone) { expect_only(5, 0); }

TEST(planted, rule_6_pool_memory_is_valid_after_its_allocation) { expect_only(6, 0); }

TEST(planted, rule_7_a_new_owner_comes_after_the_old) { expect_only(7, 0); }

TEST(planted, rule_8_planned_memory_is_ordered_after_its_free) { expect_only(8, 0); }

TEST(planted, rule_9_a_launch_finds_the_memory_of_its_capture) { expect_only(9, 0); }

TEST(planted, rule_10_a_launch_is_over_no_block_that_was_served_since) { expect_only(10, 0); }

TEST(planted, rule_10_a_block_that_crossed_pools) { expect_of_rule(CROSSING, 10, 0); }

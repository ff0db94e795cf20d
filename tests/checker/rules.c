/* The rules of the checker to the letter, beside the verdicts: what is an order and what is none, and whose. */
#include <pthread.h>

#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])
#define C(w) ((w)->streams[2])

/* It takes the time of the wait, but nobody promises that wait: an allocator may not rest on it. */
TEST_WATCHED_WAYS(checker_rules, the_wait_of_a_free_of_pinned_memory_is_no_order, waits, 2) {
    strata_address_t pinned = 0;
    EXPECT_OK(strata_device_host_alloc(w->device, STRATA_MEMORY_PINNED, MIB, 256, 0, &pinned));
    strata_access_t access = {pinned, MIB, true};
    EXPECT_OK(strata_device_work(w->device, A(w), 100 * US, &access, 1));
    if (waits) EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
    EXPECT_OK(strata_device_host_free(w->device, STRATA_MEMORY_PINNED, pinned));
    EXPECT_GE(strata_sim_now(w->sim.world), strata_sim_device_end(w->device));
    EXPECT_HAZARDS(w, UNDER_WORK, waits ? 0 : 1);
}

/* ---- events ---- */

/* Recorded again an event says what its new stream has, and nothing of the old one. */
TEST_WATCHED_WAYS(checker_rules, an_event_recorded_again_forgets_what_it_said, again, 2) {
    strata_handle_t event = event_new(w->device);
    work_at(w, 0, A(w), true);
    order(w, A(w), B(w));
    EXPECT_OK(strata_device_event_record(w->device, event, A(w)));
    if (again) EXPECT_OK(strata_device_event_record(w->device, event, stream_new(w->device, STRATA_STREAM_NON_BLOCKING)));
    EXPECT_OK(strata_device_stream_wait(w->device, C(w), event));
    work_at(w, 0, C(w), true);
    EXPECT_HAZARDS(w, RACE, (uint64_t)again);
}

/* A record is after what its thread has seen; so is a wait. */
TEST_WATCHED(checker_rules, what_the_thread_has_seen_goes_into_a_record) {
    strata_handle_t event = event_new(w->device);
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
    EXPECT_OK(strata_device_event_record(w->device, event, B(w)));
    EXPECT_OK(strata_device_stream_wait(w->device, C(w), event));
    work_at(w, 0, C(w), true);
    EXPECT_HAZARDS(w, RACE, 0);
}

/* ---- devices ---- */

/* The legacy stream of one device orders nothing of another's. */
TEST(checker_rules, the_legacy_stream_is_its_own_devices) {
    const strata_sim_options_t options = {.devices = 2};
    for (int abroad = 0; abroad < 2; abroad++) {
        OPENED(watched_t, w, watched_close, watched_open_on(&w, STRATA_CHECKER_ALL, &options));
        EXPECT_OK(strata_device_enable_peer(w.sim.other, 0));
        strata_device_t *device = abroad ? w.sim.other : w.device;
        strata_access_t access = {w.chunk, MIB, true};
        EXPECT_OK(strata_device_work(device, stream_new(device, STRATA_STREAM_BLOCKING), 100 * US, &access, 1));
        work_at(&w, 0, NULL, true);
        EXPECT_HAZARDS(&w, RACE, (uint64_t)abroad);
    }
}

/* ---- threads ---- */

enum { KEY = 5 };

static void *use_and_publish(void *context) {
    watched_t *w = context;
    work_at(w, 0, B(w), true);
    EXPECT_OK(strata_device_stream_synchronise(w->device, B(w)));
    strata_checker_publish(w->checker, KEY);
    return NULL;
}

/* Two threads publish under one key: who observes it knows what both did. */
TEST_WATCHED(checker_rules, a_key_carries_what_every_publisher_knew) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, use_and_publish, w), 0);
    pthread_join(thread, NULL);
    work_at(w, 1, A(w), true);
    EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
    strata_checker_publish(w->checker, KEY); /* knows nothing of B */
    strata_checker_observe(w->checker, KEY);
    work_at(w, 0, C(w), true);
    work_at(w, 1, C(w), true);
    EXPECT_HAZARDS(w, RACE, 0);
    strata_checker_observe(w->checker, KEY + 1);
    work_at(w, 0, A(w), true); /* A knows what the thread does, not what C does */
    EXPECT_HAZARDS(w, RACE, 1);
}

/* ---- accesses ---- */

static void touch(watched_t *w, uint64_t at, uint64_t size, strata_handle_t stream, bool write) {
    strata_access_t access = {w->chunk + at, size, write};
    EXPECT_OK(strata_device_work(w->device, stream, 100 * US, &access, 1));
}

/* Ranges that only meet share no byte. */
TEST_WATCHED(checker_rules, neighbours_do_not_race) {
    touch(w, 4096, 4096, A(w), true);
    touch(w, 0, 4096, B(w), true);
    touch(w, 8192, 4096, B(w), true);
    EXPECT_HAZARDS(w, RACE, 0);
    touch(w, 8191, 1, C(w), false);
    EXPECT_HAZARDS(w, RACE, 1);
}

/* A read of what was written does not stand for the write, nor a part for the whole. */
TEST_WATCHED_WAYS(checker_rules, a_write_is_remembered_after_a_read_and_a_part, part, 2) {
    touch(w, 0, 4096, A(w), true);
    touch(w, 0, part ? 2048 : 4096, A(w), part);
    touch(w, part ? 2048 : 0, 2048, B(w), false);
    EXPECT_HAZARDS(w, RACE, 1);
}

/* A fill of a live block is a write. */
TEST_WATCHED(checker_rules, a_fill_is_a_write) {
    serve(w, 1, 0, A(w));
    EXPECT_OK(strata_device_fill(w->device, w->chunk, 0, MIB, A(w)));
    work_at(w, 0, B(w), false);
    EXPECT_HAZARDS(w, RACE, 1);
}

/* An access over several blocks is one of each. */
TEST(checker_rules, an_access_over_several_blocks_touches_each) {
    for (uint64_t dead = 0; dead < 3; dead++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        for (uint64_t i = 0; i < 3; i++) serve(&w, 1 + i, i, A(&w));
        strata_checker_freed(w.checker, 1 + dead);
        touch(&w, 0, 3 * MIB, A(&w), true);
        EXPECT_HAZARDS(&w, USE_AFTER_FREE, 1);
    }
}

/* Meant for a block, done to memory that was never one: the block is gone. */
TEST_WATCHED(checker_rules, work_for_a_block_on_memory_of_none_is_a_use_after_free) {
    const uint64_t name = 9;
    strata_checker_expect(w->checker, &name, 1);
    work_at(w, 0, A(w), true);
    EXPECT_HAZARDS(w, USE_AFTER_FREE, 1);
}

/* What work was said to be for is said of one launch alone. */
TEST_WATCHED(checker_rules, an_expectation_is_of_the_next_work_alone) {
    const uint64_t name = 1;
    serve(w, 1, 0, A(w));
    serve(w, 2, 1, A(w));
    strata_checker_expect(w->checker, &name, 1);
    work_at(w, 0, A(w), true);
    work_at(w, 1, A(w), true);
    EXPECT_HAZARDS(w, FOREIGN, 0);
    strata_checker_expect(w->checker, &name, 1);
    work_at(w, 1, A(w), true);
    EXPECT_HAZARDS(w, FOREIGN, 1);
}

/* Of one life each kind of fault is told once. */
TEST_WATCHED(checker_rules, two_kinds_of_fault_of_one_block_are_two) {
    serve(w, 1, 0, A(w));
    work_at(w, 0, B(w), true);
    work_at(w, 0, C(w), true);
    strata_checker_freed(w->checker, 1);
    EXPECT_EQ(strata_checker_hazards_of(w->checker, STRATA_HAZARD_RACE), 1);
    EXPECT_EQ(strata_checker_hazards_of(w->checker, STRATA_HAZARD_FREE), 1);
    work_at(w, 0, A(w), true);
    EXPECT_EQ(strata_checker_hazards_of(w->checker, STRATA_HAZARD_USE_AFTER_FREE), 1);
}

/* ---- owners ---- */

/* A place without owners and a block without a first stream: nobody has borrowed it. */
TEST_WATCHED(checker_rules, without_an_owner_and_a_stream_nobody_has_borrowed) {
    strata_checker_block_t block = {.name = 1, .device = w->device, .address = w->chunk, .size = MIB, .ownerless = true};
    strata_checker_allocated(w->checker, &block);
    work_at(w, 0, NULL, true);
    strata_checker_freed(w->checker, 1);
    EXPECT_HAZARDS(w, FREE, 1);
}

/* Borrows end with the block: the next one's are its own. */
TEST_WATCHED(checker_rules, a_borrow_of_one_block_is_none_of_the_next) {
    serve(w, 1, 0, A(w));
    strata_checker_borrowed(w->checker, 1, B(w));
    strata_checker_freed(w->checker, 1);
    serve(w, 1, 0, A(w));
    work_at(w, 0, B(w), true);
    strata_checker_freed(w->checker, 1);
    EXPECT_HAZARDS(w, FREE, 1);
}

/* Use that is only said: its beginning must be ordered after the old owner, its end need not be asked for. */
TEST_WATCHED_WAYS(checker_rules, only_a_use_that_begins_must_be_ordered, begins, 2) {
    serve(w, 1, 0, A(w));
    strata_checker_borrowed(w->checker, 1, B(w));
    work_at(w, 0, B(w), true);
    strata_checker_freed(w->checker, 1);
    serve(w, 2, 0, A(w));
    strata_checker_used(w->checker, 2, A(w), begins);
    EXPECT_HAZARDS(w, NEW_OWNER, (uint64_t)begins);
}

/* A block never used hands on what was before it; one used after all of that does not ask for it again. */
TEST_WATCHED_WAYS(checker_rules, what_was_before_a_block_is_asked_until_somebody_was_after_it, used, 2) {
    serve(w, 1, 0, A(w));
    strata_checker_borrowed(w->checker, 1, B(w));
    work_at(w, 0, B(w), true);
    strata_checker_freed(w->checker, 1);
    order(w, A(w), B(w));
    serve(w, 2, 0, A(w));
    if (used) work_at(w, 0, A(w), true);
    strata_checker_freed(w->checker, 2);
    serve(w, 3, 0, C(w));
    if (used) order(w, C(w), A(w));
    work_at(w, 0, C(w), true);
    EXPECT_HAZARDS(w, NEW_OWNER, used ? 0 : 1);
}

/* ---- graphs ---- */

static strata_handle_t graph_that_writes(watched_t *w, uint64_t mib) {
    strata_handle_t graph = NULL;
    EXPECT_OK(strata_device_capture_begin(w->device, A(w), STRATA_CAPTURE_RELAXED));
    work_at(w, mib, A(w), true);
    EXPECT_OK(strata_device_capture_end(w->device, A(w), &graph));
    return graph;
}

/* What is after one launch is not after the next. */
TEST_WATCHED_WAYS(checker_rules, each_launch_is_an_access_of_its_own, late, 2) {
    strata_handle_t graph = graph_that_writes(w, 0);
    EXPECT_OK(strata_device_graph_launch(w->device, graph, C(w)));
    if (!late) order(w, B(w), C(w));
    EXPECT_OK(strata_device_graph_launch(w->device, graph, C(w)));
    if (late) order(w, B(w), C(w));
    work_at(w, 0, B(w), true);
    EXPECT_HAZARDS(w, RACE, late ? 0 : 1);
    EXPECT_OK(strata_device_graph_destroy(w->device, graph));
}

/* A launch is after what its thread has seen and what its stream has, and after nothing that its capture's streams do later. */
TEST_WATCHED_WAYS(checker_rules, a_launch_is_after_its_thread_and_its_stream, way, 3) {
    strata_handle_t graph = graph_that_writes(w, 0);
    work_at(w, 0, B(w), true);
    if (way == 0) EXPECT_OK(strata_device_stream_synchronise(w->device, B(w)));
    if (way == 1) order(w, C(w), B(w));
    if (way == 2) order(w, A(w), B(w)); /* where it was captured */
    EXPECT_OK(strata_device_graph_launch(w->device, graph, C(w)));
    EXPECT_HAZARDS(w, RACE, way == 2 ? 1 : 0);
}

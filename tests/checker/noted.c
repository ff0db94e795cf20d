/* What the checker notes of memory and of events: where a report says that it came from, and what a new record puts away. */
#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])
#define C(w) ((w)->streams[2])

/* Of memory that no block covers: where it came from, and on which thread without a stream. */
TEST_WATCHED(noted, a_report_tells_where_device_memory_came_from) {
    strata_address_t address;
    ASSERT_OK(strata_device_malloc(w->device, STRATA_MEMORY_DEVICE, 1 << 20, &address));
    for (int i = 0; i < 2; i++) ASSERT_OK(strata_device_fill(w->device, address, 1, 1 << 20, i ? B(w) : A(w)));
    const char *report = strata_checker_report(w->checker, 0);
    ASSERT_TRUE(report);
    EXPECT_CONTAINS(report, "device memory ");
    EXPECT_CONTAINS(report, "obtained from the device\n");
    EXPECT_CONTAINS(report, " (thread 1)");
    EXPECT_OK(strata_device_free(w->device, STRATA_MEMORY_DEVICE, address));
}

/* There is nothing to watch of it: memory that it would lie in stays what it was, and no verdict is missed. */
TEST_WATCHED(noted, a_block_without_a_name_or_without_bytes_is_none) {
    strata_checker_block_t block = {.name = 9, .device = w->device, .stream = B(w), .address = w->chunk + 4096, .size = 0};
    serve(w, 1, 0, A(w));
    strata_checker_allocated(w->checker, &block);
    block = (strata_checker_block_t){.device = w->device, .stream = B(w), .address = w->chunk + 4096, .size = 4096};
    strata_checker_allocated(w->checker, &block);
    work_at(w, 0, A(w), true);
    EXPECT_HAZARDS(w, OVERLAP, 0);
    strata_checker_freed(w->checker, 1);
    EXPECT_HAZARDS(w, FREE, 0);
}

/* Recorded in a capture an event is of no moment any more; recorded again outside it is of the new one. */
TEST_WATCHED(noted, a_captured_record_forgets_the_one_before) {
    strata_handle_t graph = NULL, event = NULL;
    ASSERT_OK(strata_device_event_create(w->device, &event));
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(strata_device_event_record(w->device, event, C(w)));
        ASSERT_OK(strata_device_capture_begin(w->device, A(w), STRATA_CAPTURE_RELAXED));
        ASSERT_OK(strata_device_event_record(w->device, event, A(w)));
        ASSERT_OK(strata_device_capture_end(w->device, A(w), &graph));
        EXPECT_OK(strata_device_graph_destroy(w->device, graph));
    }
    work_at(w, 0, A(w), true);
    ASSERT_OK(strata_device_event_record(w->device, event, A(w)));
    ASSERT_OK(strata_device_stream_wait(w->device, B(w), event));
    work_at(w, 0, B(w), true);
    EXPECT_HAZARDS(w, RACE, 0);
    EXPECT_OK(strata_device_event_destroy(w->device, event));
}

/* What a pool serves again is after the frees before it, in every part: a fill makes a life of its own of its bytes. */
TEST_WAYS(noted, a_fill_of_a_part_is_after_what_the_whole_was_freed_after, ordered, 2, watched_t, w, watched_close,
          watched_open(w, STRATA_CHECKER_LIFETIMES)) {
    strata_address_t first = 0, second = 0;
    ASSERT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &first));
    strata_access_t access = {first, MIB, false};
    ASSERT_OK(strata_device_work(w->device, A(w), 100 * US, &access, 1));
    ASSERT_OK(strata_device_free_async(w->device, first, A(w)));
    ASSERT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &second));
    ASSERT_EQ(first, second);
    if (ordered) order(w, C(w), A(w));
    EXPECT_OK(strata_device_fill(w->device, second + MIB / 2, 1, MIB / 2, C(w)));
    EXPECT_HAZARDS(w, OUTSIDE, ordered ? 0 : 1);
}

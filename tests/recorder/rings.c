/* Rings without a layer over them: what becomes of events at given moments. */
#include <unistd.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "trace/recorder.h"

enum { BLOCK = 1000, STREAM = 7 };

static void begin(strata_recorder_ring_t *ring) {
    EXPECT_OK(strata_recorder_attach(ring, temporary("ring.csv"), 64, 0, strata_place(STRATA_PLACE_GPU, 0), 0));
}

static void put(strata_recorder_ring_t *ring, strata_trace_op_t op, uint64_t time_ns, uint64_t size, uint64_t kernel) {
    strata_recorder_event_t event = {
        .time_ns = time_ns, .block = BLOCK, .size = size, .stream = STREAM, .pool = kernel, .op = (uint8_t)op};
    strata_recorder_append(ring, &event, NULL);
}

static strata_trace_t *end(strata_recorder_ring_t *ring) {
    strata_trace_t *trace = NULL;
    EXPECT_OK(strata_recorder_detach(ring, 1000000000));
    EXPECT_OK(strata_trace_load(temporary("ring.csv"), &trace));
    return trace;
}

/* Rows of one stream and time are one kernel, so that the next one of the same microsecond stands in the next. */
TEST(recorder_rings, kernels_of_one_microsecond_stand_apart) {
    strata_recorder_ring_t ring;
    begin(&ring);
    put(&ring, STRATA_TRACE_alloc, 5000, 64, 0);
    put(&ring, STRATA_TRACE_work, 5100, 3000, 1);
    put(&ring, STRATA_TRACE_work, 5200, 3000, 1);
    put(&ring, STRATA_TRACE_work, 5300, 3000, 2);
    put(&ring, STRATA_TRACE_work, 5400, 4000, 3);
    put(&ring, STRATA_TRACE_free, 5500, 0, 0);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = end(&ring);
    ASSERT_TRUE(trace && trace->count == 6);
    const uint64_t times[] = {5, 5, 5, 6, 7, 7};
    for (size_t i = 0; i < 6; i++) EXPECT_EQ(trace->events[i].time_us, times[i]);
}

/* What is told of a kernel when its moment is over takes no time of its own, so that the GPU is not busy twice. */
TEST(recorder_rings, a_late_row_of_a_kernel_takes_no_time) {
    strata_recorder_ring_t ring;
    begin(&ring);
    put(&ring, STRATA_TRACE_alloc, 1000, 64, 0);
    put(&ring, STRATA_TRACE_work, 2000, 3499, 1);
    put(&ring, STRATA_TRACE_work, 9000, 3499, 1);
    put(&ring, STRATA_TRACE_work, 9000, 3500, 2);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = end(&ring);
    ASSERT_TRUE(trace && trace->count == 4);
    EXPECT_EQ(trace->events[1].value, 3);
    EXPECT_EQ(trace->events[2].value, 0);
    EXPECT_EQ(trace->events[3].value, 4);
    EXPECT_EQ(trace->events[3].time_us, 10);
}

/* A trace bounds the sum of its kernels: what a program says beyond is cut, and the file is read. */
TEST(recorder_rings, kernels_without_end_are_cut) {
    strata_recorder_ring_t ring;
    begin(&ring);
    put(&ring, STRATA_TRACE_alloc, 1000, 64, 0);
    for (uint64_t kernel = 1; kernel < 5; kernel++) put(&ring, STRATA_TRACE_work, 1000 * kernel, UINT64_MAX / 2, kernel);
    put(&ring, STRATA_TRACE_work, 99000, UINT64_MAX, 5);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = end(&ring);
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->count, 6);
}

/* A kernel with a block that is no more is left out. */
TEST(recorder_rings, work_with_what_is_freed_is_left_out) {
    strata_recorder_ring_t ring;
    begin(&ring);
    put(&ring, STRATA_TRACE_alloc, 1000, 64, 0);
    put(&ring, STRATA_TRACE_free, 2000, 0, 0);
    put(&ring, STRATA_TRACE_work, 3000, 1000, 1);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = end(&ring);
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->count, 2);
}

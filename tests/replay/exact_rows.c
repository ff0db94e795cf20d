/* Tests the figures after each row of small programs to the byte. */
#include "lab/replay/run/run.h"

#include <stdio.h>

#include "lab/replay/export/entries.h"
#include "platform/place.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

enum { ROWS_MAX = 32 };

/* The expected figures after a row: live requested and allocated bytes, reserved bytes, and their peak within the row. */
typedef struct row_bytes {
    uint64_t requested, allocated, reserved, deferred, top;
} row_bytes_t;

typedef struct seen {
    size_t count, refused, refused_row;
    uint32_t refused_line;
    strata_series_sample_t samples[ROWS_MAX];
} seen_t;

static void see_row(void *context, const strata_series_sample_t *sample) {
    seen_t *seen = context;
    ASSERT_LT(seen->count, ROWS_MAX);
    seen->samples[seen->count++] = *sample;
}

static void see_refused(void *context, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text) {
    seen_t *seen = context;
    (void)time_ns;
    (void)text;
    seen->refused++;
    seen->refused_row = row;
    seen->refused_line = event->line;
}

static strata_run_result_t run_followed(const char *text, const char *preset, uint64_t capacity, seen_t *seen) {
    strata_run_follow_t follow = {.row = see_row, .refused = see_refused, .context = seen};
    *seen = (seen_t){.count = 0};
    return replay_text(text, preset,
                       (strata_run_options_t){.target = {.capacity = capacity}, .timeline = {.lag_ns = LAG}, .follow = &follow});
}

static void expect_rows(const seen_t *seen, const row_bytes_t *rows, size_t count) {
    EXPECT_EQ(seen->count, count);
    for (size_t i = 0; i < count && i < seen->count; i++) {
        const strata_series_sample_t *s = &seen->samples[i];
        EXPECT_EQ(s->row, i + 1);
        bool same = s->low[STRATA_SERIES_requested] == rows[i].requested && s->low[STRATA_SERIES_allocated] == rows[i].allocated &&
                    s->low[STRATA_SERIES_reserved] == rows[i].reserved && s->low[STRATA_SERIES_deferred] == rows[i].deferred &&
                    s->high[STRATA_SERIES_reserved] == rows[i].top;
        if (!same)
            FAIL_TEST("row %zu: requested %llu, allocated %llu, reserved %llu, deferred %llu, at most %llu", i + 1,
                      (unsigned long long)s->low[STRATA_SERIES_requested], (unsigned long long)s->low[STRATA_SERIES_allocated],
                      (unsigned long long)s->low[STRATA_SERIES_reserved], (unsigned long long)s->low[STRATA_SERIES_deferred],
                      (unsigned long long)s->high[STRATA_SERIES_reserved]);
    }
}

#define EXPECT_ROWS(seen, ...)                                                                                                     \
    do {                                                                                                                           \
        const row_bytes_t rows_[] = {__VA_ARGS__};                                                                                 \
        expect_rows(&(seen), rows_, sizeof rows_ / sizeof *rows_);                                                                 \
    } while (0)

/* The driver's pool gets a block back at its free. A borrowed block is pending until its borrower is done or the block is reused. */
TEST(exact_rows, the_drivers_pool) {
    seen_t seen;
    strata_run_result_t r = run_followed(WORK_COLUMNS
                                         "alloc,1,1000,0,0,,\nfree,1,,0,10,,\nalloc,2,2000000,0,20,,\nborrow,2,,1,30,,\n"
                                         "work,2,,1,40,5000,\nfree,2,,0,50,,\nstep,,,0,60,,\nsync,,,1,70,,\nalloc,3,500,0,80,,\n",
                                         "cuda_malloc_async", 0, &seen);
    EXPECT_ROWS(seen, {1000, 1000, 1000, 0, 1000}, {0, 0, 0, 0, 0}, {2000000, 2000000, 2000000, 0, 2000000},
                {2000000, 2000000, 2000000, 0, 2000000}, {2000000, 2000000, 2000000, 0, 2000000}, {0, 0, 2000000, 2000000, 2000000},
                {0, 0, 2000000, 2000000, 2000000}, {0, 0, 2000000, 0, 2000000}, {500, 500, 500, 0, 500});
    EXPECT_EQ(r.figures.peak_reserved_bytes, 2000000);
    EXPECT_EQ(r.figures.deferred_peak_bytes, 2000000);
    EXPECT_EQ(r.figures.deferred_frees, 1);
    EXPECT_EQ(r.figures.live_at_end, 1);
    EXPECT_EQ(r.peak_row, 3);
}

/* Two devices have their peaks at different rows, so the common peak is less than the sum. */
TEST(exact_rows, two_devices) {
    seen_t seen;
    strata_run_result_t r = run_followed("op,id,size,stream,time_us,device\nalloc,1,4194304,0,0,0\nfree,1,,0,1,0\n"
                                         "alloc,2,4194304,0,2,1\nalloc,3,2097152,0,3,0\nfree,2,,0,4,1\nalloc,4,1048576,0,5,1\n",
                                         "system", 0, &seen);
    EXPECT_ROWS(seen, {4 * MIB, 4 * MIB, 4 * MIB, 0, 4 * MIB}, {0, 0, 0, 0, 0}, {4 * MIB, 4 * MIB, 4 * MIB, 0, 4 * MIB},
                {6 * MIB, 6 * MIB, 6 * MIB, 0, 6 * MIB}, {2 * MIB, 2 * MIB, 2 * MIB, 0, 2 * MIB},
                {3 * MIB, 3 * MIB, 3 * MIB, 0, 3 * MIB});
    EXPECT_EQ(r.peak_row, 4);
    EXPECT_EQ(r.figures.peak_reserved_bytes, 6 * MIB);
}

/* Each kernel takes its own time. Several rows of one kernel take it once, even with other rows between them. */
TEST(exact_rows, kernels_take_their_time_once) {
    seen_t seen;
    strata_run_result_t one = run_followed(WORK_COLUMNS "alloc,1,256,0,0,,\nwork,1,,0,5,4000,\nstep,,,0,5,,\nwork,1,,0,5,4000,\n",
                                           "system", 0, &seen);
    strata_run_result_t two = run_followed(WORK_COLUMNS "alloc,1,256,0,0,,\nwork,1,,0,5,4000,\nstep,,,0,5,,\nwork,1,,0,6,4000,\n",
                                           "system", 0, &seen);
    EXPECT_NEAR(two.figures.end_ms - one.figures.end_ms, 4, 0.01);
}

/* A block of 0 bytes can be used by work, and an unborrow without a matching borrow is not a failure. */
TEST(exact_rows, rows_without_bytes) {
    seen_t seen;
    strata_run_result_t r = run_followed(WORK_COLUMNS "alloc,1,0,0,0,,\nwork,1,,0,5,100,\nborrow,1,,1,6,,\nunborrow,1,,1,7,,\n"
                                                      "alloc,2,256,0,8,,\nborrow,2,,1,9,,\nunborrow,2,,1,10,,\nfree,1,,0,11,,\n",
                                         "system", 0, &seen);
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_STREQ(r.first_failure, "");
    EXPECT_EQ(r.figures.operations, 7);
    EXPECT_EQ(r.figures.live_at_end, 1);
}

typedef struct unborrow {
    const char *name, *rows;
    uint64_t operations;
} unborrow_t;

static const unborrow_t unborrows[] = {
    {"the_owner_of_device_memory_ends_its_borrow", "alloc,1,256,1,0,gpu\nborrow,1,,1,1,\nunborrow,1,,1,2,\nfree,1,,1,3,\n", 4},
    {"another_stream_ends_its_borrow_of_pinned_memory", "alloc,1,256,1,0,pinned\nborrow,1,,2,1,\nunborrow,1,,2,2,\nfree,1,,1,3,\n",
     4},
    /* This stream uses the block until the free, so the row is no call. */
    {"the_stream_of_the_alloc_uses_pinned_memory_until_the_free", "alloc,1,256,1,0,pinned\nunborrow,1,,1,2,pinned\nfree,1,,1,3,\n",
     2},
};

TEST_EACH(exact_rows, an_unborrow_is_a_call_unless_its_stream_uses_the_block_until_the_free, unborrow_t, unborrows) {
    char text[300];
    seen_t seen;
    snprintf(text, sizeof text, "op,id,size,stream,time_us,place\n%s", row->rows);
    strata_run_result_t r = run_followed(text, "strata", 0, &seen);
    EXPECT_STREQ(r.first_failure, "");
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_EQ(r.figures.operations, row->operations);
    EXPECT_EQ(r.figures.live_at_end, 0);
}

/* The figures name the first of several failures. The follower gets each out-of-memory failure with its row. */
TEST(exact_rows, failures_are_reported_with_their_row) {
    seen_t seen;
    strata_run_result_t r = run_followed("op,id,size,stream,time_us,align\nalloc,1,3145728,0,0,\nalloc,2,100,0,1,4096\n"
                                         "alloc,3,3145728,0,2,\nalloc,4,100,0,3,8192\n",
                                         "system", 4 * MIB, &seen);
    EXPECT_EQ(r.figures.operations, 4);
    EXPECT_EQ(r.figures.failed_operations, 3);
    EXPECT_EQ(r.figures.oom_count, 1);
    EXPECT_EQ(seen.refused, 1);
    EXPECT_EQ(seen.refused_row, 3);
    EXPECT_EQ(seen.refused_line, 4);
    EXPECT_CONTAINS(r.first_failure, "trace.csv:3: alloc failed");
}

/* ---- numbers of streams ---- */

static void see_streams(void *context, const strata_run_moment_t *moment) {
    uint32_t *seen = context;
    for (; *seen < moment->trace->stream_count; ++*seen) {
        const strata_timeline_stream_t *stream = &moment->timeline->streams[*seen];
        strata_place_t place = strata_gpu(stream->device), elsewhere = strata_gpu(1 - stream->device);
        EXPECT_EQ(strata_entries_stream(moment, place, stream->handle), moment->trace->streams[*seen].number);
        EXPECT_EQ(strata_entries_stream(moment, elsewhere, stream->handle), (uintptr_t)stream->handle);
    }
}

/* A handle without a stream of the trace on that device stands for itself. */
TEST(exact_rows, a_stream_is_named_by_its_handle_and_its_device) {
    uint32_t seen = 0;
    strata_run_options_t options = {.inspect = see_streams, .inspect_context = &seen};
    replay_text("op,id,size,stream,time_us,device\nalloc,1,256,31,0,0\nalloc,2,256,32,1,0\nalloc,3,256,41,2,1\n", "strata",
                options);
    EXPECT_EQ(seen, 3);
}

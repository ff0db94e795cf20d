/* What is left at the first out-of-memory: the trace so far, and the blocks of the place as a snapshot. */
#include <string.h>

#include "platform/host/host_memory.h"
#include "tests/recorder/recording.h"

/* What is left stands beside the trace. */
#define STACK(ending)                                                                                                              \
    "trace: {path: \"%1$s\", events: %2$u, when_full: %3$s, frames: 24, on_oom: \"%1$s.oom" ending                                 \
    "\"}\n  - stream_safe\n  - auto_growth\n  - system\n"

/* Valid until the next call. */
static const char *left(const recording_t *r, const char *ending) {
    static char path[sizeof r->path + 16];
    snprintf(path, sizeof path, "%s.oom%s", r->path, ending);
    return path;
}

static bool is_left(const recording_t *r, const char *ending) { return access(left(r, ending), F_OK) == 0; }

static void fail_for_memory(recording_t *r) { EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&r->rig, NULL, GIB)); }

static strata_trace_t *load(const char *path) {
    strata_trace_t *trace = NULL;
    EXPECT_OK(strata_trace_load(path, &trace));
    return trace;
}

TEST(recorder_oom, the_trace_so_far_and_the_blocks_are_left) {
    recording_t r;
    recording_open(&r, "to_oom.csv.gz", STACK(".csv"), 64, "write");
    strata_stream_t stream = rig_stream(&r.rig);
    strata_block_t a = rig_allocate_tagged(&r.rig, NULL, 3000, "weights"), b = rig_allocate(&r.rig, stream, MIB);
    EXPECT_OK(strata_free(r.rig.s, rig_allocate(&r.rig, NULL, 7 * MIB).ref));
    EXPECT_FALSE(is_left(&r, ".csv"));
    fail_for_memory(&r);
    strata_trace_t *so_far CLOSED_BY(trace_cleanup) = load(left(&r, ".csv")),
                           *blocks CLOSED_BY(trace_cleanup) = load(left(&r, ".pickle"));
    ASSERT_TRUE(so_far && blocks);
    EXPECT_EQ(so_far->count, 4);
    ASSERT_EQ(blocks->count, 2);
    EXPECT_STREQ(blocks->format, "pytorch");
    EXPECT_EQ(blocks->events[0].value + blocks->events[1].value, 3000 + MIB);
    /* Streams have the trace's numbers. */
    EXPECT_EQ(blocks->streams[blocks->events[blocks->events[0].value == 3000].stream].number,
              so_far->streams[so_far->events[1].stream].number);
    const strata_trace_event_t *tagged = &blocks->events[blocks->events[0].value == 3000 ? 0 : 1];
    EXPECT_TRUE(strstr(blocks->stacks[tagged->stack], "weights"));
    EXPECT_TRUE(strstr(blocks->stacks[tagged->stack], "test_recorder+0x"));
    RIG_FREE(&r.rig, a, b);
    strata_trace_t *whole CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->count, 6);
}

/* Compressed or not, of what is compressed or not. */
TEST(recorder_oom, the_trace_may_be_compressed) {
    static const char *const paths[] = {"oom_from.csv", "oom_from.csv.gz"};
    for (int i = 0; i < 2; i++) {
        recording_t r;
        recording_open(&r, paths[i], STACK(".csv.gz"), 1024, "write");
        for (int k = 0; k < 3000; k++) EXPECT_OK(strata_free(r.rig.s, rig_allocate(&r.rig, NULL, 1000).ref));
        fail_for_memory(&r);
        strata_trace_t *so_far CLOSED_BY(trace_cleanup) = load(left(&r, ".csv.gz"));
        ASSERT_TRUE(so_far);
        EXPECT_EQ(so_far->count, 6000);
        EXPECT_TRUE(is_left(&r, ".pickle"));
        for (int k = 0; k < 3000; k++) EXPECT_OK(strata_free(r.rig.s, rig_allocate(&r.rig, NULL, 1000).ref));
        strata_trace_t *whole CLOSED_BY(trace_cleanup) = recording_end(&r);
        ASSERT_TRUE(whole);
        EXPECT_EQ(whole->count, 12000);
    }
}

TEST(recorder_oom, the_first_one_alone) {
    recording_t r;
    recording_open(&r, "first_oom.csv", STACK(".csv"), 64, "write");
    fail_for_memory(&r);
    EXPECT_EQ(unlink(left(&r, ".csv")), 0);
    EXPECT_EQ(unlink(left(&r, ".pickle")), 0);
    fail_for_memory(&r);
    EXPECT_FALSE(is_left(&r, ".csv"));
    EXPECT_FALSE(is_left(&r, ".pickle"));
    strata_trace_delete(recording_end(&r));
}

/* A program that asks what fits leaves nothing. */
TEST(recorder_oom, not_of_a_request_that_wants_no_report) {
    recording_t r;
    recording_open(&r, "probing.csv", STACK(".csv"), 64, "write");
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = GIB, .flags = STRATA_NO_REPORT};
    strata_block_t block;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(r.rig.s, r.rig.gpu, NULL, &options, &block));
    EXPECT_FALSE(is_left(&r, ".csv"));
    strata_trace_delete(recording_end(&r));
}

typedef struct looked {
    const recording_t *recording;
    int seen;
} looked_t;

static void look(const strata_out_of_memory_t *event, void *context) {
    looked_t *looked = context;
    looked->seen += event->size == GIB && is_left(looked->recording, ".csv") && is_left(looked->recording, ".pickle");
}

/* A program that ends itself when it hears of it has them all the same. */
TEST(recorder_oom, they_are_there_before_the_program_hears_of_it) {
    recording_t r;
    looked_t looked = {.recording = &r};
    recording_open(&r, "observed.csv", STACK(".csv"), 64, "write");
    EXPECT_OK(strata_add_out_of_memory_observer(r.rig.s, look, &looked, NULL));
    fail_for_memory(&r);
    EXPECT_EQ(looked.seen, 1);
    strata_trace_delete(recording_end(&r));
}

/* Of the trace in whole.csv. */
static strata_status_t open_leaving(const char *name) {
    char text[600], whole[200];
    strata_t s;
    snprintf(whole, sizeof whole, "%s", temporary("whole.csv"));
    snprintf(text, sizeof text, "version: 1\nstack:\n  - trace: {path: %s, on_oom: %s}\n  - system\n", whole, temporary(name));
    strata_open_options_t open = {
        .struct_size = sizeof open, .text = text, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    strata_status_t status = strata_open(&open, &s);
    if (status == STRATA_OK) EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    return status;
}

TEST(recorder_oom, the_file_of_the_whole_is_refused) {
    EXPECT_STATUS(STRATA_E_STRATEGY, open_leaving("whole.csv"));
    EXPECT_OK(open_leaving("other.csv"));
}

/* The program is served as if nothing had been asked of the layer. */
TEST(recorder_oom, a_place_that_cannot_be_written_is_counted) {
    recording_t r;
    recording_open(
        &r, "nowhere.csv",
        "trace: {path: \"%s\", events: %u, when_full: %s, on_oom: /no_such_folder/oom.csv}\n  - auto_growth\n  - system\n", 64,
        "write");
    fail_for_memory(&r);
    strata_block_t a = rig_allocate(&r.rig, NULL, 1000);
    EXPECT_OK(strata_free(r.rig.s, a.ref));
    strata_trace_t *whole CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->count, 2);
}

/* What was written into a pipe or a device is gone, so nothing is left of it; the blocks would say little alone. */
TEST(recorder_oom, of_a_device_nothing_is_left) {
    char text[600];
    strata_t s;
    strata_block_t block;
    snprintf(text, sizeof text, "version: 1\nstack:\n  - trace: {path: /dev/null, on_oom: %s}\n  - system\n",
             temporary("of_a_device.csv"));
    strata_open_options_t open = {
        .struct_size = sizeof open, .text = text, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    ASSERT_OK(strata_open(&open, &s));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(s, strata_place(STRATA_PLACE_GPU, 0), NULL, (size_t)1 << 40, &block));
    EXPECT_NE(access(temporary("of_a_device.csv"), F_OK), 0);
    EXPECT_NE(access(temporary("of_a_device.pickle"), F_OK), 0);
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

static void expect_whole_or_none(const char *path) {
    strata_trace_t *trace = NULL;
    if (access(path, F_OK) == 0) EXPECT_OK(strata_trace_load(path, &trace));
    strata_trace_delete(trace);
}

TEST(recorder_oom, host_memory_that_fails_leaves_whole_files_or_none) {
    for (uint64_t k = 1; k < 40; k++) {
        recording_t r;
        recording_open(&r, "failing_oom.csv", STACK(".csv.gz"), 64, "write");
        (void)unlink(left(&r, ".csv.gz"));
        (void)unlink(left(&r, ".pickle"));
        strata_block_t a = rig_allocate(&r.rig, NULL, 1000);
        strata_host_fail_at(k, 0);
        strata_block_t block;
        strata_status_t status = strata_allocate(r.rig.s, r.rig.gpu, NULL, GIB, &block);
        strata_host_fail_at(0, 0);
        EXPECT_TRUE(status == STRATA_E_NO_MEMORY || status == STRATA_E_HOST_MEMORY);
        EXPECT_OK(strata_free(r.rig.s, a.ref));
        strata_status_t closed = strata_close(r.rig.s, STRATA_CLOSE_WAIT, NULL, NULL);
        EXPECT_TRUE(closed == STRATA_OK || closed == STRATA_E_HOST_MEMORY);
        rig_end(&r.rig);
        expect_whole_or_none(left(&r, ".csv.gz"));
        expect_whole_or_none(left(&r, ".pickle"));
        expect_whole_or_none(r.path);
    }
}

/* Call stacks of a running program: each stands in the file once, and equal ones are one. */
#include <string.h>

#include "platform/host/host_memory.h"
#include "tests/recorder/recording.h"

#define STACK "trace: {path: \"%s\", events: %u, when_full: %s, frames: 24}\n  - stream_safe\n  - auto_growth\n  - system\n"

static __attribute__((noinline)) strata_block_t from_here(recording_t *r, size_t size) {
    strata_block_t block = rig_allocate(&r->rig, NULL, size);
    __asm__ volatile("" ::: "memory"); /* no call in the tail, whose frame would be gone */
    return block;
}

static __attribute__((noinline)) strata_block_t from_there(recording_t *r, size_t size) {
    strata_block_t block = rig_allocate(&r->rig, NULL, size);
    __asm__ volatile("" : : "r"(&block) : "memory");
    return block;
}

static strata_trace_t *record_places(const char *name) {
    recording_t r;
    recording_open(&r, name, STACK, 64, "write");
    EXPECT_OK(strata_free(r.rig.s, rig_allocate(&r.rig, NULL, 1000).ref)); /* grows, on another way inside */
    for (int i = 0; i < 100; i++) {
        strata_block_t a = from_here(&r, 1000), b = from_there(&r, 1000);
        RIG_FREE(&r.rig, a, b);
    }
    return recording_end(&r);
}

TEST(recorder_stacks, each_place_is_told_apart) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = record_places("stacks.csv");
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->count, 402);
    EXPECT_EQ(trace->stack_count, 4); /* the first is "" */
    for (size_t i = 2; i < trace->count; i++) {
        const strata_trace_event_t *e = &trace->events[i];
        EXPECT_EQ(e->stack, e->op != STRATA_TRACE_alloc ? 0 : trace->events[2 + (i - 2) % 4].stack);
    }
    EXPECT_NE(trace->events[2].stack, trace->events[3].stack);
}

/* What lies in no file has its address; what has no symbol has its file and the offset there. */
TEST(recorder_stacks, a_frame_says_its_file_and_where) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = record_places("frames.csv.gz");
    ASSERT_TRUE(trace);
    const char *text = trace->stacks[1];
    EXPECT_TRUE(strstr(text, "test_recorder+0x"));
    EXPECT_TRUE(strchr(text, ';'));
    EXPECT_FALSE(strchr(text, '\n'));
}

TEST(recorder_stacks, none_without_the_option) {
    recording_t r;
    recording_open(&r, "no_stacks.csv", "trace: {path: \"%s\", events: %u, when_full: %s}\n  - system\n", 64, "write");
    EXPECT_OK(strata_free(r.rig.s, from_here(&r, 1000).ref));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->stack_count, 1);
    EXPECT_EQ(trace->events[0].stack, 0);
}

/* Written and read again they are the same. */
static strata_status_t write_row(void *context, const strata_trace_record_t *record) { return strata_trace_write(context, record); }

TEST(recorder_stacks, they_are_copied_with_their_rows) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = record_places("copied.csv"), *again CLOSED_BY(trace_cleanup) = NULL,
                          *read = NULL;
    strata_trace_reader_t *reader;
    strata_trace_writer_t *writer;
    ASSERT_TRUE(trace);
    ASSERT_OK(strata_trace_reader_open(temporary("copied.csv"), &reader));
    ASSERT_OK(strata_trace_writer_open(temporary("copy.csv"), strata_trace_reader_columns(reader), &writer));
    EXPECT_OK(strata_trace_load_from(reader, "copied.csv", write_row, writer, &read));
    EXPECT_OK(strata_trace_writer_finish(writer));
    strata_trace_reader_close(reader);
    strata_trace_delete(read);
    ASSERT_OK(strata_trace_load(temporary("copy.csv"), &again));
    ASSERT_EQ(again->stack_count, trace->stack_count);
    for (uint32_t i = 0; i < trace->stack_count; i++) EXPECT_STREQ(again->stacks[i], trace->stacks[i]);
    for (size_t i = 0; i < trace->count; i++) EXPECT_EQ(again->events[i].stack, trace->events[i].stack);
}

TEST(recorder_stacks, host_memory_that_fails_is_told_and_the_file_is_whole_or_none) {
    for (uint64_t k = 1; k < 40; k++) {
        recording_t r;
        strata_trace_t *trace = NULL;
        recording_open(&r, "failing.csv", STACK, 64, "write");
        strata_block_t a = from_here(&r, 1000), b = from_there(&r, 1000);
        RIG_FREE(&r.rig, a, b);
        strata_host_fail_at(k, 0);
        (void)strata_release(r.rig.s, r.rig.gpu, NULL);
        strata_host_fail_at(0, 0);
        strata_status_t closed = strata_close(r.rig.s, STRATA_CLOSE_FORCE, NULL, NULL);
        EXPECT_TRUE(closed == STRATA_OK || closed == STRATA_E_HOST_MEMORY);
        rig_end(&r.rig);
        if (access(r.path, F_OK) == 0) EXPECT_OK(strata_trace_load(r.path, &trace));
        strata_trace_delete(trace);
    }
}

/* Call stacks: column `stack` has a number, and where it first stands the frames behind a colon. */
#include <stdio.h>
#include <string.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "trace/pickle/pickle_snapshot.h"

#define HEADER "op,id,size,stream,time_us,stack\n"

TEST(trace_stacks, stand_once_and_are_meant_by_their_numbers) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = load_trace(HEADER
                                                                "alloc,1,8,0,0,1:a.py:3 inner;b.py:9 outer\nalloc,2,8,0,0,\n"
                                                                "alloc,3,8,0,0,\"2:x<a, b>\"\nfree,1,,0,1,\nalloc,4,8,0,1,1\n");
    ASSERT_TRUE(trace);
    static const uint32_t expected[] = {1, 0, 2, 0, 1};
    for (size_t i = 0; i < 5; i++) EXPECT_EQ(trace->events[i].stack, expected[i]);
    ASSERT_EQ(trace->stack_count, 3);
    EXPECT_STREQ(trace->stacks[0], "");
    EXPECT_STREQ(trace->stacks[1], "a.py:3 inner;b.py:9 outer");
    EXPECT_STREQ(trace->stacks[2], "x<a, b>");
}

/* Many rows of plain numbers are read the quick way. */
TEST(trace_stacks, are_found_the_quick_way_too) {
    static char text[20000];
    size_t length = (size_t)snprintf(text, sizeof text, HEADER "alloc,1,8,0,0,1:one\nalloc,2,8,0,0,2:two\n");
    for (int i = 3; i < 500; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "alloc,%d,8,0,0,%d\n", i, i % 2 + 1);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = load_trace(text);
    ASSERT_TRUE(trace);
    for (uint32_t i = 2; i < trace->count; i++) EXPECT_STREQ(trace->stacks[trace->events[i].stack], i % 2 ? "one" : "two");
}

TEST(trace_stacks, wrong_ones_are_refused_at_their_place) {
    static const char *const wrong[] = {"1", "0", "2:a", "1:", "x", "1x", ":a", "1:a\x01", "01234567890:a", "1:\"\"", "-1:a"};
    char text[200], file[16000];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        strata_trace_t *trace = NULL;
        snprintf(text, sizeof text, HEADER "alloc,1,8,0,0,%s\n", wrong[i]);
        EXPECT_STATUS(STRATA_E_FORMAT, strata_trace_load(write_text("stacks.csv", text), &trace));
        EXPECT_EQ(strata_last_error()->line, 2);
        EXPECT_EQ(strata_last_error()->column, 15);
        /* As the first of many, so that it is seen the quick way. */
        size_t length = (size_t)snprintf(file, sizeof file, HEADER "alloc,1,8,0,0,%s\n", wrong[i]);
        for (int k = 2; k < 500; k++) length += (size_t)snprintf(file + length, sizeof file - length, "alloc,%d,8,0,0,\n", k);
        EXPECT_STATUS(STRATA_E_FORMAT, strata_trace_load(write_text("stacks.csv", file), &trace));
        EXPECT_EQ(strata_last_error()->line, 2);
    }
    strata_trace_t *trace = NULL;
    EXPECT_STATUS(STRATA_E_FORMAT,
                  strata_trace_load(write_text("stacks.csv", HEADER "alloc,1,8,0,0,1:a\nalloc,2,8,0,0,1:a\n"), &trace));
}

TEST(trace_stacks, the_longest) {
    static char text[4000];
    for (int more = 0; more < 2; more++) {
        strata_trace_t *trace = NULL;
        snprintf(text, sizeof text, HEADER "alloc,1,8,0,0,1:%0*d\n", STRATA_TRACE_STACK_BYTES - 1 + more, 7);
        EXPECT_STATUS(more ? STRATA_E_FORMAT : STRATA_OK, strata_trace_load(write_text("stacks.csv", text), &trace));
        strata_trace_delete(trace);
    }
}

TEST(trace_stacks, the_writer_refuses_what_the_reader_would) {
    static const char *const wrong[] = {"a\"b", "a\nb", "a\tb"};
    strata_trace_writer_t *writer;
    ASSERT_OK(strata_trace_writer_open(temporary("written.csv"), 1u << STRATA_COLUMN_stack, &writer));
    strata_trace_record_t row = {.op = STRATA_TRACE_alloc, .has_id = true, .id = 1, .size = 8};
    for (size_t i = 0; i < 3; i++) {
        row.stack = wrong[i];
        EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &row));
    }
    strata_trace_writer_abandon(writer);
    ASSERT_OK(strata_trace_writer_open(temporary("written.csv"), 0, &writer));
    row.stack = "no column";
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &row));
    strata_trace_writer_abandon(writer);
}

/* ---- frames in a snapshot ---- */

typedef struct frame {
    const char *name, *text;
    bool is_frame;
} frame_t;

static const frame_t frames[] = {
    {"a_file_and_a_line", "train.py:31 forward", true},
    {"a_module_and_an_offset", "libmine.so+0x12f0 forward", true},
    {"a_colon_without_a_line", "train.py: forward", false},
    {"a_line_that_is_no_number", "train.py:3x forward", false},
    {"a_function", "forward", false},
};

/* A text without a line or an offset is the name of a function, so no part of it becomes the name of a file. */
TEST_EACH(trace_stacks, a_frame_has_a_file_only_with_a_line_or_an_offset, frame_t, frames) {
    strata_output_t *output;
    strata_pickler_t pickler;
    char bytes[1000], path[256];
    EXPECT_EQ(strata_pickle_is_frame(row->text), row->is_frame);
    snprintf(path, sizeof path, "%s", temporary("frames.pickle"));
    ASSERT_OK(strata_output_open(path, &output));
    strata_pickler_begin(&pickler, output);
    strata_pickle_frames(&pickler, row->text, "");
    strata_pickler_end(&pickler);
    ASSERT_OK(strata_output_finish(output));
    FILE *file = fopen(path, "rb");
    ASSERT_NE(file, NULL);
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    EXPECT_EQ(memmem(bytes, count, row->text, strlen(row->text)) == NULL, row->is_frame);
    EXPECT_NE(memmem(bytes, count, "forward", strlen("forward")), NULL);
}

/* Tests the column `stream_name`: a named stream has its name in at least one row. */
#include <stdio.h>

#include "lab/trace/read/feed.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"

#define HEADER "op,id,size,stream,time_us,device,other,stream_name\n"

static const char *name_in(const strata_trace_t *trace, uint32_t stream) {
    return trace->streams[stream].name ? trace->streams[stream].name : "(none)";
}

TEST(trace_stream_names, stand_in_any_row_of_their_stream) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = load_trace(
        HEADER "alloc,1,8,0,0,0,,\nalloc,2,8,5,0,0,,copy0\nalloc,3,8,5,0,1,,nccl:a b\n"
               "wait,,,0,1,0,7,\nfree,2,,5,1,0,,copy0\nborrow,1,,7,2,0,,\"a,\"\"b\"\"\"\n"
               "step,,,,3,,,\nsync,,,all,3,0,,\n");
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->stream_count, 4);
    EXPECT_STREQ(name_in(trace, 0), "(none)");
    EXPECT_STREQ(name_in(trace, 1), "copy0");
    EXPECT_STREQ(name_in(trace, 2), "nccl:a b"); /* the same number on another device */
    EXPECT_STREQ(name_in(trace, 3), "a,\"b\"");
}

TEST(trace_stream_names, a_trace_without_the_column_has_none) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = load_trace("op,id,size,stream,time_us\nalloc,1,8,3,0\n");
    ASSERT_TRUE(trace);
    EXPECT_STREQ(name_in(trace, 0), "(none)");
}

/* Rows of plain numbers take the fast path. Names between them are found, also in the last row. */
TEST(trace_stream_names, are_found_among_many_rows) {
    static char text[40000];
    size_t length = (size_t)snprintf(text, sizeof text, HEADER);
    for (int i = 1; i < 900; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "alloc,%d,8,%d,0,0,,%s\n", i, i % 3,
                                   i == 400   ? "one"
                                   : i == 899 ? "two"
                                              : "");
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = load_trace(text);
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->count, 899);
    EXPECT_EQ(trace->streams[2].number, 0);
    EXPECT_STREQ(name_in(trace, 0), "one"); /* 400 is 1 modulo 3 */
    EXPECT_STREQ(name_in(trace, 1), "two");
    EXPECT_STREQ(name_in(trace, 2), "(none)");
}

/* 255 bytes are accepted, 256 are not. */
TEST(trace_stream_names, have_a_maximum_length) {
    char text[600], name[300];
    for (int bytes = 255; bytes <= 256; bytes++) {
        strata_trace_t *trace = NULL;
        memset(name, 'n', sizeof name);
        name[bytes] = '\0';
        snprintf(text, sizeof text, HEADER "alloc,1,8,5,0,0,,%s\n", name);
        strata_status_t status = strata_trace_load(write_text("names.csv", text), &trace);
        EXPECT_EQ(status, bytes == 255 ? STRATA_OK : STRATA_E_FORMAT);
        if (trace) EXPECT_STREQ(name_in(trace, 0), name);
        else EXPECT_CONTAINS(strata_last_error()->text, "the name is longer than 255 bytes; write a shorter one");
        strata_trace_delete(trace);
    }
}

/* The reader accepts all written names, and the writer refuses names that the reader would refuse. */
TEST(trace_stream_names, are_written_and_read_again) {
    const char *path = temporary("written.csv");
    char kept[300];
    snprintf(kept, sizeof kept, "%s", path);
    strata_trace_writer_t *writer;
    ASSERT_OK(strata_trace_writer_open(kept, 1u << STRATA_COLUMN_stream_name, &writer));
    strata_trace_record_t row = {.op = STRATA_TRACE_alloc, .id = 1, .has_id = true, .size = 8, .stream = 4, .stream_name = "a,\"b"};
    EXPECT_OK(strata_trace_write(writer, &row));
    row = (strata_trace_record_t){.op = STRATA_TRACE_step, .stream_name = "x"};
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &row));
    row = (strata_trace_record_t){.op = STRATA_TRACE_free, .id = 1, .has_id = true, .stream = 4, .stream_name = "a\nb"};
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &row));
    row.stream_name = "";
    EXPECT_OK(strata_trace_write(writer, &row));
    ASSERT_OK(strata_trace_writer_finish(writer));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(kept, &trace));
    EXPECT_STREQ(name_in(trace, 0), "a,\"b");
    ASSERT_OK(strata_trace_writer_open(kept, 0, &writer));
    row = (strata_trace_record_t){.op = STRATA_TRACE_alloc, .id = 1, .has_id = true, .stream_name = "x"};
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &row));
    EXPECT_CONTAINS(strata_last_error()->text, "uses column stream_name");
    strata_trace_writer_abandon(writer);
}

/* A run must not start before the last name is known, so the first view already has all rows. */
TEST(trace_stream_names, a_feed_shows_the_whole_trace_at_once) {
    static char text[400000];
    size_t length = (size_t)snprintf(text, sizeof text, HEADER "alloc,1,8,5,0,0,,\n");
    for (int i = 2; i < 9000; i++) length += (size_t)snprintf(text + length, sizeof text - length, "alloc,%d,8,5,0,0,,\n", i);
    snprintf(text + length, sizeof text - length, "free,1,,5,1,0,,copy0\n");
    strata_trace_feed_t *feed;
    strata_trace_t view = {.count = 0}, *trace CLOSED_BY(trace_cleanup) = NULL;
    bool end = false;
    ASSERT_OK(strata_trace_feed_begin(write_text("fed.csv", text), &feed));
    EXPECT_OK(strata_trace_feed_wait(feed, &view, &end));
    EXPECT_EQ(view.count, 9000);
    EXPECT_STREQ(name_in(&view, 0), "copy0");
    EXPECT_OK(strata_trace_feed_finish(feed, &trace));
}

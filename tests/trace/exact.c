/* Bounds of a trace from both sides, and what a row takes over from the one that began its lifetime. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "trace/text/lines.h"
#include "trace/trace.h"

#define TAGGED "op,id,size,stream,time_us,tag,x_note\n"

/* A row of so many bytes, its end not counted. */
static strata_status_t load_line(size_t bytes) {
    char text[8192] = TAGGED "alloc,1,8,0,0,,";
    size_t before = strlen(text) - strlen(TAGGED);
    memset(text + strlen(text), 'n', bytes - before);
    strcat(text, "\n");
    strata_trace_t *trace = NULL;
    strata_status_t status = strata_trace_load(write_text("line.csv", text), &trace);
    strata_trace_delete(trace);
    return status;
}

TEST(trace_exact, a_line_of_four_thousand_and_ninety_five_bytes) {
    EXPECT_OK(load_line(STRATA_TRACE_LINE_BYTES - 1));
    EXPECT_SAYS(STRATA_E_FORMAT, load_line(STRATA_TRACE_LINE_BYTES), ":2:4096: the line is longer than 4095 bytes");
}

TEST(trace_exact, a_tag_of_two_hundred_and_fifty_five_bytes) {
    char tag[STRATA_TRACE_TAG_BYTES + 1] = "", text[600], path[300];
    memset(tag, 't', STRATA_TRACE_TAG_BYTES - 1);
    snprintf(text, sizeof text, TAGGED "alloc,1,8,0,0,%s,\n", tag);
    strata_trace_t *trace = load_trace(text);
    ASSERT_NE(trace, NULL);
    EXPECT_STREQ(trace->tags[trace->events[0].tag], tag);
    strata_trace_delete(trace);
    strata_trace_writer_t *writer = NULL;
    snprintf(path, sizeof path, "%s", temporary("written.csv"));
    strata_trace_record_t row = {.op = STRATA_TRACE_alloc, .id = 1, .has_id = true, .size = 8, .tag = tag};
    ASSERT_OK(strata_trace_writer_open(path, 1u << STRATA_COLUMN_tag, &writer));
    EXPECT_OK(strata_trace_write(writer, &row));
    tag[STRATA_TRACE_TAG_BYTES - 1] = 't';
    row.id = 2;
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &row));
    EXPECT_OK(strata_trace_writer_finish(writer));
    EXPECT_OK(strata_trace_load(path, &trace));
    EXPECT_EQ(trace->count, 1);
    strata_trace_delete(trace);
}

/* The writer takes the largest of each number that the reader takes, and none above. */
TEST(trace_exact, the_largest_numbers_are_written) {
    const strata_trace_record_t largest = {.op = STRATA_TRACE_alloc,
                                           .has_id = true,
                                           .has_pool = true,
                                           .id = UINT64_MAX - 1,
                                           .pool = UINT64_MAX - 1,
                                           .size = STRATA_TRACE_SIZE_MAX,
                                           .stream = STRATA_TRACE_NUMBER_MAX,
                                           .other = STRATA_TRACE_NUMBER_MAX,
                                           .time_us = STRATA_TRACE_TIME_MAX,
                                           .dur_us = STRATA_TRACE_TIME_MAX,
                                           .device = STRATA_TRACE_DEVICES - 1,
                                           .align = STRATA_TRACE_SIZE_MAX};
    strata_trace_record_t above[9];
    for (size_t i = 0; i < 9; i++) above[i] = largest;
    above[0].id++, above[1].pool++, above[2].size++, above[3].stream++, above[4].other++, above[5].time_us++, above[6].dur_us++;
    above[7].device++, above[8].align *= 2;
    strata_trace_writer_t *writer = NULL;
    ASSERT_OK(strata_trace_writer_open(temporary("largest.csv"), UINT32_MAX, &writer));
    for (size_t i = 0; i < 9; i++)
        if (strata_trace_write(writer, &above[i]) != STRATA_E_INVALID) FAIL_TEST("number %zu is too large", i);
    EXPECT_OK(strata_trace_write(writer, &largest));
    strata_trace_writer_abandon(writer);
}

/* A size is a request's alone: that of another record is not written. */
TEST(trace_exact, a_row_that_asks_for_nothing_has_the_size_0) {
    char path[300];
    size_t count = 0;
    strata_trace_writer_t *writer = NULL;
    snprintf(path, sizeof path, "%s", temporary("sizes.csv"));
    ASSERT_OK(strata_trace_writer_open(path, 0, &writer));
    EXPECT_OK(strata_trace_write(writer, &(strata_trace_record_t){.op = STRATA_TRACE_alloc, .has_id = true, .id = 1, .size = 8}));
    EXPECT_OK(strata_trace_write(writer, &(strata_trace_record_t){.op = STRATA_TRACE_free, .has_id = true, .id = 1, .size = 8}));
    EXPECT_OK(strata_trace_writer_finish(writer));
    char *bytes CLOSED_BY(text_cleanup) = read_bytes(path, &count);
    ASSERT_TRUE(bytes && count > 0);
    bytes[count] = '\0';
    EXPECT_CONTAINS(bytes, "alloc,1,8,0,0\nfree,1,0,0,0\n");
}

/* Streams are numbered for each device by itself. */
TEST(trace_exact, equal_numbers_of_other_devices_are_other_streams) {
    enum { NUMBERS = 40 };
    static char text[NUMBERS * STRATA_TRACE_DEVICES * 40];
    size_t length = (size_t)sprintf(text, "op,id,size,stream,time_us,device\n");
    for (unsigned i = 0; i < NUMBERS; i++)
        for (unsigned d = 0; d < STRATA_TRACE_DEVICES; d++)
            length += (size_t)sprintf(text + length, "alloc,%u,8,%u,0,%u\n", i * STRATA_TRACE_DEVICES + d, i, d);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = load_trace(text);
    ASSERT_NE(trace, NULL);
    EXPECT_EQ(trace->stream_count, NUMBERS * STRATA_TRACE_DEVICES);
    for (size_t i = 0; i < trace->count; i++) {
        EXPECT_EQ(trace->streams[trace->events[i].stream].number, i / STRATA_TRACE_DEVICES);
        EXPECT_EQ(trace->streams[trace->events[i].stream].device, i % STRATA_TRACE_DEVICES);
    }
}

/* The place is that of the alloc, whatever a later row says or leaves out; and only the alloc says how many bytes are live. */
TEST(trace_exact, what_a_lifetime_keeps_from_its_alloc) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = load_trace(
        "op,id,size,stream,time_us,place,dur_us\nalloc,1,100,0,0,managed,\nborrow,1,7,2,1,,\nwork,1,7,0,2,pinned,5\n"
        "free,1,7,0,3,host,\nalloc,2,60,0,4,host,\nfree,2,,0,5,,\nalloc,3,90,0,6,,\n");
    static const strata_place_kind_t places[] = {STRATA_PLACE_MANAGED, STRATA_PLACE_MANAGED, STRATA_PLACE_MANAGED,
                                                 STRATA_PLACE_MANAGED, STRATA_PLACE_HOST,    STRATA_PLACE_HOST,
                                                 STRATA_PLACE_GPU};
    ASSERT_NE(trace, NULL);
    for (size_t i = 0; i < trace->count; i++) EXPECT_EQ(trace->events[i].place, places[i]);
    EXPECT_EQ(trace->peak_requested, 100);
    EXPECT_EQ(trace->places, 1u << STRATA_PLACE_MANAGED | 1u << STRATA_PLACE_HOST | 1u << STRATA_PLACE_GPU);
}

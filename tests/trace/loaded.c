/* What a good trace becomes in memory, and what the writer makes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "platform/status.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "trace/trace.h"

/* An alloc's own pool, else the innermost that its stream has begun; other streams and the host's memory are not concerned. */
TEST(trace, the_pool_of_an_alloc) {
    static const char text[] = "op,id,size,stream,time_us,pool,place,device\n"
                               "pool_begin,,,0,0,5,,\npool_begin,,,0,0,6,,\npool_begin,,,0,0,5,,\n"
                               "alloc,1,8,0,0,,,\nalloc,2,8,0,0,9,,\nalloc,3,8,1,0,,,\nalloc,4,8,0,0,,,1\nalloc,5,8,0,0,,host,\n"
                               "pool_end,,,0,0,5,,\nalloc,6,8,0,0,,managed,\npool_end,,,0,0,5,,\nalloc,7,8,0,0,,,\n"
                               "pool_end,,,0,0,6,,\nalloc,8,8,0,0,,,\n";
    static const uint64_t pools[] = {5, 9, 0, 0, 0, 6, 6, 0}; /* 0: none */
    strata_trace_t *t CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(write_text("pools.csv", text), &t));
    for (size_t i = 0, alloc = 0; i < t->count; i++) {
        const strata_trace_event_t *e = &t->events[i];
        if (e->op != STRATA_TRACE_alloc) continue;
        EXPECT_EQ(e->pool == STRATA_TRACE_NO_POOL ? 0 : t->pools[e->pool], pools[alloc]);
        alloc++;
    }
}

/* Numbers of streams that have their low bits in common, one after the other. */
TEST(trace, streams_are_told_apart_by_all_of_their_numbers) {
    static const char text[] = "op,id,size,stream,time_us\nalloc,1,8,1,0\nalloc,2,8,257,0\nalloc,3,8,65537,0\n"
                               "alloc,4,8,4294967297,0\nalloc,5,8,1,0\n";
    static const uint32_t streams[] = {0, 1, 2, 3, 0};
    strata_trace_t *t CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(write_text("streams.csv", text), &t));
    ASSERT_EQ(t->count, 5);
    for (size_t i = 0; i < 5; i++) EXPECT_EQ(t->events[i].stream, streams[i]);
}

/* Pinned and host memory is of no device: a row of any other one may free it. */
TEST(trace, memory_of_the_host_is_freed_from_any_device) {
    static const char text[] = "op,id,size,stream,time_us,device,place\nalloc,1,8,0,0,0,pinned\nalloc,2,8,0,0,1,host\n"
                               "borrow,1,,3,1,1,\nfree,1,,0,1,1,\nfree,2,,0,1,0,\n";
    strata_trace_t *t CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(write_text("hosts.csv", text), &t));
    EXPECT_EQ(t->events[3].place, STRATA_PLACE_PINNED);
    EXPECT_EQ(t->events[4].place, STRATA_PLACE_HOST);
}

static const char every_column[] = "# strata-trace 1\r\n"
                                   "x_note,time_us,stream,size,id,op,other,dur_us,pool,tag,align,place,device\r\n"
                                   "a,3,7,100,900,alloc,,,,\"one, \"\"two\"\"\",512,,\r\n"
                                   ",3,0,0,5,alloc,,,,,,pinned,1\r\n"
                                   "\r\n"
                                   ",4,8,0,900,borrow,,,,,,,\r\n"
                                   ",4,8,0,900,work,,50,,,,,\r\n"
                                   ",4,8,0,,work,,50,,,,,\r\n"
                                   ",5,8,0,,wait,7,,,,,,\r\n"
                                   ",5,8,0,900,unborrow,,,,,,,\r\n"
                                   ",6,all,0,,sync,,,,,,,1\r\n"
                                   ",6,7,0,,sync,,,,,,,\r\n"
                                   ",6,,,,step,,,,,,,\r\n"
                                   ",6,,,,release,,,,,,,\r\n"
                                   ",6,7,,,pool_begin,,,44,,,,\r\n"
                                   ",6,7,,,pool_end,,,44,,,,\r\n"
                                   ",7,8,0,900,free,,,,,,,";

TEST(trace, columns_in_any_order_and_all_operations) {
    strata_trace_t *t CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(write_text("all.csv", every_column), &t));
    ASSERT_EQ(t->count, 14);
    EXPECT_EQ(t->lifetimes, 2);
    EXPECT_EQ(t->devices, 2);
    EXPECT_EQ(t->places, 1u << STRATA_PLACE_GPU | 1u << STRATA_PLACE_PINNED);
    EXPECT_EQ(t->peak_requested, 100);
    EXPECT_EQ(t->pool_count, 1);
    EXPECT_TRUE(t->has_work);
    const strata_trace_event_t *e = t->events;
    EXPECT_EQ(e[0].op, STRATA_TRACE_alloc);
    EXPECT_EQ(e[0].value, 100);
    EXPECT_EQ(e[0].id, 0);
    EXPECT_EQ(e[0].align, 9);
    EXPECT_EQ(e[0].line, 3);
    EXPECT_STREQ(t->tags[e[0].tag], "one, \"two\"");
    EXPECT_EQ(t->streams[e[0].stream].number, 7);
    EXPECT_EQ(e[1].place, STRATA_PLACE_PINNED);
    EXPECT_EQ(t->streams[e[1].stream].device, 1);
    EXPECT_EQ(e[2].id, 0);
    EXPECT_EQ(e[3].value, 50);
    EXPECT_EQ(e[4].id, STRATA_TRACE_NONE);
    EXPECT_EQ(t->streams[e[5].stream].number, 8);
    EXPECT_EQ(e[5].other, e[0].stream);
    EXPECT_EQ(e[7].stream, STRATA_TRACE_NO_STREAM);
    EXPECT_EQ(e[7].other, 1);
    EXPECT_EQ(e[8].stream, e[0].stream);
    EXPECT_EQ(t->pools[e[11].pool], 44);
    EXPECT_EQ(e[13].stream, e[2].stream);
    EXPECT_EQ(e[13].line, 17);
}

TEST(trace, a_header_alone_is_an_empty_trace) {
    strata_trace_t *t CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(write_text("empty.csv", "op,id,size,stream,time_us"), &t));
    EXPECT_EQ(t->count, 0);
}

TEST(trace, gzip_members_follow_each_other) {
    static const char one[] = "op,id,size,stream,time_us\nalloc,1,8,0,0\nal", two[] = "loc,2,8,0,0\n";
    size_t first, second;
    char *a CLOSED_BY(text_cleanup) = read_bytes(write_gzip("a.gz", one, strlen(one)), &first);
    char *b CLOSED_BY(text_cleanup) = read_bytes(write_gzip("b.gz", two, strlen(two)), &second);
    ASSERT_TRUE(a && b);
    char *both CLOSED_BY(text_cleanup) = malloc(first + second);
    ASSERT_TRUE(both);
    memcpy(both, a, first);
    memcpy(both + first, b, second);
    strata_trace_t *t CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(write_file("ab.gz", both, first + second), &t));
    EXPECT_EQ(t->count, 2);
}

/* Reads every row of a trace of the project and writes it again. */
static void copy_rows(const char *from, const char *to) {
    strata_trace_reader_t *reader = NULL;
    strata_trace_writer_t *writer = NULL;
    ASSERT_OK(strata_trace_reader_open(from, &reader));
    uint32_t columns = 1u << STRATA_COLUMN_dur_us | 1u << STRATA_COLUMN_other;
    ASSERT_OK(strata_trace_writer_open(to, columns, &writer));
    for (;;) {
        strata_trace_record_t record;
        bool end;
        ASSERT_OK(strata_trace_read(reader, &record, &end));
        if (end) break;
        ASSERT_OK(strata_trace_write(writer, &record));
    }
    strata_trace_reader_close(reader);
    ASSERT_OK(strata_trace_writer_finish(writer));
}

static void expect_same(const char *a, const char *b) {
    strata_trace_t *one = NULL, *two = NULL;
    ASSERT_OK(strata_trace_load(a, &one));
    ASSERT_OK(strata_trace_load(b, &two));
    ASSERT_EQ(one->count, two->count);
    EXPECT_EQ(one->stream_count, two->stream_count);
    EXPECT_EQ(memcmp(one->streams, two->streams, one->stream_count * sizeof *one->streams), 0);
    size_t different = 0;
    for (size_t i = 0; i < one->count; i++) {
        strata_trace_event_t x = one->events[i], y = two->events[i];
        different += x.op != y.op || x.id != y.id || x.value != y.value || x.time_us != y.time_us || x.stream != y.stream ||
                     x.other != y.other || x.place != y.place;
    }
    EXPECT_EQ(different, 0);
    strata_trace_delete(one);
    strata_trace_delete(two);
}

TEST(trace, round_trip_of_real_traces) {
    static const char *const names[] = {"streams-serving.csv.gz", "ddp-2rank-v100.csv.gz", "tinytorch-mnist.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char from[1024], to[256];
        snprintf(from, sizeof from, "%s/traces/%s", STRATA_SOURCE_DIR, names[i]);
        snprintf(to, sizeof to, "%s", temporary(i == 1 ? "copy.csv" : "copy.csv.gz"));
        copy_rows(from, to);
        expect_same(from, to);
    }
}

static const strata_trace_record_t written = {.op = STRATA_TRACE_alloc,
                                              .place = STRATA_PLACE_MANAGED,
                                              .id = UINT64_MAX - 1,
                                              .size = STRATA_TRACE_SIZE_MAX,
                                              .stream = STRATA_TRACE_NUMBER_MAX,
                                              .time_us = 12,
                                              .pool = 3,
                                              .align = 4096,
                                              .device = 15,
                                              .thread = UINT32_MAX,
                                              .has_id = true,
                                              .has_pool = true,
                                              .tag = "a \"b\", c"};

static void write_every_field(const char *path) {
    strata_trace_writer_t *writer = NULL;
    ASSERT_OK(strata_trace_writer_open(path, UINT32_MAX, &writer));
    ASSERT_OK(strata_trace_write(writer, &written));
    ASSERT_OK(strata_trace_write(writer, &(strata_trace_record_t){.op = STRATA_TRACE_sync, .time_us = 12, .all_streams = true}));
    ASSERT_OK(strata_trace_writer_finish(writer));
}

TEST(trace, round_trip_of_every_field) {
    char path[256];
    snprintf(path, sizeof path, "%s", temporary("every.csv"));
    write_every_field(path);
    strata_trace_reader_t *reader = NULL;
    ASSERT_OK(strata_trace_reader_open(path, &reader));
    strata_trace_record_t read;
    bool end;
    ASSERT_OK(strata_trace_read(reader, &read, &end));
    EXPECT_EQ(read.id, written.id);
    EXPECT_EQ(read.size, written.size);
    EXPECT_EQ(read.stream, written.stream);
    EXPECT_EQ(read.pool, 3);
    EXPECT_EQ(read.align, 4096);
    EXPECT_EQ(read.device, 15);
    EXPECT_EQ(read.thread, UINT32_MAX);
    EXPECT_EQ(read.place, STRATA_PLACE_MANAGED);
    EXPECT_STREQ(read.tag, written.tag);
    ASSERT_OK(strata_trace_read(reader, &read, &end));
    EXPECT_TRUE(read.all_streams && read.op == STRATA_TRACE_sync);
    ASSERT_OK(strata_trace_read(reader, &read, &end));
    EXPECT_TRUE(end);
    strata_trace_reader_close(reader);
}

TEST(trace, writer_refuses_what_the_reader_would) {
    strata_trace_writer_t *writer = NULL;
    ASSERT_OK(strata_trace_writer_open(temporary("refused.csv"), 0, &writer));
    strata_trace_record_t good = {.op = STRATA_TRACE_alloc, .has_id = true, .time_us = 5}, bad = good;
    EXPECT_OK(strata_trace_write(writer, &good));
    bad.size = STRATA_TRACE_SIZE_MAX + 1;
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &bad));
    bad = good, bad.time_us = 4;
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &bad));
    bad = good, bad.has_id = false;
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &bad));
    bad = good, bad.tag = "two\nlines";
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &bad));
    bad = good, bad.tag = "carriage\rreturn";
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &bad));
    bad = good, bad.all_streams = true;
    EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(writer, &bad));
    bad = good, bad.align = 256;
    EXPECT_SAYS(STRATA_E_INVALID, strata_trace_write(writer, &bad), "column align");
    strata_trace_writer_abandon(writer);
}

/* What a record says in a column of its own is not lost for want of it. */
TEST(trace, writer_refuses_what_it_has_no_column_for) {
    static const struct {
        strata_trace_record_t record;
        const char *column;
    } cases[] = {{{.op = STRATA_TRACE_work}, "dur_us"},
                 {{.op = STRATA_TRACE_wait}, "other"},
                 {{.op = STRATA_TRACE_pool_end, .has_pool = true}, "pool"},
                 {{.op = STRATA_TRACE_step, .device = 1}, "device"},
                 {{.op = STRATA_TRACE_step, .place = STRATA_PLACE_HOST}, "place"},
                 {{.op = STRATA_TRACE_step, .align = 1}, "align"},
                 {{.op = STRATA_TRACE_step, .thread = 1}, "thread"},
                 {{.op = STRATA_TRACE_step, .tag = "t"}, "tag"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strata_trace_writer_t *without = NULL, *with = NULL;
        char part[64];
        ASSERT_OK(strata_trace_writer_open(temporary("without.csv"), 0, &without));
        EXPECT_STATUS(STRATA_E_INVALID, strata_trace_write(without, &cases[i].record));
        snprintf(part, sizeof part, "column %s,", cases[i].column);
        EXPECT_CONTAINS(strata_last_error()->text, part);
        strata_trace_writer_abandon(without);
        ASSERT_OK(strata_trace_writer_open(temporary("with.csv"), UINT32_MAX, &with));
        EXPECT_OK(strata_trace_write(with, &cases[i].record));
        strata_trace_writer_abandon(with);
    }
}

/* Whatever byte a tag may have is read as it was written. */
TEST(trace, round_trip_of_every_byte_of_a_tag) {
    char path[256], tag[STRATA_TRACE_TAG_BYTES] = {0};
    for (size_t byte = 1, length = 0; byte < 256; byte++)
        if (byte != '\n' && byte != '\r') tag[length++] = (char)byte;
    strata_trace_writer_t *writer = NULL;
    snprintf(path, sizeof path, "%s", temporary("bytes.csv"));
    ASSERT_OK(strata_trace_writer_open(path, 1u << STRATA_COLUMN_tag, &writer));
    ASSERT_OK(strata_trace_write(writer, &(strata_trace_record_t){.op = STRATA_TRACE_step, .tag = tag}));
    ASSERT_OK(strata_trace_writer_finish(writer));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(path, &trace));
    EXPECT_STREQ(trace->tags[trace->events[0].tag], tag);
}

TEST(trace, a_file_is_whole_or_not_there) {
    char path[256];
    struct stat status;
    snprintf(path, sizeof path, "%s", temporary("whole.csv"));
    strata_trace_writer_t *writer = NULL;
    ASSERT_OK(strata_trace_writer_open(path, 0, &writer));
    EXPECT_NE(stat(path, &status), 0);
    strata_trace_writer_abandon(writer);
    EXPECT_NE(stat(path, &status), 0);
    ASSERT_OK(strata_trace_writer_open(path, 0, &writer));
    ASSERT_OK(strata_trace_writer_finish(writer));
    EXPECT_EQ(stat(path, &status), 0);
    EXPECT_SAYS(STRATA_E_IO, strata_trace_writer_open("/nonexistent/x.csv", 0, &writer), "/nonexistent/x.csv cannot be written");
}

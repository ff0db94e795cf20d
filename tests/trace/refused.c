/* A wrong trace is refused at its line, with what is wrong and what to write. */
#include <stdio.h>
#include <stdlib.h>

#include "platform/host/host_memory.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "trace/trace.h"

#define HEADER          "op,id,size,stream,time_us\n"
#define NAMED           "op,id,size,stream,time_us,device,other,stream_name\n"
#define WIDE            "op,id,size,stream,time_us,device,place,pool,align,thread,tag,dur_us,other\n"
#define CARRIAGE_RETURN "the line contains a carriage return; end lines with LF or CRLF"

/* Loads a file. Its error must begin with "path:line:column: " and hold `part`. `text` is printed if it does not. */
static void expect_refused(const char *path, unsigned line, unsigned column, const char *part, const char *text) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    strata_status_t status = path ? strata_trace_load(path, &trace) : STRATA_OK;
    const strata_error_t *error = strata_last_error();
    char begin[300];
    snprintf(begin, sizeof begin, "%s:%u:%u: ", path ? path : "", line, column);
    if (status != STRATA_E_FORMAT) FAIL_TEST("%s; \"%s\" was wanted of\n%.400s", strata_status_name(status), part, text);
    else if (strncmp(error->text, begin, strlen(begin)) || error->line != line || error->column != column ||
             !strstr(error->text, part))
        FAIL_TEST("wanted %s%s\ngot    %s\nfor\n%.400s", begin, part, error->text, text);
}

static void expect_text_refused(const char *text, unsigned line, unsigned column, const char *part) {
    expect_refused(write_text("wrong.csv", text), line, column, part, text);
}

static const struct {
    const char *text;
    unsigned line, column;
    const char *part;
} wrong[] = {
    /* Headers. */
    {"", 1, 1, "the header is missing; write op,id,size,stream,time_us"},
    {"# strata-trace 2\n" HEADER, 1, 16, "unknown version \"2\" of the format; write # strata-trace 1"},
    {"# made by hand\n" HEADER, 1, 1, "a comment; write # strata-trace 1"},
    {"# strata-trace 1\n", 2, 1, "the header is missing"},
    {"op,id,size,stream\n", 1, 1, "column \"time_us\" is missing"},
    {"op,id,size,stream,time_us,size\n", 1, 27, "column \"size\" occurs twice; write it once"},
    {"op,id,size,stream,time_us,sise\n", 1, 27, "unknown column \"sise\"; write one of op, id, size"},
    {"# strata-trace 1\nop,id,size,stream,time_us,\n", 2, 27, "unknown column \"\""},
    /* Columns are counted in characters, quotes and the text between them too. The UTF-8 mark is none. */
    {"op,tag,id,size,stream,time_us\nalloc,\"a\"\"\xc3\xa9,\",x,8,0,0\n", 2, 15, "id is \"x\""},
    {"op,tag,id,size,stream,time_us\nalloc,\xe2\x82\xac\xf0\x9f\x98\x80,1,8,0,y\n", 2, 16, "time_us is \"y\""},
    {"\xef\xbb\xbf"
     "op,id,size,stream,time_us,sise\n",
     1, 27, "unknown column \"sise\""},
    {"time_us,stream,x_note,size,id,op\n0,0,,8,1,alloc\n7,0,\"z\",,1,fre\n", 3, 12, "unknown op \"fre\""},
    {"time_us,stream,x_note,size,id,op\n0,0,\"z\"z,8,1,alloc\n", 2, 8,
     "text follows the closing quote of field 3 (x_note); write a comma"},
    {"time_us,stream,x_note,size,id,op\n0,0,z,8,\"1,alloc\n", 2, 9, "field 5 (id) has no closing quote"},
    {"op,id,size,stream,time_us,other\nwait,,,0,0,1\nwait,,,0,0,-1\n", 3, 12, "other is \"-1\""},
    {"op,id,size,stream,time_us\nalloc,1,8,0,0\nfree,1,,0\n", 3, 9, "time_us is missing: 4 fields, but the header has 5"},
    /* Marks and empty lines before the header. */
    {"\xef\xbb\xbf", 2, 1, "the header is missing"},
    {"\xef\xbb", 1, 1, "unknown column \"\?\?\""},
    {"\xef\xbb\xbf\xef\xbb\xbf" HEADER, 1, 1, "unknown column \"\?\?\?op\""},
    {"\n\xef\xbb\xbf" HEADER, 2, 1, "unknown column \"\?\?\?op\""},
    {"\n\n\n", 4, 1, "the header is missing"},
    {"\n# strata-trace 1\n# strata-trace 1\n" HEADER, 3, 1, "unknown column \"# strata-trace 1\""},
    /* Fields. */
    {HEADER "aloc,1,8,0,0\n", 2, 1, "unknown op \"aloc\"; write one of alloc, free, borrow, unborrow, work"},
    {HEADER "alloc,1,8,0,0\nfree,1,0,0\n", 3, 10, "4 fields, but the header has 5"},
    {HEADER "alloc,1,8,0,0,9\n", 2, 15, "6 fields, but the header has 5"},
    {HEADER "alloc,x,8,0,0\n", 2, 7, "id is \"x\"; write a whole number from 0 to"},
    {HEADER "alloc,,8,0,0\n", 2, 7, "id is \"\""},
    {HEADER "alloc,1,,0,0\n", 2, 9, "size is \"\""},
    {HEADER "alloc,1,-8,0,0\n", 2, 9, "size is \"-8\""},
    {HEADER "alloc,1,8,,0\n", 2, 11, "stream is \"\""},
    {HEADER "alloc,1,8,all,0\n", 2, 11, "stream is \"all\""},
    {HEADER "alloc,1,8,0,\n", 2, 13, "time_us is \"\""},
    {HEADER "alloc,1,8,0, 1\n", 2, 13, "time_us is \" 1\""},
    {HEADER "alloc,1,281474976710657,0,0\n", 2, 9, "size is \"281474976710657\"; write a whole number from 0 to"},
    {HEADER "alloc,1,18446744073709551616,0,0\n", 2, 9, "size is \"18446744073709551616\""},
    {HEADER "alloc,1,8,0,1000000000000001\n", 2, 13, "time_us is"},
    {HEADER "alloc,\"1,8,0,0\n", 2, 7, "field 2 (id) has no closing quote"},
    {HEADER "alloc,\"1\"2,8,0,0\n", 2, 10, "text follows the closing quote of field 2 (id)"},
    {HEADER "\n\nal\x01loc,1,8,0,0\n", 4, 1, "unknown op \"al?loc\""},
    /* Optional fields. */
    {WIDE "alloc,1,8,0,0,16,,,,,,,\n", 2, 15, "device is \"16\"; write a whole number from 0 to 15"},
    {WIDE "alloc,1,8,0,0,,cpu,,,,,,\n", 2, 16, "unknown place \"cpu\"; write one of gpu, managed, pinned, host"},
    {WIDE "alloc,1,8,0,0,,,,3,,,,\n", 2, 18, "align is 3; write a power of two"},
    {WIDE "alloc,1,8,0,0,,,,,4294967296,,,\n", 2, 19, "thread is \"4294967296\""},
    {WIDE "work,,0,0,0,,,,,,,,\n", 2, 19, "dur_us is \"\""},
    {WIDE "wait,,0,0,0,,,,,,,,\n", 2, 20, "other is \"\""},
    {WIDE "pool_begin,,0,0,0,,,,,,,,\n", 2, 21, "pool is \"\""},
    {HEADER "work,,0,0,0\n", 2, 1, "dur_us is \"\""},
    /* Lifetimes. */
    {HEADER "free,1,0,0,0\n", 2, 6, "free of id 1, which no row above allocates; write its alloc first"},
    {HEADER "alloc,1,8,0,0\nfree,1,0,0,1\nfree,1,0,0,2\n", 4, 6, "free of id 1, which was freed on line 3"},
    {HEADER "alloc,1,8,0,0\nalloc,1,8,0,1\n", 3, 7, "id 1 is allocated a second time (first on line 2)"},
    {HEADER "alloc,1,8,0,0\nfree,1,0,0,1\nalloc,1,8,0,2\n", 4, 7, "id 1 is allocated a second time"},
    {HEADER "borrow,1,0,2,0\n", 2, 8, "borrow of id 1, which no row above allocates"},
    {HEADER "alloc,1,8,0,0\nfree,1,0,0,1\nborrow,1,0,2,1\n", 4, 8, "borrow of id 1, which was freed on line 3"},
    {HEADER "alloc,1,8,0,0\nfree,1,0,0,1\nunborrow,1,0,2,1\n", 4, 10, "unborrow of id 1, which was freed"},
    /* An id and a stream whose numbers add up to those of a borrow. */
    {HEADER "alloc,1,8,0,0\nalloc,2,8,5,0\nborrow,1,,5,1\nunborrow,2,,0,1\n", 5, 13,
     "unborrow of id 2 by stream 0, which does not borrow it"},
    {HEADER "alloc,1,8,0,0\nunborrow,1,0,2,1\n", 3, 14, "unborrow of id 1 by stream 2, which does not borrow it"},
    {HEADER "alloc,1,8,0,0\nunborrow,1,0,0,1\n", 3, 14, "unborrow of id 1 by stream 0, which does not borrow it"},
    {HEADER "alloc,1,8,0,0\nborrow,1,0,3,1\nunborrow,1,0,2,1\n", 4, 14, "write its borrow first"},
    {HEADER "alloc,1,8,0,0\nalloc,2,8,0,0\nborrow,1,0,2,1\nunborrow,2,0,2,1\n", 5, 14, "unborrow of id 2"},
    {HEADER "alloc,1,8,0,0\nborrow,1,0,2,1\nborrow,1,0,2,1\nunborrow,1,0,2,2\nborrow,1,0,3,2\nunborrow,1,0,2,2\n", 7, 14,
     "unborrow of id 1 by stream 2"},
    {WIDE "work,7,0,0,0,,,,,,,5,\n", 2, 6, "work of id 7, which no row above allocates"},
    {WIDE "alloc,1,8,0,0,0,,,,,,,\nfree,1,0,0,0,1,,,,,,,\n", 3, 14, "free of id 1 on device 1, but it was allocated"},
    {HEADER "alloc,1,8,0,5\nalloc,2,8,0,4\n", 3, 13, "time_us falls from 5 to 4; sort the rows by time"},
    /* Pools that do not pair. */
    {WIDE "pool_begin,,,0,0,,,7,,,,,\npool_end,,,0,0,,,8,,,,,\n", 3, 18,
     "pool_end of pool 8, which is not open on stream 0; write its pool_begin first"},
    {WIDE "pool_begin,,,0,0,,,7,,,,,\npool_end,,,1,0,,,7,,,,,\n", 3, 18, "which is not open on stream 1"},
    {WIDE "pool_begin,,,0,0,,,7,,,,,\npool_end,,,0,0,,,7,,,,,\npool_end,,,0,0,,,7,,,,,\n", 4, 18, "is not open"},
    /* Sums that overflow. */
    {WIDE "work,,0,0,0,,,,,,,1000000000000000,\nwork,,0,0,1,,,,,,,1,\n", 3, 19, "the dur_us of all kernels add up"},
    /* Kernels of two durations. */
    {WIDE "work,,0,0,7,,,,,,,5,\nwork,,0,1,7,,,,,,,6,\nwork,,0,0,7,,,,,,,6,\n", 4, 19,
     "dur_us is 6, but 5 on line 2 of the same kernel"},
    /* Carriage returns within a line. */
    {"# strata-trace 1\r\r\n" HEADER, 1, 17, CARRIAGE_RETURN},
    {"op,id,size,stream,time_us,x_\ra\n", 1, 29, CARRIAGE_RETURN},
    {HEADER "\r\r\n", 2, 1, CARRIAGE_RETURN},
    {"op,id,size,stream,time_us\ralloc,1,8,0,0\r", 1, 26, CARRIAGE_RETURN},
    /* Names of streams. */
    {NAMED "alloc,1,8,5,0,0,,copy0\nfree,1,,5,1,0,,copy1\n", 3, 16,
     "stream 5 is \"copy1\" here and \"copy0\" above; give each stream one name"},
    {NAMED "step,,,,0,,,copy0\n", 2, 13, "a stream name in a row without a stream; leave it empty"},
    {NAMED "sync,,,all,0,,,copy0\n", 2, 16, "a stream name in a row without a stream"},
    {NAMED "release,,,,0,,,copy0\n", 2, 16, "a stream name in a row without a stream"},
    /* A second name is refused, also one that begins as the first. */
    {NAMED "alloc,1,8,5,0,0,,copy\nalloc,2,8,5,0,0,,copy0\n", 3, 18, "give each stream one name"},
    {NAMED "alloc,1,8,5,0,0,,copy0\nalloc,2,8,5,0,0,,copy\n", 3, 18, "give each stream one name"},
};

TEST(trace, refuses_wrong_text_at_its_place) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_text_refused(wrong[i].text, wrong[i].line, wrong[i].column, wrong[i].part);
}

/* As some editors and spreadsheets write it. */
TEST(trace, accepts_a_mark_of_utf8_and_empty_lines_before_the_header) {
    static const char *const before[] = {"\xef\xbb\xbf",
                                         "\xef\xbb\xbf\r\n\n",
                                         "\n\n",
                                         "\xef\xbb\xbf# strata-trace 1\n",
                                         "\n# strata-trace 1\n\n",
                                         "\xef\xbb\xbf\n# strata-trace 1\r\n"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s" HEADER "alloc,1,8,0,0\n", before[i]);
        for (int gzip = 0; gzip < 2; gzip++) {
            strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
            EXPECT_OK(
                strata_trace_load(gzip ? write_gzip("mark.csv.gz", text, strlen(text)) : write_text("mark.csv", text), &trace));
            if (trace) EXPECT_EQ(trace->lifetimes, 1);
        }
    }
}

TEST(trace, refuses_too_many_columns) {
    char text[2048] = "op,id,size,stream,time_us";
    for (int i = 0; i < 60; i++) strcat(text, ",x_a");
    expect_text_refused(text, 1, 263, "more than 64 fields; write fewer columns");
}

TEST(trace, refuses_wrong_optional_fields) {
    char text[512] = WIDE "alloc,1,8,0,0,,,,,,";
    memset(text + strlen(text), 'a', STRATA_TRACE_TAG_BYTES);
    strcat(text, ",,\n");
    expect_text_refused(text, 2, 20, "the tag is longer than 255 bytes");
}

TEST(trace, refuses_pools_that_do_not_pair) {
    char text[4096] = WIDE;
    for (int i = 0; i < 17; i++) strcat(text, "pool_begin,,,3,0,,,7,,,,,\n");
    expect_text_refused(text, 18, 20, "stream 3 has 16 open pools, the maximum; write their pool_end first");
}

TEST(trace, refuses_sums_that_overflow) {
    size_t rows = 4097;
    char *text = malloc(rows * 64);
    ASSERT_TRUE(text);
    size_t length = (size_t)sprintf(text, HEADER);
    for (size_t i = 0; i < rows; i++) length += (size_t)sprintf(text + length, "alloc,%zu,281474976710656,0,0\n", i);
    expect_text_refused(text, 4098, 12, "the sizes of all live ids add up to more than 2^60 bytes");
    free(text);
}

TEST(trace, refuses_zero_bytes_and_long_lines) {
    static const char with_zero[] = HEADER "alloc,1,8\0,0,0\n";
    expect_refused(write_file("zero.csv", with_zero, sizeof with_zero - 1), 2, 10, "the line contains a zero byte", with_zero);
    size_t huge = 3 << 20;
    char *text CLOSED_BY(text_cleanup) = malloc(huge);
    ASSERT_TRUE(text);
    memset(text, 'a', huge);
    memcpy(text, HEADER, strlen(HEADER));
    expect_refused(write_file("long.csv", text, huge), 2, 4096, "the line is longer than 4095 bytes", text);
}

TEST(trace, refuses_carriage_returns_within_a_line) {
    static const char *const tags[] = {"a\rb", "a\r\r", "\"a\r\"", "\"a,\r\"\r"};
    static const unsigned columns[] = {16, 16, 17, 18};
    char text[256];
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        snprintf(text, sizeof text, "op,id,size,stream,time_us,tag\nalloc,1,8,0,0,%s\n", tags[i]);
        expect_text_refused(text, 2, columns[i], CARRIAGE_RETURN);
        snprintf(text, sizeof text, "op,id,size,stream,time_us,x_a,tag\nalloc,1,8,0,0,%s,\n", tags[i]);
        expect_text_refused(text, 2, columns[i], CARRIAGE_RETURN);
    }
}

TEST(trace, refuses_too_many_streams) {
    size_t rows = STRATA_TRACE_STREAMS + 1;
    char *text CLOSED_BY(text_cleanup) = malloc(rows * 40);
    ASSERT_TRUE(text);
    size_t length = (size_t)sprintf(text, HEADER);
    for (size_t i = 0; i < rows; i++) length += (size_t)sprintf(text + length, "alloc,%zu,8,%zu,0\n", i, i);
    expect_text_refused(text, STRATA_TRACE_STREAMS + 2, 14, "more than 4000 streams");
}

/* A gzip file cut at every byte, and one with each byte turned over, is refused or (a header field that means nothing to the
 * contents) says the same as the whole one. */
TEST(trace, refuses_damaged_gzip) {
    char text[4096] = HEADER;
    for (int i = 0; i < 100; i++) sprintf(text + strlen(text), "alloc,%d,%d,0,%d\n", i, i * 977 % 512, i);
    size_t count;
    char *whole CLOSED_BY(text_cleanup) = read_bytes(write_gzip("whole.csv.gz", text, strlen(text)), &count);
    ASSERT_TRUE(whole);
    size_t refused = 0;
    for (size_t i = 2; i < count; i++) {
        strata_trace_t *trace = NULL;
        EXPECT_SAYS(STRATA_E_FORMAT, strata_trace_load(write_file("cut.csv.gz", whole, i), &trace), "cut.csv.gz:");
        EXPECT_CONTAINS(strata_last_error()->text, "the gzip data is cut off; copy the file again");
    }
    for (size_t i = 2; i < count; i++) {
        whole[i] ^= 0x55;
        strata_trace_t *trace = NULL;
        if (strata_trace_load(write_file("damaged.csv.gz", whole, count), &trace) == STRATA_OK) {
            EXPECT_EQ(trace->count, 100);
            EXPECT_LT(i, 10);
            strata_trace_delete(trace);
        } else {
            refused++;
        }
        whole[i] ^= 0x55;
    }
    EXPECT_GE(refused + 10, count - 2);
    whole[count - 1] ^= 1;
    expect_refused(write_file("sum.csv.gz", whole, count), 102, 1, "the gzip data is damaged", "sum.csv.gz");
}

TEST(trace, says_what_cannot_be_read) {
    strata_trace_t *trace = NULL;
    EXPECT_SAYS(STRATA_E_IO, strata_trace_load("/nonexistent/x.csv", &trace),
                "/nonexistent/x.csv: cannot read the file: No such file");
    EXPECT_STATUS(STRATA_E_IO, strata_trace_load("/", &trace));
    EXPECT_EQ(trace, NULL);
}

/* Each host allocation of a load failed in turn: a clear status and nothing left behind (the sanitizer build sees leaks). */
TEST(trace, survives_every_failed_allocation) {
    char text[8192] = "op,id,size,stream,time_us,tag,pool\npool_begin,,,0,0,,1\n";
    for (int i = 0; i < 90; i++) sprintf(text + strlen(text), "alloc,%d,%d,%d,%d,t%d,%d\n", i, i, i % 40, i, i, i % 3);
    char path[256];
    snprintf(path, sizeof path, "%s", write_gzip("memory.csv.gz", text, strlen(text)));
    uint64_t before = strata_host_allocations();
    strata_trace_t *trace = NULL;
    ASSERT_OK(strata_trace_load(path, &trace));
    strata_trace_delete(trace);
    uint64_t allocations = strata_host_allocations() - before;
    EXPECT_GT(allocations, 100);
    for (uint64_t k = 1; k <= allocations; k++) {
        strata_host_fail_at(k, 0);
        strata_status_t status = strata_trace_load(path, &trace);
        strata_host_fail_at(0, 0);
        EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
        if (status == STRATA_OK) strata_trace_delete(trace);
    }
}

/* A row that is read the quick way is read as the long way reads it: quotes around the last field, which say nothing, force the long
 * way. */
#include <stdio.h>
#include <stdlib.h>

#include "platform/host/host_memory.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "trace/trace.h"

#define HEADER "op,id,size,stream,time_us,device,place,pool,align,thread,tag,dur_us,other,x_note\n"
enum { FILLERS = 200, TEXT_BYTES = 40000 };

typedef struct read {
    strata_status_t status;
    strata_trace_record_t record;
    char tag[STRATA_TRACE_TAG_BYTES], error[1200];
    uint32_t columns[STRATA_TRACE_COLUMNS];
} read_t;

/* Reads the first row of a file in which many follow, so that nothing is at its end. */
static void read_first(const char *row, const char *note, read_t *read) {
    static char text[TEXT_BYTES];
    strata_trace_reader_t *reader = NULL;
    bool end = false;
    size_t length = (size_t)snprintf(text, sizeof text, HEADER "alloc,1,8,0,5,,,,,,,,,%s\n%s,%s\n", note, row, note);
    for (int i = 0; i < FILLERS; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "alloc,%d,512,7,%d,,,,,,,,,%s\n", 1000 + i, 1000 + i, note);
    *read = (read_t){.status = STRATA_OK};
    ASSERT_OK(strata_trace_reader_open(write_text("quick.csv", text), &reader));
    EXPECT_OK(strata_trace_read(reader, &read->record, &end));
    read->status = strata_trace_read(reader, &read->record, &end);
    if (read->status == STRATA_OK) snprintf(read->tag, sizeof read->tag, "%s", read->record.tag);
    else snprintf(read->error, sizeof read->error, "%.1100s", strata_last_error()->text);
    for (int i = 0; i < STRATA_TRACE_COLUMNS; i++) read->columns[i] = strata_trace_reader_column(reader, (strata_trace_column_t)i);
    strata_trace_reader_close(reader);
}

static bool same_record(const strata_trace_record_t *a, const strata_trace_record_t *b) {
    return a->op == b->op && a->place == b->place && a->id == b->id && a->size == b->size && a->stream == b->stream &&
           a->time_us == b->time_us && a->dur_us == b->dur_us && a->other == b->other && a->pool == b->pool &&
           a->align == b->align && a->device == b->device && a->thread == b->thread && a->has_id == b->has_id &&
           a->has_pool == b->has_pool && a->all_streams == b->all_streams && a->line == b->line;
}

/* Rows without their last field. */
static const char *const rows[] = {
    "alloc,7,512,3,11,,,,,,,,",
    "free,7,,3,11,,,,,,,,",
    "free,7,words are not read here,3,11,,,,,,,,",
    "borrow,7,,3,11,1,managed,,,4294967295,me,,",
    "unborrow,7,,3,11,,,,,,,,",
    "work,7,,3,11,,,,,,,12345678,",
    "work,,,3,11,,,,,,,0,",
    "work,7,,3,11,,,,,,,,",
    "wait,,,3,11,,,,,,,,5",
    "wait,9,9,3,11,,,9,,,,9,5",
    "wait,,,3,11,,,,,,,,",
    "sync,,,all,11,,,,,,,,",
    "step,,,,11,,,,,,,,",
    "release,,,,11,2,host,,,,,,",
    "pool_begin,,,3,11,,,8,,,,,",
    "alloc,123456789012345,281474976710656,3,1000000000000000,15,gpu,12345678,4096,1,a tag,9,9",
    "alloc,1234567890123456,1,3,11,,,,,,,,",
    "alloc,18446744073709551614,1,3,11,,,,,,,,",
    "alloc,18446744073709551615,1,3,11,,,,,,,,",
    "alloc,00000000000000000000000000007,0001,03,0000000011,,,,,,,,",
    "alloc,12345678,1,3,11,,,,,,,,",
    "alloc,99999999,99999999,99999999,99999999,,,,,,,,",
    "alloc,7,281474976710657,3,11,,,,,,,,",
    "alloc,7,,3,11,,,,,,,,",
    "alloc,,1,3,11,,,,,,,,",
    "alloc,7,1,,11,,,,,,,,",
    "alloc,7,1,3,,,,,,,,,",
    "alloc,7,1,3,4,,,,,,,,",
    "alloc,7,1,3,1000000000000001,,,,,,,,",
    "alloc,7,1,1152921504606846976,11,,,,,,,,",
    "alloc,7,1,3,11,15,gpu,8,4096,4294967295,a tag,,",
    "alloc,7,1,3,11,16,gpu,8,4096,2,a tag,,",
    "alloc,7,1,3,11,15,gpu,8,4097,2,a tag,,",
    "alloc,7,1,3,11,15,gpu,8,4096,4294967296,a tag,,",
    "alloc,7,1,3,11,16,,,,,,,",
    "alloc,7,1,3,11,,,,,4294967296,,,",
    "alloc,7,1,3,11,,,,3,,,,",
    "alloc,7,1,3,11,,,,0,,,,",
    "alloc,7,1,3,11,,pinned,,,,,,",
    "alloc,7,1,3,11,,gpus,,,,,,",
    "alloc,7,1,3,11,,gp,,,,,,",
    "alloc,7,1,3,11,,,,,,\xc3\xa4\xe2\x82\xac,,",
    "alloc,7,1,3,11,,,,,,within\"quotes\",,",
    "alloc,7,1,3,11,,,,,,\"within, quotes\",,",
    "alloc,7,1,3,11,,,,,,stray\rreturn,,",
    "alloc,7,1 ,3,11,,,,,,,,",
    "alloc,-7,1,3,11,,,,,,,,",
    "alloc,7:,1,3,11,,,,,,,,",
    "alloc,7/,1,3,11,,,,,,,,",
    "alloc,\xb7,1,3,11,,,,,,,,",
    "alloc,7,1,3,11,,,,,,,",
    "alloc,7,1,3,11,,,,,,,,,",
    "alloc",
    "alloca,7,1,3,11,,,,,,,,",
    "allo,7,1,3,11,,,,,,,,",
    ",7,1,3,11,,,,,,,,",
    "",
};

TEST(trace_quick, is_read_as_the_long_way_reads_it) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static read_t quick, slow;
        read_first(rows[i], "n", &quick);
        read_first(rows[i], "\"n\"", &slow);
        EXPECT_EQ(quick.status, slow.status);
        EXPECT_STREQ(quick.error, slow.error);
        EXPECT_STREQ(quick.tag, slow.tag);
        if (quick.status != STRATA_OK) continue;
        EXPECT_EQ(memcmp(quick.columns, slow.columns, sizeof slow.columns), 0);
        if (!same_record(&quick.record, &slow.record)) FAIL_TEST("row %s", rows[i]);
    }
}

typedef struct invalid {
    const char *name, *row, *said;
} invalid_t;

static const invalid_t invalid[] = {
    {"device", "alloc,7,512,3,11,99,gpu,8,4096,2,a tag,,", ":3:18: device is \"99\"; write a whole number from 0 to 15"},
    {"align", "alloc,7,512,3,11,1,gpu,8,3,2,a tag,,", ":3:26: align is 3; write a power of two"},
    {"thread", "alloc,7,512,3,11,1,gpu,8,8,4294967296,a tag,,",
     ":3:28: thread is \"4294967296\"; write a whole number from 0 to 4294967295"},
};

/* The row gives all three options, and one of them is invalid. */
TEST_EACH(trace_quick, an_invalid_option_beside_valid_ones_is_refused, invalid_t, invalid) {
    static read_t quick;
    read_first(row->row, "n", &quick);
    EXPECT_EQ(quick.status, STRATA_E_FORMAT);
    EXPECT_CONTAINS(quick.error, row->said);
}

/* A tag as long as one may be, and one byte more, in a row of which nothing else is long. */
TEST(trace_quick, the_longest_tag) {
    static read_t quick, slow;
    char row[400], tag[STRATA_TRACE_TAG_BYTES + 1] = "";
    for (size_t length = STRATA_TRACE_TAG_BYTES - 1; length <= STRATA_TRACE_TAG_BYTES; length++) {
        memset(tag, 't', length);
        snprintf(row, sizeof row, "alloc,7,512,3,11,,,,,,%s,,", tag);
        read_first(row, "n", &quick);
        read_first(row, "\"n\"", &slow);
        EXPECT_EQ(quick.status, length < STRATA_TRACE_TAG_BYTES ? STRATA_OK : STRATA_E_FORMAT);
        EXPECT_STREQ(quick.tag, slow.tag);
        EXPECT_STREQ(quick.error, slow.error);
    }
}

/* What is read at the end of a piece of the file, and at the end of all of it: every length of the rows in between. */
TEST(trace_quick, rows_over_the_edges_of_what_is_read_at_once) {
    enum { ROWS = 8000 };
    char *text = malloc(ROWS * 40);
    ASSERT_NE(text, NULL);
    for (size_t shift = 0; shift < 40; shift++) {
        strata_trace_t *trace = NULL;
        size_t length = (size_t)sprintf(text, "op,id,size,stream,time_us\nalloc,%0*d,1,0,0\n", (int)shift + 1, 0);
        for (int i = 1; i < ROWS; i++)
            length += (size_t)sprintf(text + length, "alloc,%d,%d,0,%d%s\n", i, i * 7, i, i & 1 ? "\r" : "");
        length -= shift & 1;
        EXPECT_OK(strata_trace_load(write_file("edges.csv", text, length), &trace));
        ASSERT_NE(trace, NULL);
        EXPECT_EQ(trace->count, ROWS);
        for (size_t i = 1; i < trace->count; i++)
            if (trace->events[i].value != i * 7 || trace->events[i].line != i + 2) FAIL_TEST("row %zu of shift %zu", i, shift);
        strata_trace_delete(trace);
    }
    free(text);
}

TEST(trace_quick, a_closed_reader_leaves_no_host_memory) {
    strata_trace_reader_t *reader;
    const char *path = write_text("closed.csv", "op,id,size,stream,time_us\nalloc,1,512,0,0\nfree,1,,0,1\n");
    uint64_t live = strata_host_live().allocations;
    ASSERT_OK(strata_trace_reader_open(path, &reader));
    strata_trace_reader_close(reader);
    EXPECT_EQ(strata_host_live().allocations, live);
}

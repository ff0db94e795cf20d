/* A trace: what can be read whole can be read row by row, every row read can be written, and what was written reads the same. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "trace/trace.h"

enum { ALL_COLUMNS = (1u << STRATA_TRACE_COLUMNS) - 1 };

static const char *copy_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "/dev/shm/strata-fuzz-%ld.csv", (long)getpid());
    return path;
}

static void expect_refused(strata_status_t status) {
    FUZZ_EXPECT(status == STRATA_E_FORMAT || status == STRATA_E_UNSUPPORTED || status == STRATA_E_LIMIT);
    FUZZ_EXPECT(strata_last_error()->text[0] != '\0');
}

static void expect_same(const strata_trace_record_t *a, const strata_trace_record_t *b) {
    FUZZ_EXPECT(a->op == b->op && a->place == b->place && a->size == b->size && a->stream == b->stream);
    FUZZ_EXPECT(a->time_us == b->time_us && a->dur_us == b->dur_us && a->other == b->other && a->align == b->align);
    FUZZ_EXPECT(a->device == b->device && a->thread == b->thread && a->all_streams == b->all_streams);
    FUZZ_EXPECT(a->has_id == b->has_id && (!a->has_id || a->id == b->id));
    FUZZ_EXPECT(a->has_pool == b->has_pool && (!a->has_pool || a->pool == b->pool));
    FUZZ_EXPECT(strcmp(a->tag, b->tag) == 0);
}

/* Reads to the end; each row is written to `writer` (may be NULL) or held against those of `other` (may be NULL). */
static strata_status_t read_rows(strata_trace_reader_t *reader, strata_trace_writer_t *writer, strata_trace_reader_t *other) {
    for (;;) {
        strata_trace_record_t record = {0}, same = {0};
        bool end = false, same_end = false;
        strata_status_t status = strata_trace_read(reader, &record, &end);
        if (status != STRATA_OK) return status;
        if (other) {
            FUZZ_EXPECT_OK(strata_trace_read(other, &same, &same_end));
            FUZZ_EXPECT(end == same_end);
        }
        if (end) return STRATA_OK;
        if (writer) FUZZ_EXPECT_OK(strata_trace_write(writer, &record));
        if (other) expect_same(&record, &same);
    }
}

/* What was read whole, written and read again, is what it was. */
static void write_and_read(const char *path) {
    strata_trace_writer_t *writer = NULL;
    strata_trace_reader_t *reader = NULL, *other = NULL;
    if (strata_trace_writer_open(copy_path(), ALL_COLUMNS, &writer) != STRATA_OK) return; /* no room for a copy here */
    FUZZ_EXPECT_OK(strata_trace_reader_open(path, &reader));
    FUZZ_EXPECT_OK(read_rows(reader, writer, NULL));
    strata_trace_reader_close(reader);
    FUZZ_EXPECT_OK(strata_trace_writer_finish(writer));
    FUZZ_EXPECT_OK(strata_trace_reader_open(path, &reader));
    FUZZ_EXPECT_OK(strata_trace_reader_open(copy_path(), &other));
    FUZZ_EXPECT_OK(read_rows(reader, NULL, other));
    strata_trace_reader_close(reader);
    strata_trace_reader_close(other);
    unlink(copy_path());
}

void fuzz_trace(const uint8_t *bytes, size_t count) {
    const char *path = fuzz_file(bytes, count);
    strata_trace_t *trace = NULL;
    strata_trace_reader_t *reader = NULL;
    strata_status_t loaded = strata_trace_load(path, &trace);
    strata_trace_delete(trace);
    strata_status_t status = strata_trace_reader_open(path, &reader);
    if (status == STRATA_OK) {
        status = read_rows(reader, NULL, NULL);
        strata_trace_reader_close(reader);
    }
    if (loaded == STRATA_OK) FUZZ_EXPECT(status == STRATA_OK);
    else expect_refused(loaded);
    if (loaded == STRATA_OK) write_and_read(path);
}

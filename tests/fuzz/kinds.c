/* What others have recorded, a target for each kind: whatever the bytes are, they are refused with a reason, or become a lawful trace, which is written and
 * read as the same rows. Bytes of another kind are left to its own target. */
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "trace/trace.h"

enum { ALL_COLUMNS = (1u << STRATA_TRACE_COLUMNS) - 1 };

static const char *copy_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "/dev/shm/strata-fuzz-kinds-%ld.csv", (long)getpid());
    return path;
}

static strata_status_t write_row(void *context, const strata_trace_record_t *record) {
    FUZZ_EXPECT_OK(strata_trace_write(context, record));
    return STRATA_OK;
}

static void expect_same(const strata_trace_t *a, const strata_trace_t *b) {
    FUZZ_EXPECT(a->count == b->count && a->lifetimes == b->lifetimes && a->stream_count == b->stream_count);
    FUZZ_EXPECT(a->tag_count == b->tag_count && a->places == b->places && a->peak_requested == b->peak_requested);
    for (size_t i = 0; i < a->count; i++) {
        const strata_trace_event_t *x = &a->events[i], *y = &b->events[i];
        FUZZ_EXPECT(x->time_us == y->time_us && x->value == y->value && x->id == y->id && x->stream == y->stream);
        FUZZ_EXPECT(x->tag == y->tag && x->op == y->op && x->place == y->place && x->line == y->line);
    }
}

/* Reads and writes at once. NULL: refused. */
static strata_trace_t *convert(const char *path, strata_trace_reader_t *reader) {
    strata_trace_writer_t *writer;
    strata_trace_t *trace = NULL;
    FUZZ_EXPECT_OK(strata_trace_writer_open(copy_path(), ALL_COLUMNS, &writer));
    strata_status_t status = strata_trace_load_from(reader, path, write_row, writer, &trace);
    FUZZ_EXPECT(status == STRATA_OK || status == STRATA_E_FORMAT);
    if (status == STRATA_OK) FUZZ_EXPECT_OK(strata_trace_writer_finish(writer));
    else strata_trace_writer_abandon(writer);
    return trace;
}

static void read_kind(const uint8_t *bytes, size_t count, const char *kind) {
    const char *path = fuzz_file(bytes, count);
    strata_trace_reader_t *reader = NULL;
    strata_trace_t *again = NULL;
    strata_status_t status = strata_trace_reader_open(path, &reader);
    if (status != STRATA_OK) {
        FUZZ_EXPECT(status == STRATA_E_FORMAT || status == STRATA_E_LIMIT);
        FUZZ_EXPECT(strata_last_error()->text[0] != '\0');
        return;
    }
    if (strcmp(strata_trace_reader_format(reader), kind) == 0) {
        strata_trace_t *trace = convert(path, reader);
        if (trace) FUZZ_EXPECT_OK(strata_trace_load(copy_path(), &again));
        if (trace) expect_same(trace, again);
        strata_trace_delete(trace);
        strata_trace_delete(again);
        unlink(copy_path());
    }
    strata_trace_reader_close(reader);
}

void fuzz_pytorch(const uint8_t *bytes, size_t count) { read_kind(bytes, count, "pytorch"); }
void fuzz_profiler(const uint8_t *bytes, size_t count) { read_kind(bytes, count, "profiler"); }
void fuzz_rmm(const uint8_t *bytes, size_t count) { read_kind(bytes, count, "rmm"); }
void fuzz_umpire(const uint8_t *bytes, size_t count) { read_kind(bytes, count, "umpire"); }
void fuzz_minimalloc(const uint8_t *bytes, size_t count) { read_kind(bytes, count, "minimalloc"); }
void fuzz_nsys(const uint8_t *bytes, size_t count) { read_kind(bytes, count, "nsys"); }

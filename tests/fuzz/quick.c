/* Rows of a trace, read the quick way and the long one: quotes around a last field that says nothing force the long way. Both give the
 * same records, or refuse the same row. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "trace/trace.h"

#define HEADER "op,id,size,stream,time_us,device,place,pool,align,thread,tag,dur_us,other,stack,x_end\n"
enum { FILLERS = 120, MOST_BYTES = 1 << 16 };

/* So many rows after the others that none of these stands at the end of what is read at once. */
static size_t put_fillers(char *text, size_t length, const char *ending) {
    for (int i = 0; i < FILLERS; i++)
        length += (size_t)snprintf(text + length, MOST_BYTES - length, "work,,,0,1000000000000000,,,,,,,0,,,%s\n", ending);
    return length;
}

/* The lines of the bytes, each with a last field of its own. */
static size_t put_rows(char *text, const uint8_t *bytes, size_t count, const char *ending) {
    size_t length = (size_t)sprintf(text, HEADER);
    for (size_t at = 0, end; at < count; at = end + 1) {
        const uint8_t *found = memchr(bytes + at, '\n', count - at);
        end = found ? (size_t)(found - bytes) : count;
        if (end == at) continue;
        memcpy(text + length, bytes + at, end - at);
        length += end - at;
        length += (size_t)sprintf(text + length, ",%s\n", ending);
    }
    return put_fillers(text, length, ending);
}

typedef struct rows {
    strata_status_t status;
    uint32_t line; /* of what is wrong */
    uint64_t hash;
} rows_t;

static void mix(rows_t *rows, uint64_t value) { rows->hash = (rows->hash ^ value) * 1099511628211u; }

static void mix_text(rows_t *rows, const char *text) {
    for (; *text; text++) mix(rows, (unsigned char)*text);
    mix(rows, 256);
}

static void mix_record(rows_t *rows, const strata_trace_record_t *r) {
    const uint64_t all[] = {r->op,     r->place, r->has_id ? r->id : 0, r->size,   r->stream, r->time_us, r->dur_us,     r->other,
                            r->has_id, r->align, r->has_pool,           r->device, r->thread, r->line,    r->all_streams};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mix(rows, all[i]);
    mix(rows, r->has_pool ? r->pool : 0);
    mix_text(rows, r->tag);
    mix_text(rows, r->stack);
}

static rows_t read_all(const char *text, size_t length) {
    rows_t rows = {.hash = 14695981039346656037u};
    strata_trace_reader_t *reader;
    bool end = false;
    FUZZ_EXPECT_OK(strata_trace_reader_open(fuzz_file((const uint8_t *)text, length), &reader));
    while (rows.status == STRATA_OK && !end) {
        strata_trace_record_t record;
        rows.status = strata_trace_read(reader, &record, &end);
        if (rows.status == STRATA_OK && !end) mix_record(&rows, &record);
    }
    if (rows.status != STRATA_OK) rows.line = strata_last_error()->line;
    strata_trace_reader_close(reader);
    return rows;
}

void fuzz_quick(const uint8_t *bytes, size_t count) {
    static char quick[MOST_BYTES], slow[MOST_BYTES];
    if (count > 4096) count = 4096;
    size_t quick_length = put_rows(quick, bytes, count, ""), slow_length = put_rows(slow, bytes, count, "\"\"");
    rows_t one = read_all(quick, quick_length), other = read_all(slow, slow_length);
    FUZZ_EXPECT(one.status == other.status && one.hash == other.hash && one.line == other.line);
    FUZZ_EXPECT(one.status == STRATA_OK || one.status == STRATA_E_FORMAT);
}

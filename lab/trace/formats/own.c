/* Reads Strata's own format row by row: the header, the fields, and the requirements of each operation. */
#include <stdio.h>
#include <string.h>

#include "lab/trace/formats/format.h"
#include "lab/trace/formats/quick.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "trace/stacks.h"

typedef struct own {
    strata_lines_t lines;
    uint32_t field_count;
    uint8_t column_of[STRATA_TRACE_FIELDS]; /* strata_trace_column_t, or STRATA_TRACE_COLUMNS for an x_ column */
    const char *value[STRATA_TRACE_COLUMNS]; /* of the current row; "" if there is no such column */
    uint8_t field_of[STRATA_TRACE_COLUMNS]; /* the field of each column; that of `op` if the file has no such column */
    uint64_t last_time;
    strata_quick_t quick;
    strata_stacks_t stacks;
    const char *quick_row; /* the current row in the input's bytes if it was read by the fast path, else NULL */
} own_t;

static uint32_t column_of(const own_t *reader, strata_trace_column_t column) {
    uint32_t field = reader->field_of[column];
    return reader->quick_row ? strata_quick_column(reader->quick_row, field) : reader->lines.columns[field];
}

/* ---- the header -------------------------------------------------------------------------------------------------------- */

static bool mandatory(int column) {
    static const bool is[] = {
#define STRATA_TRACE_COLUMN_MANDATORY(name, mandatory) mandatory,
        STRATA_TRACE_COLUMN_MAP(STRATA_TRACE_COLUMN_MANDATORY)
#undef STRATA_TRACE_COLUMN_MANDATORY
    };
    return is[column];
}

static int find_column(const char *name) {
    int column = 0;
    while (column < STRATA_TRACE_COLUMNS && strcmp(strata_trace_column_name((strata_trace_column_t)column), name) != 0) column++;
    return column;
}

static strata_status_t unknown_column(const strata_lines_t *lines, uint32_t field) {
    char known[256];
    size_t length = 0;
    for (int i = 0; i < STRATA_TRACE_COLUMNS; i++)
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "",
                                   strata_trace_column_name((strata_trace_column_t)i));
    return strata_lines_fail(lines, lines->columns[field], "unknown column \"%s\"; write one of %s, or x_... for one of your own",
                             strata_excerpt(lines->fields[field]).text, known);
}

static strata_status_t read_columns(own_t *reader) {
    strata_lines_t *lines = &reader->lines;
    bool seen[STRATA_TRACE_COLUMNS] = {false};
    strata_status_t status = strata_lines_split(lines, &reader->field_count);
    if (status != STRATA_OK) return status;
    for (uint32_t i = 0; i < reader->field_count; i++) {
        int column = find_column(lines->fields[i]);
        reader->column_of[i] = (uint8_t)column;
        lines->names[i] = strata_excerpt(lines->fields[i]);
        if (column == STRATA_TRACE_COLUMNS) {
            if (strncmp(lines->fields[i], "x_", 2) == 0) continue;
            return unknown_column(lines, i);
        }
        if (seen[column])
            return strata_lines_fail(lines, lines->columns[i], "column \"%s\" occurs twice; write it once", lines->fields[i]);
        seen[column] = true;
        reader->field_of[column] = (uint8_t)i;
    }
    for (int i = 0; i < STRATA_TRACE_COLUMNS; i++) {
        if (mandatory(i) && !seen[i])
            return strata_lines_fail(lines, 1, "column \"%s\" is missing; a header has op,id,size,stream,time_us",
                                     strata_trace_column_name((strata_trace_column_t)i));
        if (!seen[i]) reader->field_of[i] = reader->field_of[STRATA_COLUMN_op];
    }
    return STRATA_OK;
}

/* Empty lines are skipped. */
static strata_status_t next_line(strata_lines_t *lines, bool *end) {
    strata_status_t status;
    do { status = strata_lines_next(lines, end); } while (status == STRATA_OK && !*end && !*lines->text);
    return status;
}

static strata_status_t read_header(own_t *reader) {
    static const char mark[] = "# strata-trace ";
    strata_lines_t *lines = &reader->lines;
    bool end;
    strata_status_t status = next_line(lines, &end);
    if (status == STRATA_OK && !end && lines->text[0] == '#') {
        if (strncmp(lines->text, mark, strlen(mark)) == 0 && strcmp(lines->text + strlen(mark), "1") != 0)
            return strata_lines_fail(lines, (uint32_t)sizeof mark, "unknown version \"%s\" of the format; write # strata-trace 1",
                                     strata_excerpt(lines->text + strlen(mark)).text);
        if (strncmp(lines->text, mark, strlen(mark)) != 0)
            return strata_lines_fail(lines, 1, "a comment; write # strata-trace 1 or the header here");
        status = next_line(lines, &end);
    }
    if (status != STRATA_OK) return status;
    if (end) return strata_lines_fail(lines, 1, "the header is missing; write op,id,size,stream,time_us");
    return read_columns(reader);
}

static void own_close(void *state) {
    own_t *reader = state;
    strata_lines_close(&reader->lines);
    strata_stacks_clear(&reader->stacks);
    strata_host_delete(reader);
}

static strata_status_t own_open(const char *path, strata_input_t *input, void **state) {
    own_t *made = strata_host_new(1, sizeof *made);
    if (!made) {
        strata_input_close(input);
        return STRATA_E_HOST_MEMORY;
    }
    strata_status_t status = strata_lines_begin(&made->lines, path, input);
    if (status != STRATA_OK) {
        strata_host_delete(made);
        return status;
    }
    for (int i = 0; i < STRATA_TRACE_COLUMNS; i++) made->value[i] = "";
    status = read_header(made);
    if (status != STRATA_OK) {
        own_close(made);
        return status;
    }
    strata_quick_begin(&made->quick, made->column_of, made->field_count);
    *state = made;
    return STRATA_OK;
}

/* Fails with E_FORMAT at the field of a column in the current row. */
#define WRONG(reader, column, ...) strata_lines_fail(&(reader)->lines, column_of(reader, column), __VA_ARGS__)

/* ---- fields ------------------------------------------------------------------------------------------------------------ */

static bool parse_number(const char *text, uint64_t *number) {
    uint64_t value = 0;
    if (!*text) return false;
    for (; *text; text++) {
        unsigned digit = (unsigned)*text - '0';
        if (digit > 9 || !strata_multiply(value, 10, &value) || !strata_add(value, digit, &value)) return false;
    }
    *number = value;
    return true;
}

/* Reads a number of at most `most`. An empty field is `none`, unless that is UINT64_MAX. */
static strata_status_t number(const own_t *reader, strata_trace_column_t column, uint64_t most, uint64_t none, uint64_t *value) {
    const char *text = reader->value[column];
    if (!*text && none != UINT64_MAX) {
        *value = none;
        return STRATA_OK;
    }
    if (parse_number(text, value) && *value <= most) return STRATA_OK;
    return WRONG(reader, column, "%s is \"%s\"; write a whole number from 0 to %llu", strata_trace_column_name(column),
                 strata_excerpt(text).text, (unsigned long long)most);
}

static strata_status_t small_number(const own_t *reader, strata_trace_column_t column, uint32_t most, uint32_t *value) {
    uint64_t wide = 0;
    strata_status_t status = number(reader, column, most, 0, &wide);
    *value = (uint32_t)wide;
    return status;
}

static strata_status_t read_op(const own_t *reader, strata_trace_op_t *op) {
    const char *word = reader->value[STRATA_COLUMN_op];
    char known[128];
    size_t length = 0;
    for (int i = 0; i < STRATA_TRACE_OPS; i++) {
        *op = (strata_trace_op_t)i;
        if (strcmp(word, strata_trace_op_name(*op)) == 0) return STRATA_OK;
    }
    for (int i = 0; i < STRATA_TRACE_OPS; i++)
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "",
                                   strata_trace_op_name((strata_trace_op_t)i));
    return WRONG(reader, STRATA_COLUMN_op, "unknown op \"%s\"; write one of %s", strata_excerpt(word).text, known);
}

static strata_status_t read_place(const own_t *reader, strata_place_kind_t *place) {
    const char *word = reader->value[STRATA_COLUMN_place];
    *place = STRATA_PLACE_GPU;
    if (!*word) return STRATA_OK;
    for (int i = 0; i < STRATA_PLACE_KINDS; i++) {
        *place = (strata_place_kind_t)i;
        if (strcmp(word, strata_place_name(*place)) == 0) return STRATA_OK;
    }
    return WRONG(reader, STRATA_COLUMN_place, "unknown place \"%s\"; write one of gpu, managed, pinned, host",
                 strata_excerpt(word).text);
}

static strata_status_t read_time(own_t *reader, strata_trace_record_t *record) {
    strata_status_t status = number(reader, STRATA_COLUMN_time_us, STRATA_TRACE_TIME_MAX, UINT64_MAX, &record->time_us);
    if (status == STRATA_OK && record->time_us < reader->last_time)
        return WRONG(reader, STRATA_COLUMN_time_us, "time_us falls from %llu to %llu; sort the rows by time",
                     (unsigned long long)reader->last_time, (unsigned long long)record->time_us);
    reader->last_time = record->time_us;
    return status;
}

static strata_status_t read_align(const own_t *reader, strata_trace_record_t *record) {
    strata_status_t status = number(reader, STRATA_COLUMN_align, STRATA_TRACE_SIZE_MAX, 0, &record->align);
    if (status == STRATA_OK && record->align != 0 && !strata_is_power_of_two(record->align))
        return WRONG(reader, STRATA_COLUMN_align, "align is %llu; write a power of two, or nothing",
                     (unsigned long long)record->align);
    return status;
}

static strata_status_t read_tag(const own_t *reader, strata_trace_record_t *record) {
    record->tag = reader->value[STRATA_COLUMN_tag];
    if (strlen(record->tag) < STRATA_TRACE_TAG_BYTES) return STRATA_OK;
    return WRONG(reader, STRATA_COLUMN_tag, "the tag is longer than %d bytes; write a shorter one", STRATA_TRACE_TAG_BYTES - 1);
}

static strata_status_t read_stack(own_t *reader, strata_trace_record_t *record) {
    const char *why;
    strata_status_t status = strata_stacks_read(&reader->stacks, reader->value[STRATA_COLUMN_stack], &record->stack, &why);
    return status == STRATA_OK && why ? WRONG(reader, STRATA_COLUMN_stack, "%s", why) : status;
}

static strata_status_t read_stream_name(const own_t *reader, strata_trace_record_t *record) {
    record->stream_name = reader->value[STRATA_COLUMN_stream_name];
    bool none = record->op == STRATA_TRACE_step || record->op == STRATA_TRACE_release || record->all_streams;
    if (none && *record->stream_name)
        return WRONG(reader, STRATA_COLUMN_stream_name, "a stream name in a row without a stream; leave it empty");
    if (strlen(record->stream_name) < STRATA_TRACE_TAG_BYTES) return STRATA_OK;
    return WRONG(reader, STRATA_COLUMN_stream_name, "the name is longer than %d bytes; write a shorter one",
                 STRATA_TRACE_TAG_BYTES - 1);
}

static strata_status_t read_stream(const own_t *reader, strata_trace_record_t *record) {
    record->all_streams = record->op == STRATA_TRACE_sync && strcmp(reader->value[STRATA_COLUMN_stream], "all") == 0;
    if (record->all_streams) return STRATA_OK;
    bool none = record->op == STRATA_TRACE_step || record->op == STRATA_TRACE_release;
    return number(reader, STRATA_COLUMN_stream, STRATA_TRACE_NUMBER_MAX, none ? 0 : UINT64_MAX, &record->stream);
}

static strata_status_t read_id(const own_t *reader, strata_trace_record_t *record) {
    switch (record->op) {
    case STRATA_TRACE_alloc:
    case STRATA_TRACE_free:
    case STRATA_TRACE_borrow:
    case STRATA_TRACE_unborrow: record->has_id = true; break;
    case STRATA_TRACE_work: record->has_id = *reader->value[STRATA_COLUMN_id] != '\0'; break;
    default: return STRATA_OK;
    }
    return record->has_id ? number(reader, STRATA_COLUMN_id, UINT64_MAX - 1, UINT64_MAX, &record->id) : STRATA_OK;
}

/* Reads the fields that only some operations have. They are mandatory for these and ignored elsewhere. */
static strata_status_t read_own(const own_t *reader, strata_trace_record_t *record) {
    const char *pool = reader->value[STRATA_COLUMN_pool];
    switch (record->op) {
    case STRATA_TRACE_alloc:
        record->has_pool = *pool != '\0';
        if (record->has_pool) {
            strata_status_t status = number(reader, STRATA_COLUMN_pool, UINT64_MAX - 1, UINT64_MAX, &record->pool);
            if (status != STRATA_OK) return status;
        }
        return number(reader, STRATA_COLUMN_size, STRATA_TRACE_SIZE_MAX, UINT64_MAX, &record->size);
    case STRATA_TRACE_work: return number(reader, STRATA_COLUMN_dur_us, STRATA_TRACE_TIME_MAX, UINT64_MAX, &record->dur_us);
    case STRATA_TRACE_wait: return number(reader, STRATA_COLUMN_other, STRATA_TRACE_NUMBER_MAX, UINT64_MAX, &record->other);
    case STRATA_TRACE_pool_begin:
    case STRATA_TRACE_pool_end:
        record->has_pool = true;
        return number(reader, STRATA_COLUMN_pool, UINT64_MAX - 1, UINT64_MAX, &record->pool);
    default: return STRATA_OK;
    }
}

static strata_status_t read_row(own_t *reader, strata_trace_record_t *record) {
    strata_status_t status = read_op(reader, &record->op);
    if (status == STRATA_OK) status = read_time(reader, record);
    if (status == STRATA_OK) status = read_stream(reader, record);
    if (status == STRATA_OK) status = read_stream_name(reader, record);
    if (status == STRATA_OK) status = read_id(reader, record);
    if (status == STRATA_OK) status = read_own(reader, record);
    if (status == STRATA_OK) status = read_place(reader, &record->place);
    if (status == STRATA_OK) status = small_number(reader, STRATA_COLUMN_device, STRATA_TRACE_DEVICES - 1, &record->device);
    if (status == STRATA_OK) status = small_number(reader, STRATA_COLUMN_thread, UINT32_MAX, &record->thread);
    if (status == STRATA_OK) status = read_align(reader, record);
    if (status == STRATA_OK) status = read_tag(reader, record);
    if (status == STRATA_OK) status = read_stack(reader, record);
    return status;
}

static strata_status_t wrong_count(const own_t *reader, uint32_t count) {
    const strata_lines_t *lines = &reader->lines;
    bool few = count < reader->field_count;
    return strata_lines_fail(lines, lines->columns[few ? count - 1 : reader->field_count],
                             "%s%s%u fields, but the header has %u; write one for each column, empty or not",
                             few ? lines->names[count].text : "", few ? " is missing: " : "", count, reader->field_count);
}

/* Reads the next row by the fast path. Returns false if it is not plain, or not completely in the bytes that were read last. */
static bool read_quickly(own_t *reader, strata_trace_record_t *record) {
    strata_lines_t *lines = &reader->lines;
    reader->quick_row = NULL;
    if (lines->line == UINT32_MAX) return false;
    size_t length = strata_quick_row(&reader->quick, lines->bytes, lines->count, reader->last_time, record);
    if (length == 0) return false;
    uint64_t stack = strata_quick_stack(&reader->quick);
    record->stack = "";
    if (stack != UINT64_MAX && stack - 1 >= reader->stacks.count) return false;
    if (stack != UINT64_MAX) record->stack = reader->stacks.texts[stack - 1];
    reader->quick_row = lines->bytes;
    reader->last_time = record->time_us;
    record->line = ++lines->line;
    lines->bytes += length;
    lines->count -= length;
    return true;
}

/* This is a separate function, so that it costs the fast path nothing. */
static __attribute__((noinline)) strata_status_t read_slowly(own_t *reader, strata_trace_record_t *record, bool *end) {
    strata_lines_t *lines = &reader->lines;
    bool over = false;
    strata_status_t status = next_line(lines, &over);
    if (status != STRATA_OK) return status;
    if (over) {
        *end = true;
        return STRATA_OK;
    }
    uint32_t count;
    status = strata_lines_split(lines, &count);
    if (status != STRATA_OK) return status;
    if (count != reader->field_count) return wrong_count(reader, count);
    for (uint32_t i = 0; i < count; i++) {
        if (reader->column_of[i] < STRATA_TRACE_COLUMNS) reader->value[reader->column_of[i]] = lines->fields[i];
    }
    strata_trace_record_t read = {.line = lines->line};
    status = read_row(reader, &read);
    if (status != STRATA_OK) return status;
    *record = read;
    *end = false;
    return STRATA_OK;
}

static strata_status_t own_read(void *state, strata_trace_record_t *record, bool *end) {
    own_t *reader = state;
    if (!read_quickly(reader, record)) return read_slowly(reader, record, end);
    *end = false;
    return STRATA_OK;
}

static uint32_t own_column(const void *state, strata_trace_column_t column) { return column_of(state, column); }

static uint32_t own_columns(const void *state) {
    const own_t *reader = state;
    uint32_t columns = 0;
    for (uint32_t i = 0; i < reader->field_count; i++)
        if (reader->column_of[i] < STRATA_TRACE_COLUMNS) columns |= 1u << reader->column_of[i];
    return columns;
}

/* Accepts every file that no other format has recognized. Its errors are reported here. */
static bool own_recognises(const char *head, size_t count) {
    (void)head;
    (void)count;
    return true;
}

const strata_trace_format_t strata_trace_own = {.name = "trace",
                                                .meaning = "Strata's own CSV (docs/records.md)",
                                                .recognises = own_recognises,
                                                .open = own_open,
                                                .read = own_read,
                                                .column = own_column,
                                                .columns = own_columns,
                                                .close = own_close};

#include "planning/file/table.h"

#include <stdio.h>
#include <string.h>

#include "planning/problem/buffers.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "trace/text/lines.h"
#include "trace/text/output.h"

enum { FIRST = 256, NAME_BYTES = 256 };

/* ---- a table ---- */

void strata_plan_table_delete(strata_plan_table_t *t) {
    strata_host_delete(t->buffers);
    strata_host_delete(t->name_at);
    strata_host_delete(t->lines);
    strata_host_delete(t->names);
    *t = (strata_plan_table_t){0};
}

static strata_status_t make_room(strata_plan_table_t *t, size_t name_bytes) {
    if (t->count == t->capacity) {
        if (t->count == STRATA_PLAN_BUFFERS) return strata_fail(STRATA_E_LIMIT, 0, "more than %d buffers", STRATA_PLAN_BUFFERS);
        size_t capacity = t->capacity ? 2 * t->capacity : FIRST;
        strata_plan_buffer_t *buffers = strata_host_resize(t->buffers, capacity, sizeof *buffers);
        if (!buffers) return STRATA_E_HOST_MEMORY;
        t->buffers = buffers;
        size_t *name_at = strata_host_resize(t->name_at, capacity, sizeof *name_at);
        if (!name_at) return STRATA_E_HOST_MEMORY;
        t->name_at = name_at;
        uint32_t *lines = strata_host_resize(t->lines, capacity, sizeof *lines);
        if (!lines) return STRATA_E_HOST_MEMORY;
        t->lines = lines;
        t->capacity = capacity;
    }
    if (name_bytes > t->name_capacity - t->name_bytes) {
        size_t capacity = 2 * t->name_capacity + NAME_BYTES + name_bytes;
        char *names = strata_host_resize(t->names, capacity, 1);
        if (!names) return STRATA_E_HOST_MEMORY;
        t->names = names;
        t->name_capacity = capacity;
    }
    return STRATA_OK;
}

strata_status_t strata_plan_table_add(strata_plan_table_t *t, const strata_plan_buffer_t *buffer, const char *name) {
    size_t bytes = strlen(name) + 1;
    strata_status_t status = make_room(t, bytes);
    if (status != STRATA_OK) return status;
    memcpy(t->names + t->name_bytes, name, bytes);
    t->buffers[t->count] = *buffer;
    t->lines[t->count] = t->line;
    t->name_at[t->count++] = t->name_bytes;
    t->name_bytes += bytes;
    return STRATA_OK;
}

/* ---- the header ---- */

typedef struct reading {
    strata_lines_t lines;
    uint32_t field_count;
    uint8_t column_of[STRATA_TRACE_FIELDS]; /* STRATA_PLAN_COLUMNS for an x_ column */
    bool has[STRATA_PLAN_COLUMNS];
} reading_t;

typedef struct column {
    const char *name, *others; /* other names, separated by spaces */
} column_t;

static const column_t columns[] = {
#define STRATA_PLAN_COLUMN_ROW(name, others) {#name, others},
    STRATA_PLAN_COLUMN_MAP(STRATA_PLAN_COLUMN_ROW)
#undef STRATA_PLAN_COLUMN_ROW
};

static bool is_among(const char *word, const char *words) {
    size_t length = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0) return true;
    return false;
}

static uint8_t find_column(const char *name) {
    uint8_t column = 0;
    while (column < STRATA_PLAN_COLUMNS && strcmp(columns[column].name, name) != 0 && !is_among(name, columns[column].others))
        column++;
    return column;
}

static strata_status_t fail_header(const reading_t *r, uint32_t field, const char *what) {
    return strata_lines_fail(&r->lines, field < r->field_count ? r->lines.columns[field] : 1,
                             "%s; a header has id,lower,upper,size and optionally alignment,offset,kind,fork,branch,output", what);
}

static strata_status_t read_columns(reading_t *r) {
    char text[128];
    strata_status_t status = strata_lines_split(&r->lines, &r->field_count);
    if (status != STRATA_OK) return status;
    for (uint32_t i = 0; i < r->field_count; i++) {
        uint8_t column = r->column_of[i] = find_column(r->lines.fields[i]);
        if (column == STRATA_PLAN_COLUMNS && strncmp(r->lines.fields[i], "x_", 2) == 0) continue;
        bool twice = column < STRATA_PLAN_COLUMNS && r->has[column];
        snprintf(text, sizeof text, twice ? "column \"%s\" appears twice" : "unknown column \"%s\"",
                 strata_excerpt(r->lines.fields[i]).text);
        if (twice || column == STRATA_PLAN_COLUMNS) return fail_header(r, i, text);
        r->has[column] = true;
    }
    if (!r->has[STRATA_PLAN_COLUMN_lower]) return fail_header(r, r->field_count, "column \"lower\" is missing");
    if (r->has[STRATA_PLAN_COLUMN_upper] == r->has[STRATA_PLAN_COLUMN_end])
        return fail_header(r, r->field_count, "exactly one of the columns \"upper\" and \"end\" is needed");
    if (!r->has[STRATA_PLAN_COLUMN_size]) return fail_header(r, r->field_count, "column \"size\" is missing");
    return STRATA_OK;
}

/* Reads the next line that is not empty. */
static strata_status_t next_line(strata_lines_t *lines, bool *end) {
    strata_status_t status;
    do { status = strata_lines_next(lines, end); } while (status == STRATA_OK && !*end && !*lines->text);
    return status;
}

static strata_status_t read_header(reading_t *r) {
    bool end = false;
    strata_status_t status = next_line(&r->lines, &end);
    if (status == STRATA_OK && end) return strata_lines_fail(&r->lines, 1, "the header is missing; write id,lower,upper,size");
    return status == STRATA_OK ? read_columns(r) : status;
}

/* ---- rows ---- */

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

static strata_status_t number(const reading_t *r, uint32_t field, uint64_t most, uint64_t *value) {
    if (parse_number(r->lines.fields[field], value) && *value <= most) return STRATA_OK;
    return strata_lines_fail(&r->lines, r->lines.columns[field], "%s is \"%s\"; write a whole number from 0 to %llu",
                             columns[r->column_of[field]].name, strata_excerpt(r->lines.fields[field]).text,
                             (unsigned long long)most);
}

static strata_status_t small_number(const reading_t *r, uint32_t field, uint32_t *value) {
    uint64_t wide = 0;
    strata_status_t status = number(r, field, UINT32_MAX, &wide);
    *value = (uint32_t)wide;
    return status;
}

static strata_status_t read_field(const reading_t *r, uint32_t field, strata_plan_buffer_t *b, const char **name) {
    strata_plan_column_t column = (strata_plan_column_t)r->column_of[field];
    const char *text = r->lines.fields[field];
    bool optional = column > STRATA_PLAN_COLUMN_size;
    uint32_t flag = 0;
    strata_status_t status = STRATA_OK;
    if (column == STRATA_PLAN_COLUMN_id) *name = text;
    if (column == STRATA_PLAN_COLUMN_lower) return number(r, field, UINT64_MAX - 1, &b->lower);
    if (column == STRATA_PLAN_COLUMN_upper) return number(r, field, UINT64_MAX, &b->upper);
    if (column == STRATA_PLAN_COLUMN_size) return number(r, field, (uint64_t)1 << 48, &b->size);
    if (column == STRATA_PLAN_COLUMN_end) {
        status = number(r, field, UINT64_MAX - 1, &b->upper);
        b->upper++; /* the column has the last moment, not the one after it */
        return status;
    }
    if (!optional || !*text) return STRATA_OK;
    if (column == STRATA_PLAN_COLUMN_alignment) return number(r, field, (uint64_t)1 << 40, &b->alignment);
    if (column == STRATA_PLAN_COLUMN_kind) return small_number(r, field, &b->kind);
    if (column == STRATA_PLAN_COLUMN_fork) return small_number(r, field, &b->fork);
    if (column == STRATA_PLAN_COLUMN_branch) return small_number(r, field, &b->branch);
    if (column == STRATA_PLAN_COLUMN_output) status = small_number(r, field, &flag);
    if (flag) b->flags |= STRATA_PLAN_OUTPUT;
    if (column == STRATA_PLAN_COLUMN_held) {
        status = small_number(r, field, &flag);
        if (flag) b->flags |= STRATA_PLAN_HELD;
    }
    if (column != STRATA_PLAN_COLUMN_offset) return status;
    b->flags |= STRATA_PLAN_FIXED;
    return number(r, field, STRATA_PLAN_OFFSET_LIMIT, &b->offset);
}

static strata_status_t read_row(reading_t *r, strata_plan_table_t *t) {
    uint32_t count = 0;
    char number_as_name[24];
    const char *name = number_as_name;
    strata_plan_buffer_t buffer = {0};
    snprintf(number_as_name, sizeof number_as_name, "%zu", t->count);
    strata_status_t status = strata_lines_split(&r->lines, &count);
    if (status == STRATA_OK && count != r->field_count)
        return strata_lines_fail(&r->lines, 1, "%u fields, but the header has %u; write the same number", count, r->field_count);
    for (uint32_t i = 0; i < count && status == STRATA_OK; i++)
        if (r->column_of[i] < STRATA_PLAN_COLUMNS) status = read_field(r, i, &buffer, &name);
    if (status != STRATA_OK) return status;
    if (buffer.lower >= buffer.upper)
        return strata_lines_fail(&r->lines, 1, "the buffer ends at %llu but begins at %llu; write an end after the begin",
                                 (unsigned long long)buffer.upper, (unsigned long long)buffer.lower);
    if (buffer.alignment && !strata_is_power_of_two(buffer.alignment))
        return strata_lines_fail(&r->lines, 1, "alignment %llu is not a power of two; write 256 or the like",
                                 (unsigned long long)buffer.alignment);
    t->line = r->lines.line;
    return strata_plan_table_add(t, &buffer, name);
}

static strata_status_t read_rows(reading_t *r, strata_plan_table_t *t) {
    bool end = false;
    strata_status_t status = read_header(r);
    while (status == STRATA_OK) {
        status = next_line(&r->lines, &end);
        if (status != STRATA_OK || end) break;
        status = read_row(r, t);
    }
    return status;
}

strata_status_t strata_plan_table_read(const char *path, strata_plan_table_t *t) {
    *t = (strata_plan_table_t){0};
    reading_t *r = strata_host_new(1, sizeof *r);
    if (!r) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_lines_open(&r->lines, path);
    if (status == STRATA_OK) {
        status = read_rows(r, t);
        strata_lines_close(&r->lines);
    }
    strata_host_delete(r);
    if (status != STRATA_OK) strata_plan_table_delete(t);
    return status;
}

strata_status_t strata_plan_table_detect(const char *path, bool *is) {
    bool end = false;
    uint32_t count = 0;
    strata_lines_t *lines = strata_host_new(1, sizeof *lines);
    if (!lines) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_lines_open(lines, path);
    *is = false;
    if (status == STRATA_OK) {
        status = next_line(lines, &end);
        if (status == STRATA_OK && !end && lines->text[0] != '#') status = strata_lines_split(lines, &count);
        for (uint32_t i = 0; i < count && status == STRATA_OK; i++)
            *is = *is || find_column(lines->fields[i]) == STRATA_PLAN_COLUMN_lower;
        strata_lines_close(lines);
    }
    strata_host_delete(lines);
    return status;
}

/* ---- writing ---- */

/* Writes a name, in quotes if it has a comma or a quote. */
static void write_name(strata_output_t *out, const char *name) {
    if (!strpbrk(name, ",\"")) {
        (void)strata_output_print(out, "%s", name);
        return;
    }
    (void)strata_output_print(out, "\"");
    for (; *name; name++) (void)strata_output_print(out, "%s%c", *name == '"' ? "\"" : "", *name);
    (void)strata_output_print(out, "\"");
}

/* The output remembers any failure until the end. */
strata_status_t strata_plan_table_write(const strata_plan_table_t *t, const uint64_t *offsets, const char *path) {
    strata_output_t *out = NULL;
    strata_status_t status = strata_output_open(path, &out);
    if (status != STRATA_OK) return status;
    (void)strata_output_print(out, "id,lower,upper,size,alignment,kind,fork,branch,output,held,offset\n");
    for (size_t i = 0; i < t->count; i++) {
        const strata_plan_buffer_t *b = &t->buffers[i];
        write_name(out, strata_plan_table_name(t, i));
        (void)strata_output_print(
            out, ",%llu,%llu,%llu,%llu,%u,%u,%u,%d,%d,%llu\n", (unsigned long long)b->lower, (unsigned long long)b->upper,
            (unsigned long long)b->size, (unsigned long long)(b->alignment ? b->alignment : 1), b->kind, b->fork, b->branch,
            (b->flags & STRATA_PLAN_OUTPUT) != 0, (b->flags & STRATA_PLAN_HELD) != 0, (unsigned long long)offsets[i]);
    }
    return strata_output_finish(out);
}

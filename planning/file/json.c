#include "planning/file/json.h"

#include <stdio.h>
#include <string.h>

#include "planning/problem/buffers.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "trace/text/input.h"
#include "trace/text/json_scan.h"

enum { MAX_BYTES = 256 << 20, NAME_BYTES = 256 };

strata_status_t strata_plan_json_detect(const char *path, bool *is) {
    strata_input_t *input = NULL;
    const char *bytes;
    size_t count = 0, at = 0;
    strata_status_t status = strata_input_open(path, &input);
    if (status != STRATA_OK) return status;
    *is = false;
    if (strata_input_read(input, &bytes, &count) == STRATA_OK) {
        while (at < count && strchr(" \t\r\n", bytes[at]) && bytes[at]) at++;
        *is = at < count && bytes[at] == '{';
    }
    strata_input_close(input);
    return STRATA_OK;
}

static strata_status_t read_text(const char *path, char **text) {
    strata_input_t *input = NULL;
    size_t length = 0, capacity = 0, count = 0;
    strata_status_t status = strata_input_open(path, &input);
    while (status == STRATA_OK) {
        const char *bytes;
        status = strata_input_read(input, &bytes, &count);
        if (status != STRATA_OK) status = strata_fail_context("%s", path);
        if (status != STRATA_OK || count == 0) break;
        if (length + count > MAX_BYTES) status = strata_fail(STRATA_E_LIMIT, 0, "%s: more than 256 MiB", path);
        if (status == STRATA_OK && length + count >= capacity) {
            capacity = 2 * (length + count) + 1;
            char *grown = strata_host_resize(*text, capacity, 1);
            if (grown) *text = grown;
            else status = STRATA_E_HOST_MEMORY;
        }
        if (status != STRATA_OK) break;
        memcpy(*text + length, bytes, count);
        length += count;
        (*text)[length] = '\0';
    }
    strata_input_close(input);
    if (status == STRATA_OK && (!*text || strlen(*text) != length))
        status = strata_fail_at(STRATA_E_FORMAT, 1, 0, "%s:1: not JSON; use a file from strata plan -o", path);
    return status;
}

typedef struct reading {
    strata_plan_table_t *table;
    strata_json_scan_t *scan;
    const char *counted; /* position up to which lines were counted, and their number */
    uint32_t lines;
    uint32_t error_line; /* of the invalid buffer; 0 if there is none */
    bool has_plan;
    strata_status_t failed; /* an error that the text did not cause */
} reading_t;

typedef struct row {
    strata_plan_buffer_t buffer;
    char name[NAME_BYTES];
    unsigned has; /* bits of the required members that were read */
} row_t;

static const char *read_number(strata_json_slice_t value, uint64_t most, uint64_t *number) {
    uint64_t sum = 0;
    for (size_t i = 0; i < value.length; i++) {
        unsigned digit = (unsigned)value.at[i] - '0';
        if (digit > 9 || !strata_multiply(sum, 10, &sum) || !strata_add(sum, digit, &sum)) return "expected a whole number";
    }
    if (sum > most) return "the number is too large";
    *number = sum;
    return NULL;
}

static const char *read_small(strata_json_slice_t value, uint32_t *number) {
    uint64_t wide = 0;
    const char *why = read_number(value, UINT32_MAX, &wide);
    *number = (uint32_t)wide;
    return why;
}

/* Keeps escapes unchanged, because a name is only displayed. */
static const char *read_name(strata_json_slice_t value, row_t *row) {
    size_t length = value.length >= 2 ? value.length - 2 : 0;
    if (*value.at != '"') return "expected a string";
    snprintf(row->name, sizeof row->name, "%.*s", (int)(length < NAME_BYTES ? length : NAME_BYTES - 1), value.at + 1);
    return NULL;
}

static const char *row_member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    row_t *row = context;
    strata_plan_buffer_t *b = &row->buffer;
    if (strata_json_is(name, "name")) return read_name(value, row);
    if (strata_json_is(name, "alignment")) return read_number(value, (uint64_t)1 << 40, &b->alignment);
    if (strata_json_is(name, "kind")) return read_small(value, &b->kind);
    if (strata_json_is(name, "fork")) return read_small(value, &b->fork);
    if (strata_json_is(name, "branch")) return read_small(value, &b->branch);
    if (strata_json_is(name, "output")) b->flags |= strata_json_is(value, "true") ? STRATA_PLAN_OUTPUT : 0;
    if (strata_json_is(name, "held")) b->flags |= strata_json_is(value, "true") ? STRATA_PLAN_HELD : 0;
    static const char *const needed[] = {"lower", "upper", "size", "offset"};
    uint64_t *const into[] = {&b->lower, &b->upper, &b->size, &b->offset};
    static const uint64_t most[] = {UINT64_MAX, UINT64_MAX, (uint64_t)1 << 48, STRATA_PLAN_OFFSET_LIMIT};
    for (unsigned i = 0; i < 4; i++) {
        if (!strata_json_is(name, needed[i])) continue;
        row->has |= 1u << i;
        return read_number(value, most[i], into[i]);
    }
    return NULL;
}

static uint32_t line_of(reading_t *r, const char *at) {
    for (; r->counted < at; r->counted++) r->lines += *r->counted == '\n';
    return 1 + r->lines;
}

static const char *read_row(reading_t *r, strata_json_slice_t value) {
    row_t row = {.buffer = {.flags = STRATA_PLAN_FIXED}};
    if (*value.at != '{') return "a buffer must be an object: {\"lower\",\"upper\",\"size\",\"offset\"}";
    if (!strata_json_value(r->scan, value.at, row_member, &row)) return r->scan->error;
    if (row.has != 15) return "a buffer needs \"lower\", \"upper\", \"size\" and \"offset\"";
    if (row.buffer.lower >= row.buffer.upper) return "\"lower\" must be below \"upper\"";
    if (row.buffer.alignment && !strata_is_power_of_two(row.buffer.alignment)) return "\"alignment\" is not a power of two";
    r->table->line = line_of(r, value.at);
    r->failed = strata_plan_table_add(r->table, &row.buffer, row.name);
    return r->failed == STRATA_OK ? NULL : "out of memory for it";
}

static const char *plan_row(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    (void)name;
    reading_t *r = context;
    const char *why = read_row(r, value);
    if (why) r->error_line = line_of(r, value.at);
    return why;
}

static const char *top_member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    reading_t *r = context;
    if (!strata_json_is(name, "plan")) return NULL;
    if (r->has_plan || *value.at != '[') return "\"plan\" must be one array";
    r->has_plan = true;
    return strata_json_value(r->scan, value.at, plan_row, r) ? NULL : r->scan->error;
}

static strata_status_t fail_no_plan(const reading_t *r, const char *path, bool whole) {
    uint32_t line = whole ? 1 : r->error_line ? r->error_line : strata_json_line(r->scan);
    if (!whole) return strata_fail_at(STRATA_E_FORMAT, line, 0, "%s:%u: %s", path, line, r->scan->error);
    return strata_fail_at(STRATA_E_FORMAT, line, 0, "%s:%u: no plan; use a file from strata plan -o: {..., \"plan\": [...]}", path,
                          line);
}

strata_status_t strata_plan_json_read(const char *path, strata_plan_table_t *table) {
    char *text = NULL;
    strata_json_scan_t scan = {.begin = NULL};
    *table = (strata_plan_table_t){0};
    reading_t r = {.table = table, .scan = &scan};
    strata_status_t status = read_text(path, &text);
    if (status == STRATA_OK) {
        scan.begin = r.counted = text;
        const char *end = strata_json_value(&scan, text, top_member, &r);
        if (r.failed != STRATA_OK) status = r.failed;
        else if (!end || *strata_json_spaces(end) || !r.has_plan) status = fail_no_plan(&r, path, end != NULL);
    }
    strata_host_delete(text);
    if (status != STRATA_OK) strata_plan_table_delete(table);
    return status;
}

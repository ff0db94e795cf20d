#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "trace/ids.h"
#include "trace/stacks.h"
#include "trace/text/lines.h"
#include "trace/text/output.h"
#include "trace/trace.h"

enum {
    MANDATORY = 1u << STRATA_COLUMN_op | 1u << STRATA_COLUMN_id | 1u << STRATA_COLUMN_size | 1u << STRATA_COLUMN_stream |
                1u << STRATA_COLUMN_time_us
};

struct strata_trace_writer {
    strata_output_t *output;
    uint32_t columns;
    uint64_t last_time;
    strata_ids_t stacks; /* by their addresses */
};

static strata_status_t write_header(strata_trace_writer_t *writer) {
    strata_status_t status = strata_output_print(writer->output, "# strata-trace 1\n");
    for (int i = 0, written = 0; i < STRATA_TRACE_COLUMNS && status == STRATA_OK; i++) {
        if (!(writer->columns & 1u << i)) continue;
        const char *name = strata_trace_column_name((strata_trace_column_t)i);
        status = strata_output_print(writer->output, "%s%s", written++ ? "," : "", name);
    }
    return status == STRATA_OK ? strata_output_write(writer->output, "\n", 1) : status;
}

strata_status_t strata_trace_writer_open(const char *path, uint32_t columns, strata_trace_writer_t **writer) {
    strata_trace_writer_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    made->columns = columns | MANDATORY;
    strata_status_t status = strata_output_open(path, &made->output);
    if (status == STRATA_OK) status = write_header(made);
    if (status != STRATA_OK) {
        strata_trace_writer_abandon(made);
        return status;
    }
    *writer = made;
    return STRATA_OK;
}

/* Fails if a value would be lost because its column is missing. */
static strata_status_t check_column(const strata_trace_writer_t *writer, bool used, strata_trace_column_t column) {
    if (!used || (writer->columns & 1u << column)) return STRATA_OK;
    return strata_fail(STRATA_E_INVALID, 0, "the record uses column %s, but this trace was opened without it",
                       strata_trace_column_name(column));
}

static strata_status_t check_columns(const strata_trace_writer_t *writer, const strata_trace_record_t *record) {
    strata_status_t status = check_column(writer, record->op == STRATA_TRACE_work, STRATA_COLUMN_dur_us);
    if (status == STRATA_OK) status = check_column(writer, record->op == STRATA_TRACE_wait, STRATA_COLUMN_other);
    if (status == STRATA_OK) status = check_column(writer, record->has_pool, STRATA_COLUMN_pool);
    if (status == STRATA_OK) status = check_column(writer, record->device != 0, STRATA_COLUMN_device);
    if (status == STRATA_OK) status = check_column(writer, record->place != STRATA_PLACE_GPU, STRATA_COLUMN_place);
    if (status == STRATA_OK) status = check_column(writer, record->align != 0, STRATA_COLUMN_align);
    if (status == STRATA_OK) status = check_column(writer, record->thread != 0, STRATA_COLUMN_thread);
    if (status == STRATA_OK) status = check_column(writer, record->tag && *record->tag, STRATA_COLUMN_tag);
    if (status == STRATA_OK) status = check_column(writer, record->stack && *record->stack, STRATA_COLUMN_stack);
    if (status == STRATA_OK) status = check_column(writer, record->stream_name && *record->stream_name, STRATA_COLUMN_stream_name);
    return status;
}

static bool tag_is_valid(const char *tag) {
    size_t length = 0;
    for (; tag && tag[length]; length++) {
        if (tag[length] == '\n' || tag[length] == '\r' || length + 1 == STRATA_TRACE_TAG_BYTES) return false;
    }
    return true;
}

static strata_status_t check_values(const strata_trace_writer_t *writer, const strata_trace_record_t *record) {
    bool wants_id = record->op == STRATA_TRACE_alloc || record->op == STRATA_TRACE_free || record->op == STRATA_TRACE_borrow ||
                    record->op == STRATA_TRACE_unborrow;
    bool wants_pool = record->op == STRATA_TRACE_pool_begin || record->op == STRATA_TRACE_pool_end;
    bool no_stream = record->op == STRATA_TRACE_step || record->op == STRATA_TRACE_release || record->all_streams;
    bool named = record->stream_name && *record->stream_name;
    bool good = record->op < STRATA_TRACE_OPS && record->place < STRATA_PLACE_KINDS && (!wants_id || record->has_id) &&
                (!wants_pool || record->has_pool) && (!record->all_streams || record->op == STRATA_TRACE_sync) &&
                record->id < UINT64_MAX && record->pool < UINT64_MAX && record->size <= STRATA_TRACE_SIZE_MAX &&
                record->stream <= STRATA_TRACE_NUMBER_MAX && record->other <= STRATA_TRACE_NUMBER_MAX &&
                record->time_us <= STRATA_TRACE_TIME_MAX && record->dur_us <= STRATA_TRACE_TIME_MAX &&
                record->device < STRATA_TRACE_DEVICES && record->align <= STRATA_TRACE_SIZE_MAX &&
                (record->align == 0 || strata_is_power_of_two(record->align)) && tag_is_valid(record->tag) &&
                tag_is_valid(record->stream_name) && !(named && no_stream) &&
                (!record->stack || strata_stack_is_valid(record->stack));
    if (!good) return strata_fail(STRATA_E_INVALID, 0, "the record is invalid in a trace");
    if (record->time_us < writer->last_time) return strata_fail(STRATA_E_INVALID, 0, "time_us decreases");
    return STRATA_OK;
}

/* The row as text, with the columns in their order. */
typedef struct row {
    char text[STRATA_TRACE_LINE_BYTES];
    size_t length;
} row_t;

static void put_number(row_t *row, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count) row->text[row->length++] = digits[--count];
}

static void put_word(row_t *row, const char *word) {
    size_t length = strlen(word);
    memcpy(row->text + row->length, word, length);
    row->length += length;
}

static void put_tag(row_t *row, const char *tag) {
    if (!strpbrk(tag, ",\"")) {
        put_word(row, tag);
        return;
    }
    row->text[row->length++] = '"';
    for (; *tag; tag++) {
        if (*tag == '"') row->text[row->length++] = '"';
        row->text[row->length++] = *tag;
    }
    row->text[row->length++] = '"';
}

/* Writes the number of a stack, with its text at its first use. */
static void put_stack(row_t *row, uint32_t number, const char *text) {
    bool quoted = text && strchr(text, ',');
    if (quoted) row->text[row->length++] = '"';
    put_number(row, number);
    if (text) row->text[row->length++] = ':';
    if (text) put_word(row, text);
    if (quoted) row->text[row->length++] = '"';
}

static void put_if(row_t *row, bool used, uint64_t number) {
    if (used) put_number(row, number);
}

static void put_stream(row_t *row, const strata_trace_record_t *record) {
    if (record->all_streams) {
        put_word(row, "all");
    } else {
        put_number(row, record->stream);
    }
}

static void put_column(row_t *row, const strata_trace_record_t *record, strata_trace_column_t column) {
    switch (column) {
    case STRATA_COLUMN_op: put_word(row, strata_trace_op_name(record->op)); break;
    case STRATA_COLUMN_id: put_if(row, record->has_id, record->id); break;
    case STRATA_COLUMN_size: put_number(row, record->op == STRATA_TRACE_alloc ? record->size : 0); break;
    case STRATA_COLUMN_stream: put_stream(row, record); break;
    case STRATA_COLUMN_time_us: put_number(row, record->time_us); break;
    case STRATA_COLUMN_device: put_number(row, record->device); break;
    case STRATA_COLUMN_place: put_word(row, strata_place_name(record->place)); break;
    case STRATA_COLUMN_pool: put_if(row, record->has_pool, record->pool); break;
    case STRATA_COLUMN_align: put_if(row, record->align != 0, record->align); break;
    case STRATA_COLUMN_thread: put_number(row, record->thread); break;
    case STRATA_COLUMN_tag: put_tag(row, record->tag ? record->tag : ""); break;
    case STRATA_COLUMN_dur_us: put_if(row, record->op == STRATA_TRACE_work, record->dur_us); break;
    case STRATA_COLUMN_other: put_if(row, record->op == STRATA_TRACE_wait, record->other); break;
    case STRATA_COLUMN_stream_name: put_tag(row, record->stream_name ? record->stream_name : ""); break;
    case STRATA_COLUMN_stack: /* written by the caller, since the writer numbers the stacks */
    case STRATA_TRACE_COLUMNS: break;
    }
}

static strata_status_t put_known_stack(strata_trace_writer_t *writer, row_t *row, const char *stack) {
    if (!stack || !*stack) return STRATA_OK;
    uint32_t number = strata_ids_find(&writer->stacks, (uintptr_t)stack);
    if (number != STRATA_IDS_NONE) {
        put_stack(row, number + 1, NULL);
        return STRATA_OK;
    }
    if (writer->stacks.count == STRATA_TRACE_STACKS)
        return strata_fail(STRATA_E_INVALID, 0, "more than %d different stacks", STRATA_TRACE_STACKS);
    put_stack(row, writer->stacks.count + 1, stack);
    return strata_ids_add(&writer->stacks, (uintptr_t)stack);
}

strata_status_t strata_trace_write(strata_trace_writer_t *writer, const strata_trace_record_t *record) {
    strata_status_t status = check_values(writer, record);
    if (status == STRATA_OK) status = check_columns(writer, record);
    if (status != STRATA_OK) return status;
    writer->last_time = record->time_us;
    row_t row = {.length = 0};
    for (int i = 0, written = 0; i < STRATA_TRACE_COLUMNS; i++) {
        if (!(writer->columns & 1u << i)) continue;
        if (written++) row.text[row.length++] = ',';
        put_column(&row, record, (strata_trace_column_t)i);
        if (i == STRATA_COLUMN_stack) status = put_known_stack(writer, &row, record->stack);
        if (status != STRATA_OK) return status;
    }
    row.text[row.length++] = '\n';
    return strata_output_write(writer->output, row.text, row.length);
}

strata_status_t strata_trace_writer_copy(strata_trace_writer_t *writer, const char *path) {
    return strata_output_copy(writer->output, path);
}

strata_status_t strata_trace_writer_finish(strata_trace_writer_t *writer) {
    strata_status_t status = strata_output_finish(writer->output);
    strata_ids_clear(&writer->stacks);
    strata_host_delete(writer);
    return status;
}

void strata_trace_writer_abandon(strata_trace_writer_t *writer) {
    if (!writer) return;
    strata_output_abandon(writer->output);
    strata_ids_clear(&writer->stacks);
    strata_host_delete(writer);
}

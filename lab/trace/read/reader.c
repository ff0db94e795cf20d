/* Reads traces row by row, whatever the file's format. */
#include <string.h>

#include "lab/trace/formats/foreign.h"
#include "lab/trace/formats/format.h"
#include "platform/host/host_memory.h"
#include "trace/text/json_scan.h"

struct strata_trace_reader {
    const strata_trace_format_t *format;
    void *state;
};

/* Returns true if a text begins like a trace of Strata: with its comment, or with a header that has the column `op`. */
static bool begins_own_trace(const char *text) {
    if (strncmp(text, "# strata-trace", 14) == 0) return true;
    size_t length;
    for (;; text += length + 1) {
        length = strcspn(text, ",\r\n");
        if (length == 2 && memcmp(text, "op", 2) == 0) return true;
        if (text[length] != ',') return false;
    }
}

/* The rows of a readable file may contain the marker of an unreadable kind. So the search covers only files
 * without a recognized header: JSON, and files that no reader accepts. */
static const char *foreign_in(const strata_trace_format_t *format, const char *text, const char *unmarked, size_t count) {
    bool searched = format == &strata_trace_own ? !begins_own_trace(unmarked) : *strata_json_begin(text) == '{';
    return searched ? strata_trace_foreign(text, count) : NULL;
}

/* Finds the format of an input without consuming any of it. */
static strata_status_t recognise(const char *path, strata_input_t *input, const strata_trace_format_t **format) {
    char text[STRATA_INPUT_HEAD + 1];
    const char *head;
    size_t count;
    strata_status_t status = strata_input_peek(input, &head, &count);
    if (status != STRATA_OK) return strata_fail_at(status, 1, 1, "%s:1:1: %s", path, strata_last_error()->text);
    memcpy(text, head, count);
    text[count] = '\0';
    size_t mark = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    *format = strata_trace_format_of(text + mark, count - mark);
    const char *stranger = foreign_in(*format, text, text + mark, count);
    if (stranger) return strata_fail_at(STRATA_E_FORMAT, 1, 1, "%s:1:1: %s", path, stranger);
    return STRATA_OK;
}

strata_status_t strata_trace_format_name(const char *path, const char **name) {
    const strata_trace_format_t *format;
    strata_input_t *input;
    strata_status_t status = strata_input_open(path, &input);
    if (status != STRATA_OK) return status;
    status = recognise(path, input, &format);
    strata_input_close(input);
    if (status == STRATA_OK) *name = format->name;
    return status;
}

strata_status_t strata_trace_reader_open(const char *path, strata_trace_reader_t **reader) {
    strata_trace_reader_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    strata_input_t *input;
    strata_status_t status = strata_input_open(path, &input);
    if (status == STRATA_OK) {
        status = recognise(path, input, &made->format);
        if (status != STRATA_OK) strata_input_close(input);
        if (status == STRATA_OK) status = made->format->open(path, input, &made->state);
    }
    if (status != STRATA_OK) {
        strata_host_delete(made);
        return status;
    }
    *reader = made;
    return STRATA_OK;
}

strata_status_t strata_trace_read(strata_trace_reader_t *reader, strata_trace_record_t *record, bool *end) {
    return reader->format->read(reader->state, record, end);
}

uint32_t strata_trace_reader_column(const strata_trace_reader_t *reader, strata_trace_column_t column) {
    return reader->format->column ? reader->format->column(reader->state, column) : 1;
}

const char *strata_trace_reader_format(const strata_trace_reader_t *reader) { return reader->format->name; }

uint32_t strata_trace_reader_columns(const strata_trace_reader_t *reader) { return reader->format->columns(reader->state); }

strata_trace_notes_t strata_trace_reader_notes(const strata_trace_reader_t *reader) {
    return reader->format->notes ? *reader->format->notes(reader->state) : (strata_trace_notes_t){.older = 0};
}

void strata_trace_reader_close(strata_trace_reader_t *reader) {
    if (!reader) return;
    reader->format->close(reader->state);
    strata_host_delete(reader);
}

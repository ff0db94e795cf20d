#include "trace/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "platform/host_memory.h"

strata_shown_t strata_shown(const char *field) {
    strata_shown_t shown;
    size_t length = strlen(field), room = sizeof shown.text - sizeof "...";
    size_t copied = length < room ? length : room;
    for (size_t i = 0; i < copied; i++) {
        bool printable = field[i] >= ' ' && field[i] <= '~';
        shown.text[i] = printable ? field[i] : '?';
    }
    strcpy(shown.text + copied, length > room ? "..." : "");
    return shown;
}

strata_status_t strata_lines_wrong(const strata_lines_t *lines, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return strata_fail_at(STRATA_E_FORMAT, lines->line, 0, "%s:%u: %s", lines->path, lines->line, text);
}

strata_status_t strata_lines_open(strata_lines_t *lines, const char *path) {
    lines->path = strata_host_strdup(path);
    if (!lines->path) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_input_open(path, &lines->input);
    if (status != STRATA_OK) strata_host_delete(lines->path);
    return status;
}

void strata_lines_close(strata_lines_t *lines) {
    strata_input_close(lines->input);
    strata_host_delete(lines->path);
}

static strata_status_t more(strata_lines_t *lines) {
    strata_status_t status = strata_input_read(lines->input, &lines->bytes, &lines->count);
    if (status == STRATA_OK) return STRATA_OK;
    return strata_fail_at(status, lines->line, 0, "%s:%u: %s", lines->path, lines->line, strata_last_error()->text);
}

/* Adds a piece of a line to `text`. */
static strata_status_t append(strata_lines_t *lines, size_t *length, size_t count) {
    if (memchr(lines->bytes, '\0', count))
        return strata_lines_wrong(lines, "a zero byte stands in the line; a trace is text");
    if (count > sizeof lines->text - 1 - *length)
        return strata_lines_wrong(lines, "the line is longer than %zu bytes; write shorter rows", sizeof lines->text - 1);
    memcpy(lines->text + *length, lines->bytes, count);
    *length += count;
    lines->bytes += count;
    lines->count -= count;
    return STRATA_OK;
}

strata_status_t strata_lines_next(strata_lines_t *lines, bool *end) {
    size_t length = 0;
    bool ended = false, begun = false;
    if (lines->line == UINT32_MAX) return strata_lines_wrong(lines, "the file has more than %u lines", UINT32_MAX);
    lines->line++;
    while (!ended) {
        if (lines->count == 0) {
            strata_status_t status = more(lines);
            if (status != STRATA_OK) return status;
            if (lines->count == 0) break;
        }
        begun = true;
        const char *newline = memchr(lines->bytes, '\n', lines->count);
        strata_status_t status = append(lines, &length, newline ? (size_t)(newline - lines->bytes) : lines->count);
        if (status != STRATA_OK) return status;
        if (!newline) continue;
        ended = true;
        lines->bytes++;
        lines->count--;
    }
    *end = !begun;
    if (length > 0 && lines->text[length - 1] == '\r') length--;
    lines->text[length] = '\0';
    if (!memchr(lines->text, '\r', length)) return STRATA_OK;
    return strata_lines_wrong(lines, "a carriage return stands in the line; end lines with LF or CRLF");
}

/* Takes the quotes off the field at `from`; what follows its closing quote, or NULL if that is missing. */
static char *unquote(char *from) {
    char *to = from;
    for (char *at = from + 1; *at; at++) {
        if (*at == '"' && at[1] != '"') {
            *to = '\0';
            return at + 1;
        }
        if (*at == '"') at++;
        *to++ = *at;
    }
    return NULL;
}

strata_status_t strata_lines_split(strata_lines_t *lines, uint32_t *count) {
    char *at = lines->text;
    for (uint32_t i = 0;; i++) {
        if (i == STRATA_TRACE_FIELDS)
            return strata_lines_wrong(lines, "more than %d fields; write fewer columns", STRATA_TRACE_FIELDS);
        lines->fields[i] = at;
        char *behind = *at == '"' ? unquote(at) : at + strcspn(at, ",");
        if (!behind) return strata_lines_wrong(lines, "field %u has no closing quote; write \"...\" on one line", i + 1);
        if (*behind != ',' && *behind != '\0')
            return strata_lines_wrong(lines, "text follows the closing quote of field %u; write a comma there", i + 1);
        bool last = *behind == '\0';
        *behind = '\0';
        if (last) {
            *count = i + 1;
            return STRATA_OK;
        }
        at = behind + 1;
    }
}

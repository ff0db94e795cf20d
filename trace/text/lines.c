#include "trace/text/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "platform/host/host_memory.h"

strata_excerpt_t strata_excerpt(const char *field) {
    strata_excerpt_t shown;
    size_t length = strlen(field), room = sizeof shown.text - sizeof "...";
    size_t copied = length < room ? length : room;
    for (size_t i = 0; i < copied; i++) {
        bool printable = field[i] >= ' ' && field[i] <= '~';
        shown.text[i] = printable ? field[i] : '?';
    }
    strcpy(shown.text + copied, length > room ? "..." : "");
    return shown;
}

strata_status_t strata_lines_fail(const strata_lines_t *lines, uint32_t column, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return strata_fail_at(STRATA_E_FORMAT, lines->line, column, "%s:%u:%u: %s", lines->path, lines->line, column, text);
}

/* Counts UTF-8 characters, as an editor does. */
static uint32_t characters(const char *bytes, size_t count) {
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) found += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return found;
}

/* Returns the column that is `length` bytes after the beginning of the line. */
static uint32_t column_at(const strata_lines_t *lines, size_t length) { return characters(lines->text, length) + 1; }

strata_status_t strata_lines_init(strata_lines_t *lines, const char *path, strata_input_t *input) {
    lines->path = strata_host_strdup(path);
    lines->input = input;
    return lines->path ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

strata_status_t strata_lines_begin(strata_lines_t *lines, const char *path, strata_input_t *input) {
    strata_status_t status = strata_lines_init(lines, path, input);
    if (status != STRATA_OK) strata_input_close(input);
    return status;
}

strata_status_t strata_lines_open(strata_lines_t *lines, const char *path) {
    strata_input_t *input;
    strata_status_t status = strata_input_open(path, &input);
    return status == STRATA_OK ? strata_lines_begin(lines, path, input) : status;
}

void strata_lines_release(strata_lines_t *lines) { strata_host_delete(lines->path); }

void strata_lines_close(strata_lines_t *lines) {
    strata_input_close(lines->input);
    strata_lines_release(lines);
}

static strata_status_t read_more(strata_lines_t *lines, size_t length) {
    strata_status_t status = strata_input_read(lines->input, &lines->bytes, &lines->count);
    if (status == STRATA_OK) return STRATA_OK;
    uint32_t column = column_at(lines, length);
    return strata_fail_at(status, lines->line, column, "%s:%u:%u: %s", lines->path, lines->line, column, strata_last_error()->text);
}

/* Adds a piece of a line to `text`. */
static strata_status_t append(strata_lines_t *lines, size_t *length, size_t count) {
    const char *zero = memchr(lines->bytes, '\0', count);
    if (zero)
        return strata_lines_fail(lines, column_at(lines, *length) + characters(lines->bytes, (size_t)(zero - lines->bytes)),
                                 "the line contains a zero byte; a trace is text");
    if (count > sizeof lines->text - 1 - *length)
        return strata_lines_fail(lines, STRATA_TRACE_LINE_BYTES, "the line is longer than %zu bytes; write shorter rows",
                                 sizeof lines->text - 1);
    memcpy(lines->text + *length, lines->bytes, count);
    *length += count;
    lines->bytes += count;
    lines->count -= count;
    return STRATA_OK;
}

/* Removes the byte order mark, which some editors put at the beginning of every text. */
static size_t strip_bom(char *text, size_t length) {
    static const char mark[] = "\xef\xbb\xbf";
    size_t bytes = sizeof mark - 1;
    if (length < bytes || memcmp(text, mark, bytes) != 0) return length;
    memmove(text, text + bytes, length - bytes);
    return length - bytes;
}

strata_status_t strata_lines_next(strata_lines_t *lines, bool *end) {
    size_t length = 0;
    bool ended = false, begun = false;
    if (lines->line == UINT32_MAX) return strata_lines_fail(lines, 1, "the file has more than %u lines", UINT32_MAX);
    lines->line++;
    lines->unterminated = false;
    while (!ended) {
        if (lines->count == 0) {
            strata_status_t status = read_more(lines, length);
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
    lines->unterminated = begun && !ended;
    if (length > 0 && lines->text[length - 1] == '\r') length--;
    if (lines->line == 1) length = strip_bom(lines->text, length);
    lines->text[length] = '\0';
    const char *stray = memchr(lines->text, '\r', length);
    if (!stray) return STRATA_OK;
    return strata_lines_fail(lines, column_at(lines, (size_t)(stray - lines->text)),
                             "the line contains a carriage return; end lines with LF or CRLF");
}

bool strata_lines_is_truncated(const strata_lines_t *lines, strata_status_t status) {
    return status == STRATA_E_FORMAT && lines->unterminated && lines->line > 1;
}

/* Returns the quote that ends the field at `from`, or NULL if it is missing. */
static const char *find_closing(const char *from) {
    for (const char *at = from + 1; *at; at++) {
        if (*at != '"') continue;
        if (at[1] != '"') return at;
        at++;
    }
    return NULL;
}

/* Removes the quotes of the field at `from`. */
static void unquote(char *from, const char *closing) {
    char *to = from;
    for (const char *at = from + 1; at < closing; at++) {
        if (*at == '"') at++;
        *to++ = *at;
    }
    *to = '\0';
}

static strata_excerpt_t field_name(const strata_lines_t *lines, uint32_t field) {
    strata_excerpt_t name;
    const char *known = lines->names[field].text;
    snprintf(name.text, sizeof name.text, *known ? "field %u (%.30s)" : "field %u", field + 1, known);
    return name;
}

strata_status_t strata_lines_split(strata_lines_t *lines, uint32_t *count) {
    char *at = lines->text;
    uint32_t column = 1;
    for (uint32_t i = 0;; i++) {
        if (i == STRATA_TRACE_FIELDS)
            return strata_lines_fail(lines, column, "more than %d fields; write fewer columns", STRATA_TRACE_FIELDS);
        lines->fields[i] = at;
        lines->columns[i] = column;
        const char *closing = *at == '"' ? find_closing(at) : NULL;
        if (*at == '"' && !closing)
            return strata_lines_fail(lines, column, "%s has no closing quote; write \"...\" on one line",
                                     field_name(lines, i).text);
        char *after = closing ? at + (closing - at) + 1 : at + strcspn(at, ",");
        column += characters(at, (size_t)(after - at));
        if (*after != ',' && *after != '\0')
            return strata_lines_fail(lines, column, "text follows the closing quote of %s; write a comma there",
                                     field_name(lines, i).text);
        bool last = *after == '\0';
        *after = '\0';
        if (closing) unquote(at, closing);
        if (last) {
            *count = i + 1;
            return STRATA_OK;
        }
        at = after + 1;
        column++;
    }
}

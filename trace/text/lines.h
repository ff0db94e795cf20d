/* Splits a CSV file into lines and fields, without regard to their meaning. */
#ifndef STRATA_TRACE_LINES_H
#define STRATA_TRACE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/status.h"
#include "trace/text/input.h"

enum {
    STRATA_TRACE_LINE_BYTES = 4096, /* of one line, including its end */
    STRATA_TRACE_FIELDS = 64 /* columns, including x_* */
};

/* A short, printable copy of a field for a message. */
typedef struct strata_excerpt {
    char text[48];
} strata_excerpt_t;
strata_excerpt_t strata_excerpt(const char *field);

typedef struct strata_lines {
    strata_input_t *input;
    char *path;
    const char *bytes; /* the rest of the input's last piece */
    size_t count;
    uint32_t line; /* number of the line in `text` */
    bool unterminated; /* the last line of the file, without a newline */
    char text[STRATA_TRACE_LINE_BYTES]; /* without its end; split in place */
    char *fields[STRATA_TRACE_FIELDS];
    strata_excerpt_t names[STRATA_TRACE_FIELDS]; /* of the columns, for errors; "" until it is known */
    uint32_t columns[STRATA_TRACE_FIELDS]; /* the column at which each begins in the line: 1 + the characters before it */
} strata_lines_t;

/* Opens a file. After a failure there is nothing to close. */
strata_status_t strata_lines_open(strata_lines_t *lines, const char *path);
/* Begins with an open input, which the lines own from now on, also on failure. */
strata_status_t strata_lines_begin(strata_lines_t *lines, const char *path, strata_input_t *input);
/* Begins with an input that still belongs to the caller. The lines end with strata_lines_release(). */
strata_status_t strata_lines_init(strata_lines_t *lines, const char *path, strata_input_t *input);
void strata_lines_release(strata_lines_t *lines);
void strata_lines_close(strata_lines_t *lines);
/* Reads the next line without its end. It has no zero byte and no carriage return, and the first has no
 * UTF-8 byte order mark (EF BB BF). Sets *end after the last line. */
strata_status_t strata_lines_next(strata_lines_t *lines, bool *end);
/* Returns true if a failure is due to a truncated file. The failure must be in the last line, which
 * lacks a newline and is not also the first. */
bool strata_lines_is_truncated(const strata_lines_t *lines, strata_status_t status);
/* Splits the line into fields[]. A field may be in "double quotes". */
strata_status_t strata_lines_split(strata_lines_t *lines, uint32_t *count);
/* Fails with E_FORMAT and "path:line:column: ..." for the current line. */
strata_status_t strata_lines_fail(const strata_lines_t *lines, uint32_t column, const char *format, ...) STRATA_PRINTF(3, 4);

#endif

/* Lines and fields of a CSV file, before anything is known about their meaning. */
#ifndef STRATA_TRACE_LINES_H
#define STRATA_TRACE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/status.h"
#include "trace/text/input.h"

enum {
    STRATA_TRACE_LINE_BYTES = 4096, /* of one line, its end included */
    STRATA_TRACE_FIELDS = 64 /* columns, x_* included */
};

/* A field fit for a message: printable and short. */
typedef struct strata_shown {
    char text[48];
} strata_shown_t;
strata_shown_t strata_shown(const char *field);

typedef struct strata_lines {
    strata_input_t *input;
    char *path;
    const char *bytes; /* what is left of the input's last piece */
    size_t count;
    uint32_t line; /* number of the line in `text` */
    bool unended; /* the last line of the file, without a newline */
    char text[STRATA_TRACE_LINE_BYTES]; /* without its end; split in place */
    char *fields[STRATA_TRACE_FIELDS];
    strata_shown_t names[STRATA_TRACE_FIELDS]; /* of the columns, for errors; "": not known yet */
    uint32_t columns[STRATA_TRACE_FIELDS]; /* where each began in the line: 1 and the characters before it */
} strata_lines_t;

/* On failure nothing is left to close. */
strata_status_t strata_lines_open(strata_lines_t *lines, const char *path);
/* The same of an input that is open, which the lines take over, also on failure. */
strata_status_t strata_lines_begin(strata_lines_t *lines, const char *path, strata_input_t *input);
/* The same of an input that stays the caller's: the lines end by strata_lines_release(). */
strata_status_t strata_lines_over(strata_lines_t *lines, const char *path, strata_input_t *input);
void strata_lines_release(strata_lines_t *lines);
void strata_lines_close(strata_lines_t *lines);
/* The next line without its end. It has no zero byte and no carriage return; the first has no UTF-8 byte order mark (EF BB BF).
 * *end after the last. */
strata_status_t strata_lines_next(strata_lines_t *lines, bool *end);
/* Returns true if a failure is due to a truncated file: it is in the last line, which lacks a newline and is not also the first. */
bool strata_lines_cut_off(const strata_lines_t *lines, strata_status_t status);
/* Splits the line into fields[]; a field may be in "double quotes". */
strata_status_t strata_lines_split(strata_lines_t *lines, uint32_t *count);
/* E_FORMAT, "path:line:column: ..." of the current line. */
strata_status_t strata_lines_wrong(const strata_lines_t *lines, uint32_t column, const char *format, ...) STRATA_PRINTF(3, 4);

#endif

/* The interface of trace readers. Each format is a row of functions, and is recognized by the first bytes of
 * its files.
 *
 *     file --> read/reader.c --> a format: own.c, pytorch.c, rmm.c, ... --> records --> read/load.c --> trace
 *
 * Every reader treats its file as hostile. One that cannot read row by row gathers all rows first
 * (gathered.h). */
#ifndef STRATA_TRACE_FORMAT_H
#define STRATA_TRACE_FORMAT_H

#include "trace/text/input.h"
#include "trace/trace.h"

typedef struct strata_trace_format {
    const char *name; /* its name in commands and messages */
    const char *meaning; /* a description of its files */
    /* Returns true if a file that begins with these bytes has this format. A zero follows them, and there are
     * at most STRATA_INPUT_HEAD. */
    bool (*recognises)(const char *head, size_t count);
    /* Takes ownership of `input`, also on failure. After a failure nothing is left. */
    strata_status_t (*open)(const char *path, strata_input_t *input, void **state);
    /* Like strata_trace_read(). */
    strata_status_t (*read)(void *state, strata_trace_record_t *record, bool *end);
    /* like strata_trace_reader_column(); if NULL, it is always 1 */
    uint32_t (*column)(const void *state, strata_trace_column_t column);
    uint32_t (*columns)(const void *state); /* like strata_trace_reader_columns() */
    const strata_trace_notes_t *(*notes)(const void *state); /* valid until the close; may be NULL */
    void (*close)(void *state);
} strata_trace_format_t;

extern const strata_trace_format_t strata_trace_pytorch, strata_trace_profiler, strata_trace_umpire, strata_trace_rmm,
    strata_trace_minimalloc, strata_trace_nsys, strata_trace_own;

/* Never returns NULL. A file that no other format recognizes is read as Strata's own format and refused there. */
const strata_trace_format_t *strata_trace_format_of(const char *head, size_t count);

#endif

/* The seam of trace readers: each format is a row of functions, and is known by what its files begin with.
 *
 * Every reader treats its file as hostile. One that cannot be read row by row gathers all rows first (gathered.h).
 */
#ifndef STRATA_TRACE_FORMAT_H
#define STRATA_TRACE_FORMAT_H

#include "trace/text/input.h"
#include "trace/trace.h"

typedef struct strata_trace_format {
    const char *name; /* as commands and messages call it */
    const char *meaning; /* whose files these are */
    /* Whether a file that begins with these bytes (at most STRATA_INPUT_HEAD, and a zero after them) is one. */
    bool (*recognises)(const char *head, size_t count);
    /* Takes `input` over, also on failure, after which nothing is left. */
    strata_status_t (*open)(const char *path, strata_input_t *input, void **state);
    /* As strata_trace_read(). */
    strata_status_t (*read)(void *state, strata_trace_record_t *record, bool *end);
    uint32_t (*column)(const void *state, strata_trace_column_t column); /* as strata_trace_reader_column(); NULL: always 1 */
    uint32_t (*columns)(const void *state); /* as strata_trace_reader_columns() */
    const strata_trace_notes_t *(*notes)(const void *state); /* valid until the close; NULL: none */
    void (*close)(void *state);
} strata_trace_format_t;

extern const strata_trace_format_t strata_trace_pytorch, strata_trace_profiler, strata_trace_umpire, strata_trace_rmm,
    strata_trace_minimalloc, strata_trace_nsys, strata_trace_own;

/* Never NULL: what nobody else recognises is a trace of Strata's own, and refused as one. */
const strata_trace_format_t *strata_trace_format_of(const char *head, size_t count);

#endif

/* The rows that a reader makes of a file, as text. */
#ifndef STRATA_TESTS_RECORDS_ROWS_H
#define STRATA_TESTS_RECORDS_ROWS_H

#include "trace/trace.h"

/* "alloc 0 512 @0 t3 'a.py:7 step'\n..." for each row: op, id, size (alloc), stream, time, then the device, place and tag where they
 * are not the usual ones. The whole file is checked as a trace too. Valid until the next call; a failed test and "" if it is
 * refused. */
const char *rows_of(const char *path);
/* What was noted about the file of the last rows_of(). */
const strata_trace_notes_t *rows_notes(void);
/* The file is refused with E_FORMAT, and a text that has `part` in it. */
void expect_refused(const char *path, const char *part);

#endif

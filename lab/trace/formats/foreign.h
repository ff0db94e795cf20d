/* Files of other tools that no reader can convert to a trace. The error names the kind of file. */
#ifndef STRATA_TRACE_FOREIGN_H
#define STRATA_TRACE_FOREIGN_H

#include <stddef.h>

/* Identifies a file by its first bytes (zero-terminated). Returns its kind and what to record instead, or
 * NULL if it is not one of these. */
const char *strata_trace_foreign(const char *head, size_t count);

#endif

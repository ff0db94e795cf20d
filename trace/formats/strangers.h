/* Files that other tools write and that no reader can make a trace of. Each is refused by its name. */
#ifndef STRATA_TRACE_STRANGERS_H
#define STRATA_TRACE_STRANGERS_H

#include <stddef.h>

/* What a file is that begins with these bytes (and a zero after them), and what to record instead; NULL: nothing known. */
const char *strata_trace_stranger(const char *head, size_t count);

#endif

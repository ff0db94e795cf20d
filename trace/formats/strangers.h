/* Files that other tools write and that no reader can make a trace of. Each is refused by its name. */
#ifndef STRATA_TRACE_STRANGERS_H
#define STRATA_TRACE_STRANGERS_H

#include <stddef.h>

/* Names a file by its first bytes (a zero follows them), with what to record instead; NULL: it is none of these. */
const char *strata_trace_stranger(const char *head, size_t count);

#endif

/* The names that programs gave to their streams, by stream handle: one table for the whole process, for
 * any thread.
 *
 * A facade keeps its own table, which selects stacks, and drops a name when the stream is forgotten.
 * The recorder cannot use that table. It writes events later, possibly after the stream is forgotten,
 * into a file that all facades of the process share. */
#ifndef STRATA_TRACE_STREAM_NAMES_H
#define STRATA_TRACE_STREAM_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

enum { STRATA_STREAM_NAMES = 4096 }; /* the maximum; later names are ignored */

/* Adds the name that `owner` gave to a stream, and replaces an earlier one. If host memory runs out, traces lack the name. */
void strata_stream_names_set(const void *owner, uint64_t stream, const char *name);
/* Removes all names that an owner gave. */
void strata_stream_names_forget(const void *owner);
/* Copies the name that was given last. Returns false if the stream has none. */
bool strata_stream_names_find(uint64_t stream, char name[STRATA_TRACE_TAG_BYTES]);

#endif

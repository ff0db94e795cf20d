/* The names that programs have given to their streams, by the handles of the streams: a table of the process, from which a recorder's file
 * takes the name of each stream once. Any thread. */
#ifndef STRATA_TRACE_STREAM_NAMES_H
#define STRATA_TRACE_STREAM_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

enum { STRATA_STREAM_NAMES = 4096 }; /* more are not kept */

/* Notes the name that `owner` gave to a stream; a later name replaces an earlier one. Without host memory the name is lost to traces. */
void strata_stream_names_set(const void *owner, uint64_t stream, const char *name);
/* Forgets all names that an owner has given. */
void strata_stream_names_forget(const void *owner);
/* The name that was given last. False: none. */
bool strata_stream_names_find(uint64_t stream, char name[STRATA_TRACE_TAG_BYTES]);

#endif

/* A trace that a separate thread reads while its first rows are already in use. The visible rows, lifetimes
 * and streams only grow. A property of the whole trace (has_work, places, the number of streams) may change
 * with a later row. A user that relies on it must then begin again with the whole trace. */
#ifndef STRATA_TRACE_FEED_H
#define STRATA_TRACE_FEED_H

#include "trace/trace.h"

typedef struct strata_trace_feed strata_trace_feed_t;

/* Opens the file and begins to read it. If no thread can be created, all of it is read before the return.
 * Fails like strata_trace_reader_open(). */
strata_status_t strata_trace_feed_begin(const char *path, strata_trace_feed_t **feed);
/* Waits until the feed has more rows than the view, or has ended. Then the view is the trace as far as it is
 * read, without call stacks. Its arrays are valid until the finish. *end is true if there are no more rows
 * than these. Any thread may call this with its own view, which is {0} before the first call. If the file is
 * invalid, fails like strata_trace_load(). */
strata_status_t strata_trace_feed_wait(strata_trace_feed_t *feed, strata_trace_t *view, bool *end);
/* Returns OK, or the error in the file as far as it is read. Does not wait. */
strata_status_t strata_trace_feed_state(strata_trace_feed_t *feed);
/* Returns about the max number of rows, from the size of the file, or 0 if it is unknown. */
size_t strata_trace_feed_expected(const strata_trace_feed_t *feed);
/* Waits for the end, and releases the feed. The caller owns the whole trace. If the file is invalid, fails
 * like strata_trace_feed_wait(). */
strata_status_t strata_trace_feed_finish(strata_trace_feed_t *feed, strata_trace_t **trace);

#endif

/* A trace that a thread of its own reads while others use its first rows already. What it shows only grows: rows, lifetimes, streams. A
 * fact that holds of the whole (has_work, places, how many streams) may change with a later row; then whoever built on it begins again
 * with the whole trace. */
#ifndef STRATA_TRACE_FEED_H
#define STRATA_TRACE_FEED_H

#include "trace/trace.h"

typedef struct strata_trace_feed strata_trace_feed_t;

/* Opens the file and begins to read it; without a thread to spare all of it is read before the return. As
 * strata_trace_reader_open(). */
strata_status_t strata_trace_feed_begin(const char *path, strata_trace_feed_t **feed);
/* Waits until the feed has more rows than the view, or has ended. Then the view is the trace as far as it is read, without call stacks;
 * its arrays are valid until the finish. *end: there are no more rows than these. Any thread, each with a view of its own, which is {0}
 * before the first. If the file is wrong: what strata_trace_load() says of it. */
strata_status_t strata_trace_feed_wait(strata_trace_feed_t *feed, strata_trace_t *view, bool *end);
/* At once, without rows: OK, or what is wrong with the file as far as it is read. */
strata_status_t strata_trace_feed_state(strata_trace_feed_t *feed);
/* About how many rows it has at most, from the size of its file; 0: nobody knows. */
size_t strata_trace_feed_expected(const strata_trace_feed_t *feed);
/* Waits for the end, and ends the feed. The whole trace is the caller's. If the file is wrong: as strata_trace_feed_wait(). */
strata_status_t strata_trace_feed_finish(strata_trace_feed_t *feed, strata_trace_t **trace);

#endif

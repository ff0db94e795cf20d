/* What was made up for while another tool's record was read, in words. */
#ifndef STRATA_TOOLS_NOTES_H
#define STRATA_TOOLS_NOTES_H

#include "strategy/model.h"
#include "trace/trace.h"

/* A line for each note that counts something, and one for what the recorded allocator held; on standard error. */
void strata_notes_tell(const char *path, const char *format, const strata_trace_notes_t *notes);

/* Prints a line on standard error for each key of the strategy's `streams:` that matches no stream of the trace. */
void strata_unmatched_tell(const char *label, const strata_strategy_t *strategy, const strata_trace_t *trace);

/* On a terminal: says that a file is being read, which may take seconds, until it is read. */
void strata_reading_begin(const char *path);
void strata_reading_end(void);

#endif

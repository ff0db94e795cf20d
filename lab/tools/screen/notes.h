/* Prints notes about traces, such as the assumptions that a reader made for another tool's record. */
#ifndef STRATA_TOOLS_NOTES_H
#define STRATA_TOOLS_NOTES_H

#include "strategy/model.h"
#include "trace/trace.h"

/* Prints on standard error a line for each note with a count, and one for the memory that the recorded allocator held. */
void strata_notes_print(const char *path, const char *format, const strata_trace_notes_t *notes);

/* Prints a line on standard error for each key of the strategy's `streams:` that matches no stream of the trace. */
void strata_unmatched_print(const char *label, const strata_strategy_t *strategy, const strata_trace_t *trace);

/* On a terminal, shows that a file is being read, which may take seconds, until strata_reading_end(). */
void strata_reading_begin(const char *path);
void strata_reading_end(void);

#endif

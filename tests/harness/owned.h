/* Things that a test has made, on their way out where the scope ends: strata_trace_t *trace CLOSED_BY(trace_cleanup) = ...; */
#ifndef STRATA_TESTS_OWNED_H
#define STRATA_TESTS_OWNED_H

#include <stdlib.h>

#include "strategy/model.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "trace/trace.h"

static inline void strategy_cleanup(strata_strategy_t **strategy) { strata_strategy_delete(*strategy); }
static inline void trace_cleanup(strata_trace_t **trace) { strata_trace_delete(*trace); }
static inline void text_cleanup(char **text) { free(*text); }

/* Loads a trace from its text. If the text is wrong, the test fails and the trace is NULL. */
static inline strata_trace_t *load_trace(const char *text) {
    strata_trace_t *trace = NULL;
    EXPECT_OK(strata_trace_load(write_text("loaded.csv", text), &trace));
    return trace;
}

#endif

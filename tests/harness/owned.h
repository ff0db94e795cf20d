/* Things that a test has made, on their way out where the scope ends: strata_trace_t *trace CLOSED_BY(trace_gone) = ...; */
#ifndef STRATA_TESTS_OWNED_H
#define STRATA_TESTS_OWNED_H

#include <stdlib.h>

#include "strategy/model.h"
#include "tests/harness/test.h"
#include "trace/trace.h"

static inline void strategy_gone(strata_strategy_t **strategy) { strata_strategy_delete(*strategy); }
static inline void trace_gone(strata_trace_t **trace) { strata_trace_delete(*trace); }
static inline void text_gone(char **text) { free(*text); }

#endif

/* Traces and strategies for the tests of replay. */
#ifndef STRATA_TESTS_REPLAY_HELPERS_H
#define STRATA_TESTS_REPLAY_HELPERS_H

#include "lab/replay/compare/compare.h"

#define COLUMNS      "op,id,size,stream,time_us\n"
#define WORK_COLUMNS "op,id,size,stream,time_us,dur_us,other\n"

/* A trace of the text, or of the project's folder traces/; NULL and a failed test if it is wrong. */
strata_trace_t *trace_of(const char *text);
strata_trace_t *project_trace(const char *name);
/* A preset, or YAML text that holds a newline, with values set ("path=value", NULL ends them; may be NULL). */
strata_strategy_t *strategy_of(const char *preset_or_text, const char *const *set);

/* Replays under a strategy with these options, on sim:h100 if they name no device; zero figures and a failed test if no run took
 * place. */
strata_run_result_t replay_with(const strata_trace_t *trace, const strata_strategy_t *strategy, strata_run_options_t options);
/* The same with the text of a trace and the strategy as strategy_of() takes it. */
strata_run_result_t replay_text(const char *text, const char *preset_or_text, strata_run_options_t options);
/* The same on sim:h100 with this capacity. */
strata_run_result_t replay_trace(const strata_trace_t *trace, const strata_strategy_t *strategy, uint64_t capacity,
                                 uint64_t lag_ns);
/* The same with the trace and the strategy by name. */
strata_run_result_t replay_named(const char *trace, const char *preset, const char *const *set, uint64_t capacity, uint64_t lag_ns);

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)
#define LAG UINT64_C(5000000)

#endif

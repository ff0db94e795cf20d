#include "tests/replay/support/helpers.h"
#include "tests/paths.h"

#include <stdio.h>

#include "config/config.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"

static strata_trace_t *load(const char *path) {
    strata_trace_t *trace = NULL;
    if (strata_trace_load(path, &trace) != STRATA_OK) FAIL_TEST("%s", strata_last_error()->text);
    return trace;
}

strata_trace_t *trace_of(const char *text) { return load(write_text("trace.csv", text)); }

strata_trace_t *project_trace(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/traces/%s", STRATA_SOURCE_DIR, name);
    return load(path);
}

strata_strategy_t *strategy_of(const char *preset_or_text, const char *const *set) {
    strata_strategy_t *strategy = NULL;
    strata_config_request_t request = {.set = set};
    while (set && set[request.set_count]) request.set_count++;
    if (strchr(preset_or_text, '\n')) {
        request.text = preset_or_text;
    } else {
        request.preset = preset_or_text;
    }
    if (strata_config_load(&request, &strategy) != STRATA_OK) FAIL_TEST("%s", strata_last_error()->text);
    return strategy;
}

strata_run_result_t replay_with(const strata_trace_t *trace, const strata_strategy_t *strategy, strata_run_options_t options) {
    strata_run_result_t result = {.first_failure = ""};
    if (!options.target.profile) options.target.profile = strata_sim_profile("h100");
    if (trace && strategy && strata_run(trace, strategy, &options, &result) != STRATA_OK)
        FAIL_TEST("%s", strata_last_error()->text);
    return result;
}

strata_run_result_t replay_text(const char *text, const char *preset_or_text, strata_run_options_t options) {
    strata_trace_t *trace = trace_of(text);
    strata_strategy_t *strategy = strategy_of(preset_or_text, NULL);
    strata_run_result_t result = replay_with(trace, strategy, options);
    strata_trace_delete(trace);
    strata_strategy_delete(strategy);
    return result;
}

strata_run_result_t replay_trace(const strata_trace_t *trace, const strata_strategy_t *strategy, uint64_t capacity,
                                 uint64_t lag_ns) {
    return replay_with(trace, strategy, (strata_run_options_t){.target = {.capacity = capacity}, .timeline = {.lag_ns = lag_ns}});
}

strata_run_result_t replay_named(const char *trace, const char *preset, const char *const *set, uint64_t capacity,
                                 uint64_t lag_ns) {
    strata_trace_t *loaded = project_trace(trace);
    strata_strategy_t *strategy = strategy_of(preset, set);
    strata_run_result_t result = replay_trace(loaded, strategy, capacity, lag_ns);
    strata_trace_delete(loaded);
    strata_strategy_delete(strategy);
    return result;
}

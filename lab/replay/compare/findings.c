#include "lab/replay/compare/findings.h"

#include <inttypes.h>

#include "lab/replay/compare/json.h"

static void put_named(strata_output_t *out, const char *before, const char *name, const char *text) {
    strata_output_print(out, "%s\"%s\": ", before, name);
    if (text) strata_json_text(out, text);
    else strata_output_print(out, "null");
}

static void put_count(strata_output_t *out, const char *name, uint64_t value, uint64_t none) {
    if (value == none || value == STRATA_FIGURE_NULL) strata_output_print(out, ", \"%s\": null", name);
    else strata_output_print(out, ", \"%s\": %" PRIu64, name, value);
}

static void put_provenance(strata_output_t *out, const strata_provenance_t *provenance) {
    put_named(out, "\"provenance\": [{", "version", strata_version());
    put_named(out, ", ", "command", provenance->command);
    put_named(out, ", ", "device", provenance->device);
    put_count(out, "capacity_bytes", provenance->capacity, 0);
    put_count(out, "seed", provenance->seed, 0);
    strata_output_print(out, ",\n  \"strategies\": [");
    for (size_t i = 0; i < provenance->strategy_count; i++) {
        const strata_provenance_strategy_t *strategy = &provenance->strategies[i];
        put_named(out, i ? ",\n    {" : "\n    {", "candidate", strategy->label);
        put_named(out, ", ", "given", strategy->given);
        put_named(out, ", ", "sha256", strategy->sha256);
        put_named(out, ", ", "text", strategy->text);
        strata_output_print(out, "}");
    }
    strata_output_print(out, "],\n  \"traces\": [");
    for (size_t i = 0; i < provenance->trace_count; i++) {
        const strata_provenance_trace_t *trace = &provenance->traces[i];
        put_named(out, i ? ",\n    {" : "\n    {", "trace", trace->name);
        put_named(out, ", ", "path", trace->path);
        put_named(out, ", ", "sha256", *trace->sha256 ? trace->sha256 : NULL);
        strata_output_print(out, "}");
    }
    strata_output_print(out, "]}],\n");
}

static void put_errors(strata_output_t *out, const strata_findings_t *findings) {
    for (size_t i = 0; i < findings->error_count; i++) {
        put_named(out, i ? ",\n  {" : "\"errors\": [\n  {", "trace", findings->errors[i].path);
        put_named(out, ", ", "error", findings->errors[i].error.text);
        strata_output_print(out, "}");
    }
    if (findings->error_count > 0) strata_output_print(out, "],\n");
}

/* Writes the labels of a candidate and of the candidates that it represents. */
static void put_labels(strata_output_t *out, const strata_findings_t *findings, size_t trace, size_t candidate) {
    const strata_figures_t *runs = findings->runs + trace * findings->candidates;
    const size_t *stands_for = findings->stands_for + trace * findings->candidates;
    strata_output_print(out, "[");
    strata_json_text(out, runs[candidate].label);
    for (size_t i = 0; i < findings->candidates; i++) {
        if (i == candidate || stands_for[i] != candidate) continue;
        strata_output_print(out, ", ");
        strata_json_text(out, runs[i].label);
    }
    strata_output_print(out, "]");
}

static void put_verdict(strata_output_t *out, const strata_findings_t *findings, size_t trace) {
    const strata_verdict_t *verdict = &findings->verdicts[trace];
    put_named(out, trace ? ",\n  {" : "\"verdicts\": [\n  {", "trace", findings->runs[trace * findings->candidates].trace);
    strata_output_print(out, ", \"serves\": %s, \"order\": [", verdict->serves && verdict->requests ? "true" : "false");
    for (size_t i = 0; i < verdict->count; i++) {
        strata_output_print(out, "%s", i ? ", " : "");
        put_labels(out, findings, trace, verdict->order[i]);
    }
    strata_output_print(out, "]");
    put_count(out, "needed_bytes", verdict->needed_bytes, STRATA_FIGURE_NULL);
    put_named(out, ", ", "text", verdict->text);
    put_named(out, ", ", "next", findings->next[trace]);
    strata_output_print(out, "}");
}

strata_status_t strata_findings_json(strata_output_t *out, const strata_findings_t *findings) {
    strata_output_print(out, "{\"schema\": 1, ");
    if (findings->provenance) put_provenance(out, findings->provenance);
    put_errors(out, findings);
    for (size_t i = 0; i < findings->traces && findings->verdicts; i++) put_verdict(out, findings, i);
    if (findings->traces > 0 && findings->verdicts) strata_output_print(out, "],\n");
    strata_output_print(out, "\"runs\": ");
    strata_figures_json(out, findings->runs, findings->traces * findings->candidates);
    return strata_output_print(out, "}\n");
}

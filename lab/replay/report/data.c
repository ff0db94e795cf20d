#include <inttypes.h>
#include <stdio.h>

#include "lab/replay/compare/json.h"
#include "lab/replay/report/parts.h"
#include "platform/arithmetic.h"

static void put_named(strata_output_t *out, const char *name, const char *text) {
    strata_output_print(out, "\"%s\": ", name);
    strata_json_text(out, text);
}

/* ---- meanings of the fields and curves ---- */

static void put_fields(strata_output_t *out) {
    static const struct {
        const char *kind, *name, *unit, *meaning;
    } fields[] = {
#define STRATA_PAGE_FIELD(kind, name, unit, meaning) {#kind, #name, unit, meaning},
        STRATA_FIGURE_MAP(STRATA_PAGE_FIELD)
#undef STRATA_PAGE_FIELD
    };
    strata_output_print(out, "\"fields\": [");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        strata_output_print(out, "%s\n{", i ? "," : "");
        put_named(out, "name", fields[i].name);
        strata_output_print(out, ", ");
        put_named(out, "kind", fields[i].kind);
        strata_output_print(out, ", ");
        put_named(out, "meaning", fields[i].meaning);
        strata_output_print(out, "}");
    }
    strata_output_print(out, "],\n\"curves\": [");
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) {
        strata_output_print(out, "%s{", i ? ", " : "");
        put_named(out, "name", strata_series_name((strata_series_curve_t)i));
        strata_output_print(out, ", ");
        put_named(out, "meaning", strata_series_meaning((strata_series_curve_t)i));
        strata_output_print(out, "}");
    }
    strata_output_print(out, "],\n");
}

/* ---- one run ---- */

void strata_page_calls(strata_output_t *out, const strata_page_run_t *run) {
    const strata_device_ledger_t *ledger = &run->result->ledger;
    const char *comma = "";
    uint64_t between = ledger->waiting_ns;
    strata_output_print(out, "\"calls\": [");
    for (int i = 0; i < STRATA_DEVICE_CALLS; i++) {
        if (ledger->made[i] == 0) continue;
        strata_output_print(out, "%s{\"name\": \"%s\", \"made\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"waited_ns\": %" PRIu64 "}",
                            comma, strata_device_call_name((strata_device_call_t)i), ledger->made[i], ledger->ns[i],
                            ledger->waited_ns[i]);
        comma = ", ";
        between -= ledger->waited_ns[i];
    }
    strata_output_print(out, "], \"waits_between_ns\": %" PRIu64, between);
}

/* Writes only the beginning of a tag, because a trace may have tags of any length. */
static void put_tag(strata_output_t *out, const char *tag) {
    char text[STRATA_PAGE_TAG];
    snprintf(text, sizeof text, "%s", tag);
    put_named(out, "tag", text);
}

static void put_refusals(strata_output_t *out, const strata_page_run_t *run) {
    strata_output_print(out, "\"refused\": [");
    for (size_t i = 0; i < run->refusal_count; i++) {
        const strata_page_refusal_t *refusal = &run->refusals[i];
        strata_output_print(out,
                            "%s\n{\"row\": %zu, \"line\": %" PRIu32 ", \"time_us\": %" PRIu64 ", \"size\": %" PRIu64
                            ", \"stream\": %" PRIu64 ", ",
                            i ? "," : "", refusal->row, refusal->line, refusal->time_ns / 1000, refusal->size,
                            run->trace->streams[refusal->stream].number);
        put_tag(out, run->trace->tags[refusal->tag]);
        strata_output_print(out, ", ");
        put_named(out, "text", refusal->text);
        strata_output_print(out, "}");
    }
    strata_output_print(out, "]");
}

static strata_status_t put_run(strata_output_t *out, strata_page_run_t *run, size_t runs) {
    strata_output_print(out, "{");
    strata_page_curves(out, &run->series);
    strata_output_print(out, ",\n");
    strata_page_calls(out, run);
    strata_output_print(out, ",\n");
    put_refusals(out, run);
    strata_output_print(out, ",\n\"waits_known\": %s, \"map\": ",
                        run->result->figures.peak_device_used_bytes == STRATA_FIGURE_NULL ? "false" : "true");
    const strata_page_room_t room = strata_page_room(runs);
    strata_status_t status = strata_page_blocks(out, run, &room);
    strata_output_print(out, "}");
    return status;
}

/* ---- the whole ---- */

static strata_status_t put_traces(strata_output_t *out, const strata_page_t *page, const strata_findings_t *findings) {
    strata_status_t status = STRATA_OK;
    strata_output_print(out, "\"traces\": [");
    for (size_t i = 0; i < page->count && status == STRATA_OK; i += page->candidates) {
        const strata_trace_t *trace = page->runs[i].trace;
        strata_output_print(out, "%s\n{", i ? "," : "");
        put_named(out, "name", findings->runs[i].trace);
        strata_output_print(out, ", \"rows\": %zu, \"allocs\": %" PRIu32 ", \"has_work\": %s, ", trace->count, trace->lifetimes,
                            trace->has_work ? "true" : "false");
        status = strata_page_streams(out, trace, page->count / page->candidates);
        strata_output_print(out, "}");
    }
    strata_output_print(out, "],\n");
    return status;
}

strata_status_t strata_page_data(strata_output_t *out, strata_page_t *page, const strata_findings_t *findings) {
    strata_output_print(out, "{\"schema\": 1, ");
    put_named(out, "version", strata_version());
    strata_output_print(out, ",\n\"candidates\": %zu,\n", page->candidates);
    put_fields(out);
    strata_status_t status = put_traces(out, page, findings);
    strata_output_print(out, "\"figures\": ");
    strata_findings_json(out, findings);
    strata_output_print(out, ",\n\"runs\": [");
    for (size_t i = 0; i < page->count && status == STRATA_OK; i++) {
        if (i) strata_output_print(out, ",\n");
        status = put_run(out, &page->runs[i], page->count);
    }
    strata_output_print(out, "]}\n");
    return status;
}

#include "lab/replay/stats/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "facade/registry/facade.h"
#include "lab/replay/compare/json.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

typedef strata_status_t (*text_fn)(strata_t facade, char *text, size_t capacity, size_t *needed);

/* Copies a text that a function of the facade writes. */
static strata_status_t copy_text(strata_output_t *out, strata_t facade, text_fn write) {
    size_t needed = 0;
    strata_status_t status = write(facade, NULL, 0, &needed);
    char *text = status == STRATA_OK ? strata_host_new(needed, 1) : NULL;
    if (!text) return status == STRATA_OK ? STRATA_E_HOST_MEMORY : status;
    status = write(facade, text, needed, NULL);
    if (status == STRATA_OK) status = strata_output_write(out, text, needed - 1);
    strata_host_delete(text);
    return status;
}

/* ---- JSON ---- */

static void put_streams(strata_output_t *out, const strata_run_moment_t *moment) {
    const strata_trace_t *trace = moment->trace;
    strata_output_print(out, "\"streams\": [");
    for (uint32_t i = 0; i < trace->stream_count; i++)
        strata_output_print(out, "%s{\"number\": %" PRIu64 ", \"device\": %u, \"stream\": \"0x%" PRIxPTR "\"}", i ? ", " : "",
                            trace->streams[i].number, (unsigned)trace->streams[i].device,
                            (uintptr_t)moment->timeline->streams[i].handle);
    strata_output_print(out, "],\n");
}

typedef struct put_blocks {
    strata_output_t *out;
    char place[STRATA_STATS_NAME];
    const char *before;
} put_blocks_t;

static void put_block(const strata_snapshot_row_t *row, void *context) {
    static const char *const states[] = {"free", "live", "deferred"};
    put_blocks_t *put = context;
    strata_output_print(put->out,
                        "%s\n  {\"place\": \"%s\", \"stream\": \"0x%" PRIxPTR "\", \"chunk\": %" PRIu64 ", \"address\": %" PRIu64
                        ", \"size\": %zu, \"requested\": %zu, \"state\": \"%s\"}",
                        put->before, put->place, (uintptr_t)row->stream, row->chunk, (uint64_t)(uintptr_t)row->block.ptr,
                        row->block.size, row->requested, states[row->state]);
    put->before = ",";
}

static strata_status_t put_all_blocks(strata_output_t *out, const strata_run_moment_t *moment) {
    put_blocks_t put = {.out = out, .before = ""};
    uint32_t index = 0;
    strata_domain_t *domain;
    strata_status_t status = STRATA_OK;
    strata_output_print(out, "\"blocks\": [");
    while (status == STRATA_OK && (domain = strata_facade_next_domain(strata_facade_of(moment->facade), &index)) != NULL) {
        strata_place_text(domain->place, put.place);
        status = strata_snapshot(moment->facade, domain->place, put_block, &put);
    }
    strata_output_print(out, "],\n");
    return status;
}

static strata_status_t put_json(const strata_stats_t *stats, const strata_run_moment_t *moment) {
    strata_output_t *out = stats->out;
    const strata_figures_t *figures = &moment->result->figures;
    strata_output_print(out, "{\"schema\": 1, \"trace\": ");
    strata_json_text(out, strata_run_trace_name(moment->trace));
    strata_output_print(out, ", \"row\": %zu, \"rows\": %zu, \"line\": %u, \"strategy\": ", moment->rows, moment->trace->count,
                        (unsigned)moment->trace->events[moment->rows - 1].line);
    strata_json_text(out, figures->strategy);
    strata_output_print(out, ", \"device\": ");
    strata_json_text(out, figures->device);
    strata_output_print(out, ",\n\"failed_operations\": %" PRIu64 ", \"oom_count\": %" PRIu64 ",\n", figures->failed_operations,
                        figures->oom_count);
    put_streams(out, moment);
    strata_status_t status = stats->blocks ? put_all_blocks(out, moment) : STRATA_OK;
    strata_output_print(out, "\"statistics\": ");
    if (status == STRATA_OK) status = copy_text(out, moment->facade, strata_statistics_json);
    return status == STRATA_OK ? strata_output_print(out, "}\n") : status;
}

void strata_stats_refused(void *context, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text) {
    (void)time_ns;
    strata_stats_t *stats = context;
    if (stats->refused) return;
    size_t room = strlen(text) + 64;
    stats->refused = strata_host_new(room, 1);
    if (stats->refused) snprintf(stats->refused, room, "the first at row %zu (line %u): %s", row, (unsigned)event->line, text);
}

void strata_stats_write(void *context, const strata_run_moment_t *moment) {
    strata_stats_t *stats = context;
    switch (stats->form) {
    case STRATA_STATS_TABLE: stats->status = strata_stats_table(stats, moment); break;
    case STRATA_STATS_JSON: stats->status = put_json(stats, moment); break;
    case STRATA_STATS_PROMETHEUS: stats->status = copy_text(stats->out, moment->facade, strata_statistics_prometheus); break;
    }
}

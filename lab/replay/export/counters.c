#include "lab/replay/export/counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "facade/registry/facade.h"
#include "lab/replay/compare/json.h"
#include "platform/place.h"

enum { TRACKS = STRATA_COUNTERS_TRACKS, TRACK_BYTES = STRATA_COUNTERS_NAME };

typedef strata_counters_track_t track_t;

typedef struct tracks {
    track_t all[TRACKS]; /* only the first ones if a strategy has more */
    size_t count;
    char place[32];
} tracks_t;

static void add_figure(const strata_layer_figure_t *figure, void *context) {
    tracks_t *tracks = context;
    char name[TRACK_BYTES];
    if (strcmp(figure->unit, "bytes") != 0) return;
    snprintf(name, sizeof name, "%s %u %s %s", tracks->place, figure->number, figure->layer, figure->name);
    size_t at = 0;
    while (at < tracks->count && strcmp(tracks->all[at].name, name) != 0) at++;
    if (at == TRACKS) return;
    if (at == tracks->count) {
        tracks->count++;
        memcpy(tracks->all[at].name, name, sizeof name);
        tracks->all[at].value = 0;
    }
    tracks->all[at].value += figure->value;
}

static void read_tracks(strata_counters_t *counters, const strata_run_moment_t *moment, tracks_t *tracks) {
    uint32_t index = 0;
    strata_domain_t *domain;
    tracks->count = 0;
    while ((domain = strata_facade_next_domain(strata_facade_of(moment->facade), &index)) != NULL) {
        if (!(moment->trace->places & 1u << strata_place_kind(domain->place))) continue;
        strata_place_text(domain->place, tracks->place);
        strata_status_t status = strata_layer_figures(moment->facade, domain->place, add_figure, tracks);
        if (counters->status == STRATA_OK) counters->status = status;
    }
}

/* ---- Chrome ---- */

static void put_event(strata_counters_t *counters, const char *phase, const char *name) {
    strata_output_print(counters->out, "%s\n{\"ph\":\"%s\",\"pid\":1,\"name\":", counters->begun ? "," : "", phase);
    strata_json_text(counters->out, name);
    counters->begun = true;
}

static void begin_chrome(strata_counters_t *counters) {
    strata_output_print(counters->out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    put_event(counters, "M", "process_name");
    strata_output_print(counters->out, ",\"args\":{\"name\":");
    strata_json_text(counters->out, counters->label);
    strata_output_print(counters->out, "}}");
}

/* Writes microseconds with three decimals. */
static void put_time(strata_counters_t *counters, uint64_t time_ns) {
    strata_output_print(counters->out, ",\"ts\":%" PRIu64 ".%03u", time_ns / 1000, (unsigned)(time_ns % 1000));
}

static void put_counter(strata_counters_t *counters, const char *name, uint64_t value) {
    put_event(counters, "C", name);
    put_time(counters, counters->latest.time_ns);
    strata_output_print(counters->out, ",\"args\":{\"bytes\":%" PRIu64 "}}", value);
}

/* Writes only the counters that changed, because a counter keeps its value until its next event. */
static void put_chrome(strata_counters_t *counters, const strata_run_moment_t *moment) {
    tracks_t tracks;
    bool first = !counters->begun;
    if (first) begin_chrome(counters);
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) {
        uint64_t value = counters->latest.high[i];
        if (first || value != counters->written[i]) put_counter(counters, strata_series_name((strata_series_curve_t)i), value);
        counters->written[i] = value;
    }
    read_tracks(counters, moment, &tracks);
    for (size_t i = 0; i < tracks.count; i++) {
        const track_t *track = &tracks.all[i], *written = &counters->written_tracks[i];
        bool same = i < counters->written_count && strcmp(track->name, written->name) == 0 && track->value == written->value;
        if (!same) put_counter(counters, track->name, track->value);
    }
    memcpy(counters->written_tracks, tracks.all, tracks.count * sizeof *tracks.all);
    counters->written_count = tracks.count;
}

/* ---- CSV ---- */

static void put_csv(strata_counters_t *counters) {
    if (!counters->begun) {
        strata_output_print(counters->out, "row,time_us");
        for (int i = 0; i < STRATA_SERIES_CURVES; i++)
            strata_output_print(counters->out, ",%s_bytes", strata_series_name((strata_series_curve_t)i));
        strata_output_print(counters->out, ",device_calls_us\n");
    }
    counters->begun = true;
    const strata_series_sample_t *latest = &counters->latest;
    strata_output_print(counters->out, "%" PRIu64 ",%" PRIu64, latest->row, latest->time_ns / 1000);
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) strata_output_print(counters->out, ",%" PRIu64, latest->high[i]);
    strata_output_print(counters->out, ",%" PRIu64 "\n", latest->cost_ns / 1000);
}

/* ---- the follower ---- */

void strata_counters_row(void *context, const strata_series_sample_t *sample) { ((strata_counters_t *)context)->latest = *sample; }

void strata_counters_moment(void *context, const strata_run_moment_t *moment, bool chunks) {
    strata_counters_t *counters = context;
    bool last = moment->rows == moment->trace->count;
    if (!chunks && !last && counters->begun && moment->rows % counters->every != 0) return;
    if (counters->form == STRATA_COUNTERS_CHROME) put_chrome(counters, moment);
    else put_csv(counters);
}

void strata_counters_refused(void *context, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text) {
    strata_counters_t *counters = context;
    (void)row, (void)text;
    if (counters->form != STRATA_COUNTERS_CHROME) return;
    if (!counters->begun) begin_chrome(counters);
    put_event(counters, "i", "out of memory");
    put_time(counters, time_ns);
    strata_output_print(counters->out, ",\"tid\":1,\"s\":\"g\",\"args\":{\"bytes\":%" PRIu64 "}}", event->value);
}

void strata_counters_finish(strata_counters_t *counters) {
    if (counters->form != STRATA_COUNTERS_CHROME) return;
    if (!counters->begun) begin_chrome(counters);
    strata_output_print(counters->out, "\n]}\n");
}

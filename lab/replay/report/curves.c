#include <inttypes.h>
#include <stdlib.h>

#include "lab/replay/report/parts.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

static uint64_t us(uint64_t ns) { return ns / 1000; }

/* ---- differences ---- */

strata_deltas_t strata_deltas_begin(strata_output_t *out, const char *name) {
    strata_output_print(out, "\"%s\": [", name);
    return (strata_deltas_t){.out = out};
}

void strata_deltas_put(strata_deltas_t *deltas, uint64_t value) {
    strata_output_print(deltas->out, "%s%" PRId64, deltas->begun ? "," : "", (int64_t)(value - deltas->last));
    deltas->last = value;
    deltas->begun = true;
}

void strata_deltas_end(strata_deltas_t *deltas) { strata_output_print(deltas->out, "]"); }

/* ---- columns ---- */

#define COLUMNS(out, series, name, value_of_column)                                                                                \
    do {                                                                                                                           \
        strata_deltas_t deltas = strata_deltas_begin(out, name);                                                                   \
        for (size_t i = 0; i < (series)->count; i++) {                                                                             \
            const strata_series_column_t *column = &(series)->columns[i];                                                          \
            strata_deltas_put(&deltas, value_of_column);                                                                           \
        }                                                                                                                          \
        strata_deltas_end(&deltas);                                                                                                \
    } while (0)

static void put_columns(strata_output_t *out, const strata_series_t *series) {
    const strata_series_column_t *last = series->count ? &series->columns[series->count - 1] : NULL;
    strata_output_print(out, "\"columns\": {\"rows\": %" PRIu64 ", \"end_us\": %" PRIu64 ",\n", UINT64_C(1) << series->shift,
                        last ? us(last->end_ns) : 0);
    COLUMNS(out, series, "row", column->row);
    strata_output_print(out, ",\n");
    COLUMNS(out, series, "time_us", us(column->begin_ns));
    strata_output_print(out, ",\n");
    COLUMNS(out, series, "cost_us", us(column->cost_ns));
    for (int curve = 0; curve < STRATA_SERIES_CURVES; curve++) {
        strata_output_print(out, ",\n\"%s\": {", strata_series_name((strata_series_curve_t)curve));
        COLUMNS(out, series, "low", column->low[curve]);
        strata_output_print(out, ", ");
        COLUMNS(out, series, "more", column->high[curve] - column->low[curve]);
        strata_output_print(out, ", ");
        COLUMNS(out, series, "last", column->last[curve] - column->low[curve]);
        strata_output_print(out, "}");
    }
    strata_output_print(out, "}");
}

/* ---- around the peaks ---- */

static int by_ordinal(const void *a, const void *b) {
    uint64_t x = ((const strata_series_sample_t *)a)->ordinal, y = ((const strata_series_sample_t *)b)->ordinal;
    return (x > y) - (x < y);
}

/* Returns all kept samples once each, oldest first. Returns NULL if there is no memory; the page then has none. */
static strata_series_sample_t *gather(const strata_series_t *series, size_t *count) {
    size_t all = 0, kept = 0;
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) all += series->peaks[i].count;
    strata_series_sample_t *samples = strata_host_new(all + 1, sizeof *samples);
    *count = 0;
    if (!samples) return NULL;
    for (int i = 0; i < STRATA_SERIES_CURVES; i++)
        for (size_t k = 0; k < series->peaks[i].count; k++) samples[(*count)++] = series->peaks[i].around[k];
    qsort(samples, *count, sizeof *samples, by_ordinal);
    for (size_t i = 0; i < *count; i++)
        if (kept == 0 || samples[kept - 1].ordinal != samples[i].ordinal) samples[kept++] = samples[i];
    *count = kept;
    return samples;
}

#define SAMPLES(out, samples, count, name, value_of_sample)                                                                        \
    do {                                                                                                                           \
        strata_deltas_t deltas = strata_deltas_begin(out, name);                                                                   \
        for (size_t i = 0; i < (count); i++) {                                                                                     \
            const strata_series_sample_t *sample = &(samples)[i];                                                                  \
            strata_deltas_put(&deltas, value_of_sample);                                                                           \
        }                                                                                                                          \
        strata_deltas_end(&deltas);                                                                                                \
    } while (0)

/* Writes consecutive samples. */
static void put_stretch(strata_output_t *out, const strata_series_sample_t *samples, size_t count) {
    strata_output_print(out, "\n{");
    SAMPLES(out, samples, count, "row", sample->row);
    strata_output_print(out, ", ");
    SAMPLES(out, samples, count, "time_us", us(sample->time_ns));
    for (int curve = 0; curve < STRATA_SERIES_CURVES; curve++) {
        strata_output_print(out, ", ");
        SAMPLES(out, samples, count, strata_series_name((strata_series_curve_t)curve), sample->high[curve]);
    }
    strata_output_print(out, "}");
}

/* If each column is one row, the columns already have every sample. */
static void put_around(strata_output_t *out, const strata_series_t *series) {
    size_t count = 0, first = 0;
    strata_series_sample_t *samples = series->shift ? gather(series, &count) : NULL;
    strata_output_print(out, "\"around\": [");
    while (first < count) {
        size_t end = first + 1;
        while (end < count && samples[end].ordinal == samples[end - 1].ordinal + 1) end++;
        if (first > 0) strata_output_print(out, ",");
        put_stretch(out, samples + first, end - first);
        first = end;
    }
    strata_output_print(out, "]");
    strata_host_delete(samples);
}

static void put_peaks(strata_output_t *out, const strata_series_t *series) {
    strata_output_print(out, "\"peaks\": {");
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) {
        const strata_series_peak_t *peak = &series->peaks[i];
        strata_output_print(out, "%s\"%s\": {\"bytes\": %" PRIu64 ", \"row\": %" PRIu64 ", \"time_us\": %" PRIu64 "}",
                            i ? ", " : "", strata_series_name((strata_series_curve_t)i), peak->value, peak->row, us(peak->time_ns));
    }
    strata_output_print(out, "}");
}

void strata_page_curves(strata_output_t *out, strata_series_t *series) {
    strata_series_finish(series);
    put_columns(out, series);
    strata_output_print(out, ",\n");
    put_peaks(out, series);
    strata_output_print(out, ",\n");
    put_around(out, series);
}

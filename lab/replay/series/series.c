#include "lab/replay/series/series.h"

#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

static const struct {
    const char *name, *meaning;
} curves[STRATA_SERIES_CURVES] = {
#define STRATA_SERIES_ROW(name, meaning) {#name, meaning},
    STRATA_SERIES_MAP(STRATA_SERIES_ROW)
#undef STRATA_SERIES_ROW
};

const char *strata_series_name(strata_series_curve_t curve) { return curves[curve].name; }

const char *strata_series_meaning(strata_series_curve_t curve) { return curves[curve].meaning; }

static size_t ring_size(const strata_series_t *series) { return 2 * series->reach + 1; }

strata_status_t strata_series_init(strata_series_t *series, size_t capacity, size_t reach) {
    *series = (strata_series_t){.capacity = capacity, .reach = reach};
    series->columns = strata_host_new(capacity, sizeof *series->columns);
    series->recent = strata_host_new(ring_size(series), sizeof *series->recent);
    bool all = series->columns && series->recent;
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) {
        series->peaks[i].around = strata_host_new(ring_size(series), sizeof *series->recent);
        all = all && series->peaks[i].around;
    }
    if (all) return STRATA_OK;
    strata_series_destroy(series);
    return STRATA_E_HOST_MEMORY;
}

void strata_series_destroy(strata_series_t *series) {
    strata_host_delete(series->columns);
    strata_host_delete(series->recent);
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) strata_host_delete(series->peaks[i].around);
    *series = (strata_series_t){.columns = NULL};
}

/* ---- columns ---- */

static uint64_t number_of(const strata_series_t *series, uint64_t row) { return (row - 1) >> series->shift; }

static void widen(strata_series_column_t *column, const uint64_t *low, const uint64_t *high) {
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) {
        column->low[i] = strata_min(column->low[i], low[i]);
        column->high[i] = strata_max(column->high[i], high[i]);
    }
}

static void halve(strata_series_t *series) {
    size_t kept = 0;
    series->shift++;
    for (size_t i = 0; i < series->count; i++) {
        const strata_series_column_t *column = &series->columns[i];
        strata_series_column_t *last = kept ? &series->columns[kept - 1] : NULL;
        if (!last || number_of(series, last->row) != number_of(series, column->row)) {
            series->columns[kept++] = *column;
            continue;
        }
        widen(last, column->low, column->high);
        last->end_ns = column->end_ns;
        last->cost_ns = column->cost_ns;
        memcpy(last->last, column->last, sizeof last->last);
    }
    series->count = kept;
}

static bool is_in_last(const strata_series_t *series, uint64_t row) {
    return series->count && number_of(series, series->columns[series->count - 1].row) == number_of(series, row);
}

/* Rows without samples have no columns, so one halving may merge nothing. */
static strata_series_column_t *column_for(strata_series_t *series, const strata_series_sample_t *sample) {
    while (!is_in_last(series, sample->row) && series->count == series->capacity) halve(series);
    if (is_in_last(series, sample->row)) return &series->columns[series->count - 1];
    strata_series_column_t *column = &series->columns[series->count++];
    *column = (strata_series_column_t){.row = sample->row, .begin_ns = sample->time_ns};
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) column->low[i] = UINT64_MAX;
    return column;
}

/* ---- samples around the peaks ---- */

/* Keeps the samples from `reach` before the peak on, as far as there are any. The ring still has all of them. */
static void copy_around(strata_series_t *series, strata_series_peak_t *peak) {
    uint64_t first = peak->ordinal > series->reach ? peak->ordinal - series->reach : 0;
    peak->count = 0;
    for (uint64_t at = first; at < series->samples; at++) peak->around[peak->count++] = series->recent[at % ring_size(series)];
}

/* A higher sample invalidates the samples kept around a peak. They are copied only after `reach` samples
 * without a higher one, so each sample is copied a few times at most. */
static void update_peaks(strata_series_t *series, const strata_series_sample_t *sample) {
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) {
        strata_series_peak_t *peak = &series->peaks[i];
        if (sample->high[i] > peak->value) {
            *peak = (strata_series_peak_t){.value = sample->high[i],
                                           .row = sample->row,
                                           .time_ns = sample->time_ns,
                                           .ordinal = sample->ordinal,
                                           .around = peak->around};
        } else if (peak->value && sample->ordinal - peak->ordinal == series->reach) {
            copy_around(series, peak);
        }
    }
}

void strata_series_add(strata_series_t *series, const strata_series_sample_t *sample) {
    strata_series_sample_t *kept = &series->recent[series->samples % ring_size(series)];
    *kept = *sample;
    kept->ordinal = series->samples++;
    strata_series_column_t *column = column_for(series, kept);
    widen(column, kept->low, kept->high);
    column->end_ns = kept->time_ns;
    column->cost_ns = kept->cost_ns;
    memcpy(column->last, kept->low, sizeof column->last);
    update_peaks(series, kept);
}

void strata_series_finish(strata_series_t *series) {
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) {
        strata_series_peak_t *peak = &series->peaks[i];
        if (peak->value && peak->count == 0) copy_around(series, peak);
    }
}

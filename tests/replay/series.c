/* Curves in bounded memory, against all samples kept. */
#include "lab/replay/series/series.h"

#include <stdlib.h>

#include "platform/host/host_memory.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"

typedef struct shape {
    const char *name;
    size_t samples, capacity, reach;
    unsigned skips; /* rows without a sample: up to this many after each */
    int drift; /* 1: rises, so that almost every sample is a new peak; -1: falls; 0: wanders */
    uint64_t seed;
} shape_t;

static uint64_t next(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

/* One spike in a thousand samples is far above all else and lasts for a moment within its row. */
static strata_series_sample_t *make(const shape_t *shape) {
    strata_series_sample_t *samples = calloc(shape->samples, sizeof *samples);
    uint64_t random = shape->seed, row = 0, time = 0, cost = 0;
    for (size_t i = 0; samples && i < shape->samples; i++) {
        strata_series_sample_t *sample = &samples[i];
        row += 1 + (shape->skips ? next(&random) % (shape->skips + 1) : 0);
        time += next(&random) % 3;
        cost += next(&random) % 2;
        *sample = (strata_series_sample_t){.row = row, .time_ns = time, .cost_ns = cost};
        for (int curve = 0; curve < STRATA_SERIES_CURVES; curve++) {
            uint64_t trend = shape->drift > 0 ? 10 * i : shape->drift < 0 ? 10 * (shape->samples - i) : 0;
            sample->low[curve] = sample->high[curve] = trend + next(&random) % 1000;
            if (next(&random) % 1000 == 0) sample->high[curve] += 100000 + next(&random) % 100000;
        }
    }
    return samples;
}

/* ---- what must hold ---- */

static void expect_columns(const strata_series_t *series, const strata_series_sample_t *samples, size_t count) {
    size_t at = 0;
    EXPECT_LE(series->count, series->capacity);
    for (size_t i = 0; i < series->count && !strata_test_has_failed(); i++) {
        const strata_series_column_t *column = &series->columns[i];
        uint64_t end = i + 1 < series->count ? series->columns[i + 1].row : UINT64_MAX;
        strata_series_column_t real = {.row = samples[at].row, .begin_ns = samples[at].time_ns};
        for (int c = 0; c < STRATA_SERIES_CURVES; c++) real.low[c] = UINT64_MAX;
        size_t first = at;
        for (; at < count && samples[at].row < end; at++) {
            for (int c = 0; c < STRATA_SERIES_CURVES; c++) {
                if (samples[at].low[c] < real.low[c]) real.low[c] = samples[at].low[c];
                if (samples[at].high[c] > real.high[c]) real.high[c] = samples[at].high[c];
            }
        }
        ASSERT_GT(at, first);
        EXPECT_EQ(column->row, real.row);
        EXPECT_EQ((samples[at - 1].row - 1) >> series->shift, (real.row - 1) >> series->shift);
        EXPECT_EQ(column->begin_ns, real.begin_ns);
        EXPECT_EQ(column->end_ns, samples[at - 1].time_ns);
        EXPECT_EQ(column->cost_ns, samples[at - 1].cost_ns);
        for (int c = 0; c < STRATA_SERIES_CURVES; c++) {
            EXPECT_EQ(column->low[c], real.low[c]);
            EXPECT_EQ(column->high[c], real.high[c]);
            EXPECT_EQ(column->last[c], samples[at - 1].low[c]);
        }
    }
    EXPECT_EQ(at, count);
}

/* The first highest sample, and all of its neighbours within reach. */
static void expect_peak(const strata_series_t *series, int curve, const strata_series_sample_t *samples, size_t count) {
    const strata_series_peak_t *peak = &series->peaks[curve];
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (samples[i].high[curve] > samples[best].high[curve]) best = i;
    EXPECT_EQ(peak->value, samples[best].high[curve]);
    EXPECT_EQ(peak->row, samples[best].row);
    EXPECT_EQ(peak->time_ns, samples[best].time_ns);
    size_t first = best > series->reach ? best - series->reach : 0, end = best + series->reach + 1;
    if (end > count) end = count;
    ASSERT_EQ(peak->count, end - first);
    for (size_t i = first; i < end; i++) {
        EXPECT_EQ(peak->around[i - first].row, samples[i].row);
        EXPECT_EQ(peak->around[i - first].ordinal, i);
        EXPECT_EQ(peak->around[i - first].high[curve], samples[i].high[curve]);
    }
}

static const shape_t shapes[] = {
    {"one", 1, 4, 2, 0, 0, 1},
    {"fits", 64, 64, 8, 0, 0, 2},
    {"one_too_many", 65, 64, 8, 0, 0, 3},
    {"rises", 5000, 16, 4, 0, 1, 4},
    {"falls", 5000, 16, 4, 0, -1, 5},
    {"wanders", 20000, 100, 32, 0, 0, 6},
    {"least", 3000, 2, 1, 0, 0, 7},
    {"skips_rows", 20000, 128, 16, 9, 0, 8},
    {"skips_most_rows", 3000, 8, 3, 5000, 0, 9},
    {"reaches_all", 100, 8, 200, 0, 0, 10},
};

TEST_EACH(series, loses_nothing, shape_t, shapes) {
    strata_series_sample_t *samples = make(row);
    strata_series_t series;
    ASSERT_TRUE(samples != NULL);
    ASSERT_OK(strata_series_init(&series, row->capacity, row->reach));
    uint64_t before = strata_host_allocations();
    for (size_t i = 0; i < row->samples; i++) strata_series_add(&series, &samples[i]);
    strata_series_finish(&series);
    EXPECT_EQ(strata_host_allocations(), before);
    expect_columns(&series, samples, row->samples);
    for (int curve = 0; curve < STRATA_SERIES_CURVES; curve++) expect_peak(&series, curve, samples, row->samples);
    strata_series_destroy(&series);
    free(samples);
}

TEST(series, columns_are_as_fine_as_they_can_be) {
    shape_t shape = {.samples = 1000, .seed = 11};
    strata_series_sample_t *samples = make(&shape);
    strata_series_t series;
    ASSERT_OK(strata_series_init(&series, 250, 1));
    for (size_t i = 0; i < shape.samples; i++) strata_series_add(&series, &samples[i]);
    EXPECT_EQ(series.shift, 2);
    EXPECT_EQ(series.count, 250);
    strata_series_destroy(&series);
    free(samples);
}

/* A curve that is never above zero has no peak. */
TEST(series, of_nothing) {
    strata_series_t series;
    ASSERT_OK(strata_series_init(&series, 4, 2));
    strata_series_finish(&series);
    EXPECT_EQ(series.count, 0);
    strata_series_add(&series, &(strata_series_sample_t){.row = 3, .time_ns = 5});
    strata_series_finish(&series);
    EXPECT_EQ(series.count, 1);
    EXPECT_EQ(series.peaks[0].count, 0);
    EXPECT_EQ(series.peaks[0].row, 0);
    strata_series_destroy(&series);
}

TEST(series, needs_host_memory) {
    strata_series_t series;
    for (uint64_t k = 1; k <= 2 + STRATA_SERIES_CURVES; k++) {
        strata_host_fail_at(k, 0);
        EXPECT_STATUS(strata_series_init(&series, 4, 2), STRATA_E_HOST_MEMORY);
        strata_host_fail_at(0, 0);
    }
    ASSERT_OK(strata_series_init(&series, 4, 2));
    strata_series_destroy(&series);
}

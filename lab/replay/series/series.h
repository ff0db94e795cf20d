/* Curves of the memory that a run holds after each row, in bounded memory for any number of rows.
 *
 * A column covers 2^k rows and keeps the least and the most of each curve there. When the columns are full,
 * neighbors merge and k grows. Extremes are kept exactly, only their rows become inexact. Around the peak of
 * each curve all rows are kept. For one thread. */
#ifndef STRATA_REPLAY_SERIES_H
#define STRATA_REPLAY_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

/* X(name, meaning): bytes of device memory */
#define STRATA_SERIES_MAP(X)                                                                                                       \
    X(requested, "requested bytes of live allocations")                                                                            \
    X(allocated, "blocks of live allocations, rounding included")                                                                  \
    X(reserved, "chunks from the device")                                                                                          \
    X(deferred, "freed by the caller but still in use by another stream")
typedef enum strata_series_curve {
#define STRATA_SERIES_ENUM(name, meaning) STRATA_SERIES_##name,
    STRATA_SERIES_MAP(STRATA_SERIES_ENUM)
#undef STRATA_SERIES_ENUM
        STRATA_SERIES_CURVES
} strata_series_curve_t;

/* A sample after a row. Rows and times never decrease, and a row is added once. */
typedef struct strata_series_sample {
    uint64_t row; /* from 1 */
    uint64_t time_ns;
    uint64_t cost_ns; /* cost of device calls and waits so far; never decreases */
    uint64_t low[STRATA_SERIES_CURVES]; /* after the row */
    uint64_t high[STRATA_SERIES_CURVES]; /* the most within the row, at least `low` */
    uint64_t ordinal; /* its number among the samples; set by strata_series_add() */
} strata_series_sample_t;

typedef struct strata_series_column {
    uint64_t row; /* of its first sample */
    uint64_t begin_ns, end_ns; /* times of its first and last sample */
    uint64_t cost_ns; /* after its last sample */
    uint64_t low[STRATA_SERIES_CURVES], high[STRATA_SERIES_CURVES];
    uint64_t last[STRATA_SERIES_CURVES]; /* after its last sample */
} strata_series_column_t;

/* The first highest point of a curve. */
typedef struct strata_series_peak {
    uint64_t value, row, time_ns, ordinal;
    strata_series_sample_t *around; /* the samples kept, oldest first */
    size_t count;
} strata_series_peak_t;

typedef struct strata_series {
    strata_series_column_t *columns;
    size_t count, capacity;
    unsigned shift; /* a column covers 2^shift rows */
    strata_series_sample_t *recent; /* a ring of the last samples */
    size_t reach; /* samples kept before and after a peak */
    uint64_t samples; /* added so far */
    strata_series_peak_t peaks[STRATA_SERIES_CURVES];
} strata_series_t;

/* There are at most `capacity` columns (at least 2), and `reach` samples on each side of a peak (at least 1).
 * Fails with E_HOST_MEMORY. */
strata_status_t strata_series_init(strata_series_t *series, size_t capacity, size_t reach);
void strata_series_destroy(strata_series_t *series);
/* Makes no host allocation. */
void strata_series_add(strata_series_t *series, const strata_series_sample_t *sample);
/* Completes the samples around the peaks. Call after the last sample. */
void strata_series_finish(strata_series_t *series);

/* Returns the name of a curve, such as "requested". */
const char *strata_series_name(strata_series_curve_t curve);
const char *strata_series_meaning(strata_series_curve_t curve);

#endif

/* What each call of a device costs, by size. */
#ifndef STRATA_TOOLS_CALIBRATE_MEASURE_H
#define STRATA_TOOLS_CALIBRATE_MEASURE_H

#include "platform/device.h"
#include "trace/text/output.h"

enum { STRATA_REPEATS_MOST = 1000, STRATA_ROWS_MOST = 512, STRATA_ROW_GROUP = 8 };

/* The samples of one call at one size, ns of the calling thread's clock. */
typedef struct strata_measured_row {
    const char *call; /* "malloc_async_cold": a device call, or what it did beyond the usual */
    uint64_t size; /* of one handle, where there are handles */
    uint64_t handles; /* 0: none */
    uint64_t chunk; /* bytes that a pool took or gave back; 0: it is no such call */
    uint64_t samples, median, least, most;
} strata_measured_row_t;

/* Of one row, while it is measured. */
typedef struct strata_samples {
    uint64_t values[STRATA_REPEATS_MOST];
    size_t count;
} strata_samples_t;

typedef struct strata_measure {
    strata_device_t *device;
    uint64_t repeats; /* 1 to STRATA_REPEATS_MOST */
    strata_measured_row_t rows[STRATA_ROWS_MOST];
    size_t count;
    uint64_t total_bytes; /* of the device */
    uint64_t budget; /* bytes that one row may have allocated at a time: half of what is free */
    uint64_t chunk_bytes; /* that a pool takes for a small request; 0: there are no pools */
    bool waits_known, free_waits; /* whether free waits for running work */
    strata_status_t status; /* the first failure; nothing is measured after it */
    strata_samples_t group[STRATA_ROW_GROUP];
} strata_measure_t;

/* Measures everything that the device can do. Of `measure`, device and repeats are set. Returns its status; after a failure things may be
 * left on the device. */
strata_status_t strata_measure_all(strata_measure_t *measure);
/* The rows as CSV, with the device's name above. */
void strata_measure_print(const strata_measure_t *measure, strata_output_t *out);

#endif

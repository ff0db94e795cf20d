/* Measures the cost of each device call by size. */
#ifndef STRATA_TOOLS_CALIBRATE_MEASURE_H
#define STRATA_TOOLS_CALIBRATE_MEASURE_H

#include "platform/device.h"
#include "trace/text/output.h"

enum { STRATA_REPEATS_MAX = 1000, STRATA_ROWS_MAX = 512, STRATA_ROW_GROUP = 8 };

/* The samples of one call at one size, ns of the calling thread's clock. */
typedef struct strata_measured_row {
    const char *call; /* a device call, or a variant of one, such as "malloc_async_cold" */
    uint64_t size; /* of one handle, if there are handles */
    uint64_t handles; /* 0 for none */
    uint64_t chunk; /* bytes that a pool took or returned; 0 for other calls */
    uint64_t samples, median, least, most;
} strata_measured_row_t;

/* Samples of one row while it is measured. */
typedef struct strata_samples {
    uint64_t values[STRATA_REPEATS_MAX];
    size_t count;
} strata_samples_t;

typedef struct strata_measure {
    strata_device_t *device;
    uint64_t repeats; /* 1 to STRATA_REPEATS_MAX */
    strata_measured_row_t rows[STRATA_ROWS_MAX];
    size_t count;
    uint64_t total_bytes; /* of the device */
    uint64_t budget; /* max bytes allocated for one row at a time: half of the free memory */
    uint64_t chunk_bytes; /* that a pool takes for a small request; 0 without pools */
    bool waits_known, free_waits; /* free_waits is true if free waits for running work */
    strata_status_t status; /* the first failure; nothing is measured after it */
    strata_samples_t group[STRATA_ROW_GROUP];
} strata_measure_t;

/* Measures all calls that the device supports. The caller sets the device and the repeats. Returns `status`.
 * After a failure, objects may be left on the device. */
strata_status_t strata_measure_all(strata_measure_t *measure);
/* Writes the rows as CSV, below the device's name. */
void strata_measure_print(const strata_measure_t *measure, strata_output_t *out);

#endif

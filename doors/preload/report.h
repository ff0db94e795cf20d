/* The report that a process under LD_PRELOAD writes at its end. */
#ifndef STRATA_INTEGRATION_REPORT_H
#define STRATA_INTEGRATION_REPORT_H

#include <stdatomic.h>
#include <stdio.h>

#include "doors/common/door.h"

typedef struct strata_run_report {
    strata_door_t *door; /* NULL if it was never opened, or is closed */
    const _Atomic uint64_t *served, *passed_on; /* calls of each row of the table */
} strata_run_report_t;

/* Writes the number of calls of each function that Strata and CUDA answered, the peak of each place, the process ID and the
 * program's name. `where` is "1" for standard error, or a file name in which %p is the process ID. The report is written whole
 * or not at all. A file of one process is renamed when it is complete, and a shared file gets one appending write. */
void strata_run_report_write(const strata_run_report_t *report, const char *where);
/* Prints one line if the process used CUDA but made no call that the library could see. Its runtime is then linked statically,
 * or loaded with dlopen(). */
void strata_run_report_warn(const strata_run_report_t *report, FILE *out);

#endif

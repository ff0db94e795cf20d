/* What a process under LD_PRELOAD is told about at its end. */
#ifndef STRATA_INTEGRATION_REPORT_H
#define STRATA_INTEGRATION_REPORT_H

#include <stdatomic.h>
#include <stdio.h>

#include "doors/common/door.h"

typedef struct strata_run_report {
    strata_door_t *door; /* NULL: never opened, or closed */
    const _Atomic uint64_t *served, *passed_on; /* calls of each row of the table */
} strata_run_report_t;

/* Writes how often Strata and CUDA answered each function, the peak of each place, the process ID and the program's name. `where` is "1" for
 * standard error, or a file name in which %p is the process ID. The report is written whole or not at all: a file of one process is
 * renamed when it is complete, and a shared file gets one appending write. */
void strata_run_report_write(const strata_run_report_t *report, const char *where);
/* One line if the process has used CUDA and not one call came through here: its runtime is linked statically, or found by hand. */
void strata_run_report_warn(const strata_run_report_t *report, FILE *out);

#endif

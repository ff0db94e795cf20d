/* What a process under LD_PRELOAD is told about at its end. */
#ifndef STRATA_INTEGRATION_REPORT_H
#define STRATA_INTEGRATION_REPORT_H

#include <stdatomic.h>
#include <stdio.h>

#include "integration/doors/door.h"

typedef struct strata_run_report {
    strata_door_t *door; /* NULL: never opened, or closed */
    const _Atomic uint64_t *served, *passed_on; /* calls of each row of the table */
} strata_run_report_t;

/* Writes how often Strata and CUDA answered each function, and the peak of each place, with the process's number and program.
 * `where` is "1" for standard error, or a file in whose name %p stands for the process's number. The text is written whole or
 * not at all: to a file of the process's own under another name first, to one that processes share by one appending write. */
void strata_run_report_write(const strata_run_report_t *report, const char *where);
/* One line if the process has used CUDA and not one call came through here: its runtime is linked statically, or found by hand. */
void strata_run_report_warn(const strata_run_report_t *report, FILE *out);

#endif

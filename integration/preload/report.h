/* What a process under LD_PRELOAD is told about at its end. */
#ifndef STRATA_INTEGRATION_REPORT_H
#define STRATA_INTEGRATION_REPORT_H

#include <stdatomic.h>
#include <stdio.h>

#include "integration/doors/door.h"

typedef struct strata_report {
    strata_door_t *door; /* NULL: never opened, or closed */
    const _Atomic uint64_t *served, *passed_on; /* calls of each row of the table */
} strata_report_t;

/* Who answered which function how often, and what each place held at most. */
void strata_report_print(const strata_report_t *report, FILE *out);
/* One line if the process has used CUDA and not one call came through here: its runtime is linked statically, or found by hand. */
void strata_report_warn(const strata_report_t *report, FILE *out);

#endif

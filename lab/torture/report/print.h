/* Prints programs as C. */
#ifndef STRATA_TORTURE_PRINT_H
#define STRATA_TORTURE_PRINT_H

#include <stdio.h>

#include "programs/play.h"

typedef struct torture_page {
    const char *strategy; /* its YAML */
    const char *about; /* text of the first comment */
    strata_torture_mode_t mode;
    bool may_refuse;
} torture_page_t;

/* Prints a program for the installed library (strata/torture.h) that fails as this one did. */
void torture_print(FILE *out, const torture_program_t *program, const torture_page_t *page);

#endif

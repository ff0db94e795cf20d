/* Programs as C. */
#ifndef STRATA_TORTURE_PRINT_H
#define STRATA_TORTURE_PRINT_H

#include <stdio.h>

#include "torture/play.h"

typedef struct torture_page {
    const char *name; /* of the test */
    const char *strategy; /* its YAML */
    const char *about; /* a comment; NULL: none */
    torture_mode_t mode;
    bool may_refuse;
    torture_dialect_t dialect;
} torture_page_t;

/* A test of the project's harness that makes the program's calls (those of torture/world.h) and fails as the program did. One that
 * fails with threads alone comes as the table of its operations. */
void torture_print(FILE *out, const torture_program_t *program, const torture_page_t *page);

#endif

/* Every block of a domain at one moment, as rows. */
#ifndef STRATA_ALLOCATION_ROWS_H
#define STRATA_ALLOCATION_ROWS_H

#include "allocation/call/blocks.h"

/* Neighbours in one chunk, in the order of their addresses. */
typedef struct strata_rows_run {
    const strata_snapshot_row_t *first;
    size_t count;
} strata_rows_run_t;

typedef struct strata_rows {
    strata_snapshot_row_t *rows;
    strata_rows_run_t *runs; /* by address */
    size_t count, room; /* of rows */
    size_t run_count;
} strata_rows_t;

/* Copied with the locks of all stacks held; no lock is held here. E_HOST_MEMORY: nothing is left. */
strata_status_t strata_rows_take(strata_domain_t *domain, strata_rows_t *rows);
void strata_rows_delete(strata_rows_t *rows);

#endif

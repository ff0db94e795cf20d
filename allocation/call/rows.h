/* Rows for every block of a domain at one moment. */
#ifndef STRATA_ALLOCATION_ROWS_H
#define STRATA_ALLOCATION_ROWS_H

#include "allocation/call/blocks.h"

/* Adjacent blocks of one chunk, in the order of their addresses. */
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

/* Copies the rows while it holds the locks of all stacks. No lock is held at the call. Returns
 * E_HOST_MEMORY, with nothing to delete. */
strata_status_t strata_rows_take(strata_domain_t *domain, strata_rows_t *rows);
void strata_rows_delete(strata_rows_t *rows);

#endif

/* Writes the metrics of places that changed since the last call, to compare two runs step by step. For one thread. */
#ifndef STRATA_FACADE_CHANGES_H
#define STRATA_FACADE_CHANGES_H

#include "facade/registry/facade.h"
#include "trace/text/output.h"

enum { STRATA_CHANGES_PLACES = STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES };

/* Initialize it to {0}. */
typedef struct strata_changes {
    strata_statistics_t last[STRATA_CHANGES_PLACES]; /* the open places, in the order of strata_facade_next_domain() */
} strata_changes_t;

/* Writes the metrics that changed, such as " gpu:0.chunks 1 gpu:0.reserved_bytes 2097152". Each begins as
 * 0. Errors stay in `out`. */
void strata_changes_write(strata_changes_t *changes, strata_facade_t *facade, strata_output_t *out);

/* Writes a line for every nonzero metric of a layer, and for every chunk and block. The content is that
 * of strata_statistics_json() and strata_snapshot(), without thread names. Returns E_HOST_MEMORY if out
 * of memory. */
strata_status_t strata_changes_write_all(strata_t facade, strata_output_t *out);

#endif

/* The figures of places that changed since the last look, as text: for comparing two runs step by step. For one thread. */
#ifndef STRATA_FACADE_CHANGES_H
#define STRATA_FACADE_CHANGES_H

#include "facade/registry/facade.h"
#include "trace/text/output.h"

enum { STRATA_CHANGES_PLACES = STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES };

/* Begins as {0}. */
typedef struct strata_changes {
    strata_statistics_t last[STRATA_CHANGES_PLACES]; /* of the open places, in the order of strata_facade_next_domain() */
} strata_changes_t;

/* " gpu:0.chunks 1 gpu:0.reserved_bytes 2097152": the figures that changed. Each begins as 0. Errors stay in `out`. */
void strata_changes_write(strata_changes_t *changes, strata_facade_t *facade, strata_output_t *out);

/* A line for every figure of a layer that is not 0, and for every chunk and block: what the text of strata_statistics_json() and
 * strata_snapshot() has, without names of threads. E_HOST_MEMORY. */
strata_status_t strata_changes_write_all(strata_t facade, strata_output_t *out);

#endif

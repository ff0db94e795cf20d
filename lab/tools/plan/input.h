/* Reads any file that `strata plan` takes as a table of buffers: a trace, CSV with a buffer per row, or a plan as JSON. */
#ifndef STRATA_TOOLS_PLAN_INPUT_H
#define STRATA_TOOLS_PLAN_INPUT_H

#include "lab/tools/plan/trace_order.h"
#include "planning/file/table.h"

enum { STRATA_PLAN_STEP_FOUND = 0 };
#define STRATA_PLAN_STEP_ALL UINT64_MAX

typedef struct strata_plan_reading {
    uint64_t step; /* of a trace, from 1; STRATA_PLAN_STEP_FOUND for a repeated one, else the whole; or STRATA_PLAN_STEP_ALL */
    bool ignore_offsets; /* drop the offsets in the file */
} strata_plan_reading_t;

typedef struct strata_plan_input {
    strata_plan_table_t table;
    char about[256]; /* the part of the file in words; empty for all of it */
    uint32_t *lifetimes; /* of a trace: the lifetime of each buffer; NULL for other files */
    strata_trace_order_t order;
    bool streams; /* buffers of a trace with several streams: each stream is a branch of fork 1 */
} strata_plan_input_t;

/* On failure nothing is left. Fails with E_IO, E_FORMAT, E_INVALID, E_LIMIT or E_HOST_MEMORY. */
strata_status_t strata_plan_input_read(const char *path, const strata_plan_reading_t *how, strata_plan_input_t *input);
void strata_plan_input_delete(strata_plan_input_t *input);
/* Calls strata_plan_depend() for `buffers`, which are the input's. Dependencies that a traced program orders
 * by itself are not implicit. */
strata_status_t strata_plan_input_depend(const strata_plan_input_t *input, const strata_plan_buffer_t *buffers,
                                         const uint64_t *offsets, strata_plan_dependencies_t *sums);

/* Defined in trace_buffers.c. */
strata_status_t strata_plan_input_trace(const char *path, uint64_t step, strata_plan_input_t *input);

#endif

#include "lab/tools/plan/input.h"

#include <string.h>

#include "lab/tools/plan/plan_json.h"
#include "platform/host/host_memory.h"
#include "trace/trace.h"

static void forget_offsets(strata_plan_table_t *t) {
    for (size_t i = 0; i < t->count; i++) t->buffers[i].flags &= ~(uint32_t)STRATA_PLAN_FIXED;
}

/* Returns true for the formats that only the readers of traces can read. Here JSON is a plan, and a table of
 * buffers is a problem. */
static bool is_record(const char *format) {
    return strcmp(format, "pytorch") == 0 || strcmp(format, "rmm") == 0 || strcmp(format, "umpire") == 0;
}

strata_status_t strata_plan_input_read(const char *path, const strata_plan_reading_t *how, strata_plan_input_t *input) {
    bool json = false, table = false;
    *input = (strata_plan_input_t){.about = ""};
    const char *format = "";
    strata_status_t status = strata_trace_format_name(path, &format);
    bool record = status == STRATA_OK && is_record(format);
    if (status == STRATA_OK && !record) status = strata_plan_json_detect(path, &json);
    if (status == STRATA_OK && !record && !json) status = strata_plan_table_detect(path, &table);
    if (status != STRATA_OK) return status;
    bool trace = !json && !table;
    if (!trace && how->step != STRATA_PLAN_STEP_FOUND)
        return strata_fail(STRATA_E_INVALID, 0, "--step: %s is not a trace; leave out --step", path);
    if (json) status = strata_plan_json_read(path, &input->table);
    else if (table) status = strata_plan_table_read(path, &input->table);
    else status = strata_plan_input_trace(path, how->step, input);
    if (status == STRATA_OK && how->ignore_offsets) forget_offsets(&input->table);
    if (status != STRATA_OK) strata_plan_input_delete(input);
    return status;
}

void strata_plan_input_delete(strata_plan_input_t *input) {
    strata_plan_table_delete(&input->table);
    strata_trace_order_delete(&input->order);
    strata_host_delete(input->lifetimes);
    input->lifetimes = NULL;
}

/* ---- the program's own order ---- */

typedef struct ordered {
    const strata_plan_input_t *input;
    uint64_t pairs, bytes;
} ordered_t;

static void count_ordered(void *context, size_t earlier, size_t later, uint64_t bytes) {
    ordered_t *o = context;
    const uint32_t *lifetimes = o->input->lifetimes;
    if (!lifetimes || !strata_trace_order_has(&o->input->order, lifetimes[earlier], lifetimes[later])) return;
    o->pairs++;
    o->bytes += bytes;
}

strata_status_t strata_plan_input_depend(const strata_plan_input_t *input, const strata_plan_buffer_t *buffers,
                                         const uint64_t *offsets, strata_plan_dependencies_t *sums) {
    ordered_t ordered = {.input = input};
    strata_status_t status = strata_plan_depend(buffers, input->table.count, offsets, count_ordered, &ordered, sums);
    sums->implicit -= ordered.pairs;
    sums->implicit_bytes -= ordered.bytes;
    return status;
}

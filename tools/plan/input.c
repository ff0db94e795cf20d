#include "tools/plan/input.h"

#include "tools/plan/plan_json.h"

static void forget_offsets(strata_plan_table_t *t) {
    for (size_t i = 0; i < t->count; i++) t->buffers[i].flags &= ~(uint32_t)STRATA_PLAN_FIXED;
}

strata_status_t strata_plan_input_read(const char *path, const strata_plan_reading_t *how, strata_plan_input_t *input) {
    bool json = false, table = false;
    *input = (strata_plan_input_t){.about = ""};
    strata_status_t status = strata_plan_json_is_one(path, &json);
    if (status == STRATA_OK && !json) status = strata_plan_table_is_one(path, &table);
    if (status != STRATA_OK) return status;
    bool trace = !json && !table;
    if (!trace && how->step != STRATA_PLAN_STEP_FOUND)
        return strata_fail(STRATA_E_INVALID, 0, "--step: %s is no trace; leave --step out", path);
    if (json) status = strata_plan_json_read(path, &input->table);
    else if (table) status = strata_plan_table_read(path, &input->table);
    else status = strata_plan_input_trace(path, how->step, input);
    if (status == STRATA_OK && how->anew) forget_offsets(&input->table);
    if (status != STRATA_OK) strata_plan_input_delete(input);
    return status;
}

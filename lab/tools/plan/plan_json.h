/* Writes plans as JSON: {"planner","buffers","peak_bytes","lower_bound_bytes","proved","seconds"}, peak_bytes null without a plan, and in a plan "plan": [{"name","lower",
 * "upper","size","alignment","kind","fork","branch","output","offset"}]. */
#ifndef STRATA_TOOLS_PLAN_JSON_H
#define STRATA_TOOLS_PLAN_JSON_H

#include "planning/file/json.h"

typedef struct strata_plan_told {
    const char *planner;
    strata_plan_result_t result;
    bool no_plan; /* the capacity is below the lower bound, so the result has the bound alone */
} strata_plan_told_t;

/* Without offsets only the figures. A file that is there, and is no JSON object, is not replaced: E_INVALID. E_IO,
 * E_HOST_MEMORY. */
strata_status_t strata_plan_json_write(const char *path, const strata_plan_told_t *told, const strata_plan_table_t *table,
                                       const uint64_t *offsets);

#endif

/* Writes plans as JSON:
 *
 *     {"planner", "buffers", "peak_bytes", "lower_bound_bytes", "proved", "seconds",
 *      "plan": [{"name", "lower", "upper", "size", "alignment", "kind", "fork", "branch", "output", "held", "offset"}]}
 *
 * peak_bytes is null if no plan was made. The member "plan" is there only if the offsets are written. */
#ifndef STRATA_TOOLS_PLAN_JSON_H
#define STRATA_TOOLS_PLAN_JSON_H

#include "planning/file/json.h"

typedef struct strata_plan_summary {
    const char *planner;
    strata_plan_result_t result;
    bool no_plan; /* the capacity is below the lower bound, so the result has only the bound */
} strata_plan_summary_t;

/* If `offsets` is NULL, writes only the figures. Fails with E_INVALID if the file exists and is not a JSON
 * object; it then stays. Also fails with E_IO or E_HOST_MEMORY. */
strata_status_t strata_plan_json_write(const char *path, const strata_plan_summary_t *summary, const strata_plan_table_t *table,
                                       const uint64_t *offsets);

#endif

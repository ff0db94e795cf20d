/* Plans as JSON: {..., "plan": [{"name","lower","upper","size","alignment","kind","fork","branch","output","held","offset"}]}.
 *
 * Reading treats the file as hostile: what is wrong is refused with E_FORMAT and "file:line: what is wrong". */
#ifndef STRATA_PLANNING_JSON_H
#define STRATA_PLANNING_JSON_H

#include "planning/file/table.h"

/* Whether the file begins as an object does. E_IO. */
strata_status_t strata_plan_json_is_one(const char *path, bool *is);
/* The buffers of a plan, fixed at its offsets. On failure nothing is left. E_IO, E_FORMAT, E_LIMIT, E_HOST_MEMORY. */
strata_status_t strata_plan_json_read(const char *path, strata_plan_table_t *table);

#endif

/* Reads plans from JSON: {..., "plan":
 * [{"name","lower","upper","size","alignment","kind","fork","branch","output","held","offset"}]}.
 *
 * Reading treats the file as hostile: invalid input is refused with E_FORMAT and "file:line: what is wrong". */
#ifndef STRATA_PLANNING_JSON_H
#define STRATA_PLANNING_JSON_H

#include "planning/file/table.h"

/* Sets *is to true if the file begins like a JSON object. Returns E_IO if it cannot be read. */
strata_status_t strata_plan_json_detect(const char *path, bool *is);
/* Reads the buffers of a plan, fixed at its offsets. On failure the table is empty. Returns E_IO,
 * E_FORMAT, E_LIMIT or E_HOST_MEMORY. */
strata_status_t strata_plan_json_read(const char *path, strata_plan_table_t *table);

#endif

/* Draws plans: time across, addresses up. */
#ifndef STRATA_TOOLS_PLAN_PICTURE_H
#define STRATA_TOOLS_PLAN_PICTURE_H

#include <stdio.h>

#include "planning/file/table.h"

/* Draws a plan as characters, `width` wide. Each sign is the buffer that covers most of its square, or '.' for none. */
strata_status_t strata_plan_draw(FILE *out, const strata_plan_table_t *table, const uint64_t *offsets, size_t width);
/* Writes a plan as SVG, with a rectangle for each buffer that has its name and figures. Fails with E_IO, with
 * E_LIMIT for too many buffers, or with E_HOST_MEMORY. */
strata_status_t strata_plan_svg(const char *path, const strata_plan_table_t *table, const uint64_t *offsets);

#endif

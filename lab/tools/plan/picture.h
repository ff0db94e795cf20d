/* Plans drawn: time across, addresses up. */
#ifndef STRATA_TOOLS_PLAN_PICTURE_H
#define STRATA_TOOLS_PLAN_PICTURE_H

#include <stdio.h>

#include "planning/file/table.h"

/* As characters, `width` wide: each sign is the buffer that has most of its square, '.' for none. */
strata_status_t strata_plan_draw(FILE *out, const strata_plan_table_t *table, const uint64_t *offsets, size_t width);
/* As SVG, a rectangle for each buffer with its name and figures. E_IO, E_LIMIT for too many buffers, E_HOST_MEMORY. */
strata_status_t strata_plan_svg(const char *path, const strata_plan_table_t *table, const uint64_t *offsets);

#endif

/* Formats values for the printed tables. */
#ifndef STRATA_REPLAY_CELL_H
#define STRATA_REPLAY_CELL_H

#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

enum { STRATA_CELL_BYTES = 64 };

typedef struct strata_cell {
    char text[STRATA_CELL_BYTES];
} strata_cell_t;

strata_cell_t strata_cell(const char *format, ...) STRATA_PRINTF(1, 2);
/* Formats 48663 as "48,663". */
strata_cell_t strata_cell_count(uint64_t value);
/* Formats 1234567 as "1.18 MiB". */
strata_cell_t strata_cell_bytes(uint64_t value);

/* Leaves out the part in parentheses: "71.6 (40.0 .. 77.9) ns" becomes "71.6 ns". */
strata_cell_t strata_cell_brief(strata_cell_t cell);
/* Cuts the cell to at most `width` bytes. The part in parentheses is left out first, then the middle becomes "..". */
strata_cell_t strata_cell_fit(strata_cell_t cell, size_t width);
/* Cuts `count` names to at most `width` bytes (at least 8), so that different names still differ. */
void strata_cells_fit_distinct(strata_cell_t *names, size_t count, size_t width);

#endif

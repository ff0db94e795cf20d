/* Values as the tables for people show them. */
#ifndef STRATA_REPLAY_CELL_H
#define STRATA_REPLAY_CELL_H

#include <stdint.h>

#include "platform/status.h"

enum { STRATA_CELL_BYTES = 64 };

typedef struct strata_cell {
    char text[STRATA_CELL_BYTES];
} strata_cell_t;

strata_cell_t strata_cell(const char *format, ...) STRATA_PRINTF(1, 2);
/* 48663 as "48,663". */
strata_cell_t strata_cell_count(uint64_t value);
/* 1234567 as "1.18 MiB". */
strata_cell_t strata_cell_bytes(uint64_t value);

#endif

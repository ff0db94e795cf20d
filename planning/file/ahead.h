/* A plan that was made ahead, as a program follows it: its requests in the order in which they are made, each with its offset. */
#ifndef STRATA_PLANNING_AHEAD_H
#define STRATA_PLANNING_AHEAD_H

#include "planning/file/table.h"

enum { STRATA_AHEAD_UNIT = 256, STRATA_AHEAD_REQUESTS = 1 << 16 };

typedef struct strata_ahead_request {
    uint64_t size, offset; /* multiples of the unit */
    uint64_t name; /* strata_ahead_name() */
} strata_ahead_request_t;

typedef struct strata_ahead {
    strata_ahead_request_t *requests;
    uint32_t count;
    uint64_t peak;
} strata_ahead_t; /* all zero is empty */

/* Of which branch; NULL: the file must have one only. */
typedef struct strata_ahead_reading {
    const uint32_t *branch;
} strata_ahead_reading_t;

/* Reads what `strata plan -o` writes, CSV or JSON; the file is hostile. The requests come in the order of `lower`, those of one moment as
 * in the file. What is held when the plan begins is no request; where it lives to the end, its addresses are taken out. On failure
 * nothing is left. E_IO, E_FORMAT ("file:line: what is wrong; what to write"), E_LIMIT, E_HOST_MEMORY. */
strata_status_t strata_ahead_read(const char *path, const strata_ahead_reading_t *how, strata_ahead_t *plan);
void strata_ahead_delete(strata_ahead_t *plan);

/* A name as a number; two names have the same one seldom. */
uint64_t strata_ahead_name(const char *name);

#endif

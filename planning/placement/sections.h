/* The sections of a problem: the moments with a local maximum of live items, in order. Two items overlap
 * in time if and only if they share a section, so a search needs no other information about time. */
#ifndef STRATA_PLANNING_SECTIONS_H
#define STRATA_PLANNING_SECTIONS_H

#include "planning/problem/problem.h"

typedef struct strata_sections {
    uint32_t count;
    uint32_t *first, *last; /* of each item; `last` is included */
    /* Items that begin in section s are beginning[begin_at[s]] to beginning[begin_at[s + 1] - 1]. Items
     * that end there are found by `ending` and `end_at`. */
    uint32_t *begin_at, *beginning;
    uint32_t *end_at, *ending;
} strata_sections_t;

/* Returns E_HOST_MEMORY with nothing allocated if out of memory. */
strata_status_t strata_sections_make(strata_sections_t *sections, const strata_problem_t *problem);
void strata_sections_delete(strata_sections_t *sections);
/* Sorts the items of every section by their ranks. Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_sections_order(strata_sections_t *sections, uint32_t items, const uint32_t *rank);

#endif

/* The sections of a problem: the moments at which no more items live before or after, in order. Two items meet in time if and only
 * if they have a section in common, so a section is all that a search need know of time. */
#ifndef STRATA_PLANNING_SECTIONS_H
#define STRATA_PLANNING_SECTIONS_H

#include "planning/problem/problem.h"

typedef struct strata_sections {
    uint32_t count;
    uint32_t *first, *last; /* of each item, the last included */
    /* The items that begin in section s are beginning[begin_at[s]] to beginning[begin_at[s + 1] - 1]; those that end likewise. */
    uint32_t *begin_at, *beginning;
    uint32_t *end_at, *ending;
} strata_sections_t;

/* E_HOST_MEMORY: nothing is left. */
strata_status_t strata_sections_make(strata_sections_t *sections, const strata_problem_t *problem);
void strata_sections_delete(strata_sections_t *sections);
/* Puts the items of every section into the order of their ranks. E_HOST_MEMORY. */
strata_status_t strata_sections_order(strata_sections_t *sections, uint32_t items, const uint32_t *rank);

#endif

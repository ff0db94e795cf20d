/* Places items one after another, in any order. Each goes into a gap between the placed items that it
 * overlaps in time. Finding those takes time proportional to their number, so a whole order costs the
 * number of overlapping pairs. */
#ifndef STRATA_PLANNING_FIT_H
#define STRATA_PLANNING_FIT_H

#include "planning/problem/problem.h"

#define STRATA_NO_ITEM UINT32_MAX

typedef struct strata_span {
    uint64_t from, to;
} strata_span_t;

typedef struct strata_fit {
    const strata_problem_t *problem;
    uint64_t *offsets; /* by item; STRATA_ANYWHERE if not placed */
    uint64_t peak; /* of the placed items, by rounded sizes */
    uint32_t *reach; /* a tree over the items: the latest `upper` of the placed items below a node */
    uint32_t leaves; /* a power of two */
    uint32_t *begins_before; /* by time: the number of items that begin before it */
    strata_span_t *spans;
    uint64_t pairs; /* work so far: items placed, plus overlaps examined */
} strata_fit_t;

typedef enum strata_gap { STRATA_GAP_LOWEST, STRATA_GAP_SMALLEST } strata_gap_t;

/* Returns E_HOST_MEMORY with nothing allocated if out of memory. */
strata_status_t strata_fit_init(strata_fit_t *fit, const strata_problem_t *problem);
void strata_fit_destroy(strata_fit_t *fit);
/* Removes all items. */
void strata_fit_clear(strata_fit_t *fit);
/* Places an item that is not placed. */
void strata_fit_place(strata_fit_t *fit, uint32_t item, strata_gap_t gap);
/* Puts an item that is not placed at an offset where it must fit. The peak is unchanged. */
void strata_fit_place_at(strata_fit_t *fit, uint32_t item, uint64_t offset);
/* Removes a placed item. The peak is unchanged. */
void strata_fit_remove(strata_fit_t *fit, uint32_t item);
/* Stores the placed items that overlap the item in time, in order of their begins, at most `room` of
 * them. Returns their number. */
uint32_t strata_fit_overlaps(const strata_fit_t *fit, uint32_t item, uint32_t *overlapping, uint32_t room);
/* Returns the number of pairs of items that live at one moment, without those that only forks add. */
uint64_t strata_fit_pairs(const strata_fit_t *fit);

#endif

/* Items placed one after another, in any order: each into a gap among those placed already that it meets. Finding these takes a
 * time proportional to their number, so an order costs the number of pairs that meet. */
#ifndef STRATA_PLANNING_FIT_H
#define STRATA_PLANNING_FIT_H

#include "planning/problem/problem.h"

#define STRATA_NO_ITEM UINT32_MAX

typedef struct strata_span {
    uint64_t from, to;
} strata_span_t;

typedef struct strata_fit {
    const strata_problem_t *problem;
    uint64_t *offsets; /* by item; STRATA_ANYWHERE: not placed */
    uint64_t peak; /* of those placed, rounded sizes */
    uint32_t *reach; /* a tree over the items: the latest upper of those placed below a node */
    uint32_t leaves; /* a power of two */
    uint32_t *begun; /* by time: the items that begin before it */
    strata_span_t *spans;
    uint64_t pairs; /* work so far: items placed, plus overlaps examined */
} strata_fit_t;

typedef enum strata_gap { STRATA_GAP_LOWEST, STRATA_GAP_SMALLEST } strata_gap_t;

/* E_HOST_MEMORY: nothing is left. */
strata_status_t strata_fit_init(strata_fit_t *fit, const strata_problem_t *problem);
void strata_fit_destroy(strata_fit_t *fit);
/* Nothing is placed. */
void strata_fit_clear(strata_fit_t *fit);
/* Places one that is not. */
void strata_fit_place(strata_fit_t *fit, uint32_t item, strata_gap_t gap);
/* Puts one that is not placed to where it is known to fit; the peak stays as it is. */
void strata_fit_put(strata_fit_t *fit, uint32_t item, uint64_t offset);
/* Takes one away that was placed; the peak stays as it is. */
void strata_fit_remove(strata_fit_t *fit, uint32_t item);
/* The placed items whose time meets that of the item, by their begins, `room` at most; their number. */
uint32_t strata_fit_met(const strata_fit_t *fit, uint32_t item, uint32_t *met, uint32_t room);
/* Pairs of items that live at one moment, forks left out. */
uint64_t strata_fit_pairs(const strata_fit_t *fit);

#endif

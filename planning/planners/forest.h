/* A pool of `tree`: assigns memory to items over time, by splits in time and in space.
 *
 *     allocation   an item
 *     empty        room that is not used yet
 *     temporal     parts that never live at the same time, at the same address
 *     spatial      two temporal splits side by side
 *
 * The rules are those of PyTorch Inductor's memory planning (torch 2.9, codegen/memory_planning.py), in a
 * new implementation. An item goes into a temporal split if it is not larger, or if the split may grow.
 * It goes beside parts that it does not overlap in time, or into the only part that it overlaps. If it
 * overlaps several parts, it is refused. With `close_gaps`, these parts become one instead, with the item
 * behind them. */
#ifndef STRATA_PLANNING_FOREST_H
#define STRATA_PLANNING_FOREST_H

#include "planning/problem/problem.h"

enum {
    STRATA_FOREST_ALIGNMENT = 64, /* of the right side of a split */
    STRATA_FOREST_ITEMS = 4096 /* max items of a problem; it also bounds the depth of nested splits */
};

typedef enum strata_split_kind {
    STRATA_SPLIT_ALLOCATION,
    STRATA_SPLIT_EMPTY,
    STRATA_SPLIT_TEMPORAL,
    STRATA_SPLIT_SPATIAL
} strata_split_kind_t;

typedef struct strata_split {
    strata_split_kind_t kind;
    uint32_t item; /* allocation */
    uint32_t first, last, next; /* temporal: its parts, linked by `next`; spatial: left and right */
    uint64_t lower, upper; /* first to last moment with a live item below; without one, lower is not below upper */
    uint64_t size; /* room, empty parts included */
} strata_split_t;

typedef struct strata_forest {
    const strata_problem_t *problem;
    strata_split_t *splits; /* number 0 means none */
    uint32_t used, capacity;
    uint64_t alignment;
    uint64_t *lower, *upper; /* live range by item */
    bool close_gaps;
    bool failed; /* the host had no memory for a split, so nothing below may be used */
} strata_forest_t;

/* Returns E_HOST_MEMORY with nothing allocated if out of memory. */
strata_status_t strata_forest_init(strata_forest_t *forest, const strata_problem_t *problem, bool close_gaps);
void strata_forest_destroy(strata_forest_t *forest);

static inline uint64_t strata_forest_size_of(const strata_forest_t *forest, uint32_t item) {
    return forest->problem->buffers[forest->problem->items[item].buffer].size;
}

/* Makes a pool of one item. Returns its root, a temporal split. */
uint32_t strata_forest_new_pool(strata_forest_t *forest, uint32_t item);
/* Inserts the item below a root, which may grow if `grows` is set. Returns false if it does not fit. */
bool strata_forest_insert(strata_forest_t *forest, uint32_t root, uint32_t item, bool grows);
/* Puts the item behind everything else. Returns the new root. */
uint32_t strata_forest_append(strata_forest_t *forest, uint32_t root, uint32_t item);
/* Computes the offsets of all items below a root at `offset`. Returns its size, without the empty room at the end. */
uint64_t strata_forest_set_offsets(const strata_forest_t *forest, uint32_t root, uint64_t offset, uint64_t *offsets);

#endif

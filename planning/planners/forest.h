/* A pool of `tree`: which items share memory at which times, as splits in time and in space.
 *
 *   allocation   an item
 *   empty        room that nothing has yet
 *   temporal     parts that never live at the same time, at the same address
 *   spatial      two temporal splits side by side
 *
 * The rules are those of PyTorch Inductor's memory planning (torch 2.9, codegen/memory_planning.py), written anew. An item goes
 * into a temporal split if it is no larger than that, or if the split may grow; beside what it does not meet, or into the one part
 * that it does meet. If it meets several parts it is refused. `mended`: then these parts become one, with the item behind them.
 */
#ifndef STRATA_PLANNING_FOREST_H
#define STRATA_PLANNING_FOREST_H

#include "planning/problem/problem.h"

enum {
    STRATA_FOREST_ALIGNMENT = 64, /* of the right side of a split */
    STRATA_FOREST_ITEMS = 4096 /* of a problem: splits may stand as deep in one another */
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
    uint64_t lower, upper; /* from the first moment at which something below lives to the last; nothing: lower is not below upper */
    uint64_t size; /* room, empty parts included */
} strata_split_t;

typedef struct strata_forest {
    const strata_problem_t *problem;
    strata_split_t *splits; /* number 0 is none */
    uint32_t used, capacity;
    uint64_t alignment;
    uint64_t *lower, *upper; /* by item: when it lives */
    bool mended;
    bool failed; /* the host had no memory for a split: nothing below may be used */
} strata_forest_t;

/* E_HOST_MEMORY: nothing is left. */
strata_status_t strata_forest_init(strata_forest_t *forest, const strata_problem_t *problem, bool mended);
void strata_forest_destroy(strata_forest_t *forest);

static inline uint64_t strata_forest_size_of(const strata_forest_t *forest, uint32_t item) {
    return forest->problem->buffers[forest->problem->items[item].buffer].size;
}

/* A pool of one item: its root, a temporal split. */
uint32_t strata_forest_pool(strata_forest_t *forest, uint32_t item);
/* Whether the item has found a place below a root, which `grows` or not. */
bool strata_forest_put(strata_forest_t *forest, uint32_t root, uint32_t item, bool grows);
/* Puts the item behind everything; the new root. */
uint32_t strata_forest_put_behind(strata_forest_t *forest, uint32_t root, uint32_t item);
/* Offsets of all items below a root that lies at `offset`; its size, without what is empty at the end. */
uint64_t strata_forest_finish(const strata_forest_t *forest, uint32_t root, uint64_t offset, uint64_t *offsets);

#endif

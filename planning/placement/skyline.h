/* The search of `exact`: can all items be placed below a given peak?
 *
 *     height |        ######
 *            |####    ######          a valley: sections of one height
 *            |####    ##########      between higher ones
 *            |###################
 *           edge ^  ^ edge            sections (time) ->
 *
 * Items are placed on a skyline, the height to which each section is filled. At the edge of a valley
 * there are few choices. Either an item goes on the floor: then it begins at this edge and ends within
 * the valley. Or none does, and the section wastes the room up to the next height where an item can
 * begin. Each section can waste only what the peak leaves above the sum of its items.
 *
 * The edge with the fewest choices is decided first. If no remaining item crosses from one section to the
 * next, the two sides are solved separately. Dead ends are remembered. */
#ifndef STRATA_PLANNING_SKYLINE_H
#define STRATA_PLANNING_SKYLINE_H

#include "planning/placement/memo.h"
#include "planning/placement/sections.h"

enum { STRATA_SKYLINE_DEPTH = 3000 }; /* max recursion depth; a level takes about 500 bytes of the caller's stack */

typedef enum strata_verdict {
    STRATA_VERDICT_SOLVED,
    STRATA_VERDICT_IMPOSSIBLE,
    STRATA_VERDICT_STOPPED /* out of steps, time or depth */
} strata_verdict_t;

typedef struct strata_skyline {
    const strata_problem_t *problem;
    strata_sections_t sections;
    strata_memo_t memo;
    uint64_t memo_target; /* the peak for which the memo is valid */
    uint64_t *offsets; /* by item; STRATA_ANYWHERE if not placed */
    uint64_t *height, *room; /* by section: filled height; bytes that may still be wasted */
    uint64_t *inner; /* by section: scratch for sums over a valley */
    uint32_t *unplaced, *crossing; /* by section: items not placed; the ones among them that continue into the next section */
    uint32_t *order, *rank; /* items in the order of trials, and the position of each item in it */
    uint32_t *kind; /* by item: interchangeable items share a number; UINT32_MAX for fixed items, which are unique */
    uint32_t *last_of_kind; /* by kind: scratch */
    uint32_t *twin; /* by item: the interchangeable item before it, or UINT32_MAX */
    uint32_t *fixed; /* the fixed items */
    uint32_t fixed_count;
    uint64_t *hash; /* by item: a random number */
    struct strata_move {
        uint32_t item; /* UINT32_MAX if the move wastes room of a section */
        uint32_t section;
        uint64_t wasted;
    } * moves;
    uint32_t move_count, move_capacity;
    uint64_t target, steps, step_limit, check_every; /* check_every: steps between two checks of the clock */
    uint32_t depth;
    bool absolute; /* an item is fixed or has a larger alignment, so absolute heights matter, not just differences */
    bool lowest; /* decides the lowest valley first, by any item that fits into it; better if there is much room */
} strata_skyline_t;

/* Requires a problem without forks. Returns E_HOST_MEMORY with nothing allocated. */
strata_status_t strata_skyline_init(strata_skyline_t *skyline, const strata_problem_t *problem);
void strata_skyline_destroy(strata_skyline_t *skyline);
/* Sets the order in which all items are tried; call it before the first search. Returns E_HOST_MEMORY if
 * out of memory. */
strata_status_t strata_skyline_order(strata_skyline_t *skyline, const uint32_t *order);
/* Searches for a plan of this peak, and stores it in `offsets`. Visits at most `steps` places. */
strata_verdict_t strata_skyline_solve(strata_skyline_t *skyline, uint64_t peak, uint64_t steps);

#endif

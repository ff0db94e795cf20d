/* The search of `exact`: can all items be placed below a given peak?
 *
 * Items are placed on a skyline, the height that each section is filled to. In a valley of it, sections of one height between
 * higher ones, whatever comes next onto the section at its edge either stands on the floor, and then begins at this edge and ends
 * within the valley, or nothing stands there, and the section wastes what lies below the next height at which something can begin.
 * So there are few choices, and each section has only so much to waste: what the peak leaves beyond the sum of its items. The edge
 * with the fewest choices is decided first. Where nothing that is left crosses from one section to the next, the two sides are
 * solved apart. What led nowhere is remembered.
 */
#ifndef STRATA_PLANNING_SKYLINE_H
#define STRATA_PLANNING_SKYLINE_H

#include "planning/placement/memo.h"
#include "planning/placement/sections.h"

enum { STRATA_SKYLINE_DEPTH = 3000 }; /* placed and wasted one after another; a level takes some 500 bytes of the caller's stack */

typedef enum strata_verdict {
    STRATA_VERDICT_SOLVED,
    STRATA_VERDICT_IMPOSSIBLE,
    STRATA_VERDICT_STOPPED /* out of steps, time or depth */
} strata_verdict_t;

typedef struct strata_skyline {
    const strata_problem_t *problem;
    strata_sections_t sections;
    strata_memo_t memo;
    uint64_t memo_target; /* that it is about */
    uint64_t *offsets; /* by item; STRATA_ANYWHERE: not placed */
    uint64_t *height, *room; /* of sections: filled to; bytes that may still be wasted */
    uint64_t *inner; /* of sections: for sums over a valley */
    uint32_t *left, *crossing; /* of sections: items not placed; those of them that go on into the next section */
    uint32_t *order, *rank; /* items in the order in which they are tried, and their places in it */
    uint32_t *kind; /* by item: interchangeable items share a number; UINT32_MAX: fixed, hence unique */
    uint32_t *last_of; /* by kind: scratch */
    uint32_t *twin; /* of items: the one before that is alike, or UINT32_MAX */
    uint32_t *fixed; /* the items that are fixed */
    uint32_t fixed_count;
    uint64_t *name; /* of items: random */
    struct strata_move {
        uint32_t item; /* or UINT32_MAX: a section wasted */
        uint32_t section;
        uint64_t wasted;
    } * moves;
    uint32_t move_count, move_capacity;
    uint64_t target, steps, step_limit, look_every; /* look_every: steps between two checks of the clock */
    uint32_t depth;
    bool absolute; /* something is fixed, or aligned in a way of its own: heights matter, not just differences */
    bool lowest; /* the lowest valley is decided first, by anything that fits into it: better where there is much room */
} strata_skyline_t;

/* No forks. E_HOST_MEMORY: nothing is left. */
strata_status_t strata_skyline_init(strata_skyline_t *skyline, const strata_problem_t *problem);
void strata_skyline_destroy(strata_skyline_t *skyline);
/* The order in which items are tried, all of them; before the first search. E_HOST_MEMORY. */
strata_status_t strata_skyline_order(strata_skyline_t *skyline, const uint32_t *order);
/* Whether there is a plan of this peak; `offsets` has it. Looks at no more than `steps` places. */
strata_verdict_t strata_skyline_solve(strata_skyline_t *skyline, uint64_t peak, uint64_t steps);

#endif

/* Offline memory planning: if lifetimes are known, every address is decided ahead. A plan turns intervals into offsets, without a
 * facade or a device. For compilers, and for programs that repeat.
 *
 *     offset |  a a a a c c c         a buffer is a box: its lifetime wide, its size high
 *            |  a a a a   b b b       the planner moves boxes down without overlap
 *            +-----------------> logical time
 *
 * Shapes      A buffer lives in [lower, upper) of logical time and takes [offset, offset + size) of one address space that begins
 *             at 0. Buffers are named by their indices in the caller's array.
 * Units       Sizes, offsets and alignments are in bytes. Logical time has no unit.
 * Ownership   The caller owns all arrays, and nothing is kept after a call.
 * Threads     Any thread. Calls are independent of each other. A search takes at most some 2 MiB of the caller's stack.
 * Errors      E_INVALID for an impossible buffer (the text names it), and E_LIMIT for too many or too large ones. E_UNSUPPORTED
 *             if a planner does not allow an input. E_HOST_MEMORY. */
#ifndef STRATA_PLAN_H
#define STRATA_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strata/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STRATA_PLAN_FIXED = 1, /* its offset is given: `offset` of the buffer */
    STRATA_PLAN_OUTPUT = 2, /* it leaves the program: `reuse` and `tree` treat it as their peer treats outputs */
    STRATA_PLAN_REMOVED = 4, /* not needed: it takes no memory, and its offset is 0 */
    STRATA_PLAN_HELD = 8 /* it was live before the first moment, so no request of the program makes it */
};

/* Two buffers must not share a byte if their lifetimes overlap. Nor may they, whatever their lifetimes, if they are of one fork
 * (other than 0) and of different branches of it. Branches may run side by side, as streams do, so logical time does not order
 * them. An ordinary buffer sets only lower, upper and size. */
typedef struct strata_plan_buffer {
    uint64_t lower, upper; /* lower < upper */
    uint64_t size; /* at most 2^48; 0 takes no memory */
    uint64_t alignment; /* of its offset: a power of two up to 2^40; 0 means 1 */
    uint64_t offset; /* if it is fixed: at most 2^60, a multiple of the alignment */
    uint32_t kind; /* `reuse` passes memory on between buffers of one kind only (device, type) */
    uint32_t fork, branch;
    uint32_t flags; /* STRATA_PLAN_FIXED ... */
} strata_plan_buffer_t;

enum { STRATA_PLAN_BUFFERS = 1 << 24 }; /* the maximum */

/* X(name, meaning): the planners. */
#define STRATA_PLANNER_MAP(X)                                                                                                      \
    X(auto, "greedy, then exact where that may help; never worse than greedy")                                                     \
    X(greedy, "first and best fit in several orders and in program order; the best result is improved until time runs out")        \
    X(exact, "branch and bound: the provably lowest peak, if time allows")                                                         \
    X(reuse, "passes freed buffers on to later ones of the same size and kind, in program order (PyTorch Inductor's "              \
             "memory_plan_reuse)")                                                                                                 \
    X(tree, "pools as trees of splits in time and in space (PyTorch Inductor's memory_planning)")

/* The treatment of outputs and pools by `tree`, as in its peer's setting memory_pool. */
typedef enum strata_plan_pools {
    STRATA_PLAN_POOLS_INTERMEDIATES, /* outputs have pools of their own, and the others share pools that grow */
    STRATA_PLAN_POOLS_NONE, /* as before, but no pool grows */
    STRATA_PLAN_POOLS_OUTPUTS, /* outputs share a pool, and so do the others */
    STRATA_PLAN_POOLS_COMBINED /* all share pools */
} strata_plan_pools_t;

typedef struct strata_plan_options {
    size_t struct_size;
    const char *planner; /* or NULL for "auto" */
    uint64_t time_ns; /* time for improvements; 0 means one second. A plan is always returned */
    uint64_t capacity; /* bytes: a plan with at most this peak is good enough; 0 is none. It is not a limit (see `peak`) */
    strata_plan_pools_t pools; /* tree */
    bool close_gaps; /* reuse and tree: without the known gaps of their peers (docs/planning.md) */
} strata_plan_options_t;

typedef struct strata_plan_result {
    size_t struct_size; /* the caller sets it */
    uint64_t peak; /* highest offset + size */
    uint64_t lower_bound; /* no plan has a lower peak */
    uint64_t time_ns; /* spent */
    uint32_t pools; /* tree: the number of pools; else 0 */
    bool proved; /* no plan is better: the peak is the lower bound, or a search was complete */
} strata_plan_result_t;

/* Decides the offsets of `count` buffers: offsets[i] is that of buffers[i]. `buffers` (may be NULL if `count` is 0) and `offsets`
 * (may be NULL if `count` is 0) are arrays. Without `options` (may be NULL) the defaults apply. `result` (may be NULL) receives
 * the properties of the plan. */
STRATA_API strata_status_t strata_plan_make(const strata_plan_options_t *options, const strata_plan_buffer_t *buffers, size_t count,
                                            uint64_t *offsets, strata_plan_result_t *result);

/* Checks that these offsets are a plan: aligned, fixed where they must be, and without forbidden overlap. Returns E_CORRUPT if
 * they are not, and the text names the buffers. `buffers` (may be NULL if `count` is 0), `offsets` (may be NULL if `count` is 0).
 * *peak (may be NULL) is set unless a buffer is wrong. Shares no code with the planners. */
STRATA_API strata_status_t strata_plan_check(const strata_plan_buffer_t *buffers, size_t count, const uint64_t *offsets,
                                             uint64_t *peak);

/* Sets *bound to the most bytes needed at one moment: no plan has a lower peak. Sizes are rounded up to the least alignment that
 * is live then, except for the topmost buffer. Buffers of each larger alignment are also counted alone. `buffers` (may be NULL if
 * `count` is 0). */
STRATA_API strata_status_t strata_plan_lower_bound(const strata_plan_buffer_t *buffers, size_t count, uint64_t *bound);

/* ---- the effect of a plan on a program ---- */

/* X(name, meaning): the lines that `reuse` makes of a program. */
#define STRATA_PLAN_LINE_MAP(X)                                                                                                    \
    X(allocate, "new memory for the buffer")                                                                                       \
    X(reuse, "the buffer takes over the memory of `other`, which is no longer needed")                                             \
    X(free, "the memory of the buffer is released")                                                                                \
    X(null, "nothing: its memory is passed on later, or the buffer takes none")

typedef enum strata_plan_effect {
#define STRATA_PLAN_EFFECT_ENUM(name, what) STRATA_PLAN_##name,
    STRATA_PLAN_LINE_MAP(STRATA_PLAN_EFFECT_ENUM)
#undef STRATA_PLAN_EFFECT_ENUM
} strata_plan_effect_t;

typedef struct strata_plan_line {
    uint64_t time;
    strata_plan_effect_t effect;
    uint32_t buffer;
    uint32_t other; /* reuse: the buffer that had the memory; else the buffer itself */
} strata_plan_line_t;

/* Returns the lines of `reuse`, at most 2 * count of them, in program order. At one moment the buffers that end are first, then
 * those that begin, each in the order of the array. `lines` (may be NULL if `count` is 0) has room for them, and *line_count
 * receives their number. `options` (may be NULL) and `buffers` (may be NULL if `count` is 0) are as above. */
STRATA_API strata_status_t strata_plan_reuse_lines(const strata_plan_options_t *options, const strata_plan_buffer_t *buffers,
                                                   size_t count, strata_plan_line_t *lines, size_t *line_count);

/* Bytes that a plan passes from a buffer to the next ones at the same addresses. If the two are of different branches of a fork,
 * only the plan orders them. It makes one wait for the other, which is an implicit dependency. */
typedef struct strata_plan_dependencies {
    size_t struct_size;
    uint64_t reuses, bytes; /* pairs of buffers, and the bytes passed between them */
    uint64_t implicit, implicit_bytes; /* those of different branches */
} strata_plan_dependencies_t;

/* Counts the reuses of a plan that ignores forks, so that offsets may share bytes between branches. `buffers` (may be NULL if
 * `count` is 0), `offsets` (may be NULL if `count` is 0). `found` (may be NULL) is called for each implicit dependency, in the
 * order of the later buffer's lower. */
STRATA_API strata_status_t strata_plan_depend(const strata_plan_buffer_t *buffers, size_t count, const uint64_t *offsets,
                                              void (*found)(void *context, size_t earlier, size_t later, uint64_t bytes),
                                              void *context, strata_plan_dependencies_t *dependencies);

#ifdef __cplusplus
}
#endif
#endif

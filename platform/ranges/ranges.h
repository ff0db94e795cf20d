/* Ranges of time by name, for tools that record NVTX (Nsight Systems, Nsight Compute): where the host grew, waited, gave memory back or
 * ran out of it, and each request and free where the layer nvtx stands. They are in the domain "strata" and carry bytes. Without such a tool a range costs a call and a load.
 *
 * Any thread; a range ends on the thread that began it, the innermost first. No lock of Strata may be held, since the tool may wait.
 */
#ifndef STRATA_PLATFORM_RANGES_H
#define STRATA_PLATFORM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

/* X(range, its name) */
#define STRATA_RANGE_MAP(X)                                                                                                        \
    X(allocate, "allocate") /* the layer nvtx: a request; its bytes */                                                             \
    X(free, "free") /* the same: a free; the block's bytes */                                                                      \
    X(growth, "growth") /* a cache gets a chunk; its bytes */                                                                      \
    X(wait, "wait") /* the host waits for the device; 0 bytes */                                                                   \
    X(release, "release") /* what lies idle goes back */                                                                           \
    X(out_of_memory, "out of memory") /* the ladder of a request that failed; its bytes */

typedef enum strata_range {
#define STRATA_RANGE_ENUM(range, name) STRATA_RANGE_##range,
    STRATA_RANGE_MAP(STRATA_RANGE_ENUM)
#undef STRATA_RANGE_ENUM
        STRATA_RANGES
} strata_range_t;

void strata_range_begin(strata_range_t range, uint64_t bytes);
void strata_range_end(void);
/* Whether ranges can be recorded at all: NVTX's headers were there when this was built. */
bool strata_ranges_are_built(void);

#endif

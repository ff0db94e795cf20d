/* Named ranges of time for profilers that record NVTX (Nsight Systems, Nsight Compute). They show where
 * the host grew a cache, waited, released memory or ran out of it. The layer nvtx adds one for each
 * request and free. All are in the domain "strata" and carry a number of bytes. Without such a tool a
 * range costs a call and a load.
 *
 * Ranges may be used on any thread. A range ends on the thread that began it, the innermost first. The
 * caller holds no lock of Strata, since the tool may wait. */
#ifndef STRATA_PLATFORM_RANGES_H
#define STRATA_PLATFORM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

/* X(range, its name) */
#define STRATA_RANGE_MAP(X)                                                                                                        \
    X(allocate, "allocate") /* a request through the layer nvtx; its bytes */                                                      \
    X(free, "free") /* a free in the layer nvtx; the block's bytes */                                                              \
    X(growth, "growth") /* a cache gets a chunk; the chunk's bytes */                                                              \
    X(wait, "wait") /* the host waits for the device; 0 bytes */                                                                   \
    X(release, "release") /* idle memory is released */                                                                            \
    X(out_of_memory, "out of memory") /* recovery of a request that failed; its bytes */

typedef enum strata_range {
#define STRATA_RANGE_ENUM(range, name) STRATA_RANGE_##range,
    STRATA_RANGE_MAP(STRATA_RANGE_ENUM)
#undef STRATA_RANGE_ENUM
        STRATA_RANGES
} strata_range_t;

void strata_range_begin(strata_range_t range, uint64_t bytes);
void strata_range_end(void);
/* Returns true if ranges can be recorded, which means that NVTX's headers were found when this was built. */
bool strata_ranges_are_built(void);

#endif

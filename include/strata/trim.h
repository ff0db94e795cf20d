/* Releases memory of one pool while it is in use. strata/strata.h includes this header. */
#ifndef STRATA_TRIM_H
#define STRATA_TRIM_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a pool in a place that strata_trim_pool() found and released. */
typedef struct strata_pool_trim {
    size_t struct_size;
    uint64_t idle; /* idle in its caches before */
    uint64_t released; /* given back to the device */
    uint64_t left; /* idle in its caches afterwards: the bytes to keep, or parts of chunks that are in use */
    uint64_t pending; /* freed, but still used by the GPU. A later call can release them */
} strata_pool_trim_t;
/* Releases idle chunks of a pool until at most `keep` idle bytes are left in it, or until no chunk is wholly idle. Pools with
 * `keep: true` are trimmed too. Live blocks stay at their addresses. Other threads may use the pool during the call. With
 * STRATA_UNLIMITED as `keep` nothing is released. `pool` is as in strata_release_pool(). A pool whose memory captured graphs use
 * releases nothing. Memory that the device refuses to take back stays reserved, and strata_release_pool() offers it again.
 * *trim (may be NULL) receives the bytes. Returns E_INVALID for an unknown pool or a wrong struct_size. */
STRATA_API strata_status_t strata_trim_pool(strata_t facade, strata_place_t place, uint64_t pool, uint64_t keep,
                                            strata_pool_trim_t *trim);

#ifdef __cplusplus
}
#endif
#endif

/* Gives memory back to the device for a while, as the sleep mode of inference engines and of programs that train and serve in
 * turn. This header is part of strata/strata.h. docs/sharing.md describes the design, and examples/pause.c is a complete program.
 *
 *     strata_pause_options_t weights = {.struct_size = sizeof weights, .pool = w, .contents = STRATA_PAUSE_PINNED};
 *     strata_pause_options_t cache = {.struct_size = sizeof cache, .pool = k, .contents = STRATA_PAUSE_DROP};
 *     strata_pause(s, gpu, &weights, NULL);
 *     strata_pause(s, gpu, &cache, NULL);            ... other programs can use the GPU's memory ...
 *     strata_resume(s, gpu, w, NULL, NULL);          weights are there again, at the same addresses, with the same bytes
 *     strata_resume(s, gpu, k, NULL, NULL);          the cache is there again, with undefined contents
 *
 * Which memory         Memory of the layer `vmm`: physical handles. Any other source is E_UNSUPPORTED, and the text names the
 *                      change to the strategy.
 * While paused         No kernel, graph or copy may use the memory, from the call of strata_pause() to the return of
 *                      strata_resume(). Requests of the pool return E_BUSY. Frees, borrows, names and notes of its blocks still
 *                      work. Blocks keep their addresses and refs.
 * Threads              Any. A pause and a resume of one facade wait for one another. A callback may call neither (E_BUSY). */
#ifndef STRATA_PAUSE_H
#define STRATA_PAUSE_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every pool of the place: ordinary stacks, named pools, pools of graphs. Their memory in handles is paused. `rest_bytes` counts
 * the other memory. */
#define STRATA_POOL_EVERY UINT64_MAX

/* The treatment of the bytes. */
typedef enum strata_pause_contents {
    STRATA_PAUSE_DROP = 0, /* none are kept. After the resume they are undefined, or 0 with `scrub` in the stack */
    STRATA_PAUSE_PINNED = 1, /* kept in pinned memory of the facade, from its place pinned, with the tag "strata_pause" */
    STRATA_PAUSE_FILE = 2 /* kept in a file without a name in `directory`, which is deleted when the process ends at the latest */
} strata_pause_contents_t;

typedef struct strata_pause_options {
    size_t struct_size;
    /* From strata_pool() or strata_graph_pool_begin(), or STRATA_POOL_EVERY for all pools. STRATA_POOL_ORDINARY is memory outside
     * pools, and 0 the thread's current pool. */
    uint64_t pool;
    const char *tag; /* only handles in which all live blocks have this tag (strata_allocate_options_t), or all if NULL */
    uint32_t contents; /* strata_pause_contents_t */
    const char *directory; /* for STRATA_PAUSE_FILE */
    size_t staging; /* bytes of pinned memory through which a file is written and read, in four parts; 0 means 64 MiB */
} strata_pause_options_t;

typedef struct strata_paused {
    size_t struct_size;
    uint64_t bytes; /* given to the device, or obtained from it */
    uint64_t kept_bytes; /* the part of them with contents that were kept, or restored */
    uint64_t rest_bytes; /* pause: bytes that the pools still have of the device. Resume: the part of them that is still paused */
    uint64_t handles; /* given back, or obtained */
    uint64_t copy_ns; /* real time that copying kept_bytes took */
} strata_paused_t;

/* Gives the memory of pools to the device. First the pools are closed to requests. The host waits for all work of the device, or
 * of all devices of the facade if the place has peers. Idle memory goes back. The rest is kept as the options require, unmapped,
 * and released. A pool that is already paused in part is paused further. `report` (may be NULL) receives the metrics.
 *
 * Memory that captured graphs may use is paused with its contents. That is the pool of a graph as a whole, and blocks from
 * outside that a graph pool owns (strata/graph.h). The graphs may be launched again after the resume.
 *
 * After an error everything is as before, except that idle memory may have gone back. Returns E_INVALID for a wrong option or an
 * unknown pool. Returns E_UNSUPPORTED if a pool is not in handles, or has `guard`, which writes to freed memory. Returns E_BUSY
 * if memory was exported or is registered. Also returns E_BUSY if memory that a graph may use is to be dropped. Returns E_CAPTURE
 * if a graph pool is begun or a stream is being captured. Returns E_NO_MEMORY if the place pinned has no room, and E_IO if the
 * file could not be made or written. Also returns E_HOST_MEMORY, E_DEVICE and E_DEVICE_LOST. */
STRATA_API strata_status_t strata_pause(strata_t facade, strata_place_t place, const strata_pause_options_t *options,
                                        strata_paused_t *report);

/* Brings memory back to its addresses, for the device and all of its peers, with the contents that were kept. With `tag` (may be
 * NULL) it brings back each handle in which a live block has that tag. Idle memory of paused pools does not return. A pool serves
 * again once none of its memory is paused. Nothing paused is no error. `report` (may be NULL) receives the metrics.
 *
 * After an error everything is paused as before, and a later call can bring it back. Returns E_NO_MEMORY if other programs have
 * the device's memory, even after the caches of the place were emptied, or at the limit of the place. Returns E_IO if the file
 * could not be read. Also returns E_INVALID, E_BUSY, E_HOST_MEMORY, E_DEVICE and E_DEVICE_LOST. */
STRATA_API strata_status_t strata_resume(strata_t facade, strata_place_t place, uint64_t pool, const char *tag,
                                         strata_paused_t *report);

#ifdef __cplusplus
}
#endif
#endif

/* Memory that goes back to the device for a while: the sleep mode of inference engines, and of programs that train and serve in turn.
 * strata/strata.h includes this header; docs/pause.md has the whole picture, examples/pause.c is a whole program.
 *
 *     strata_pause_options_t weights = {.struct_size = sizeof weights, .pool = w, .contents = STRATA_PAUSE_PINNED};
 *     strata_pause_options_t cache = {.struct_size = sizeof cache, .pool = k, .contents = STRATA_PAUSE_DROP};
 *     strata_pause(s, gpu, &weights, NULL);
 *     strata_pause(s, gpu, &cache, NULL);            ... the GPU's memory is free for others ...
 *     strata_resume(s, gpu, w, NULL, NULL);          weights are there again, at the same addresses, with the same bytes
 *     strata_resume(s, gpu, k, NULL, NULL);          the cache is there again; what is in it is not known
 *
 * What can be paused   Memory of the layer `vmm`: physical handles. Of any other source that is E_UNSUPPORTED, and the text says what
 *                      to write in the strategy.
 * Meanwhile            Nobody may use the memory: no kernel, no graph, no copy, from the call of strata_pause() to the return of
 *                      strata_resume(). The pool serves no request: E_BUSY. Frees, borrows, names and notes of its blocks go on.
 *                      Blocks keep their addresses and refs.
 * Threads              Any. A pause and a resume of one facade wait for one another. Neither may be called from a callback (E_BUSY). */
#ifndef STRATA_PAUSE_H
#define STRATA_PAUSE_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every pool of the place: ordinary stacks, named pools, pools of graphs. What of it is in handles is paused; `rest_bytes` says what
 * is not. */
#define STRATA_POOL_EVERY UINT64_MAX

/* What becomes of the bytes. */
typedef enum strata_pause_contents {
    STRATA_PAUSE_DROP = 0, /* nothing of them is kept. After the resume they are not known; with `scrub` in the stack they are 0 */
    STRATA_PAUSE_PINNED = 1, /* in pinned memory of the facade, from its place pinned, with the tag "strata_pause" */
    STRATA_PAUSE_FILE = 2 /* in a file without a name in `directory`, which goes with the process at the latest */
} strata_pause_contents_t;

typedef struct strata_pause_options {
    size_t struct_size;
    uint64_t pool; /* from strata_pool() or strata_graph_pool_begin(); STRATA_POOL_ORDINARY: outside pools; STRATA_POOL_EVERY: all; 0:
                      the thread's current pool */
    const char *tag; /* only handles whose live blocks all have this tag (strata_allocate_options_t). NULL: every handle */
    uint32_t contents; /* strata_pause_contents_t */
    const char *directory; /* for STRATA_PAUSE_FILE */
    size_t staging; /* bytes of pinned memory through which a file is written and read, in four parts; 0: 64 MiB */
} strata_pause_options_t;

typedef struct strata_paused {
    size_t struct_size;
    uint64_t bytes; /* that went to the device, or came from it */
    uint64_t kept_bytes; /* of them, those whose contents were kept, or brought back */
    uint64_t rest_bytes; /* pause: what the pools still have of the device. Resume: what of them is still paused */
    uint64_t handles; /* that went, or came */
    uint64_t copy_ns; /* real time that copying kept_bytes took */
} strata_paused_t;

/* Gives the memory of pools to the device. First the pools are closed to requests, the host waits for all work of the device (of all
 * devices of the facade, if the place has peers), and idle memory goes back. What is left is kept as the options say, unmapped, and
 * released. A pool that is paused in part already is paused further. `report` (may be NULL) receives the figures.
 *
 * What captured graphs may use is paused with its contents: the pool of a graph as a whole, and blocks from outside that a pool of
 * graphs owns (strata/graph.h). The graphs may be launched again after the resume.
 *
 * After an error everything is as before, except that idle memory may have gone back. E_INVALID: an option; no such pool.
 * E_UNSUPPORTED: a pool is not in handles; it has `guard`, which writes to what is freed. E_BUSY: memory was exported or is registered;
 * it is to be dropped, and a graph may use it. E_CAPTURE: a pool of graphs is begun, or a stream is being captured. E_NO_MEMORY: the
 * place pinned has no room. E_IO: the file could not be made or written. E_HOST_MEMORY, E_DEVICE, E_DEVICE_LOST. */
STRATA_API strata_status_t strata_pause(strata_t facade, strata_place_t place, const strata_pause_options_t *options,
                                        strata_paused_t *report);

/* Brings memory back where it was, for the device and all of its peers, with the contents that were kept. With `tag` (may be NULL) each
 * handle in which a live block has it. Idle memory of paused pools does not come back. A pool serves again once nothing of it is paused.
 * Nothing paused is no error. `report` (may be NULL) receives the figures.
 *
 * After an error everything is paused as before, and a later call can bring it back. E_NO_MEMORY: others have the device's memory, also
 * after the caches of the place were emptied; or the limit of the place. E_IO: the file could not be read. E_INVALID, E_BUSY,
 * E_HOST_MEMORY, E_DEVICE, E_DEVICE_LOST. */
STRATA_API strata_status_t strata_resume(strata_t facade, strata_place_t place, uint64_t pool, const char *tag,
                                         strata_paused_t *report);

#ifdef __cplusplus
}
#endif
#endif

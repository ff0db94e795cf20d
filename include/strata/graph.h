/* Captured graphs. strata/strata.h includes this header; docs/graphs.md has the rules.
 *
 * A captured CUDA graph uses the same addresses at every launch. What it was given must therefore be given to nobody else while it
 * may be launched, also after the program has freed it. A *graph pool* is memory apart from all other memory for that purpose:
 *
 *     uint64_t pool = 0;
 *     strata_graph_pool_begin(s, gpu, stream, &pool);      // requests of the stream go to a new pool from now on
 *     cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
 *     ... strata_allocate(s, gpu, stream, ...), kernels, strata_free() ...
 *     cudaStreamEndCapture(stream, &graph);
 *     strata_graph_pool_end(s, gpu, pool);                 // and from now on no longer
 *     strata_graph_pool_remove(s, gpu, pool);              // the program does not keep the pool: the graph does
 *     ... launches ...
 *     cudaGraphDestroy(graph); cudaGraphExecDestroy(exec); // now nothing keeps it, and its memory goes back
 *
 * Kept        A pool is kept by each begin until its remove, and by each graph that was captured into it until the driver says that
 *             it and all its instances are gone. While it is kept, nothing that lies free in it is given to the device, to other
 *             streams or to requests outside captures. Then its free memory goes back, and it ends with its last live block.
 *             A graph keeps its pool from the first request, or free of a block from outside, inside its capture on. If there was
 *             none, remove the pool after the graph.
 * Shared      Begin with the number of an existing pool captures another graph into it: what the first one had freed by then serves
 *             again. That is lawful for graphs that never run at the same time, and whose results are read before the next of them
 *             is launched. Requests that both keep live lie apart.
 * Once        One begin is for one capture: end the pool after it, and begin it again for the next.
 * Streams     Requests of other streams go to the pool too while they have joined its capture (by waiting for an event of it).
 * Outside     A block that a captured stream frees or borrows, but which was allocated outside its pool, is owned by the pool too:
 *             the program's free does not give it away before nothing keeps the pool.
 * Places      Each place has its own pools. Pinned and host memory has none: what a captured stream has of it counts as from outside.
 * Forgotten   While any pool is begun, requests of streams that are being captured for no pool are refused: E_CAPTURE.
 *             With none begun nobody asks the driver at a hit, so a capture that was not announced is not noticed there; open the
 *             facade with STRATA_OPEN_CHECK_CAPTURES to have every request checked.
 * Threads     Any thread may begin, end and request; one begin of a pool at a time. */
#ifndef STRATA_GRAPH_H
#define STRATA_GRAPH_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From now on requests of `stream` in this place, of any thread and whatever pool is current, are served from `*pool` (0: a new one,
 * whose number is written there), in layers of the strategy's `graph:`, or of the place's own stack if it has none. Before the
 * capture begins, or inside it. E_UNSUPPORTED: the layers give memory back to the device at each free. E_INVALID, E_STALE: no such
 * pool; it has ended. E_BUSY: it is begun already, or paused. E_LIMIT: 16 are begun in the place. E_HOST_MEMORY; E_NO_MEMORY from
 * layers that allocate in advance. */
STRATA_API strata_status_t strata_graph_pool_begin(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t *pool);
/* The same for the streams that a filter chooses: of every request in the place meanwhile it is asked whether it goes to the pool.
 * It is called with no lock held, by any thread, until a moment after the end; it must not call the facade. */
typedef bool (*strata_graph_filter_fn)(strata_stream_t stream, void *context);
STRATA_API strata_status_t strata_graph_pool_begin_filtered(strata_t facade, strata_place_t place, strata_graph_filter_fn filter,
                                                            void *context, uint64_t *pool);
/* Requests go where they went before. E_INVALID: the pool is not begun. E_CAPTURE: the capture is still under way: end it first. */
STRATA_API strata_status_t strata_graph_pool_end(strata_t facade, strata_place_t place, uint64_t pool);
/* Takes one begin back: the program keeps the pool no longer by it. Also before its end, which keeps the pool until then. E_INVALID: as
 * many were taken back as there were. */
STRATA_API strata_status_t strata_graph_pool_remove(strata_t facade, strata_place_t place, uint64_t pool);

typedef struct strata_graph_pool_info {
    size_t struct_size;
    uint64_t pool;
    uint32_t begins; /* without a remove */
    uint32_t graphs; /* that were captured into it and still exist */
    uint64_t live_allocations, allocated_bytes;
    uint64_t reserved_bytes; /* got from the device for it */
    uint64_t outside_blocks; /* of others, which it owns too */
    bool begun; /* requests go to it now */
} strata_graph_pool_info_t;
/* E_INVALID: no such pool, or it has ended. */
STRATA_API strata_status_t strata_graph_pool_describe(strata_t facade, strata_place_t place, uint64_t pool,
                                                      strata_graph_pool_info_t *info);
/* The numbers of a place's pools that have not ended, the oldest first: the first `capacity` of *count, in `pools` (may be NULL if
 * `capacity` is 0). */
STRATA_API strata_status_t strata_graph_pools(strata_t facade, strata_place_t place, uint64_t *pools, size_t capacity,
                                              size_t *count);

/* ---- states of a pool, set back later ----
 *
 * A program that goes back to an earlier point, to capture on from there, needs the pool as it was: what was live then must be live
 * again, at the same address, since the graphs so far read and write it there; what came later must be free. A checkpoint tells what
 * is live in a pool, and so what is free. It keeps nothing: neither blocks, nor the pool. */

typedef struct strata_checkpoint *strata_checkpoint_t;
/* A block whose state strata_graph_pool_restore() has changed. `live`: it is live again, by a new ref, which is the program's to free;
 * else it was freed, and its ref is stale. Called when all is done, with no lock held: it may call the facade. */
typedef void (*strata_restored_fn)(const strata_block_t *block, bool live, void *context);

/* What is live in the pool now: *checkpoint, which any thread may use, and drop. E_BUSY: the pool is begun. E_UNSUPPORTED: the pool's
 * cache cannot serve at a given address, or a layer above it takes part in every request (a router, stat, guard, trace).
 * E_INVALID, E_STALE: no such pool; it has ended. E_HOST_MEMORY. */
STRATA_API strata_status_t strata_graph_pool_checkpoint(strata_t facade, strata_place_t place, uint64_t pool,
                                                        strata_checkpoint_t *checkpoint);
/* Frees what is live in the pool now and was not then, as strata_free() does, and makes live again what was live then and is not
 * now, at the same addresses and of the same sizes. What is live in both stays as it is. `changed` (may be NULL) is told of each
 * block, the freed ones first. Contents stay, and nothing is waited for: the program knows which launches write the memory, and in
 * what order. Other threads may free blocks of the pool meanwhile, and must not retain or borrow any. After an error nothing has
 * changed.
 * E_BUSY: the pool is begun; a block that would be freed has other owners or borrowers; memory that was live then still waits for
 * the work of other streams. E_INVALID: nothing keeps the pool, neither a begin without a remove nor a graph; or the checkpoint is of
 * another facade or place. E_STALE: the pool has ended, or memory that was live then has gone back to the device. E_LIMIT;
 * E_HOST_MEMORY; E_UNSUPPORTED as above. */
STRATA_API strata_status_t strata_graph_pool_restore(strata_t facade, strata_place_t place, strata_checkpoint_t checkpoint,
                                                     strata_restored_fn changed, void *context);
/* Ends `checkpoint` (may be NULL: nothing happens). Allowed after the facade was closed, too. */
STRATA_API void strata_graph_checkpoint_drop(strata_checkpoint_t checkpoint);

/* ---- captures for programs that use no runtime besides Strata, mostly with simulated devices ---- */

typedef void *strata_graph_t; /* the driver's handle of a graph: CUgraph */

/* Work given to `stream` is captured from now on instead of being done, in the driver's relaxed mode. The legacy stream cannot be
 * captured: E_CAPTURE. */
STRATA_API strata_status_t strata_capture_begin(strata_t facade, strata_place_t place, strata_stream_t stream);
/* The graph of all that was captured since. E_CAPTURE: something has broken the capture, or a stream that joined it was not waited
 * for; it is over all the same. */
STRATA_API strata_status_t strata_capture_end(strata_t facade, strata_place_t place, strata_stream_t stream, strata_graph_t *graph);
/* Later work of `stream` comes after all work that `other` has been given so far. If one is being captured, both are from then on. */
STRATA_API strata_status_t strata_stream_wait(strata_t facade, strata_place_t place, strata_stream_t stream, strata_stream_t other);
/* The work of the graph, once, in the order of `stream`. E_BUSY: a pool of graphs of the place is paused (strata/pause.h). */
STRATA_API strata_status_t strata_graph_launch(strata_t facade, strata_place_t place, strata_graph_t graph, strata_stream_t stream);
STRATA_API strata_status_t strata_graph_destroy(strata_t facade, strata_place_t place, strata_graph_t graph);

#ifdef __cplusplus
}
#endif
#endif

/* Captured graphs. strata/strata.h includes this header; docs/graphs.md has the rules.
 *
 * A captured CUDA graph uses the same addresses at every launch. Its memory must not serve another request while the graph may be
 * launched, even after the program has freed that memory. A *graph pool* is separate memory for that purpose:
 *
 *     uint64_t pool = 0;
 *     strata_graph_pool_begin(s, gpu, stream, &pool);      // requests of the stream go to a new pool from now on
 *     cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
 *     ... strata_allocate(s, gpu, stream, ...), kernels, strata_free() ...
 *     cudaStreamEndCapture(stream, &graph);
 *     strata_graph_pool_end(s, gpu, pool);                 // and from now on no longer
 *     strata_graph_pool_remove(s, gpu, pool);              // only the graph keeps the pool now
 *     ... launches ...
 *     cudaGraphDestroy(graph); cudaGraphExecDestroy(exec); // the pool is no longer kept, and its memory goes back
 *
 * Kept        Each begin keeps a pool until its remove. Each graph that was captured into it keeps it until the driver reports
 *             that the graph and all its instances are destroyed. While a pool is kept, its free memory does not go to the
 *             device, to other streams or to requests outside captures. After that its free memory goes back, and it ends with
 *             its last live block. A graph keeps its pool from the first request inside its capture, or free of a block from
 *             outside. If there was none, remove the pool after the graph.
 * Shared      A begin with the number of an existing pool captures another graph into it. Memory that the first graph had freed
 *             by then serves again, also on another stream. That is allowed for graphs that never run at the same time, if the
 *             results of each are read before the next one is launched. Requests that both keep live do not overlap. Requests
 *             between begin and capture also get that memory. Their work must follow the launches of the pool's graphs.
 * Once        One begin is for one capture. End the pool after it, and begin it again for the next.
 * Streams     Requests of other streams also go to the pool while they have joined its capture (by waiting for an event of it).
 * Outside     A captured stream may free or borrow a block that was allocated outside its pool. The pool then owns the block too,
 *             and the program's free does not release it while the pool is kept.
 * Places      Each place has its own pools. Pinned and host places have none: their blocks count as from outside.
 * Forgotten   While any pool is begun, requests of streams that are being captured for no pool return E_CAPTURE. While none is
 *             begun, a hit does not ask the driver, so an unannounced capture is not noticed there. With
 *             STRATA_OPEN_CHECK_CAPTURES every request checks.
 * Threads     Any thread may begin, end and request, with one begin of a pool at a time. */
#ifndef STRATA_GRAPH_H
#define STRATA_GRAPH_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Serves later requests of `stream` in this place, of any thread and whatever pool is current, from `*pool`. If it is 0, a new
 * pool is made and its number is written there. The layers are the strategy's `graph:`, or the place's own stack if there is
 * none. Call it before the capture begins, or inside it.
 *
 * Returns E_UNSUPPORTED if the layers give memory back to the device at each free. Returns E_INVALID for an unknown pool, E_STALE
 * if it has ended, and E_BUSY if it is begun already or paused. Returns E_LIMIT above 16 begun pools in the place, E_HOST_MEMORY,
 * and E_NO_MEMORY from layers that preallocate. */
STRATA_API strata_status_t strata_graph_pool_begin(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t *pool);
/* Begins a pool for the streams that a filter chooses. Until the end the filter is called for every request in the place, and
 * returns true if it goes to the pool. It is called with no lock held, by any thread, until a moment after the end. It must not
 * call the facade. */
typedef bool (*strata_graph_filter_fn)(strata_stream_t stream, void *context);
STRATA_API strata_status_t strata_graph_pool_begin_filtered(strata_t facade, strata_place_t place, strata_graph_filter_fn filter,
                                                            void *context, uint64_t *pool);
/* Ends a begin, and requests go where they went before. Returns E_INVALID if the pool is not begun. Returns E_CAPTURE if the
 * capture is still under way: end it first. */
STRATA_API strata_status_t strata_graph_pool_end(strata_t facade, strata_place_t place, uint64_t pool);
/* Takes one begin back, so that it no longer keeps the pool. If called before the end, the pool is kept until the end. Returns
 * E_INVALID if all begins were taken back. */
STRATA_API strata_status_t strata_graph_pool_remove(strata_t facade, strata_place_t place, uint64_t pool);

typedef struct strata_graph_pool_info {
    size_t struct_size;
    uint64_t pool;
    uint32_t begins; /* without a remove */
    uint32_t graphs; /* captured into it and not destroyed */
    uint64_t live_allocations, allocated_bytes;
    uint64_t reserved_bytes; /* from the device */
    uint64_t outside_blocks; /* of others, owned by the pool too */
    bool begun; /* requests go to it now */
} strata_graph_pool_info_t;
/* Returns E_INVALID if the pool is unknown or has ended. */
STRATA_API strata_status_t strata_graph_pool_describe(strata_t facade, strata_place_t place, uint64_t pool,
                                                      strata_graph_pool_info_t *info);
/* Lists the numbers of a place's pools that have not ended, the oldest first. *count receives their number, and `pools` (may be
 * NULL if `capacity` is 0) the first `capacity` of them. */
STRATA_API strata_status_t strata_graph_pools(strata_t facade, strata_place_t place, uint64_t *pools, size_t capacity,
                                              size_t *count);

/* ---- states of a pool, set back later ----
 *
 * A program that returns to an earlier point, to continue a capture from there, needs the pool as it was. Blocks that were live
 * then must be live again, at the same addresses, because the graphs until then use them there. Later blocks must be free. A
 * checkpoint lists the live blocks of a pool. It keeps neither the blocks nor the pool. */

typedef struct strata_checkpoint *strata_checkpoint_t;
/* Called for each block that strata_graph_pool_restore() has changed. If `live`, it is live again, with a new ref that the
 * program must free. Else it was freed, and its ref is stale. Called when all is done, with no lock held: it may call the
 * facade. */
typedef void (*strata_restored_fn)(const strata_block_t *block, bool live, void *context);

/* Records the live blocks of the pool in *checkpoint, which any thread may use and drop. Returns E_BUSY if the pool is begun.
 * Returns E_UNSUPPORTED if the pool's cache cannot serve a given address. It also does so if a layer above it takes part in every
 * request (a router, stat, guard, trace). Returns E_INVALID for an unknown pool, E_STALE if it has ended, and E_HOST_MEMORY. */
STRATA_API strata_status_t strata_graph_pool_checkpoint(strata_t facade, strata_place_t place, uint64_t pool,
                                                        strata_checkpoint_t *checkpoint);
/* Sets the live blocks of the pool back to those of the checkpoint. Blocks that are live only now are freed, as by strata_free().
 * Blocks that were live only then become live again, at the same addresses and with the same sizes. All others stay as they are.
 * `changed` (may be NULL) is called for each changed block, the freed ones first. Contents stay, and nothing is waited for: the
 * program is responsible for the order of launches that write the memory. Other threads may free blocks of the pool during the
 * call, but must not retain or borrow any. After an error nothing has changed.
 *
 * Returns E_BUSY if the pool is begun, or if a block to free has other owners or borrowers. Also returns E_BUSY if memory that
 * was live then still waits for work of other streams. Returns E_INVALID if no begin or graph keeps the pool, or if the
 * checkpoint is of another facade or place. Returns E_STALE if the pool has ended, or if memory that was live then has gone back
 * to the device. It does so too if that memory now belongs to another stream of the pool. Also returns E_LIMIT, E_HOST_MEMORY, and E_UNSUPPORTED as above. */
STRATA_API strata_status_t strata_graph_pool_restore(strata_t facade, strata_place_t place, strata_checkpoint_t checkpoint,
                                                     strata_restored_fn changed, void *context);
/* Ends `checkpoint` (may be NULL, and then nothing happens). Also allowed after the facade was closed. */
STRATA_API void strata_graph_checkpoint_drop(strata_checkpoint_t checkpoint);

/* ---- captures for programs that use no runtime besides Strata, mostly with simulated devices ---- */

typedef void *strata_graph_t; /* the driver's CUgraph */

/* Captures later work of `stream` instead of running it, in the driver's relaxed mode. Returns E_CAPTURE for the legacy stream,
 * which cannot be captured. */
STRATA_API strata_status_t strata_capture_begin(strata_t facade, strata_place_t place, strata_stream_t stream);
/* Ends the capture and returns the graph of its work. Returns E_CAPTURE if the capture was broken, or if a stream that joined it
 * was not waited for. The capture is over in both cases. */
STRATA_API strata_status_t strata_capture_end(strata_t facade, strata_place_t place, strata_stream_t stream, strata_graph_t *graph);
/* Makes later work of `stream` wait for all work that `other` has now. If one is being captured, both are from then on. */
STRATA_API strata_status_t strata_stream_wait(strata_t facade, strata_place_t place, strata_stream_t stream, strata_stream_t other);
/* Runs the graph once, in the order of `stream`. Returns E_BUSY if a graph pool of the place is paused (strata/pause.h). */
STRATA_API strata_status_t strata_graph_launch(strata_t facade, strata_place_t place, strata_graph_t graph, strata_stream_t stream);
STRATA_API strata_status_t strata_graph_destroy(strata_t facade, strata_place_t place, strata_graph_t graph);

#ifdef __cplusplus
}
#endif
#endif

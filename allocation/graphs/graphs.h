/* Graph pools: memory for captured CUDA graphs. A graph uses the same addresses at every launch. So its
 * memory is kept apart, and stays as it is while the graph may be launched (docs/graphs.md).
 *
 * A pool is a group of stacks of its own (allocation/domain/group.h). It is kept by holds of the program,
 * and by the graphs that were captured into it; the device calls back when one is gone. While either is
 * left the pool is *pinned*: its idle memory is neither released to the device nor given to other streams.
 * When nothing keeps the pool, its idle memory is released. The pool ends with its last live block, and its
 * group is reused for the next pool.
 *
 * A pool is *open* while requests go to it. Then every hit of the place outside the pool takes the slow
 * path, which decides the pool that the request belongs to. If a captured stream uses memory from outside,
 * the pool becomes one more owner of it. So a free by the program does not release it while the graph uses
 * it.
 *
 *     pools.c   create, open, close and end pools      route.c    choose the pool of a request
 *     watch.c   detect the end of graphs               outside.c  blocks from outside that graphs use
 *     live.c    list the live blocks, and restore them
 *     hand_over.c  pass a stack of the pool to another stream
 *
 * Guarded by the lock of the domain, unless a comment gives another rule. */
#ifndef STRATA_ALLOCATION_GRAPHS_GRAPHS_H
#define STRATA_ALLOCATION_GRAPHS_GRAPHS_H

#include "allocation/domain/captures.h"
#include "allocation/domain/domain.h"
#include "strata/graph.h"

enum { STRATA_OPEN_GRAPHS = 16 };

/* Selects the requests that go to an open pool: those of a stream, or those that a filter of the program
 * chooses. */
typedef struct strata_graph_window {
    strata_stream_t stream;
    uint64_t thread; /* of the per-thread default stream; otherwise 0 */
    strata_graph_filter_fn filter; /* replaces the stream unless it is NULL; called with no lock held */
    void *context;
} strata_graph_window_t;

/* The number of graphs that were captured into a pool and still exist. The pool and the device's callbacks
 * share it. */
typedef struct strata_graph_count strata_graph_count_t;

struct strata_graph_pool {
    strata_group_t *group;
    uint32_t holds; /* by the program: pools begun and not removed */
    bool open;
    /* Read without the lock. True while the pool is open, its capture has been seen, and the end of its graph is
     * watched. Its hits then take the fast path. */
    _Atomic bool ready;
    bool ending; /* a thread releases the memory that nothing keeps any longer */
    /* The number of threads that make the pool an owner of a block. It is increased under the lock and decreased
     * without it. The pool does not end until it is 0, because its end would free a block that is listed but not
     * retained yet. */
    _Atomic uint32_t becoming_owner;
    uint64_t capture; /* the id of that capture; 0 if none was seen since the pool was opened */
    strata_stream_t captured; /* one stream of it */
    strata_graph_window_t window;
    strata_graph_count_t *count; /* NULL if no graph has been watched */
    strata_ref_t *outside; /* blocks of other pools that it also owns */
    uint32_t outside_count, outside_room;
    strata_graph_pool_t *next_open; /* guarded by the lock of the captures, like the window */
};

/* ---- life; no lock is held. One thread at a time makes, opens, closes and ends pools of a facade (it builds) ---- */

/* Creates a pool with a number that was never used, and stacks from `plan`. The caller gets one hold.
 * E_LIMIT, E_HOST_MEMORY, errors of the layers. */
strata_status_t strata_graph_pool_make(strata_domain_t *domain, uint64_t number, const strata_plan_t *plan,
                                       strata_graph_pool_t **pool);
/* Returns the pool with this number, or NULL if there is none or it has ended. */
strata_graph_pool_t *strata_graph_pool_find(strata_domain_t *domain, uint64_t number);
/* Adds a hold and routes requests to the pool. Afterwards, and after a close, the caller settles all places
 * (strata_graphs_update_paths()). E_BUSY if the pool is already open. E_LIMIT. E_STALE if it has ended. */
strata_status_t strata_graph_pool_open(strata_graph_pool_t *pool, uint64_t number, const strata_graph_window_t *window);
/* Stops routing requests to the pool. The caller then calls strata_graphs_sweep(), with no lock held. */
void strata_graph_pool_close(strata_graph_pool_t *pool);
/* Removes one hold. Returns false if the program has none. */
bool strata_graph_pool_release(strata_graph_pool_t *pool);
/* Adds a hold for an operation that needs the pool's memory to stay. Returns false if nothing keeps the pool. */
bool strata_graph_pool_hold(strata_graph_pool_t *pool);
/* Releases the memory of pools that nothing keeps any longer, in all places of the facade. Pools without
 * live blocks end. Any thread. */
void strata_graphs_sweep(strata_domain_t *domain);
/* Completes deferred frees of the pool's blocks that no longer wait for a stream. */
void strata_graph_pool_poll(strata_graph_pool_t *pool);
/* Returns whether the pool exists and is not about to end. The domain's lock is held. */
bool strata_graph_pool_is_kept(const strata_graph_pool_t *pool);
/* Called before the domain's stacks are destroyed. Afterwards the pools own no blocks from outside. */
void strata_graphs_end(strata_domain_t *domain);

/* The holds and graphs that keep a pool, and the number of outside blocks that it owns. No lock is held. */
typedef struct strata_graph_pool_state {
    uint32_t holds, graphs;
    bool open;
    uint64_t outside_blocks;
} strata_graph_pool_state_t;
void strata_graph_pool_read(strata_graph_pool_t *pool, strata_graph_pool_state_t *state);

/* ---- routing of requests ---- */

static inline bool strata_graphs_open(const strata_domain_t *domain) {
    return atomic_load_explicit(&domain->captures->open, memory_order_acquire) > 0;
}
/* Called for each place of the facade after a pool was opened or closed in any of them. Hits outside graphs
 * then take the fast path if no capture has to be checked. */
void strata_graphs_update_paths(strata_domain_t *domain);
/* Like strata_graphs_update_paths(), for the pool's own stacks, which depend on that pool only. Called after the
 * pool was closed or became ready. From a close until the next known capture, none of its hits takes the
 * fast path. */
void strata_graph_pool_update_paths(strata_graph_pool_t *pool);
/* Sets *pool to the open pool for requests of a stream (and thread) in this place, or to NULL if there is
 * none. Requires that some pool is open. E_CAPTURE if the stream is being captured and no pool of the place
 * was begun for it. No lock is held. */
strata_status_t strata_graphs_route(strata_domain_t *domain, strata_stream_t stream, uint64_t thread, strata_graph_pool_t **pool);
/* Sets *pool to the open pool, of any place, into which a stream is being captured, or to NULL. Queries the
 * driver. E_CAPTURE as above. No lock is held. */
strata_status_t strata_graphs_capturing(strata_domain_t *domain, strata_stream_t stream, strata_graph_pool_t **pool);
/* Sets *id to the id of a stream's capture, or to 0 if it is not being captured. E_CAPTURE if its capture
 * was invalidated. A quick call. */
strata_status_t strata_graphs_capture_of(strata_domain_t *domain, strata_stream_t stream, uint64_t *id);
/* Sets *id to the id of the capture that goes to an open pool, if the pool was opened for `stream` (and
 * thread) by name. That stream begins the capture, so a node that is added to it needs no join. Otherwise,
 * or without a capture, *id is 0. E_CAPTURE as above. No lock is held. */
strata_status_t strata_graph_pool_named_capture(strata_graph_pool_t *pool, strata_stream_t stream, uint64_t thread, uint64_t *id);
/* Returns E_CAPTURE if the stream is being captured and the stack is not that of a pool. For requests that
 * are about to take longer than the query to the driver. No lock is held. */
strata_status_t strata_graphs_refuse_unannounced(const strata_stack_t *stack, strata_stream_t stream);
/* Returns whether requests that reached a stack without a look-up must now be looked up. */
bool strata_graphs_must_route(const strata_stack_t *stack);
/* Initializes a new stack in the list. Its hits take the same path as those of its group, and its layers
 * are notified of an open capture. */
void strata_graphs_inherit(strata_stack_t *stack);

/* ---- stacks that change streams (hand_over.c); no lock is held, and one thread at a time builds ---- */

/* Returns a stack of another stream in an open pool, which now belongs to the stream `whose`. It has the most idle memory of
 * those without blocks whose streams' work is done. Returns NULL if there is none, or if no capture into the pool is known.
 * Returns NULL too if a layer of the pool keeps something about the stream of its stack. */
strata_stack_t *strata_graph_pool_hand_over(strata_graph_pool_t *pool, const strata_stack_for_t *whose);

/* ---- the end of graphs (watch.c); no lock is held ---- */

/* Ties the graph of a stream's capture to the pool, so that the graph keeps it. Does nothing if that
 * capture is known. Returns OK with pool->ready still false if the stream is not being captured yet. */
strata_status_t strata_graph_pool_watch(strata_graph_pool_t *pool, strata_stream_t stream);
/* Returns E_CAPTURE if the capture that goes to the pool is still active. Returns OK on a lost device,
 * which captures nothing. */
strata_status_t strata_graph_pool_refuse_capturing(strata_graph_pool_t *pool);
uint32_t strata_graph_count_of(const strata_graph_count_t *count);
void strata_graph_count_drop(strata_graph_count_t *count);

/* ---- blocks from outside that graphs use (outside.c) ---- */

/* Makes the pool an owner of a live block. Does nothing if it is one, or if the pool has ended: then no graph of
 * it uses the block. The call's lock is held on return, but may be released in between. E_LIMIT, E_HOST_MEMORY,
 * E_STALE. */
strata_status_t strata_graph_pool_own(strata_graph_pool_t *pool, strata_call_t *call, strata_record_t *record);
/* Like strata_graph_pool_own(), for every pool that a stream of the block's device may be captured into.
 * The stream that uses a forgotten stream's block is unknown. */
strata_status_t strata_graph_pools_own(strata_call_t *call, strata_record_t *record);
/* Lists the outside blocks of a pool. The caller deletes the list, which is NULL if there are none. No lock
 * is held. E_HOST_MEMORY. */
strata_status_t strata_graph_pool_outside(strata_graph_pool_t *pool, strata_ref_t **refs, uint32_t *count);
/* Gives up the pool's ownership of all outside blocks. No lock is held. */
void strata_graph_pool_disown(strata_graph_pool_t *pool);

/* ---- the live blocks of a pool (live.c); no lock is held, and no thread opens or ends pools concurrently ---- */

/* A live block, and the stack that served it. */
typedef struct strata_graph_block {
    strata_block_t block;
    size_t requested;
    uint64_t life; /* of that stack */
    strata_stream_t stream; /* of that stack then */
    uint16_t serving_stack; /* its number */
    bool is_restored; /* in a list of changes: true if it was made live again, false if it was freed */
} strata_graph_block_t;

typedef struct strata_graph_blocks {
    strata_graph_block_t *all; /* sorted by address */
    size_t count;
} strata_graph_blocks_t;

void strata_graph_blocks_delete(strata_graph_blocks_t *blocks);
/* Lists the pool's live blocks, except blocks of 0 bytes. E_HOST_MEMORY. E_UNSUPPORTED if the layers cannot
 * restore them. */
strata_status_t strata_graph_pool_live(strata_graph_pool_t *pool, strata_graph_blocks_t *live);
/* Makes exactly the blocks in `then` live again. *changes lists the frees and allocations in their order;
 * the caller deletes it. After an error nothing has changed. Errors are those of
 * strata_graph_pool_restore(). */
strata_status_t strata_graph_pool_set_live(strata_graph_pool_t *pool, const strata_graph_blocks_t *then,
                                           strata_graph_blocks_t *changes);

#endif

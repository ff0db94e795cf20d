/* Pools of captured graphs: memory that a graph uses at every launch is kept apart, and stays as it is while a graph may be
 * launched (docs/graphs.md).
 *
 * A pool is a group of stacks of its own (allocation/domain/group.h). It is kept by holds of the program, and by the graphs that
 * were captured into it: the device tells when one is gone. While either is left the pool is *pinned*: nothing that lies idle in it
 * goes back to the device, or to other streams. When nothing keeps it, what is idle goes back; with its last live block the pool
 * ends, and its group serves the next one.
 *
 * A pool is *open* while requests go to it. Then every hit of the place outside the pool goes the long way, where it is decided
 * whose the request is. Memory from outside that a captured stream uses has the pool as one more owner: the program's free does
 * not give it away under the graph.
 *
 *     pools.c   their life        route.c   whose a request is
 *     watch.c   graphs that tell of their end        outside.c   blocks from elsewhere that graphs use
 *     live.c    what is live, told and set back
 *
 * Guarded by the lock of the domain, unless it is said otherwise. */
#ifndef STRATA_ALLOCATION_GRAPHS_GRAPHS_H
#define STRATA_ALLOCATION_GRAPHS_GRAPHS_H

#include "allocation/domain/captures.h"
#include "allocation/domain/domain.h"
#include "strata/graph.h"

enum { STRATA_OPEN_GRAPHS = 16 };

/* Whose requests go to an open pool: those of a stream, or those that a filter of the program chooses. */
typedef struct strata_graph_window {
    strata_stream_t stream;
    uint64_t thread; /* of the per-thread default stream; else 0 */
    strata_graph_filter_fn filter; /* instead of the stream; NULL: none. Called with no lock held */
    void *context;
} strata_graph_window_t;

/* How many graphs there are that were captured into a pool: shared by the pool and by what the device calls when one ends. */
typedef struct strata_graph_count strata_graph_count_t;

struct strata_graph_pool {
    strata_group_t *group;
    uint32_t holds; /* by the program: begun, and not removed */
    bool open;
    _Atomic bool
        ready; /* read without the lock; of an open one: the capture under way is known, and its graph will tell of its end. Its hits serve directly */
    bool ending; /* a thread gives back what nothing keeps any more */
    uint64_t capture; /* the id of that capture; 0: none was seen since the pool was opened */
    strata_stream_t captured; /* a stream of it */
    strata_graph_window_t window;
    strata_graph_count_t *count; /* NULL: no graph was watched so far */
    strata_ref_t *outside; /* blocks of others that it owns too */
    uint32_t outside_count, outside_room;
    strata_graph_pool_t *next_open; /* guarded by the lock of the captures, as the window is */
};

/* ---- life; no lock is held. One thread at a time makes, opens, closes and ends pools of a facade (it builds) ---- */

/* A pool of a number that was never used, whose stacks are made from `plan`, with one hold, of the caller. E_LIMIT, E_HOST_MEMORY, errors of
 * the layers. */
strata_status_t strata_graph_pool_make(strata_domain_t *domain, uint64_t number, const strata_plan_t *plan,
                                       strata_graph_pool_t **pool);
/* The pool of a number; NULL: there is none, or it has ended. */
strata_graph_pool_t *strata_graph_pool_find(strata_domain_t *domain, uint64_t number);
/* One more hold, and requests go to it. The caller settles all places after it, and after a close. E_BUSY: it is open already. E_LIMIT.
 * E_STALE: it has ended meanwhile. */
strata_status_t strata_graph_pool_open(strata_graph_pool_t *pool, uint64_t number, const strata_graph_window_t *window);
/* The caller sweeps after it (strata_graphs_sweep()), with no lock held. */
void strata_graph_pool_close(strata_graph_pool_t *pool);
/* One hold less. False: the program has none. */
bool strata_graph_pool_let_go(strata_graph_pool_t *pool);
/* One more, for a step that needs its memory to stay. False: nothing keeps the pool. */
bool strata_graph_pool_hold(strata_graph_pool_t *pool);
/* Pools that nothing keeps any more, in all places of the facade, give back what they can, and end if nothing of them is live. Any
 * thread. */
void strata_graphs_sweep(strata_domain_t *domain);
/* Frees of its blocks that wait for no stream any more are finished. */
void strata_graph_pool_poll(strata_graph_pool_t *pool);
/* Before the domain's stacks end: the pools own nothing of anybody else any more. */
void strata_graphs_end(strata_domain_t *domain);

/* What keeps a pool, and what it holds; under no lock. */
typedef struct strata_graph_pool_state {
    uint32_t holds, graphs;
    bool open;
    uint64_t outside_blocks;
} strata_graph_pool_state_t;
void strata_graph_pool_tell(strata_graph_pool_t *pool, strata_graph_pool_state_t *state);

/* ---- whose a request is ---- */

static inline bool strata_graphs_open(const strata_domain_t *domain) {
    return atomic_load_explicit(&domain->captures->open, memory_order_acquire) > 0;
}
/* After a pool was opened or closed in any place of the facade, for each place: hits outside graphs serve directly where nothing must be
 * asked. */
void strata_graphs_settle(strata_domain_t *domain);
/* The same of the pool's own stacks, which ask that pool alone: after it was closed or made ready. From a close to the next
 * capture that is known none of its hits serves directly. */
void strata_graph_pool_settle(strata_graph_pool_t *pool);
/* While any pool is open: the one that requests of a stream (and thread) in this place go to; NULL: none, and they go where they would.
 * E_CAPTURE: the stream is being captured, and no pool of the place was begun for it. No lock is held. */
strata_status_t strata_graphs_route(strata_domain_t *domain, strata_stream_t stream, uint64_t thread, strata_graph_pool_t **pool);
/* The open pool, of any place, into which a stream is being captured; NULL: it is not. The driver is asked. E_CAPTURE as above. No lock
 * is held. */
strata_status_t strata_graphs_capturing(strata_domain_t *domain, strata_stream_t stream, strata_graph_pool_t **pool);
/* The id of the capture of a stream; 0: it is not being captured. E_CAPTURE: its capture was broken. A quick call. */
strata_status_t strata_graphs_capture_of(strata_domain_t *domain, strata_stream_t stream, uint64_t *id);
/* The id of the capture that goes to an open pool, if `stream` (and thread) is the one that the pool was opened for by name: that one
 * begins the capture, so a node that is added to it need not be joined. 0: it is another one, or is not being captured. E_CAPTURE as
 * above. No lock is held. */
strata_status_t strata_graph_pool_begun_by(strata_graph_pool_t *pool, strata_stream_t stream, uint64_t thread, uint64_t *id);
/* Where a request is about to take longer than the question to the driver: E_CAPTURE if its stream is being captured and the stack is
 * not that of a pool. No lock is held. */
strata_status_t strata_graphs_refuse_unannounced(const strata_stack_t *stack, strata_stream_t stream);
/* Whether requests that found a stack without being looked up must be looked up now. */
bool strata_graphs_divert(const strata_stack_t *stack);
/* A stack that is new in the list is as open or closed to hits as the others of its group, and its layers know of the capture. */
void strata_graphs_inherit(strata_stack_t *stack);

/* ---- graphs that tell of their end (watch.c); no lock is held ---- */

/* A capture of a stream goes to the pool: its graph will be one that keeps it. Nothing happens if it is known. OK with pool->ready
 * still false: the stream is not being captured yet. */
strata_status_t strata_graph_pool_watch(strata_graph_pool_t *pool, strata_stream_t stream);
/* E_CAPTURE: the capture that goes to the pool is still under way. A lost device captures nothing. */
strata_status_t strata_graph_pool_refuse_capturing(strata_graph_pool_t *pool);
uint32_t strata_graph_count_of(const strata_graph_count_t *count);
void strata_graph_count_drop(strata_graph_count_t *count);

/* ---- blocks from outside that graphs use (outside.c) ---- */

/* The pool becomes an owner of a live block; nothing happens if it is one. The call's lock stays held, and may be open meanwhile.
 * E_LIMIT, E_HOST_MEMORY, E_STALE. */
strata_status_t strata_graph_pool_own(strata_graph_pool_t *pool, strata_call_t *call, strata_record_t *record);
/* The same for every pool that a stream of the block's device may be captured into: nobody knows who has it from a stream that was
 * forgotten. */
strata_status_t strata_graph_pools_own(strata_call_t *call, strata_record_t *record);
/* What it owns, as a list for the caller to delete (NULL: nothing); no lock is held. E_HOST_MEMORY. */
strata_status_t strata_graph_pool_outside(strata_graph_pool_t *pool, strata_ref_t **refs, uint32_t *count);
/* It owns nothing any more. No lock is held. */
void strata_graph_pool_disown(strata_graph_pool_t *pool);

/* ---- what is live in a pool, told and set back (live.c); no lock is held, and nobody opens or ends pools meanwhile ---- */

/* A live block, and who served it. */
typedef struct strata_graph_block {
    strata_block_t block;
    size_t requested;
    uint64_t life; /* of that stack */
    uint16_t server; /* its number */
    bool keeps; /* of a change: it is live again; else it was freed */
} strata_graph_block_t;

typedef struct strata_graph_blocks {
    strata_graph_block_t *all; /* by address */
    size_t count;
} strata_graph_blocks_t;

void strata_graph_blocks_delete(strata_graph_blocks_t *blocks);
/* What the program has of the pool, blocks of 0 bytes left out. E_HOST_MEMORY; E_UNSUPPORTED: the layers cannot set it back. */
strata_status_t strata_graph_pool_live(strata_graph_pool_t *pool, strata_graph_blocks_t *live);
/* What was live then is live again, and nothing else is. *changes is what that took, in the order in which it was done; the caller
 * deletes it. After an error nothing has changed: those of strata_graph_pool_restore(). */
strata_status_t strata_graph_pool_set_live(strata_graph_pool_t *pool, const strata_graph_blocks_t *then,
                                           strata_graph_blocks_t *changes);

#endif

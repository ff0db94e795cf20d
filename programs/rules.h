/* The rules that make a program well-formed. It walks the operations over a model of the program's blocks, streams,
 * captures and pools, which this header defines.
 *
 *   rules.c          blocks, uses, borrows, frees, streams, and the walk
 *   rules_graphs.c   captures, graphs and their pools
 *   rules_threads.c  the order between threads */
#ifndef STRATA_PROGRAMS_RULES_H
#define STRATA_PROGRAMS_RULES_H

#include "programs/program.h"

/* The streams with unfinished work on a block or a pool. A stream that the host has waited for is removed from all sets. */
typedef struct access_state {
    torture_streams_t writers; /* wrote the current contents */
    torture_streams_t readers; /* have read since the last write */
    torture_streams_t seen; /* have waited for the writers */
    torture_streams_t uncovered; /* other streams with work that is not ordered before the owner's */
} access_state_t;

typedef struct block_state {
    bool served, live;
    bool retained; /* freed by the program, but still owned by a graph pool */
    uint8_t place, owner; /* STRATA_TORTURE_NO_STREAM if it has no owner, or if the owner was destroyed */
    uint8_t pool; /* the graph pool that served it, from 1, or 0 */
    uint8_t graph; /* the graph of the captured work in `inside`, from 1, or 0 */
    uint64_t size;
    uint32_t owners;
    uint32_t owned; /* one bit for each graph pool that owns it besides the program */
    access_state_t outside, inside; /* work outside captures, and work in the capture for `graph` */
    torture_streams_t alloc_stream; /* the captured stream that it was served for; all uses elsewhere must follow its earlier work */
    torture_streams_t borrowed;
    torture_streams_t freed_on; /* passed to strata_free_on() by one of several owners, without a use since */
} block_state_t;

typedef enum graph_life { GRAPH_NONE, GRAPH_CAPTURING, GRAPH_READY, GRAPH_DESTROYED } graph_life_t;

typedef struct graph_state {
    graph_life_t life;
    uint8_t origin; /* the stream that began the capture */
    uint8_t pool; /* from 1, or 0 if no pool was begun for it */
    bool invalid; /* a block that it uses was freed, so it must not be launched any more */
    torture_streams_t members; /* are or were captured for it */
    torture_streams_t running; /* have launches of it that the host has not waited for */
} graph_state_t;

typedef struct pool_state {
    bool made, open, captured; /* `captured` is true if it was captured into since its last begin */
    uint8_t place, stream; /* place and stream of its last begin */
    uint32_t holds, graphs;
    access_state_t order; /* a launch counts as a write of the whole pool, and other uses as reads */
} pool_state_t;

/* A graph's use of a block. */
typedef struct graph_use {
    uint8_t graph;
    uint32_t block;
    bool write;
} graph_use_t;

typedef struct rules {
    torture_program_t *program;
    torture_dialect_t dialect;
    block_state_t *blocks; /* program->blocks of them */
    graph_state_t graphs[STRATA_TORTURE_GRAPHS];
    pool_state_t pools[STRATA_TORTURE_POOLS];
    uint8_t captured[TORTURE_STREAMS]; /* the graph that each stream is captured for, from 1, or 0 */
    torture_streams_t captures; /* all captured streams */
    graph_use_t *uses;
    uint32_t use_count, use_room;
    torture_needs_t needs; /* of the current operation */
    bool failed; /* host memory is exhausted */
} rules_t;

static inline torture_streams_t torture_bit(uint32_t stream) { return stream < TORTURE_STREAMS ? UINT32_C(1) << stream : 0; }

/* ---- accesses ---- */

/* Returns the streams that a new access must wait for. Concurrent reads need no order, but all other accesses do. */
torture_streams_t rules_waits(const access_state_t *at, uint32_t stream, bool write);
/* Adds an access that waits for those streams. */
void rules_access(access_state_t *at, uint32_t owner, uint32_t stream, bool write);
/* Removes streams that the host has waited for. */
void rules_host_waited(access_state_t *at, torture_streams_t streams);
/* Replaces a stream by its successor, which has waited for it. */
void rules_replace_stream(access_state_t *at, torture_streams_t self, torture_streams_t successor);

/* Record that the current operation affects a block, a graph or a pool. */
void rules_touch(rules_t *rules, uint32_t block);
void rules_touch_graph(rules_t *rules, uint32_t graph);
void rules_touch_pool(rules_t *rules, uint32_t pool);

/* ---- captures ---- */

/* Returns the graph for which a stream is captured, or NULL. */
graph_state_t *rules_capture(rules_t *rules, uint32_t stream);
/* Returns true if the stream may wait for the others. They must all be in its capture, or none of them may be captured. */
bool rules_may_wait(const rules_t *rules, uint32_t stream, torture_streams_t others);
/* Returns true if the stream is captured or a pool is begun for it. */
bool rules_is_named(const rules_t *rules, uint32_t stream);
/* Sets the pool that serves a request, from 1, or 0. Returns false if the request would be refused. */
bool rules_route(const rules_t *rules, uint8_t place, uint8_t stream, uint8_t *pool);
/* If the stream is captured, makes the capture's pool an owner of a block from outside the pool. Returns false if the capture
 * has no pool. */
bool rules_own(rules_t *rules, block_state_t *block, uint32_t stream);
/* Records that captured work of a graph uses a block. */
void rules_use(rules_t *rules, uint32_t graph, uint32_t block, bool write);
/* Records the last free of a block. Graphs that use the block and do not own it must not be launched any more. */
void rules_freed(rules_t *rules, uint32_t block);

bool rules_order(rules_t *rules, torture_op_t *op);
bool rules_pool_begin(rules_t *rules, torture_op_t *op);
bool rules_begin_capture(rules_t *rules, torture_op_t *op);
bool rules_end_capture(rules_t *rules, torture_op_t *op);
bool rules_pool_end(rules_t *rules, torture_op_t *op);
bool rules_pool_remove(rules_t *rules, torture_op_t *op);
bool rules_launch(rules_t *rules, torture_op_t *op);
bool rules_destroy(rules_t *rules, torture_op_t *op);

/* ---- threads (rules_threads.c) ---- */

/* Computes torture_needs_t.need of all operations. Returns false if host memory is exhausted. */
bool rules_threads(torture_program_t *program);

#endif

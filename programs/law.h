/* What the files of the law share: the model of a program's blocks, streams, captures and pools. */
#ifndef STRATA_PROGRAMS_LAW_H
#define STRATA_PROGRAMS_LAW_H

#include "programs/program.h"

/* Streams whose work on something is of interest. A stream that the host has waited for is out of all of them. */
typedef struct access_state {
    torture_streams_t writers; /* of what it holds */
    torture_streams_t readers; /* since it was written */
    torture_streams_t seen; /* have waited for the writers */
    torture_streams_t uncovered; /* not the owner's; nothing orders them before it */
} access_state_t;

typedef struct block_state {
    bool served, live;
    bool kept; /* the program has given it up, a pool of graphs has not */
    uint8_t place, owner; /* STRATA_TORTURE_NO_STREAM: none, or it is gone */
    uint8_t pool; /* of graphs, that served it; from 1 */
    uint8_t graph; /* whose captured work `inside` is; from 1 */
    uint64_t size;
    uint32_t owners;
    uint32_t owned; /* by pools of graphs besides the program: a bit each */
    access_state_t outside, inside;
    torture_streams_t born; /* on a captured stream: work of others comes after what that stream had been given */
    torture_streams_t borrowed;
    torture_streams_t told; /* by strata_free_on() of one of several owners, and not used since */
} block_state_t;

typedef enum graph_life { GRAPH_NONE, GRAPH_CAPTURING, GRAPH_READY, GRAPH_GONE } graph_life_t;

typedef struct graph_state {
    graph_life_t life;
    uint8_t origin; /* stream */
    uint8_t pool; /* from 1; 0: none was begun for it */
    bool lost; /* a block that it uses was given back: it is not launched any more */
    torture_streams_t members; /* that are, or were, captured for it */
    torture_streams_t running; /* its launches; the host has not waited for them */
} graph_state_t;

typedef struct pool_state {
    bool made, open, captured; /* since the begin */
    uint8_t place, stream; /* of the begin */
    uint32_t holds, graphs;
    access_state_t order; /* a launch writes the whole pool, other uses read it */
} pool_state_t;

/* A graph's use of a block. */
typedef struct graph_use {
    uint8_t graph;
    uint32_t block;
    bool write;
} graph_use_t;

typedef struct law {
    torture_program_t *program;
    torture_dialect_t dialect;
    block_state_t *blocks; /* program->blocks of them */
    graph_state_t graphs[STRATA_TORTURE_GRAPHS];
    pool_state_t pools[STRATA_TORTURE_POOLS];
    uint8_t captured[TORTURE_STREAMS]; /* for which graph; from 1 */
    torture_streams_t captures; /* those of `captured` */
    graph_use_t *uses;
    uint32_t use_count, use_room;
    torture_duty_t duty; /* of the operation under way */
    bool failed; /* the host has no memory */
} law_t;

static inline torture_streams_t torture_bit(uint32_t stream) { return stream < TORTURE_STREAMS ? UINT32_C(1) << stream : 0; }

/* ---- accesses ---- */

/* What one more access would have to wait for. Kernels that read beside each other are in no order; everything else is. */
torture_streams_t law_waits(const access_state_t *at, uint32_t stream, bool write);
/* It is made, and waits for that. */
void law_access(access_state_t *at, uint32_t owner, uint32_t stream, bool write);
void law_host_has_seen(access_state_t *at, torture_streams_t streams);
/* What is known of the stream's work is known of its successor's from now on. */
void law_hand_over(access_state_t *at, torture_streams_t self, torture_streams_t successor);

/* The operation under way concerns a block; a graph, a pool. */
void law_touch(law_t *law, uint32_t block);
void law_touch_graph(law_t *law, uint32_t graph);
void law_touch_pool(law_t *law, uint32_t pool);

/* ---- captures ---- */

/* The graph for which a stream is captured; NULL: for none. */
graph_state_t *law_capture(law_t *law, uint32_t stream);
/* Whether the stream may wait for the others: all of them are in its capture, or none is in any. */
bool law_may_wait(const law_t *law, uint32_t stream, torture_streams_t others);
/* Whether the stream is captured, or a pool is begun for it. */
bool law_is_named(const law_t *law, uint32_t stream);
/* The pool that a request goes to, from 1; 0: none. False: it would be refused. */
bool law_route(const law_t *law, uint8_t place, uint8_t stream, uint8_t *pool);
/* A captured stream has the block from outside its pool: the pool becomes an owner. False: there is no pool. */
bool law_own(law_t *law, block_state_t *block, uint32_t stream);
/* Work that is captured for a graph uses a block. */
void law_use(law_t *law, uint32_t graph, uint32_t block, bool write);
/* The program gives the block back for good: graphs that use it and do not own it are not launched any more. */
void law_lose(law_t *law, uint32_t block);

bool law_order(law_t *law, torture_op_t *op);
bool law_pool_begin(law_t *law, torture_op_t *op);
bool law_begin_capture(law_t *law, torture_op_t *op);
bool law_end_capture(law_t *law, torture_op_t *op);
bool law_pool_end(law_t *law, torture_op_t *op);
bool law_pool_remove(law_t *law, torture_op_t *op);
bool law_launch(law_t *law, torture_op_t *op);
bool law_destroy(law_t *law, torture_op_t *op);

/* ---- threads (law_threads.c) ---- */

/* Which operations must be over before which. False: the host has no memory. */
bool law_threads(torture_program_t *program);

#endif

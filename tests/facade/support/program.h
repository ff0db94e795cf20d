/* A random program of two streams, the same at every run: allocations, frees, borrows, work, waits. It checks every answer
 * against a model of what is live, and the bytes of live blocks against what it wrote there. */
#ifndef STRATA_TESTS_FACADE_PROGRAM_H
#define STRATA_TESTS_FACADE_PROGRAM_H

#include "tests/facade/support/fixture.h"

/* A strategy whose requests take four ways, one of them to another kind of memory. */
#define PROGRAM_ROUTED                                                                                                             \
    "strategy: routed\nstack:\n  - retry: {timeout: 2ms}\n  - stream_safe\n  - binning:\n      routes:\n"                          \
    "        - {up_to: 16KiB, stack: [auto_growth: {chunk_size: 1MiB}, system]}\n"                                                 \
    "        - {up_to: 256KiB, stack: [buffered, auto_growth: {chunk_size: 4MiB, order: any}, system]}\n"                          \
    "        - {stack: [fallback: {stacks: [[auto_growth: {chunk_size: 16MiB}, system],\n"                                         \
    "                                       [buffered, system: {memory: pinned}]]}]}\n"
/* auto_growth with everything that divides its chunks. */
#define PROGRAM_POOLED                                                                                                             \
    "strategy: pooled\nstack:\n  - retry: {timeout: 2ms}\n  - stream_safe\n  - auto_growth: {order: any, "                         \
    "small_pool_size: 64KiB, small_chunk_size: 1MiB, chunk_size: 8MiB, small_preallocate: 1MiB, "                                  \
    "preallocate: 4MiB}\n  - system\n"
#define PROGRAM_SPLIT                                                                                                              \
    "strategy: split\nstack:\n  - retry: {timeout: 2ms}\n  - stream_safe\n  - auto_growth: {chunk_size: "                          \
    "256KiB, split_pools: true, free_idle_chunk: true, smaller_growth: true}\n  - system\n"

/* One buddy pool for all streams and threads, and pools of each thread and stream, with chunks that come and go. */
#define PROGRAM_NAIVE                                                                                                              \
    "strategy: naive\nstack:\n  - retry: {timeout: 2ms}\n  - naive_best_fit: {streams: ignored, initial: "                         \
    "6MiB, reallocate: 4MiB, smaller_growth: true}\n  - system\n"
#define PROGRAM_THREADS                                                                                                            \
    "strategy: threads\nstack:\n  - retry: {timeout: 2ms}\n  - stream_safe\n  - thread_local: {initial: "                          \
    "6MiB, reallocate: 4MiB}\n  - system\n"

enum { PROGRAM_BLOCKS = 96, PROGRAM_LENGTH = 2000 };

typedef struct program_block {
    strata_block_t block;
    size_t requested;
    uint64_t mark; /* written at both ends */
} program_block_t;

typedef struct program {
    rig_t *rig;
    strata_stream_t streams[2];
    uint64_t random;
    program_block_t blocks[PROGRAM_BLOCKS];
    uint32_t live;
    uint64_t requested, allocated;
    uint32_t failures; /* calls that did not answer OK */
    strata_status_t tolerated; /* beside E_NO_MEMORY; OK: nothing else */
    bool host_may_fail; /* E_HOST_MEMORY is no fault of the library's */
} program_t;

/* Two streams of the rig's device; no fault is armed yet. */
void program_begin(program_t *program, rig_t *rig);
/* One operation. */
void program_step(program_t *program);
void program_run(program_t *program, uint32_t operations);
/* What must hold at any time: the figures are those of the model, the bytes are there, every structure is sound. */
void program_check(program_t *program);
/* Frees everything. */
void program_finish(program_t *program);

#endif

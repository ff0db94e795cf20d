/* The world in which a program runs: a facade over simulated devices, and the happens-before checker that observes them. Each
 * function makes one call of the program and reports it to the checker.
 *
 * The verdict keeps the first fault, and all later calls do nothing. Any thread may call, in the order that the program sets.
 */
#ifndef STRATA_PROGRAMS_WORLD_H
#define STRATA_PROGRAMS_WORLD_H

#include <pthread.h>

#include "platform/sim/checker/checker.h"
#include "programs/program.h"
#include "strategy/model.h"

/* X(name, text) for each kind of fault. */
#define TORTURE_FAULT_MAP(X)                                                                                                       \
    X(NONE, "no fault")                                                                                                            \
    X(HAZARD, "the checker found a hazard")                                                                                        \
    X(CONTENTS, "a block has wrong contents")                                                                                      \
    X(CALL, "a call returned a wrong result")                                                                                      \
    X(SHAPE, "a block is too small, or not aligned")                                                                               \
    X(VALIDATE, "an internal structure is corrupt")                                                                                \
    X(LEFT, "not all memory went back to a device")                                                                                \
    X(CRASH, "the process ended")                                                                                                  \
    X(HANG, "it did not finish")                                                                                                   \
    X(HOST, "out of host memory or processes for the run")

typedef enum torture_fault {
#define TORTURE_FAULT_ENUM(name, text) TORTURE_FAULT_##name,
    TORTURE_FAULT_MAP(TORTURE_FAULT_ENUM)
#undef TORTURE_FAULT_ENUM
} torture_fault_t;

enum { TORTURE_TEXT = 6000 };

typedef struct torture_verdict {
    torture_fault_t fault;
    int detail; /* HAZARD: strata_hazard_t; CALL: strata_status_t; CRASH: the signal */
    uint64_t hazards;
    uint64_t recycled; /* renewed streams that got their old handle again */
    uint64_t served, refused; /* requests */
    uint64_t captures, launches; /* graphs captured, and launches made */
    bool unopened; /* too little memory for the chunks that the strategy or a graph pool gets when it opens */
    char text[TORTURE_TEXT];
} torture_verdict_t;

/* Returns true if both have the same fault and detail. */
bool torture_same_fault(const torture_verdict_t *a, const torture_verdict_t *b);
const char *torture_fault_text(torture_fault_t fault);

typedef struct torture_setting {
    uint32_t devices; /* 0 means 1 */
    uint32_t blocks; /* block numbers are below this; 0 means 64 */
    uint64_t capacity; /* bytes of each device, or 0 for the profile's capacity */
    bool check_stream_ids;
    bool host_in_order; /* as in strata_sim_options_t */
    bool may_refuse; /* layers may refuse requests or take nearly all memory; capacity 0 then means 512 MiB */
} torture_setting_t;

typedef struct torture_block {
    strata_block_t block;
    bool live; /* false after a refused request; later calls skip such a block */
    uint8_t place;
    uint8_t mark;
    bool known; /* the contents are known, because no launch may have overwritten them since */
    bool freed; /* freed by the program; the checker learns of it when no graph pool owns it any more */
    uint8_t pool; /* the graph pool that served it, from 1, or 0 */
    uint32_t owned; /* one bit for each graph pool that owns it */
    uint32_t launched; /* number of the last launch that was applied to the contents */
    uint64_t requested;
} torture_block_t;

/* A write of a graph to a block. */
typedef struct torture_written {
    uint32_t block;
    bool filled; /* true for a fill with `byte`, false for a kernel */
    uint8_t byte;
} torture_written_t;

typedef struct torture_graph {
    strata_graph_t handle;
    uint32_t device;
    uint64_t capture; /* ID of the capture, from the device */
    torture_written_t *written;
    uint32_t count, room;
} torture_graph_t;

typedef struct torture_pool {
    uint64_t number; /* 0 before the first begin */
    uint8_t place;
} torture_pool_t;

typedef struct torture_world {
    strata_sim_t *sim;
    strata_device_t *devices[TORTURE_DEVICES];
    uint32_t device_count;
    strata_checker_t *checker;
    strata_t s;
    bool small, may_refuse;
    strata_stream_t streams[TORTURE_STREAMS];
    torture_block_t *blocks; /* `block_count` of them */
    uint32_t block_count;
    uint8_t captured[TORTURE_STREAMS]; /* the graph that each stream is captured for, from 1, or 0 */
    torture_graph_t graphs[STRATA_TORTURE_GRAPHS];
    torture_pool_t pools[STRATA_TORTURE_POOLS];
    _Atomic uint64_t captures;
    _Atomic bool has_pools; /* a graph pool was begun */
    _Atomic uint32_t launches;
    _Atomic uint64_t recycled; /* renewed streams that got their old handle again */
    _Atomic uint64_t served, refused;
    pthread_mutex_t lock; /* guards the verdict */
    _Atomic bool failed;
    torture_verdict_t verdict;
} torture_world_t;

/* Opens a world. The strategy must outlive it. A failure is recorded in the verdict, and the world must be ended in any case. */
void torture_world_open(torture_world_t *w, const strata_strategy_t *strategy, const torture_setting_t *setting);
/* Ends a world after the last free. It is a fault if a device lacks memory after a release, or if the checker found a hazard. */
void torture_world_end(torture_world_t *w);

/* The parameters of a request. */
typedef struct torture_request {
    uint64_t size;
    uint32_t alignment, flags;
    const char *tag;
    uint8_t pool; /* the graph pool that must serve it, from 1, or 0 */
} torture_request_t;

/* The calls of a program. Streams and places have their numbers of strata/torture.h. A block number is allocated once. */
void torture_allocate(torture_world_t *w, uint32_t block, uint32_t place, uint32_t stream, const torture_request_t *request);
/* Launches a kernel that reads the blocks and writes those with their bit set in `writes`. */
void torture_work(torture_world_t *w, uint32_t stream, uint32_t us, const uint32_t *blocks, uint32_t count, uint32_t writes);
void torture_fill(torture_world_t *w, uint32_t stream, uint32_t block);
void torture_host(torture_world_t *w, uint32_t block, bool write);
void torture_check(torture_world_t *w, uint32_t block);
void torture_borrow(torture_world_t *w, uint32_t block, uint32_t stream);
void torture_erase(torture_world_t *w, uint32_t block, uint32_t stream);
void torture_retain(torture_world_t *w, uint32_t block);
/* Frees a block. `last` is true if no other owner is left. With STRATA_TORTURE_NO_STREAM the free is on the owner stream. */
void torture_free(torture_world_t *w, uint32_t block, uint32_t stream, bool last, bool by_pointer);
/* Makes all devices fail to record events, or ends that. */
void torture_refuse_events(torture_world_t *w, bool refuse);
/* Makes `stream` wait for all work that was submitted to `other`. */
void torture_order(torture_world_t *w, uint32_t stream, uint32_t other);
void torture_synchronise(torture_world_t *w, uint32_t stream);
void torture_renew(torture_world_t *w, uint32_t stream);
void torture_release(torture_world_t *w, uint32_t place);
void torture_trim(torture_world_t *w, uint32_t place, uint64_t keep);
void torture_query_place(torture_world_t *w, uint32_t place);
void torture_query_block(torture_world_t *w, uint32_t block);
void torture_advance(torture_world_t *w, uint32_t us);

/* ---- captured graphs (world_graphs.c) ---- */

/* Like torture_order(), but through the facade, so that a stream can join the capture of `other`. */
void torture_stream_wait(torture_world_t *w, uint32_t stream, uint32_t other);
void torture_pool_begin(torture_world_t *w, uint32_t pool, uint32_t place, uint32_t stream);
/* Begins a capture. `pool` is the pool that is begun for the stream, from 1, or 0 if there is none. */
void torture_capture(torture_world_t *w, uint32_t graph, uint32_t stream, uint8_t pool);
void torture_end_capture(torture_world_t *w, uint32_t graph, uint32_t stream);
void torture_pool_end(torture_world_t *w, uint32_t pool);
void torture_pool_remove(torture_world_t *w, uint32_t pool);
/* Launches a graph. `touched` is from torture_program_t. Its blocks may overlap the memory that the graph uses. */
void torture_launch(torture_world_t *w, uint32_t graph, uint32_t stream, uint8_t pool, const uint32_t *touched, uint32_t count);
void torture_destroy(torture_world_t *w, uint32_t graph);
/* Sets the graph pools that still own the block after the next free. */
void torture_set_owners(torture_world_t *w, uint32_t block, uint32_t owned);
/* Reports to the checker the touched blocks that only this pool still owned. It must precede the call that drops its last
 * holder. */
void torture_report_pool_freed(torture_world_t *w, uint32_t pool, const uint32_t *touched, uint32_t count);
/* Records a write of captured work, which happens at each launch. Returns false if the stream is not captured. */
bool torture_note_written(torture_world_t *w, uint32_t stream, const torture_written_t *written);

/* ---- shared by the files of the world ---- */

strata_place_t torture_place_of(uint32_t place);
bool torture_expect_ok(torture_world_t *w, strata_status_t status, const char *call);
void torture_check_hazards(torture_world_t *w);
/* Writes new contents to the block on the host. */
void torture_write_marks(torture_world_t *w, torture_block_t *b);

/* Records a fault, if it is the first. */
void torture_fail(torture_world_t *w, torture_fault_t fault, int detail, const char *format, ...) STRATA_PRINTF(4, 5);

#endif

/* A facade over simulated devices that the happens-before checker watches, and a program's calls, told to both.
 *
 * What goes wrong first is kept in the verdict; the calls after it do nothing. Any thread, as far as the program is in order.
 */
#ifndef STRATA_PROGRAMS_WORLD_H
#define STRATA_PROGRAMS_WORLD_H

#include <pthread.h>

#include "platform/sim/checker/checker.h"
#include "programs/program.h"
#include "strategy/model.h"

/* X(name, text): what can be wrong. */
#define TORTURE_FAULT_MAP(X)                                                                                                       \
    X(NONE, "nothing is wrong")                                                                                                    \
    X(HAZARD, "the checker found a hazard")                                                                                        \
    X(CONTENTS, "a block does not hold what was written there")                                                                    \
    X(CALL, "a call answered what it must not")                                                                                    \
    X(SHAPE, "a block is too small, or not aligned")                                                                               \
    X(VALIDATE, "a structure does not hold what it must")                                                                          \
    X(LEFT, "at the end a device has not everything back")                                                                         \
    X(CRASH, "the process ended")                                                                                                  \
    X(HANG, "it did not end")                                                                                                      \
    X(HOST, "the host has no memory for the run, or no process")

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
    uint64_t recycled; /* handles that the driver gave again to a stream that was renewed */
    uint64_t served, refused; /* requests, as far as a request may be refused */
    uint64_t captures, launches; /* of graphs, that were served */
    bool unopened; /* there was too little memory for what the strategy gets at open */
    char text[TORTURE_TEXT];
} torture_verdict_t;

/* The same thing went wrong. */
bool torture_same_fault(const torture_verdict_t *a, const torture_verdict_t *b);
const char *torture_fault_text(torture_fault_t fault);

typedef struct torture_setting {
    uint32_t devices; /* 0 means 1 */
    uint32_t blocks; /* their numbers are below; 0 means 64 */
    uint64_t capacity; /* of each; 0: as the profile says */
    bool check_stream_ids;
    bool host_in_order; /* as strata_sim_options_t */
    bool may_refuse; /* a layer may be told to refuse requests, or take all there is; a profile's capacity is 512 MiB then */
} torture_setting_t;

typedef struct torture_block {
    strata_block_t block;
    bool there; /* a request that was refused makes none: later calls pass over it */
    uint8_t place;
    uint8_t mark;
    bool known; /* what it holds: no launch may have overwritten it since */
    bool given_up; /* by the program; the checker is not told while pools of graphs own it */
    uint8_t pool; /* of graphs that served it, from 1 */
    uint32_t owned; /* by pools of graphs: a bit each */
    uint32_t launched; /* the last launch that was looked at */
    uint64_t requested;
} torture_block_t;

/* What a graph does to blocks. */
typedef struct torture_written {
    uint32_t block;
    bool filled; /* with `byte`; else by a kernel */
    uint8_t byte;
} torture_written_t;

typedef struct torture_graph {
    strata_graph_t handle;
    uint32_t device;
    uint64_t capture; /* its id, as the device says it */
    torture_written_t *written;
    uint32_t count, room;
} torture_graph_t;

typedef struct torture_pool {
    uint64_t number; /* 0: it was never begun */
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
    torture_block_t *blocks; /* of numbers below `block_count` */
    uint32_t block_count;
    uint8_t captured[TORTURE_STREAMS]; /* for which graph; from 1 */
    torture_graph_t graphs[STRATA_TORTURE_GRAPHS];
    torture_pool_t pools[STRATA_TORTURE_POOLS];
    _Atomic uint64_t captures;
    _Atomic bool has_pools; /* one was begun */
    _Atomic uint32_t launches;
    _Atomic uint64_t recycled; /* streams that were renewed under the handle they had */
    _Atomic uint64_t served, refused;
    pthread_mutex_t lock; /* of the verdict */
    _Atomic bool failed;
    torture_verdict_t verdict;
} torture_world_t;

/* The strategy outlives the world. What goes wrong stands in the verdict; end it all the same. */
void torture_world_open(torture_world_t *w, const strata_strategy_t *strategy, const torture_setting_t *setting);
/* After the last free: the devices must have everything back after a release, and no hazard been found. */
void torture_world_end(torture_world_t *w);

/* What a request asks for. */
typedef struct torture_request {
    uint64_t size;
    uint32_t alignment, flags;
    const char *tag;
    uint8_t pool; /* of graphs, that must serve it; from 1 */
} torture_request_t;

/* Streams and places by their numbers in strata/torture.h, blocks by a number that the program gives once. */
void torture_allocate(torture_world_t *w, uint32_t block, uint32_t place, uint32_t stream, const torture_request_t *request);
/* A kernel that reads the blocks, and writes those whose bit is set. */
void torture_work(torture_world_t *w, uint32_t stream, uint32_t us, const uint32_t *blocks, uint32_t count, uint32_t writes);
void torture_fill(torture_world_t *w, uint32_t stream, uint32_t block);
void torture_host(torture_world_t *w, uint32_t block, bool write);
void torture_check(torture_world_t *w, uint32_t block);
void torture_borrow(torture_world_t *w, uint32_t block, uint32_t stream);
void torture_erase(torture_world_t *w, uint32_t block, uint32_t stream);
void torture_retain(torture_world_t *w, uint32_t block);
/* `last`: no other owner is left. `stream` STRATA_TORTURE_NO_STREAM: the owner's. */
void torture_free(torture_world_t *w, uint32_t block, uint32_t stream, bool last, bool by_pointer);
/* From now on no device records an event, until it is said again with false. */
void torture_refuse_events(torture_world_t *w, bool refuse);
/* `stream` waits for what `other` was given. */
void torture_order(torture_world_t *w, uint32_t stream, uint32_t other);
void torture_synchronise(torture_world_t *w, uint32_t stream);
void torture_renew(torture_world_t *w, uint32_t stream);
void torture_release(torture_world_t *w, uint32_t place);
void torture_trim(torture_world_t *w, uint32_t place, uint64_t keep);
void torture_look(torture_world_t *w, uint32_t place);
void torture_look_at(torture_world_t *w, uint32_t block);
void torture_pass(torture_world_t *w, uint32_t us);

/* ---- captured graphs (world_graphs.c) ---- */

/* As torture_order(), but through the facade; a stream joins the capture of another so. */
void torture_join(torture_world_t *w, uint32_t stream, uint32_t other);
void torture_pool_begin(torture_world_t *w, uint32_t pool, uint32_t place, uint32_t stream);
/* `pool`: that is begun for the stream, from 1; 0: none is. */
void torture_capture(torture_world_t *w, uint32_t graph, uint32_t stream, uint8_t pool);
void torture_end_capture(torture_world_t *w, uint32_t graph, uint32_t stream);
void torture_pool_end(torture_world_t *w, uint32_t pool);
void torture_pool_remove(torture_world_t *w, uint32_t pool);
/* `touched`: of torture_program_t; the blocks in it may lie over what the graph uses. */
void torture_launch(torture_world_t *w, uint32_t graph, uint32_t stream, uint8_t pool, const uint32_t *touched, uint32_t count);
void torture_destroy(torture_world_t *w, uint32_t graph);
/* The free that comes next leaves the block to these pools. */
void torture_keep(torture_world_t *w, uint32_t block, uint32_t owned);
/* The call that comes next ends all that keeps the pool, which may own some of the blocks touched. */
void torture_let_go(torture_world_t *w, uint32_t pool, const uint32_t *touched, uint32_t count);
/* Work of a captured stream writes a block, at each launch. False: the stream is not captured. */
bool torture_note_written(torture_world_t *w, uint32_t stream, const torture_written_t *written);

/* ---- shared by the files of the world ---- */

strata_place_t torture_place_of(uint32_t place);
bool torture_answered(torture_world_t *w, strata_status_t status, const char *call);
void torture_look_for_hazards(torture_world_t *w);
/* The host writes what the block holds from now on. */
void torture_write_marks(torture_world_t *w, torture_block_t *b);

/* Notes what is wrong, if nothing was so far. */
void torture_wrong(torture_world_t *w, torture_fault_t fault, int detail, const char *format, ...) STRATA_PRINTF(4, 5);

#endif

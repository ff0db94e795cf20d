/* Stream programs: what a program of several streams, host threads and devices does, operation by operation (strata/torture.h).
 *
 * The order of the operations is one in which they may happen. Each is made by its thread; a thread waits for those of others that
 * name the same block, or that renew a stream which it uses, and for no more.
 */
#ifndef STRATA_PROGRAMS_PROGRAM_H
#define STRATA_PROGRAMS_PROGRAM_H

#include "strata/torture.h"

enum {
    TORTURE_DEVICES = 2,
    TORTURE_STREAMS_EACH = 4, /* of a device: the legacy stream, one that orders with it, two that do not */
    TORTURE_STREAMS = TORTURE_DEVICES * TORTURE_STREAMS_EACH,
    TORTURE_THREADS = 4,
    TORTURE_FIRST_BLOCK = STRATA_TORTURE_GRAPHS + STRATA_TORTURE_POOLS /* in torture_program_t.touched, after graphs and pools */
};

typedef strata_torture_op_t torture_op_t;
typedef strata_torture_kind_t torture_kind_t;
typedef uint32_t torture_streams_t; /* bit i: stream i */

/* What makes an operation lawful. */
typedef struct torture_duty {
    torture_streams_t waits; /* what `stream` waits for first */
    torture_streams_t owner_waits; /* what the block's owner waits for first */
    torture_streams_t syncs; /* what the host waits for first */
    torture_streams_t borrows; /* recorded first */
    torture_streams_t uses; /* every stream that it needs to be there */
    torture_streams_t lent; /* FREE: streams that are borrowers: none of them becomes captured at the same moment */
    torture_streams_t turns; /* streams that are others for all operations after it: renewed, captured, or no longer */
    uint8_t pool; /* of graphs, from 1: that serves the block, is captured into, is launched from; 0: none */
    uint8_t ends; /* the pool that nothing keeps after it, from 1; 0: none */
    uint32_t owned; /* FREE: bit per pool that owns the block besides the program */
    uint8_t owner; /* the stream of owner_waits */
    bool last; /* FREE: no owner is left; after all others, that by the program's end */
    uint32_t touches,
        touched; /* of torture_program_t.touched: what it must be in order with, blocks that are named and those that it
                                  concerns, graphs and pools */
    uint32_t need[TORTURE_THREADS]; /* operations of each thread that must be over before */
} torture_duty_t;

/* Begins as {0}. */
typedef struct torture_program {
    uint64_t seed;
    uint32_t devices, threads;
    uint64_t capacity; /* of each device; 0: as the profile says */
    bool check_stream_ids; /* a handle that was given again and not forgotten is told; no stack is remembered for the next call then */
    uint32_t count, room;
    torture_op_t *ops;
    torture_duty_t *duties; /* of each operation; torture_law() writes them */
    uint32_t blocks; /* numbers named are below this; torture_law() counts */
    uint32_t *touched;
    uint32_t touched_count, touched_room;
} torture_program_t;

/* What a strategy asks of its programs, and serves: flags. */
typedef enum torture_dialect {
    TORTURE_FREE_COVERS = 0, /* a borrow covers all work before the free */
    TORTURE_USE_COVERS = 1, /* ... before record_stream alone (`event: use`) */
    TORTURE_GRAPHS_GPU = 2, /* there are graph pools in gpu places */
    TORTURE_GRAPHS_MANAGED = 4,
    TORTURE_CAPTURES_UNSAID = 8, /* captures may begin before their pools, or have none */
    TORTURE_DIALECTS = 16
} torture_dialect_t;

/* Room for so many operations. False: the host has no memory, and all is as before. */
bool torture_program_reserve(torture_program_t *program, uint32_t operations);
/* Everything but the duties, which are law's. False: the host has no memory. */
bool torture_program_copy(torture_program_t *to, const torture_program_t *from);
void torture_program_delete(torture_program_t *program);

/* Makes a lawful program of any: leaves out what cannot be done, adds waits and borrows where the streams' own order would be
 * missing, frees at the end what is still there. A lawful program stays as it is. False: the host has no memory. */
bool torture_law(torture_program_t *program, torture_dialect_t dialect);

/* A stream's device, and whether it can be destroyed. */
static inline uint32_t torture_device_of(uint32_t stream) { return stream / TORTURE_STREAMS_EACH; }
static inline bool torture_is_legacy(uint32_t stream) { return stream % TORTURE_STREAMS_EACH == 0; }
/* Those that captures are made of: the others order with each other. */
static inline bool torture_is_capturable(uint32_t stream) { return stream % TORTURE_STREAMS_EACH >= 2; }
static inline bool torture_is_ownerless(uint32_t place) { return place >= STRATA_TORTURE_PINNED; }

#endif

/* Stream programs: lists of operations by several streams, host threads and devices (strata/torture.h).
 *
 *   operations ----> torture_make_well_formed() ----> well-formed program ----> torture_play() ----> calls of a facade, observed by the checker
 *
 * The order of the list is one possible order of execution. Each operation is made by its thread. A thread waits only for
 * operations of other threads that name the same block, or that renew a stream which it uses.
 */
#ifndef STRATA_PROGRAMS_PROGRAM_H
#define STRATA_PROGRAMS_PROGRAM_H

#include "strata/torture.h"

enum {
    TORTURE_DEVICES = 2,
    TORTURE_STREAMS_EACH = 4, /* per device: the legacy stream, one that orders with it, two that do not */
    TORTURE_STREAMS = TORTURE_DEVICES * TORTURE_STREAMS_EACH,
    TORTURE_THREADS = 4,
    TORTURE_FIRST_BLOCK = STRATA_TORTURE_GRAPHS + STRATA_TORTURE_POOLS /* of torture_program_t.touched, after graphs and pools */
};

typedef strata_torture_op_t torture_op_t;
typedef strata_torture_kind_t torture_kind_t;
typedef uint32_t torture_streams_t; /* bit i is stream i */

/* The waits and borrows that make an operation well-formed, and the order that it needs. */
typedef struct torture_needs {
    torture_streams_t waits; /* streams that `stream` waits for first */
    torture_streams_t owner_waits; /* streams that the block's owner waits for first */
    torture_streams_t syncs; /* streams that the host waits for first */
    torture_streams_t borrows; /* streams that are recorded as borrowers first */
    torture_streams_t uses; /* all streams that must exist for it */
    torture_streams_t lent; /* FREE: the borrowers, none of which may become captured at the same time */
    torture_streams_t stream_changes; /* streams that it renews, or for which it begins or ends a capture */
    uint8_t pool; /* graph pool, from 1, that serves the block or belongs to the graph; 0 if none */
    uint8_t ended_pool; /* graph pool, from 1, that has no holder after it; 0 if none */
    uint32_t owned; /* FREE: one bit for each graph pool that owns the block besides the program */
    uint8_t owner; /* the stream of owner_waits */
    bool last; /* FREE: no owner is left */
    /* Start and count in torture_program_t.touched: the blocks, graphs and pools that it names or affects. It must be in order with
     * other operations on them. */
    uint32_t touch_begin, touch_count;
    uint32_t required[TORTURE_THREADS]; /* number of operations of each thread that must be complete before */
} torture_needs_t;

/* Begins as {0}. */
typedef struct torture_program {
    uint64_t seed;
    uint32_t devices, threads;
    uint64_t capacity; /* bytes of each device, or 0 for the profile's capacity */
    bool check_stream_ids; /* reuse of a handle that was not forgotten is an error; stacks are looked up at each call then */
    uint32_t count, room;
    torture_op_t *ops;
    torture_needs_t *all_needs; /* one for each operation, written by torture_make_well_formed() */
    uint32_t blocks; /* all block numbers are below this; set by torture_make_well_formed() */
    uint32_t *touched;
    uint32_t touched_count, touched_room;
} torture_program_t;

/* Flags: the rules of a strategy for its programs, and the features that it serves. */
typedef enum torture_dialect {
    TORTURE_FREE_COVERS = 0, /* a borrow covers all work up to the free */
    TORTURE_USE_COVERS = 1, /* a borrow covers only work before record_stream (`event: use`) */
    TORTURE_GRAPHS_GPU = 2, /* gpu places have graph pools */
    TORTURE_GRAPHS_MANAGED = 4,
    TORTURE_CAPTURES_UNANNOUNCED = 8, /* captures may begin before their pools, or without one */
    TORTURE_DIALECTS = 16
} torture_dialect_t;

/* Reserves memory for this many operations. If host memory is exhausted, returns false and changes nothing. */
bool torture_program_reserve(torture_program_t *program, uint32_t operations);
/* Copies a program without its duties, which torture_make_well_formed() computes. Returns false if host memory is exhausted. */
bool torture_program_copy(torture_program_t *to, const torture_program_t *from);
void torture_program_delete(torture_program_t *program);

/* Makes any program well-formed, so that every fault in it is the allocator's. Removes operations that are not possible. Adds waits and
 * borrows where the order of the streams is not enough. Frees the remaining blocks at the end. Does not change a well-formed program.
 * Returns false if host memory is exhausted. */
bool torture_make_well_formed(torture_program_t *program, torture_dialect_t dialect);

/* Legacy streams exist always and cannot be renewed. */
static inline uint32_t torture_device_of(uint32_t stream) { return stream / TORTURE_STREAMS_EACH; }
static inline bool torture_is_legacy(uint32_t stream) { return stream % TORTURE_STREAMS_EACH == 0; }
/* Captures need streams that do not order with the legacy stream. */
static inline bool torture_is_capturable(uint32_t stream) { return stream % TORTURE_STREAMS_EACH >= 2; }
static inline bool torture_is_ownerless(uint32_t place) { return place >= STRATA_TORTURE_PINNED; }

#endif

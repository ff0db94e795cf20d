/* Stream programs: what a program of several streams, host threads and devices does, operation by operation.
 *
 * The order of the operations is one in which they may happen. Each is made by its thread; a thread waits for those of others that
 * name the same block, or that renew a stream which it uses, and for no more.
 */
#ifndef STRATA_TORTURE_PROGRAM_H
#define STRATA_TORTURE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TORTURE_DEVICES = 2,
    TORTURE_STREAMS_EACH = 4, /* of a device: the legacy stream, one that orders with it, two that do not */
    TORTURE_STREAMS = TORTURE_DEVICES * TORTURE_STREAMS_EACH,
    TORTURE_NO_STREAM = TORTURE_STREAMS,
    TORTURE_THREADS = 4,
    TORTURE_BLOCKS = 64, /* served in one program */
    TORTURE_OPERATIONS = 400,
    TORTURE_NAMED = 3 /* blocks that one operation may name */
};

/* X(name, what it does) */
#define TORTURE_KIND_MAP(X)                                                                                                        \
    X(ALLOCATE, "block 0 is served in `place` for `stream`")                                                                       \
    X(WORK, "a kernel of `us` on `stream` reads its blocks, and writes those in `writes`")                                         \
    X(FILL, "block 0 is filled on `stream`")                                                                                       \
    X(HOST, "the host reads block 0, or writes it")                                                                                \
    X(CHECK, "block 0 holds what was written there")                                                                               \
    X(BORROW, "record_stream: block 0, `stream`")                                                                                  \
    X(ERASE, "erase_stream: block 0, `stream`, whose work is over or ordered before the owner's next")                             \
    X(RETAIN, "block 0 has one owner more")                                                                                        \
    X(FREE, "one owner of block 0 gives it back, in one of several ways")                                                          \
    X(ORDER, "`stream` waits for `other`")                                                                                         \
    X(SYNCHRONISE, "the host waits for `stream`")                                                                                  \
    X(RENEW, "`stream` is forgotten and destroyed, and made anew")                                                                 \
    X(RELEASE, "what is idle in `place` goes back")                                                                                \
    X(TRIM, "idle memory of `place` goes back but for `size` bytes")                                                               \
    X(LOOK, "validate, statistics, a snapshot, and what is known of block 0")                                                      \
    X(PASS, "the host computes for `us`")

typedef enum torture_kind {
#define TORTURE_KIND_ENUM(name, what) TORTURE_##name,
    TORTURE_KIND_MAP(TORTURE_KIND_ENUM)
#undef TORTURE_KIND_ENUM
        TORTURE_KINDS
} torture_kind_t;

/* Places by number: gpu of either device, managed of either, pinned, host. */
enum { TORTURE_GPU, TORTURE_MANAGED = 2, TORTURE_PINNED = 4, TORTURE_HOST_PLACE = 5, TORTURE_PLACES = 6 };

/* How the last use of a freed block on other streams is told, where no borrow covers it yet. */
typedef enum torture_cover {
    TORTURE_COVER_BORROW, /* borrowed behind the use */
    TORTURE_COVER_OWNER, /* the owner stream waits for it */
    TORTURE_COVER_HOST, /* the host has waited for it */
    TORTURE_COVER_FREE_ON, /* strata_free_on() */
    TORTURE_COVERS
} torture_cover_t;

typedef uint32_t torture_streams_t; /* bit i: stream i */

typedef struct torture_op {
    uint8_t kind; /* torture_kind_t */
    uint8_t thread;
    uint8_t place;
    uint8_t stream; /* TORTURE_NO_STREAM: none */
    uint8_t other;
    uint8_t how; /* ERASE, RENEW, FREE: torture_cover_t */
    bool by_pointer; /* FREE */
    bool refused; /* FREE: no event can be recorded meanwhile; in programs of one thread, since that concerns all calls */
    uint8_t count; /* of the blocks named */
    uint8_t blocks[TORTURE_NAMED];
    uint8_t writes; /* bit i: blocks[i] is written */
    uint32_t flags; /* STRATA_ZERO, ... */
    uint32_t alignment;
    uint32_t us;
    uint64_t size;
    const char *tag;
    /* What makes it lawful, filled by torture_law(). */
    torture_streams_t waits; /* what `stream` waits for first */
    torture_streams_t owner_waits; /* what the block's owner waits for first */
    torture_streams_t syncs; /* what the host waits for first */
    torture_streams_t borrows; /* recorded first */
    uint8_t owner; /* the stream of owner_waits */
    bool last; /* FREE: no owner is left; behind all others, that by the program's end */
    torture_streams_t uses; /* every stream that it needs to be there */
    uint64_t touches; /* every block that it must be in order with: those named, and those that a RENEW concerns */
    uint16_t need[TORTURE_THREADS]; /* operations of each thread that must be over before */
} torture_op_t;

typedef struct torture_program {
    uint64_t seed;
    uint32_t devices, threads;
    uint64_t capacity; /* of each device; 0: as the profile says */
    bool check_stream_ids; /* a handle that was given again and not forgotten is told; no stack is remembered for the next call then */
    uint32_t count;
    torture_op_t ops[TORTURE_OPERATIONS];
} torture_program_t;

/* Of what a strategy asks of its programs. */
typedef enum torture_dialect {
    TORTURE_FREE_COVERS, /* a borrow covers all work before the free */
    TORTURE_USE_COVERS /* ... before record_stream alone (`event: use`) */
} torture_dialect_t;

/* A program by its seed. It is not lawful yet. */
void torture_draw(torture_program_t *program, uint64_t seed);
/* Makes a lawful program of any: leaves out what cannot be done, adds waits and borrows where the streams' own order would be missing,
 * frees at the end what is still there. A lawful program stays as it is. */
void torture_law(torture_program_t *program, torture_dialect_t dialect);
const char *torture_kind_name(torture_kind_t kind);

/* A stream's device, and whether it can be destroyed. */
static inline uint32_t torture_device_of(uint32_t stream) { return stream / TORTURE_STREAMS_EACH; }
static inline bool torture_is_legacy(uint32_t stream) { return stream % TORTURE_STREAMS_EACH == 0; }
static inline bool torture_is_ownerless(uint32_t place) { return place >= TORTURE_PINNED; }

#endif

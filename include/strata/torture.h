/* Stream programs under the happens-before checker. `strata torture` prints a program that fails as C against this header.
 * Authors of layers may write their own programs.
 *
 * A program is a list of operations by several streams, host threads and devices. It runs on simulated devices that have memory
 * with contents. Operations name streams, places, threads and blocks by small numbers:
 *
 *     streams   four for each device: 0 the legacy default stream, 1 one that orders with it, 2 and 3 two that order with nothing;
 *               4 to 7 are those of the second device
 *     places    STRATA_TORTURE_GPU + device, STRATA_TORTURE_MANAGED + device, STRATA_TORTURE_PINNED, STRATA_TORTURE_HOST
 *     threads   0 to 3
 *     blocks    any number below STRATA_TORTURE_BLOCKS; each is served once
 *     graphs    any number below STRATA_TORTURE_GRAPHS; each is captured once, on a stream that orders with nothing
 *     pools     of graphs; any number below STRATA_TORTURE_POOLS; a new one at its first begin
 *
 * Before it runs, a program is made well-formed. Impossible operations are left out, missing waits and borrows are added, and
 * remaining blocks are freed at the end. So every fault found is the allocator's. If the strategy serves no captured graphs,
 * captures are left out too.
 */
#ifndef STRATA_TORTURE_H
#define STRATA_TORTURE_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, meaning of the operation) */
#define STRATA_TORTURE_KIND_MAP(X)                                                                                                 \
    X(ALLOCATE, "block 0 is served in `place` for `stream`")                                                                       \
    X(WORK, "a kernel of `us` on `stream` reads its blocks, and writes those in `writes`")                                         \
    X(FILL, "block 0 is filled on `stream`")                                                                                       \
    X(HOST_ACCESS, "the host reads block 0, or writes it")                                                                         \
    X(CHECK, "block 0 has the contents that were written")                                                                         \
    X(BORROW, "record_stream: block 0, `stream`")                                                                                  \
    X(ERASE, "erase_stream: block 0, `stream`, whose work is over or ordered before the owner's next")                             \
    X(RETAIN, "block 0 gets one more owner")                                                                                       \
    X(FREE, "one owner of block 0 gives it back, in one of several ways")                                                          \
    X(ORDER, "`stream` waits for `other`, and joins its capture if there is one")                                                  \
    X(SYNCHRONISE, "the host waits for `stream`")                                                                                  \
    X(RENEW, "`stream` is forgotten, destroyed and created again")                                                                 \
    X(RELEASE, "idle memory of `place` goes back")                                                                                 \
    X(TRIM, "idle memory of `place` goes back, except `size` bytes")                                                               \
    X(LOOK, "validate, statistics, a snapshot, and queries about block 0")                                                         \
    X(PASS, "the host computes for `us`")                                                                                          \
    X(POOL_BEGIN, "requests of `stream` in `place` go to graph pool `pool` from now on")                                           \
    X(CAPTURE, "`stream` is captured from now on, for `graph`")                                                                    \
    X(END_CAPTURE, "`graph` is all that was captured, and can be launched")                                                        \
    X(POOL_END, "requests no longer go to `pool`")                                                                                 \
    X(POOL_REMOVE, "one begin of `pool` no longer keeps it")                                                                       \
    X(LAUNCH, "the work of `graph` on `stream`")                                                                                   \
    X(DESTROY, "`graph` is destroyed, after its launches")

typedef enum strata_torture_kind {
#define STRATA_TORTURE_KIND_ENUM(name, what) STRATA_TORTURE_##name,
    STRATA_TORTURE_KIND_MAP(STRATA_TORTURE_KIND_ENUM)
#undef STRATA_TORTURE_KIND_ENUM
        STRATA_TORTURE_KINDS
} strata_torture_kind_t;

enum {
    STRATA_TORTURE_GPU = 0,
    STRATA_TORTURE_MANAGED = 2,
    STRATA_TORTURE_PINNED = 4,
    STRATA_TORTURE_HOST = 5,
    STRATA_TORTURE_PLACES = 6,

    STRATA_TORTURE_NO_STREAM = 8,
    STRATA_TORTURE_NAMED = 3, /* blocks that one operation may name */
    STRATA_TORTURE_BLOCKS = 1 << 20,
    STRATA_TORTURE_GRAPHS = 32,
    STRATA_TORTURE_POOLS = 16,
    STRATA_TORTURE_OPERATIONS = 1 << 20
};

/* How a FREE reports last uses on other streams that no borrow covers yet. */
typedef enum strata_torture_cover {
    STRATA_TORTURE_COVER_BORROW, /* borrowed after the use */
    STRATA_TORTURE_COVER_OWNER, /* the owner stream waits for the use */
    STRATA_TORTURE_COVER_HOST, /* the host has waited for the use */
    STRATA_TORTURE_COVER_FREE_ON, /* strata_free_on() */
    STRATA_TORTURE_COVERS
} strata_torture_cover_t;

/* X(name, text): the order in which the threads of a program make calls. */
#define STRATA_TORTURE_MODE_MAP(X)                                                                                                 \
    X(INTERLEAVED, "one thread makes all calls, in the program's order")                                                           \
    X(TURNS, "each thread makes its own calls, in the program's order: every run is the same")                                     \
    X(AT_ONCE, "each thread makes its own calls, and waits for others only where it must")

typedef enum strata_torture_mode {
#define STRATA_TORTURE_MODE_ENUM(name, text) STRATA_TORTURE_##name,
    STRATA_TORTURE_MODE_MAP(STRATA_TORTURE_MODE_ENUM)
#undef STRATA_TORTURE_MODE_ENUM
        STRATA_TORTURE_MODES
} strata_torture_mode_t;

typedef struct strata_torture_op {
    uint8_t kind; /* strata_torture_kind_t */
    uint8_t thread;
    uint8_t place;
    uint8_t stream; /* or STRATA_TORTURE_NO_STREAM */
    uint8_t other;
    uint8_t how; /* ERASE, RENEW, FREE: strata_torture_cover_t */
    bool by_pointer; /* FREE: strata_free_pointer() */
    bool refused; /* FREE: the device records no event during the call; only with one thread */
    uint8_t count; /* of the blocks named */
    uint8_t writes; /* WORK: bit i means that blocks[i] is written; HOST_ACCESS: bit 0 */
    uint8_t graph, pool;
    uint32_t blocks[STRATA_TORTURE_NAMED];
    uint32_t flags; /* ALLOCATE: STRATA_ZERO, STRATA_NO_GROW, STRATA_NO_RETRY */
    uint32_t alignment; /* ALLOCATE: bytes, or 0 for the place's */
    uint32_t us;
    uint64_t size; /* bytes */
    const char *tag; /* ALLOCATE: may be NULL */
} strata_torture_op_t;

typedef struct strata_torture_program {
    size_t struct_size;
    const char *strategy; /* YAML. It may load shared objects with layers (`load:`), and so run their code */
    const strata_torture_op_t *ops;
    size_t count; /* at most STRATA_TORTURE_OPERATIONS */
    uint64_t capacity; /* bytes of each device; 0 means the size in its profile */
    uint32_t devices; /* 1 or 2; 0 means 1 */
    uint32_t threads; /* 1 to 4; 0 means 1 */
    strata_torture_mode_t mode;
    bool check_stream_ids; /* STRATA_OPEN_CHECK_STREAM_IDS */
    bool may_refuse; /* layers may refuse requests even if there is memory */
} strata_torture_program_t;

/* Runs a program in a simulation of its own, and writes its faults to `report` (may be NULL if `size` is 0). Faults are hazards,
 * lost contents, calls that failed, and memory that did not go back. Returns STRATA_OK with an empty report, or E_CORRUPT with
 * faults. E_INVALID names an operation with an invalid number. Other errors are those of opening the strategy. The report is cut
 * to `size` bytes with its closing zero. A program that hangs or crashes does so here. Any thread. Concurrent runs are
 * independent. */
STRATA_API strata_status_t strata_torture_run(const strata_torture_program_t *program, char *report, size_t size);

#ifdef __cplusplus
}
#endif
#endif

/* The device contract: what provides raw memory, streams, events and address space. Two implementations: the simulator
 * (platform/sim) and CUDA's driver (platform/cuda).
 *
 * Rules for every call
 *   Threads   any thread, any number at once. The device synchronises itself; the caller holds no lock of Strata, except
 *             around the calls marked quick in the table below (debug builds abort otherwise).
 *   Failure   nothing has changed and outputs are untouched, unless the call says otherwise. E_NO_MEMORY means exhausted
 *             device memory and nothing else (CUDA's 2); a lost device answers E_DEVICE_LOST from then on; every other
 *             refusal is E_DEVICE. The reason with the driver's number is in strata_last_error().
 *   Context   a call affects no other device, and leaves the calling thread's current device and context as they were.
 *   Addresses are those of the device (of the host for PINNED and HOST), nonzero, and different on all devices of a process
 *             unless they come from different simulated worlds.
 *   Blocking  only `free`, `host_free`, `synchronise`, `event_synchronise`, `stream_synchronise`, `stream_destroy`, `close`
 *             may wait for work on the device.
 */
#ifndef STRATA_PLATFORM_DEVICE_H
#define STRATA_PLATFORM_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/clock.h"
#include "platform/lock.h"
#include "platform/status.h"

typedef uint64_t strata_address_t; /* a device or host address; 0 is none */
typedef void *strata_handle_t; /* the driver's handle of a stream, an event, a pool, a graph; NULL stream = legacy */
typedef uint64_t strata_physical_t; /* a handle of physical memory; 0 is none */

/* Stream handles with a meaning of their own, as in CUDA. */
#define STRATA_STREAM_LEGACY     ((strata_handle_t)1) /* the same stream as NULL */
#define STRATA_STREAM_PER_THREAD ((strata_handle_t)2) /* another stream in each thread */

typedef enum strata_memory {
    STRATA_MEMORY_DEVICE = 0,
    STRATA_MEMORY_MANAGED = 1,
    STRATA_MEMORY_PINNED = 2,
    STRATA_MEMORY_HOST = 3,
    STRATA_MEMORY_KINDS = 4
} strata_memory_t;

/* X(name, quick, shown): quick calls may be made under a lock; shown ones appear in `device_calls` of a comparison. */
#define STRATA_DEVICE_CALL_MAP(X)                                                                                                  \
    X(malloc, 0, 1)                                                                                                                \
    X(free, 0, 1)                                                                                                                  \
    X(malloc_async, 0, 1)                                                                                                          \
    X(free_async, 0, 1)                                                                                                            \
    X(reserve, 0, 1)                                                                                                               \
    X(create, 0, 1)                                                                                                                \
    X(map, 0, 1)                                                                                                                   \
    X(set_access, 0, 1)                                                                                                            \
    X(unmap, 0, 1)                                                                                                                 \
    X(release, 0, 1)                                                                                                               \
    X(event_record, 1, 1)                                                                                                          \
    X(event_query, 1, 1)                                                                                                           \
    X(stream_wait, 1, 1)                                                                                                           \
    X(synchronise, 0, 1)                                                                                                           \
    X(host_alloc, 0, 1)                                                                                                            \
    X(host_free, 0, 1)                                                                                                             \
    X(unreserve, 0, 0)                                                                                                             \
    X(event_create, 0, 0)                                                                                                          \
    X(event_destroy, 0, 0)                                                                                                         \
    X(event_synchronise, 0, 0)                                                                                                     \
    X(stream_create, 0, 0)                                                                                                         \
    X(stream_destroy, 0, 0)                                                                                                        \
    X(stream_query, 0, 0)                                                                                                          \
    X(stream_synchronise, 0, 0)                                                                                                    \
    X(stream_id, 0, 0)                                                                                                             \
    X(mem_info, 0, 0)                                                                                                              \
    X(pool_create, 0, 0)                                                                                                           \
    X(pool_destroy, 0, 0)                                                                                                          \
    X(pool_default, 0, 0)                                                                                                          \
    X(pool_set, 0, 0)                                                                                                              \
    X(pool_get, 0, 0)                                                                                                              \
    X(pool_trim, 0, 0)                                                                                                             \
    X(pool_set_access, 0, 0)                                                                                                       \
    X(fill, 0, 0)                                                                                                                  \
    X(copy, 0, 0)                                                                                                                  \
    X(prefetch, 0, 0)                                                                                                              \
    X(advise, 0, 0)                                                                                                                \
    X(capture_begin, 0, 0)                                                                                                         \
    X(capture_end, 0, 0)                                                                                                           \
    X(capture_status, 1, 0)                                                                                                        \
    X(capture_follows, 1, 0)                                                                                                       \
    X(graph_on_destroy, 0, 0)                                                                                                      \
    X(graph_launch, 0, 0)                                                                                                          \
    X(graph_destroy, 0, 0)                                                                                                         \
    X(can_access_peer, 0, 0)                                                                                                       \
    X(enable_peer, 0, 0)                                                                                                           \
    X(export_memory, 0, 0)                                                                                                         \
    X(import_memory, 0, 0)                                                                                                         \
    X(work, 0, 0)

typedef enum strata_device_call {
#define STRATA_DEVICE_CALL_ENUM(name, quick, shown) STRATA_CALL_##name,
    STRATA_DEVICE_CALL_MAP(STRATA_DEVICE_CALL_ENUM)
#undef STRATA_DEVICE_CALL_ENUM
        STRATA_DEVICE_CALLS
} strata_device_call_t;

/* "malloc", ...; and whether it is shown. */
const char *strata_device_call_name(strata_device_call_t call);
bool strata_device_call_shown(strata_device_call_t call);

/* What a device can do. Code asks here, never which device it is. */
typedef struct strata_device_capabilities {
    uint64_t alignment; /* of device and managed memory, bytes */
    uint64_t granularity; /* of physical memory, bytes; 0 without virtual memory */
    bool managed; /* managed memory */
    bool concurrent_managed; /* the host may touch managed memory while the device works */
    bool pools; /* malloc_async and friends */
    bool virtual_memory; /* reserve to release */
    bool capture; /* graphs */
    bool captures_known; /* strata_device_t.captures counts them all: nobody needs to ask for one that there is not */
    bool peers; /* peer access to at least one device */
    bool share; /* export and import of physical memory and pools (POSIX file descriptors) */
    bool stream_ids; /* stream_id() */
    bool work; /* work(): can keep a stream busy */
    bool contents; /* device memory holds bytes (a simulated device may hold none): host_view() shows them, or copy() brings them */
    bool simulated;
    bool modelled_pools; /* the growth of pools is a model, not NVIDIA's */
    bool modelled_costs; /* call costs are derived from another card */
    uint64_t host_nodes; /* bit n: PINNED and HOST memory can be had from node n of the host (NUMA); 0: no choice */
    uint32_t near_node; /* the one nearest to the device; if nobody knows, one that host_nodes lacks */
} strata_device_capabilities_t;

typedef enum strata_stream_flags { STRATA_STREAM_BLOCKING = 0, STRATA_STREAM_NON_BLOCKING = 1 } strata_stream_flags_t;
/* PINNED: X | Y; what the driver calls portable, mapped, write-combined. HOST ignores them. */
typedef enum strata_host_flags {
    STRATA_HOST_PORTABLE = 1,
    STRATA_HOST_MAPPED = 2,
    STRATA_HOST_WRITE_COMBINED = 4
} strata_host_flags_t;
/* Also, for PINNED and HOST: memory of node n, 0 to 63, while it has free pages. E_UNSUPPORTED: a node that host_nodes lacks, or
 * together with WRITE_COMBINED. */
#define STRATA_HOST_ON_NODE(n) (((uint32_t)(n) + 1) << 8)
static inline bool strata_host_flags_name_node(uint32_t flags) { return flags >> 8 != 0; }
static inline uint32_t strata_host_flags_node(uint32_t flags) { return (flags >> 8) - 1; }
typedef enum strata_capture_status {
    STRATA_CAPTURE_NONE = 0,
    STRATA_CAPTURE_ACTIVE = 1,
    STRATA_CAPTURE_INVALIDATED = 2,
    STRATA_CAPTURE_IMPLICIT = 3 /* the legacy stream while a blocking stream is captured: touch nothing */
} strata_capture_status_t;
typedef enum strata_capture_mode {
    STRATA_CAPTURE_GLOBAL = 0,
    STRATA_CAPTURE_THREAD_LOCAL = 1,
    STRATA_CAPTURE_RELAXED = 2
} strata_capture_mode_t;
typedef enum strata_pool_attribute {
    STRATA_POOL_REUSE_FOLLOW_EVENTS = 1,
    STRATA_POOL_REUSE_OPPORTUNISTIC = 2,
    STRATA_POOL_REUSE_INTERNAL = 3,
    STRATA_POOL_RELEASE_THRESHOLD = 4,
    STRATA_POOL_RESERVED_CURRENT = 5,
    STRATA_POOL_RESERVED_HIGH = 6,
    STRATA_POOL_USED_CURRENT = 7,
    STRATA_POOL_USED_HIGH = 8
} strata_pool_attribute_t;
typedef enum strata_advice { /* the driver's numbers */
                             STRATA_ADVISE_SET_READ_MOSTLY = 1,
                             STRATA_ADVISE_UNSET_READ_MOSTLY = 2,
                             STRATA_ADVISE_SET_PREFERRED = 3,
                             STRATA_ADVISE_UNSET_PREFERRED = 4,
                             STRATA_ADVISE_SET_ACCESSED_BY = 5,
                             STRATA_ADVISE_UNSET_ACCESSED_BY = 6
} strata_advice_t;

/* A range that work touches. `write` matters only to the happens-before checker. */
typedef struct strata_access {
    strata_address_t address;
    uint64_t size;
    bool write;
} strata_access_t;

typedef struct strata_device strata_device_t;

typedef struct strata_device_operations {
    /* Memory. `malloc` serves DEVICE and MANAGED, `host_alloc` PINNED and HOST (alignment: a power of two, at least 64).
     * A size of 0 is E_INVALID. `free` of device and managed memory waits for all work submitted to the device before it. */
    strata_status_t (*malloc)(strata_device_t *, strata_memory_t, uint64_t size, strata_address_t *address);
    strata_status_t (*free)(strata_device_t *, strata_memory_t, strata_address_t address);
    strata_status_t (*host_alloc)(strata_device_t *, strata_memory_t, uint64_t size, uint64_t alignment, uint32_t flags,
                                  strata_address_t *address);
    strata_status_t (*host_free)(strata_device_t *, strata_memory_t, strata_address_t address);
    strata_status_t (*mem_info)(strata_device_t *, uint64_t *free, uint64_t *total);

    /* Memory in stream order. `pool` NULL is the device's default pool. On a captured stream both are nodes of the graph, which has
     * the memory at each launch. There `free_async` takes memory of graphs alone: any other is E_CAPTURE and breaks the capture.
     * Elsewhere memory of a graph can be freed, by `free` too, once a launch has allocated it, unless the graph frees it itself. */
    strata_status_t (*malloc_async)(strata_device_t *, strata_handle_t pool, uint64_t size, strata_handle_t stream,
                                    strata_address_t *address);
    strata_status_t (*free_async)(strata_device_t *, strata_address_t address, strata_handle_t stream);
    strata_status_t (*pool_create)(strata_device_t *, uint64_t max_size, bool shareable, strata_handle_t *pool);
    strata_status_t (*pool_destroy)(strata_device_t *, strata_handle_t pool);
    strata_status_t (*pool_default)(strata_device_t *, strata_handle_t *pool);
    strata_status_t (*pool_set)(strata_device_t *, strata_handle_t pool, strata_pool_attribute_t, uint64_t value);
    strata_status_t (*pool_get)(strata_device_t *, strata_handle_t pool, strata_pool_attribute_t, uint64_t *value);
    strata_status_t (*pool_trim)(strata_device_t *, strata_handle_t pool, uint64_t keep);
    strata_status_t (*pool_set_access)(strata_device_t *, strata_handle_t pool, uint32_t peer);

    /* Virtual memory, in multiples of the granularity. `map` gives no access; `set_access` covers [address, address + size)
     * for the device itself and the peers given; `unmap` takes a whole mapped run of whole handles and waits for nothing:
     * unmapping under running work is the caller's fault. A physical handle may be released while mapped; its memory goes
     * with its last mapping. `unreserve` takes exactly what `reserve` gave. */
    strata_status_t (*reserve)(strata_device_t *, uint64_t size, uint64_t alignment, strata_address_t *address);
    strata_status_t (*unreserve)(strata_device_t *, strata_address_t address, uint64_t size);
    strata_status_t (*create)(strata_device_t *, uint64_t size, bool shareable, strata_physical_t *handle);
    strata_status_t (*release)(strata_device_t *, strata_physical_t handle);
    strata_status_t (*map)(strata_device_t *, strata_address_t address, uint64_t size, strata_physical_t handle);
    strata_status_t (*unmap)(strata_device_t *, strata_address_t address, uint64_t size);
    strata_status_t (*set_access)(strata_device_t *, strata_address_t address, uint64_t size, const uint32_t *peers,
                                  size_t peer_count);

    /* Streams. `stream_id` is unique for the life of the process. E_UNKNOWN_STREAM, from any call that names a stream: the handle
     * is that of a destroyed stream, if the driver can tell. `stream_query`: OK or E_NOT_READY. Of two priorities the lower number
     * is served first; 0 is the default; numbers outside the device's range are clamped. */
    strata_status_t (*stream_create)(strata_device_t *, strata_stream_flags_t, int priority, strata_handle_t *stream);
    strata_status_t (*stream_destroy)(strata_device_t *, strata_handle_t stream);
    strata_status_t (*stream_query)(strata_device_t *, strata_handle_t stream);
    strata_status_t (*stream_synchronise)(strata_device_t *, strata_handle_t stream);
    strata_status_t (*stream_wait)(strata_device_t *, strata_handle_t stream, strata_handle_t event);
    strata_status_t (*stream_id)(strata_device_t *, strata_handle_t stream, uint64_t *id);
    strata_status_t (*synchronise)(strata_device_t *);

    /* Events, untimed. `event_query`: OK or E_NOT_READY; OK for an event that was never recorded; E_CAPTURE for one that was last
     * recorded in a capture. `event_ready_at`: when the event will pass, if the device knows (a simulated one does); else
     * STRATA_NEVER. `event_is_captured`: whether it was last recorded in a capture, as the device has noted it. These two cost
     * nothing and are not counted as calls, but `timed` includes their time. */
    strata_status_t (*event_create)(strata_device_t *, strata_handle_t *event);
    strata_status_t (*event_destroy)(strata_device_t *, strata_handle_t event);
    strata_status_t (*event_record)(strata_device_t *, strata_handle_t event, strata_handle_t stream);
    strata_status_t (*event_query)(strata_device_t *, strata_handle_t event);
    strata_status_t (*event_synchronise)(strata_device_t *, strata_handle_t event);
    uint64_t (*event_ready_at)(strata_device_t *, strata_handle_t event);
    bool (*event_is_captured)(strata_device_t *, strata_handle_t event);

    /* Contents. `fill` sets bytes in stream order. `copy` moves bytes in stream order between memory of the device at `address` and
     * PINNED memory at `host`, and returns before they are there; never on a captured stream. `host_view`: where the host sees the
     * bytes of an address; NULL if it cannot (a simulated device with contents shows them, a GPU does not). Not counted. */
    strata_status_t (*fill)(strata_device_t *, strata_address_t address, uint8_t byte, uint64_t size, strata_handle_t stream);
    strata_status_t (*copy)(strata_device_t *, strata_address_t address, void *host, uint64_t size, bool to_host,
                            strata_handle_t stream);
    void *(*host_view)(strata_device_t *, strata_address_t address, uint64_t size);
    /* Managed memory. */
    strata_status_t (*prefetch)(strata_device_t *, strata_address_t address, uint64_t size, bool to_host, strata_handle_t stream);
    strata_status_t (*advise)(strata_device_t *, strata_address_t address, uint64_t size, strata_advice_t, bool host);

    /* Capture. Calls made by Strata while a stream is captured run in relaxed mode. `capture_follows`: the id of the capture if both
     * streams are in one, and all that `other` was captured to do so far comes before whatever `stream` will be; else 0, also where
     * a device would have to search for long. `graph_on_destroy` ties a callback to the graph being captured on `stream`: it runs
     * once the graph and all its instances are gone, on a thread of the driver's, and must make no device call. `graph_launch` first
     * frees what the last launch of the graph left allocated. */
    strata_status_t (*capture_begin)(strata_device_t *, strata_handle_t stream, strata_capture_mode_t mode);
    strata_status_t (*capture_end)(strata_device_t *, strata_handle_t stream, strata_handle_t *graph);
    strata_status_t (*capture_status)(strata_device_t *, strata_handle_t stream, strata_capture_status_t *status, uint64_t *id);
    strata_status_t (*capture_follows)(strata_device_t *, strata_handle_t stream, strata_handle_t other, uint64_t *id);
    strata_status_t (*graph_on_destroy)(strata_device_t *, strata_handle_t stream, void (*callback)(void *), void *context);
    strata_status_t (*graph_launch)(strata_device_t *, strata_handle_t graph, strata_handle_t stream);
    strata_status_t (*graph_destroy)(strata_device_t *, strata_handle_t graph);

    /* Peers and sharing. Exported handles are file descriptors, owned by the caller. */
    strata_status_t (*can_access_peer)(strata_device_t *, uint32_t peer, bool *can);
    strata_status_t (*enable_peer)(strata_device_t *, uint32_t peer);
    strata_status_t (*export_memory)(strata_device_t *, strata_physical_t handle, int *descriptor);
    strata_status_t (*import_memory)(strata_device_t *, int descriptor, strata_physical_t *handle);

    /* A kernel of `duration_ns` on `stream` that touches `accesses`. Returns when it is submitted. */
    strata_status_t (*work)(strata_device_t *, strata_handle_t stream, uint64_t duration_ns, const strata_access_t *accesses,
                            size_t count);

    /* Ends the use of the device. Everything got from it must have been given back. */
    void (*close)(strata_device_t *);
} strata_device_operations_t;

/* What each kind of call cost the host, by the device's clock: kept by the calls themselves while `timed`. For one thread. */
typedef struct strata_device_ledger {
    uint64_t made[STRATA_DEVICE_CALLS];
    uint64_t ns[STRATA_DEVICE_CALLS]; /* from the call to its return, waits included */
    uint64_t waited_ns[STRATA_DEVICE_CALLS]; /* the part of it that the host waited for the device; 0 where the device does not say */
    uint64_t own_ns; /* of all kinds, waits left out */
    uint64_t waiting_ns; /* the device adds each wait of the host here, those between calls too */
} strata_device_ledger_t;

/* Every device begins with this. An implementation fills it with strata_device_init() and all operations (no NULL; what it
 * cannot do answers E_UNSUPPORTED). */
struct strata_device {
    const strata_device_operations_t *operations;
    strata_device_capabilities_t capabilities;
    uint32_t ordinal;
    char name[64]; /* "sim:h100", "NVIDIA H200", ... */
    strata_clock_t *clock;
    strata_lock_observer_t *lock_observer; /* for every lock that guards this device's stacks; NULL: none */
    _Atomic uint32_t captures; /* under way, if capabilities.captures_known */
    bool one_thread; /* one thread alone uses it, however many the process has: nobody else frees what a request waits for */
    bool timed; /* measure host_ns and count timed_calls; off by default */
    strata_device_ledger_t *ledger; /* written while `timed`; several devices of one thread may share it; NULL: none */
    _Atomic uint64_t calls[STRATA_DEVICE_CALLS];
    _Atomic uint64_t made; /* calls of all kinds: whoever looks at them after each step sees at once that there were none */
    _Atomic uint64_t host_ns; /* real time spent inside the contract while `timed` */
    _Atomic uint64_t timed_calls; /* how often host_ns grew; each time one more reading of the clock is outside it */
};

/* Whether a stream may be in a capture: a quick look, before the device is asked. */
static inline bool strata_device_may_capture(strata_device_t *device) {
    return device->capabilities.capture && (!device->capabilities.captures_known || atomic_load(&device->captures) > 0);
}

/* Whether two open devices are one piece of hardware, opened twice. */
static inline bool strata_device_is_same(const strata_device_t *a, const strata_device_t *b) {
    return a->operations == b->operations && a->clock == b->clock && a->ordinal == b->ordinal;
}

void strata_device_init(strata_device_t *device, const strata_device_operations_t *operations, uint32_t ordinal,
                        strata_clock_t *clock);

/* The calls themselves: strata_device_malloc(device, ...) and so on, one per line of the table. They count, time, check locks, and
 * then call the implementation. Callers use these, never `operations`. */
#include "platform/device_calls.h"

#endif

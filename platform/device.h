/* The device contract: everything that the library needs from a GPU.
 *
 *     allocation, facade, lab
 *         |   strata_device_malloc(device, ...)    device_calls.h: counts, times, checks locks
 *         v
 *     strata_device_operations_t                   one function per row of STRATA_DEVICE_CALL_MAP
 *         |                     |
 *     platform/sim          platform/cuda          the simulator; NVIDIA's driver API
 *
 * A device provides raw memory, virtual memory, memory pools, streams, events and graph capture. Code
 * above asks for its capabilities, never which kind of device it is.
 *
 * Rules for every call:
 *   Threads   Any thread may call, and any number at once. The device synchronizes itself. The caller holds no lock of Strata,
 *             except around the calls marked quick in the table below (debug builds abort otherwise).
 *   Failure   Nothing has changed and outputs are untouched, unless the call's comment differs. E_NO_MEMORY means exhausted
 *             device memory and nothing else (CUDA's 2). A lost device returns E_DEVICE_LOST from then on. Every other
 *             refusal is E_DEVICE. The reason with the driver's number is in strata_last_error().
 *   Context   A call affects no other device, and leaves the calling thread's current device and context as they were.
 *   Addresses Addresses are the device's (the host's for PINNED and HOST) and nonzero. They differ on all devices of a process
 *             unless they come from different simulated worlds.
 *   Blocking  Only `free`, `host_free`, `synchronise`, `event_synchronise`, `stream_synchronise`, `stream_destroy` and `close`
 *             may wait for work on the device. */
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
typedef void *strata_handle_t; /* the driver's handle of a stream, event, pool or graph; a NULL stream is the legacy stream */
typedef uint64_t strata_physical_t; /* a handle of physical memory; 0 is none */

/* Stream handles with a special meaning, as in CUDA. */
#define STRATA_STREAM_LEGACY     ((strata_handle_t)1) /* the same stream as NULL */
#define STRATA_STREAM_PER_THREAD ((strata_handle_t)2) /* a different stream in each thread */

typedef enum strata_memory {
    STRATA_MEMORY_DEVICE = 0,
    STRATA_MEMORY_MANAGED = 1,
    STRATA_MEMORY_PINNED = 2,
    STRATA_MEMORY_HOST = 3,
    STRATA_MEMORY_KINDS = 4
} strata_memory_t;

/* X(name, quick, shown). Quick calls may be made under a lock. Shown calls appear in `device_calls` of
 * a comparison. */
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

/* Return the call's name, for example "malloc", and true if it is shown. */
const char *strata_device_call_name(strata_device_call_t call);
bool strata_device_call_shown(strata_device_call_t call);

/* The capabilities of a device. Code tests these and never the kind of device. */
typedef struct strata_device_capabilities {
    uint64_t alignment; /* of device and managed memory, bytes */
    uint64_t granularity; /* of physical memory, bytes; 0 without virtual memory */
    bool managed; /* managed memory */
    bool concurrent_managed; /* the host may touch managed memory while the device works */
    bool pools; /* malloc_async and the other pool calls */
    bool virtual_memory; /* all calls from reserve to release */
    bool capture; /* stream capture and graphs */
    bool captures_known; /* strata_device_t.captures counts all captures, so there is nothing to ask for while it is 0 */
    bool peers; /* peer access to at least one device */
    bool share; /* export and import of physical memory and pools (POSIX file descriptors) */
    bool stream_ids; /* stream_id() */
    bool work; /* work(), which can keep a stream busy */
    bool contents; /* device memory holds bytes that host_view() shows or copy() brings; a simulated device may hold none */
    bool simulated;
    bool modelled_pools; /* the growth of pools follows a model, not NVIDIA's code */
    bool modelled_costs; /* call costs are derived from another card */
    uint64_t host_nodes; /* bit n is set if PINNED and HOST memory can come from node n of the host (NUMA); 0 means no choice */
    uint32_t near_node; /* the node nearest to the device; if it is unknown, a node that host_nodes lacks */
} strata_device_capabilities_t;

typedef enum strata_stream_flags { STRATA_STREAM_BLOCKING = 0, STRATA_STREAM_NON_BLOCKING = 1 } strata_stream_flags_t;
/* Flags for PINNED memory, which may be combined. The driver calls them portable, mapped and
 * write-combined. HOST ignores them. */
typedef enum strata_host_flags {
    STRATA_HOST_PORTABLE = 1,
    STRATA_HOST_MAPPED = 2,
    STRATA_HOST_WRITE_COMBINED = 4
} strata_host_flags_t;
/* A further flag for PINNED and HOST: takes memory from node n, 0 to 63, while that node has free
 * pages. The call fails with E_UNSUPPORTED if host_nodes lacks the node or if WRITE_COMBINED is set
 * too. */
#define STRATA_HOST_ON_NODE(n) (((uint32_t)(n) + 1) << 8)
static inline bool strata_host_flags_name_node(uint32_t flags) { return flags >> 8 != 0; }
static inline uint32_t strata_host_flags_node(uint32_t flags) { return (flags >> 8) - 1; }
typedef enum strata_capture_status {
    STRATA_CAPTURE_NONE = 0,
    STRATA_CAPTURE_ACTIVE = 1,
    STRATA_CAPTURE_INVALIDATED = 2,
    STRATA_CAPTURE_IMPLICIT = 3 /* the legacy stream while a blocking stream is captured: make no call on it */
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

/* A range of memory that work accesses. Only the happens-before checker uses `write`. */
typedef struct strata_access {
    strata_address_t address;
    uint64_t size;
    bool write;
} strata_access_t;

typedef struct strata_device strata_device_t;

typedef struct strata_device_operations {
    /* Memory. `malloc` serves DEVICE and MANAGED, `host_alloc` PINNED and HOST. The alignment is a
     * power of two, at least 64. A size of 0 is E_INVALID. `free` of device and managed memory waits
     * for all work submitted to the device before it. */
    strata_status_t (*malloc)(strata_device_t *, strata_memory_t, uint64_t size, strata_address_t *address);
    strata_status_t (*free)(strata_device_t *, strata_memory_t, strata_address_t address);
    strata_status_t (*host_alloc)(strata_device_t *, strata_memory_t, uint64_t size, uint64_t alignment, uint32_t flags,
                                  strata_address_t *address);
    strata_status_t (*host_free)(strata_device_t *, strata_memory_t, strata_address_t address);
    strata_status_t (*mem_info)(strata_device_t *, uint64_t *free, uint64_t *total);

    /* Memory in stream order. If `pool` is NULL, the device's default pool is used. On a captured
     * stream both calls become nodes of the graph, and each launch allocates the memory. There
     * `free_async` accepts only memory of graphs: any other is E_CAPTURE and breaks the capture.
     * Elsewhere memory of a graph can be freed, by `free` too, once a launch has allocated it, unless
     * the graph frees it itself. */
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

    /* Virtual memory, in multiples of the granularity. `map` gives no access. `set_access` covers
     * [address, address + size) for the device itself and the given peers. `unmap` takes a whole mapped
     * run of whole handles. It waits for nothing, so the caller must not unmap memory that running work
     * uses. A physical handle may be released while it is mapped. Its memory is then freed with its
     * last mapping. `unreserve` takes exactly a range that `reserve` returned. */
    strata_status_t (*reserve)(strata_device_t *, uint64_t size, uint64_t alignment, strata_address_t *address);
    strata_status_t (*unreserve)(strata_device_t *, strata_address_t address, uint64_t size);
    strata_status_t (*create)(strata_device_t *, uint64_t size, bool shareable, strata_physical_t *handle);
    strata_status_t (*release)(strata_device_t *, strata_physical_t handle);
    strata_status_t (*map)(strata_device_t *, strata_address_t address, uint64_t size, strata_physical_t handle);
    strata_status_t (*unmap)(strata_device_t *, strata_address_t address, uint64_t size);
    strata_status_t (*set_access)(strata_device_t *, strata_address_t address, uint64_t size, const uint32_t *peers,
                                  size_t peer_count);

    /* Streams. `stream_id` returns an id that is unique for the life of the process. Any call that
     * names a stream returns E_UNKNOWN_STREAM for the handle of a destroyed stream, if the driver can
     * detect it. `stream_query` returns OK or E_NOT_READY. The lower of two priorities is served first.
     * The default is 0, and numbers outside the device's range are clamped. */
    strata_status_t (*stream_create)(strata_device_t *, strata_stream_flags_t, int priority, strata_handle_t *stream);
    strata_status_t (*stream_destroy)(strata_device_t *, strata_handle_t stream);
    strata_status_t (*stream_query)(strata_device_t *, strata_handle_t stream);
    strata_status_t (*stream_synchronise)(strata_device_t *, strata_handle_t stream);
    strata_status_t (*stream_wait)(strata_device_t *, strata_handle_t stream, strata_handle_t event);
    strata_status_t (*stream_id)(strata_device_t *, strata_handle_t stream, uint64_t *id);
    strata_status_t (*synchronise)(strata_device_t *);

    /* Events, untimed. `event_query` returns OK or E_NOT_READY. It returns OK for an event that was
     * never recorded, and E_CAPTURE for one that was last recorded in a capture. `event_ready_at`
     * returns the time at which the event will pass, or STRATA_NEVER if the device cannot predict it (a
     * simulated one can). `event_is_captured` returns true if the event was last recorded in a capture,
     * according to the device's own notes. The last two cost nothing and are not counted as calls, but
     * `timed` includes their time. */
    strata_status_t (*event_create)(strata_device_t *, strata_handle_t *event);
    strata_status_t (*event_destroy)(strata_device_t *, strata_handle_t event);
    strata_status_t (*event_record)(strata_device_t *, strata_handle_t event, strata_handle_t stream);
    strata_status_t (*event_query)(strata_device_t *, strata_handle_t event);
    strata_status_t (*event_synchronise)(strata_device_t *, strata_handle_t event);
    uint64_t (*event_ready_at)(strata_device_t *, strata_handle_t event);
    bool (*event_is_captured)(strata_device_t *, strata_handle_t event);

    /* Contents. `fill` sets bytes in stream order. `copy` moves bytes in stream order between memory of
     * the device at `address` and PINNED memory at `host`. It returns before they are moved, and must
     * not be used on a captured stream. `host_view` returns the host's address of these bytes, or NULL
     * if the host cannot see them (a GPU's, or a simulated device's without contents). It is not
     * counted. */
    strata_status_t (*fill)(strata_device_t *, strata_address_t address, uint8_t byte, uint64_t size, strata_handle_t stream);
    strata_status_t (*copy)(strata_device_t *, strata_address_t address, void *host, uint64_t size, bool to_host,
                            strata_handle_t stream);
    void *(*host_view)(strata_device_t *, strata_address_t address, uint64_t size);
    /* Managed memory. */
    strata_status_t (*prefetch)(strata_device_t *, strata_address_t address, uint64_t size, bool to_host, strata_handle_t stream);
    strata_status_t (*advise)(strata_device_t *, strata_address_t address, uint64_t size, strata_advice_t, bool host);

    /* Capture. Calls that Strata makes while a stream is captured run in relaxed mode.
     *
     * `capture_follows` tests whether one capture contains both streams and all work captured on
     * `other` so far precedes all future work on `stream`. If so, it sets *id to the capture's id.
     * Otherwise it sets 0, also if the device would have to search for long.
     *
     * `graph_on_destroy` ties a callback to the graph being captured on `stream`. It runs on a thread
     * of the driver once the graph and all its instances are destroyed, and must make no device call.
     *
     * `graph_launch` first frees the memory that the graph's last launch left allocated. */
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

    /* Runs a kernel of `duration_ns` on `stream` that touches `accesses`. Returns when it is submitted. */
    strata_status_t (*work)(strata_device_t *, strata_handle_t stream, uint64_t duration_ns, const strata_access_t *accesses,
                            size_t count);

    /* Ends the use of the device. The caller has given back everything that it got from the device. */
    void (*close)(strata_device_t *);
} strata_device_operations_t;

/* The cost of each kind of call to the host, by the device's clock. The calls update it while `timed`
 * is set. For one thread. */
typedef struct strata_device_ledger {
    uint64_t made[STRATA_DEVICE_CALLS];
    uint64_t ns[STRATA_DEVICE_CALLS]; /* from the call to its return, waits included */
    /* the part of ns that the host waited for the device; 0 if the device does not report it */
    uint64_t waited_ns[STRATA_DEVICE_CALLS];
    uint64_t own_ns; /* of all kinds, without waits */
    uint64_t waiting_ns; /* the device adds each wait of the host, also those between calls */
} strata_device_ledger_t;

/* The common head of every device. An implementation fills it with strata_device_init() and sets all
 * operations. None is NULL: an unsupported operation returns E_UNSUPPORTED. */
struct strata_device {
    const strata_device_operations_t *operations;
    strata_device_capabilities_t capabilities;
    uint32_t ordinal;
    char name[64]; /* "sim:h100", "NVIDIA H200", ... */
    strata_clock_t *clock;
    strata_lock_observer_t *lock_observer; /* for every lock that guards this device's stacks; NULL if there is none */
    _Atomic uint32_t captures; /* captures under way, if capabilities.captures_known */
    /* only one thread uses this device, however many the process has, so no other can free memory that
     * a request waits for */
    bool one_thread;
    bool timed; /* measures host_ns and counts timed_calls; off by default */
    strata_device_ledger_t *ledger; /* written while `timed`; several devices of one thread may share it; may be NULL */
    _Atomic uint64_t calls[STRATA_DEVICE_CALLS];
    _Atomic uint64_t made; /* calls of all kinds; one read after a step shows if there were any */
    _Atomic uint64_t host_ns; /* real time spent inside the contract while `timed` */
    _Atomic uint64_t timed_calls; /* number of additions to host_ns; each leaves one more clock reading outside it */
};

/* Returns true if a stream may be in a capture. A quick test, made before the device is asked. */
static inline bool strata_device_may_capture(strata_device_t *device) {
    return device->capabilities.capture && (!device->capabilities.captures_known || atomic_load(&device->captures) > 0);
}

/* Returns true if two open devices are one piece of hardware that was opened twice. */
static inline bool strata_device_is_same(const strata_device_t *a, const strata_device_t *b) {
    return a->operations == b->operations && a->clock == b->clock && a->ordinal == b->ordinal;
}

void strata_device_init(strata_device_t *device, const strata_device_operations_t *operations, uint32_t ordinal,
                        strata_clock_t *clock);

/* The calls themselves: strata_device_malloc(device, ...) and so on, one per row of the table. Each
 * counts, times and checks locks, and then calls the implementation. Callers use these, never
 * `operations`. */
#include "platform/device_calls.h"

#endif

/* The simulated device: the device contract on a machine without a GPU, in virtual time.
 *
 *     host thread   --call--compute--call--.......wait.......--call-->    one clock per thread
 *     stream 1                      [====work====][===work===]            one timeline per stream
 *     stream 2            [==work==]
 *
 * A world has one clock per host thread, and one or more devices that can access each other's memory. A
 * call advances the calling thread's clock by its price in the profile. Work extends the timeline of
 * its stream, and a wait advances the clock to the end of that work. The model is faithful enough to
 * decide between strategies (docs/architecture.md, "The device contract"). Its metrics depend only on the
 * calls made on the world. */
#ifndef STRATA_PLATFORM_SIM_SIM_H
#define STRATA_PLATFORM_SIM_SIM_H

#include "platform/device.h"

/* Max bytes of an address range that a reservation is charged for: the largest measured range. Beyond that a price by size
 * would only be a guess, and allocators that reserve more than the device's memory would be charged milliseconds. */
#define STRATA_SIM_RANGE_CHARGED (UINT64_C(8) << 30)

/* The cost of one call: `fixed_ns` + `per_mib_ns` for each MiB of its size. */
typedef struct strata_sim_cost {
    double fixed_ns;
    double per_mib_ns;
} strata_sim_cost_t;

/* X(name, meaning): the calls that have a price in a profile. */
#define STRATA_SIM_COST_MAP(X)                                                                                                     \
    X(malloc, "cudaMalloc")                                                                                                        \
    X(free, "cudaFree, without its wait for the device")                                                                           \
    X(managed_malloc, "cudaMallocManaged")                                                                                         \
    X(managed_free, "cudaFree of managed memory, without its wait")                                                                \
    X(host_alloc, "pin host memory")                                                                                               \
    X(host_free, "unpin host memory")                                                                                              \
    X(malloc_async, "cudaMallocAsync, served from the pool")                                                                       \
    X(free_async, "cudaFreeAsync")                                                                                                 \
    X(pool_grow, "a pool takes a chunk from the device")                                                                           \
    X(pool_shrink, "a pool returns a chunk to the device")                                                                         \
    X(reserve, "reserve address space")                                                                                            \
    X(unreserve, "release address space")                                                                                          \
    X(create, "create a physical handle")                                                                                          \
    X(map, "map a handle")                                                                                                         \
    X(set_access, "set access, for each mapped handle in the range")                                                               \
    X(unmap, "unmap a handle")                                                                                                     \
    X(release, "release a physical handle")                                                                                        \
    X(event_create, "create an event")                                                                                             \
    X(event_destroy, "destroy an event")                                                                                           \
    X(event_record, "record an event")                                                                                             \
    X(event_query, "query an event or a stream")                                                                                   \
    X(stream_wait, "make a stream wait for an event")                                                                              \
    X(stream_create, "create a stream")                                                                                            \
    X(stream_destroy, "destroy a stream")                                                                                          \
    X(synchronise, "wait for an idle stream, event or device")                                                                     \
    X(mem_info, "query free memory")                                                                                               \
    X(capture_status, "query whether a stream is being captured")                                                                  \
    X(launch, "launch a kernel, a fill or a graph")                                                                                \
    X(prefetch, "prefetch or advise managed memory")                                                                               \
    X(peer, "enable a peer, export or import")

/* X(kind, type, name, least, most, meaning): the properties of a device. The kind is that of an option
 * (strata/layer.h). A most of 0 means no upper bound, and a FRACTION's bounds are in millionths. */
#define STRATA_SIM_NUMBER_MAP(X)                                                                                                   \
    X(SIZE, uint64_t, total_bytes, 1, 0, "memory, as mem_info reports it")                                                         \
    X(SIZE, uint64_t, context_bytes, 0, 0, "taken by the context")                                                                 \
    X(SIZE, uint64_t, foreign_bytes, 0, 0, "taken by other processes")                                                             \
    X(SIZE, uint64_t, granule_bytes, UINT64_C(1) << 16, UINT64_C(1) << 40,                                                         \
      "physical granule, and packing unit of malloc: a power of two")                                                              \
    X(SIZE, uint64_t, pack_below_bytes, 0, UINT64_C(1) << 40, "smaller requests are packed into one granule; at most one granule") \
    X(SIZE, uint64_t, address_bytes, 1, UINT64_C(1) << 52, "address space of virtual memory")                                      \
    X(COUNT, uint64_t, mappings_max, 0, 0, "maximum number of mappings")                                                           \
    X(SIZE, uint64_t, pool_chunk_bytes, 0, 0, "a driver pool grows by at least this size (modelled)")                              \
    X(BOOL, bool, free_waits, 0, 0, "free of malloc, managed and pinned memory waits for all work submitted before")               \
    X(BOOL, bool, virtual_memory, 0, 0, "handles of physical memory can be created and mapped")                                    \
    X(FRACTION, double, driver_lock_share, 0, 1000000,                                                                             \
      "part of a call's fixed cost during which it blocks other threads' calls on its device; 0 means no such lock")

typedef struct strata_sim_profile {
    char name[32]; /* "h100" */
    bool modelled; /* the costs are derived from another card, not measured */
#define STRATA_SIM_NUMBER_FIELD(kind, type, name, least, most, meaning) type name;
    STRATA_SIM_NUMBER_MAP(STRATA_SIM_NUMBER_FIELD)
#undef STRATA_SIM_NUMBER_FIELD
#define STRATA_SIM_COST_FIELD(name, meaning) strata_sim_cost_t name;
    STRATA_SIM_COST_MAP(STRATA_SIM_COST_FIELD)
#undef STRATA_SIM_COST_FIELD
} strata_sim_profile_t;

/* The max for each part of a cost: a quarter of an hour. */
#define STRATA_SIM_COST_MAX 9e11

/* Checks the numbers of a profile. Returns E_INVALID with the reason if one is out of range. */
strata_status_t strata_sim_profile_check(const strata_sim_profile_t *profile);

/* Returns a built-in profile, "h100", "a100", "l4" and so on, with the values of docs/profiles.md.
 * Returns NULL for another name. */
const strata_sim_profile_t *strata_sim_profile(const char *name);
/* Returns the name of a built-in profile, or NULL after the last index. */
const char *strata_sim_profile_name(size_t index);

#define STRATA_SIM_UNLIMITED UINT64_MAX

typedef struct strata_sim_options {
    const strata_sim_profile_t *profile; /* NULL means h100 */
    uint32_t devices; /* 0 means 1; at most 16 */
    /* Bytes that a program may use on each device, without context and foreign bytes; 0 takes the
     * profile's value. It may be STRATA_SIM_UNLIMITED. */
    uint64_t capacity;
    bool contents; /* device memory is backed by host memory */
    /* Each pinned or host allocation is above the one before, from the same address in every process,
     * so that runs can be compared. Only one world of a process may set it at a time, and addresses are
     * not used again. */
    bool host_in_order;
    /* Seed of the moments at which the host is held up (docs/profiles.md, "A host that stumbles"); 0
     * means never. With a seed the host polls instead of waking when an event passes. */
    uint64_t host_jitter;
} strata_sim_options_t;

typedef struct strata_sim strata_sim_t;

/* Creates a world. Closing its last device frees it, once strata_sim_drop() was called too. */
strata_status_t strata_sim_new(const strata_sim_options_t *options, strata_sim_t **world);
void strata_sim_drop(strata_sim_t *world);
uint32_t strata_sim_devices(const strata_sim_t *world);
/* Opens device `ordinal`; strata_device_close() closes it. Each device can be open only once at a time. */
strata_status_t strata_sim_open(strata_sim_t *world, uint32_t ordinal, strata_device_t **device);

/* ---- for replay and tests ---- */

/* Returns the calling host thread's virtual time. Advancing it simulates host computation, which
 * hold-ups make longer. */
uint64_t strata_sim_now(strata_sim_t *world);
/* Returns a pointer to that time, for a caller that reads it at every step. The world owns it; for the
 * calling thread only. */
const _Atomic uint64_t *strata_sim_clock(strata_sim_t *world);
/* Returns a writable pointer to that time, which the calling thread may advance itself. Returns NULL if
 * the world has hold-ups, which such a step would skip. */
_Atomic uint64_t *strata_sim_steady_clock(strata_sim_t *world);
void strata_sim_advance_to(strata_sim_t *world, uint64_t until);
/* Advances by `way`, which must be small enough for the sum. */
void strata_sim_advance_by(strata_sim_t *world, uint64_t way);
/* Submits work to `stream` that ends at `end` (virtual ns) at the earliest, as if the GPU ran behind
 * the host. */
strata_status_t strata_sim_stream_busy_until(strata_device_t *device, strata_handle_t stream, uint64_t end);
/* Submits the same work, for a caller that does so before each step of a program in a world that only
 * one thread uses. The lookup is done once, and its result is valid until the stream is destroyed. It
 * is NULL for E_UNKNOWN_STREAM. A promise takes no lock. Its work is submitted before the world reads
 * the state of any stream. */
typedef struct sim_stream strata_sim_stream_t;
strata_sim_stream_t *strata_sim_stream_find(strata_device_t *device, strata_handle_t stream);
void strata_sim_stream_promise(strata_sim_stream_t *stream, uint64_t end);
/* Return the time at which all work submitted so far is done, to one stream or to all streams of the device. */
uint64_t strata_sim_stream_end(strata_device_t *device, strata_handle_t stream);
uint64_t strata_sim_device_end(strata_device_t *device);
/* Returns the priority with which a stream was created, clamped to the device's range. The timelines do
 * not use it. */
int strata_sim_stream_priority(strata_device_t *device, strata_handle_t stream);
/* Returns the number of calls that made the host wait for all work of the device. Needs no lock. */
uint64_t strata_sim_device_waits(strata_device_t *device);

typedef struct strata_sim_figures {
    uint64_t device_call_ns; /* the calls' own time, without waits */
    uint64_t pool_return_ns; /* the part of it that pools used at host waits to give chunks back */
    uint64_t stall_ns; /* time that the host waited for the device */
    uint64_t used_bytes; /* physical memory, whole granules, without context and foreign bytes */
    uint64_t peak_used_bytes;
    uint64_t oversubscribed_bytes; /* peak of managed memory beyond the capacity */
} strata_sim_figures_t;
void strata_sim_figures(strata_device_t *device, strata_sim_figures_t *figures);

/* X(member, description): resources that a device gave out and did not get back. Streams are not
 * counted, nor the default pool and the device's own memory, which every process has. */
#define STRATA_SIM_HELD_MAP(X)                                                                                                     \
    X(device_bytes, "bytes of device memory, managed included")                                                                    \
    X(pinned_bytes, "bytes of pinned memory")                                                                                      \
    X(host_bytes, "bytes of host memory")                                                                                          \
    X(address_bytes, "bytes of reserved addresses")                                                                                \
    X(mappings, "mappings")                                                                                                        \
    X(handles, "handles of physical memory")                                                                                       \
    X(events, "events")                                                                                                            \
    X(pools, "pools")                                                                                                              \
    X(graphs, "graphs")

typedef struct strata_sim_held {
#define STRATA_SIM_HELD_MEMBER(member, text) uint64_t member;
    STRATA_SIM_HELD_MAP(STRATA_SIM_HELD_MEMBER)
#undef STRATA_SIM_HELD_MEMBER
} strata_sim_held_t;
void strata_sim_held(strata_device_t *device, strata_sim_held_t *held);
/* Writes the members that are not 0 ("3 events, 1 pools"), or "" if nothing is held. The text is
 * truncated to `room`. */
void strata_sim_held_text(const strata_sim_held_t *held, char *text, size_t room);

/* Injects a fault. The k-th call (1 is the next) of kind `call` does nothing and returns `status` with
 * the matching CUDA code. The status is E_NO_MEMORY, E_DEVICE or E_DEVICE_LOST. With `onward` every
 * later call fails too. Kind STRATA_DEVICE_CALLS means any call. E_DEVICE_LOST always lasts until the
 * faults are cleared. At most 16 faults may be set at once. */
strata_status_t strata_sim_fail(strata_device_t *device, strata_device_call_t call, uint64_t k, bool onward,
                                strata_status_t status);
void strata_sim_clear_faults(strata_device_t *device);
/* Returns the number of calls that a fault of kind STRATA_DEVICE_CALLS would count. Calls without a
 * cost, such as event_ready_at and host_view, are not among them. */
uint64_t strata_sim_calls(strata_device_t *device);
/* Returns the host node from which a live block of PINNED or HOST memory was requested. Returns -1 if
 * none was named or if there is no such block. */
int strata_sim_host_node(strata_device_t *device, strata_address_t address);
/* Checks every structure of the world. Returns E_CORRUPT with the reason if one is inconsistent. */
strata_status_t strata_sim_validate(strata_sim_t *world);

#endif

/* The simulated device: a model faithful enough to decide between strategies (docs/design.md, "The device contract").
 *
 * A world holds a clock and one or more devices that see each other. Its figures are a function of the calls made on it.
 */
#ifndef STRATA_PLATFORM_SIM_SIM_H
#define STRATA_PLATFORM_SIM_SIM_H

#include "platform/device.h"

/* What one call costs: `fixed_ns` + `per_mib_ns` for each MiB of its size. */
typedef struct strata_sim_cost {
    double fixed_ns;
    double per_mib_ns;
} strata_sim_cost_t;

/* X(name, meaning): the calls that a profile prices. */
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
    X(pool_shrink, "a pool gives a chunk back")                                                                                    \
    X(reserve, "reserve address space")                                                                                            \
    X(unreserve, "give address space back")                                                                                        \
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
    X(synchronise, "wait for a stream, an event or the device, idle")                                                              \
    X(mem_info, "ask for free memory")                                                                                             \
    X(capture_status, "ask whether a stream is captured")                                                                          \
    X(launch, "launch a kernel, a fill or a graph")                                                                                \
    X(prefetch, "prefetch or advise managed memory")                                                                               \
    X(peer, "enable a peer, export or import")

/* X(kind, type, name, least, most, meaning): what a device has. The kind is that of an option (strata/layer.h): most 0 is no bound, and
 * a FRACTION's bounds are in millionths. */
#define STRATA_SIM_NUMBER_MAP(X)                                                                                                   \
    X(SIZE, uint64_t, total_bytes, 1, 0, "its memory, as mem_info says")                                                           \
    X(SIZE, uint64_t, context_bytes, 0, 0, "taken by the context")                                                                 \
    X(SIZE, uint64_t, foreign_bytes, 0, 0, "taken by other processes")                                                             \
    X(SIZE, uint64_t, granule_bytes, UINT64_C(1) << 16, UINT64_C(1) << 40,                                                         \
      "physical granule, and packing unit of malloc: a power of two")                                                              \
    X(SIZE, uint64_t, pack_below_bytes, 0, UINT64_C(1) << 40, "requests below it are packed into one granule; at most a granule")  \
    X(SIZE, uint64_t, address_bytes, 1, UINT64_C(1) << 52, "address space of virtual memory")                                      \
    X(COUNT, uint64_t, mappings_max, 0, 0, "mappings at once")                                                                     \
    X(SIZE, uint64_t, pool_chunk_bytes, 0, 0, "a pool of the driver grows by at least so much: a model")                           \
    X(BOOL, bool, free_waits, 0, 0, "free of malloc, managed and pinned memory waits for all work submitted before")               \
    X(BOOL, bool, virtual_memory, 0, 0, "handles of physical memory can be had, and mapped")                                       \
    X(FRACTION, double, driver_lock_share, 0, 1000000,                                                                             \
      "the part of a call's fixed cost for which it keeps the calls of other threads on its device waiting; 0: no such lock")

typedef struct strata_sim_profile {
    char name[32]; /* "h100" */
    bool modelled; /* the costs are not measured but derived from another card */
#define STRATA_SIM_NUMBER_FIELD(kind, type, name, least, most, meaning) type name;
    STRATA_SIM_NUMBER_MAP(STRATA_SIM_NUMBER_FIELD)
#undef STRATA_SIM_NUMBER_FIELD
#define STRATA_SIM_COST_FIELD(name, meaning) strata_sim_cost_t name;
    STRATA_SIM_COST_MAP(STRATA_SIM_COST_FIELD)
#undef STRATA_SIM_COST_FIELD
} strata_sim_profile_t;

/* The most that a part of a cost may be: a quarter of an hour. */
#define STRATA_SIM_COST_MOST 9e11

/* E_INVALID: what is wrong with its numbers. */
strata_status_t strata_sim_profile_check(const strata_sim_profile_t *profile);

/* A built-in profile, "h100", "a100", "l4" and so on, with the values of docs/profiles.md; NULL for another name. */
const strata_sim_profile_t *strata_sim_profile(const char *name);
/* Names by index, NULL after the last. */
const char *strata_sim_profile_name(size_t index);

#define STRATA_SIM_UNLIMITED UINT64_MAX

typedef struct strata_sim_options {
    const strata_sim_profile_t *profile; /* NULL: h100 */
    uint32_t devices; /* 0 means 1; at most 16 */
    uint64_t capacity; /* bytes a program may use on each device, context and foreign bytes already taken
                                            off; 0: as the profile says; STRATA_SIM_UNLIMITED */
    bool contents; /* device memory is backed by host memory */
    bool host_in_order; /* each pinned or host allocation lies above the one before, from the same address in every process: a run can
                           be compared with another one. One world of a process at a time; addresses are not used again */
    uint64_t host_jitter; /* seed of the moments at which the host is held up (docs/profiles.md, "A host that stumbles"); it polls
                             then instead of knowing when events pass. 0: it is never held up */
} strata_sim_options_t;

typedef struct strata_sim strata_sim_t;

/* A world. The close of its last device frees it, once strata_sim_drop() was called too. */
strata_status_t strata_sim_new(const strata_sim_options_t *options, strata_sim_t **world);
void strata_sim_drop(strata_sim_t *world);
uint32_t strata_sim_devices(const strata_sim_t *world);
/* Opens device `ordinal`; strata_device_close() ends it. Each device can be open only once at a time. */
strata_status_t strata_sim_open(strata_sim_t *world, uint32_t ordinal, strata_device_t **device);

/* ---- for replay and tests ---- */

/* The calling host thread's virtual time; advancing it is the host computing, which hold-ups make longer. */
uint64_t strata_sim_now(strata_sim_t *world);
/* Where that time stands, for whoever asks at every step; the world's, for the calling thread alone. */
const _Atomic uint64_t *strata_sim_clock(strata_sim_t *world);
/* The same, for the calling thread to move forward by itself; NULL: the host is held up now and then, which a step must allow for. */
_Atomic uint64_t *strata_sim_steady_clock(strata_sim_t *world);
void strata_sim_advance_to(strata_sim_t *world, uint64_t until);
/* By `way`, which is small enough for the sum. */
void strata_sim_advance_by(strata_sim_t *world, uint64_t way);
/* Work that the host submitted to `stream` ends at `end` (virtual ns) at the earliest, as if the GPU ran behind the host. */
strata_status_t strata_sim_stream_busy_until(strata_device_t *device, strata_handle_t stream, uint64_t end);
/* The same for a caller that does it before each step of a program, in a world that one thread uses. The lookup is done once, and the result
 * is valid until the stream is destroyed (NULL: E_UNKNOWN_STREAM). A promise takes no lock; the work is submitted before the world reads
 * the state of any stream. */
typedef struct sim_stream strata_sim_stream_t;
strata_sim_stream_t *strata_sim_stream_find(strata_device_t *device, strata_handle_t stream);
void strata_sim_stream_promise(strata_sim_stream_t *stream, uint64_t end);
/* When all work submitted so far to a stream, to all streams of the device, is done. */
uint64_t strata_sim_stream_end(strata_device_t *device, strata_handle_t stream);
uint64_t strata_sim_device_end(strata_device_t *device);
/* The priority with which a stream was created, clamped to the device's range. The timelines do not use it. */
int strata_sim_stream_priority(strata_device_t *device, strata_handle_t stream);
/* Calls so far that made the host wait for all work of the device. Needs no lock. */
uint64_t strata_sim_device_waits(strata_device_t *device);

typedef struct strata_sim_figures {
    uint64_t device_call_ns; /* the calls' own time, waits excluded */
    uint64_t pool_return_ns; /* the part of it that pools took at host waits to give chunks back */
    uint64_t stall_ns; /* the host waited for the device */
    uint64_t used_bytes; /* physical memory, whole granules, without context and foreign bytes */
    uint64_t peak_used_bytes;
    uint64_t oversubscribed_bytes; /* managed memory beyond the capacity, at its peak */
} strata_sim_figures_t;
void strata_sim_figures(strata_device_t *device, strata_sim_figures_t *figures);

/* X(member, what it is): what a device has given and not got back, except streams and what every process has: the default pool and
 * the device's own memory. */
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
/* In words, those that are not 0 ("3 events, 1 pools"); "" if nothing is held. Cut to the capacity. */
void strata_sim_held_text(const strata_sim_held_t *held, char *text, size_t room);

/* Faults on order. The k-th call (1 = the next) of kind `call` does nothing and answers `status` (E_NO_MEMORY, E_DEVICE,
 * E_DEVICE_LOST) with the matching CUDA code; with `onward` every later one too. Kind STRATA_DEVICE_CALLS means any call.
 * E_DEVICE_LOST always lasts until the faults are cleared. At most 16 faults at once. */
strata_status_t strata_sim_fail(strata_device_t *device, strata_device_call_t call, uint64_t k, bool onward,
                                strata_status_t status);
void strata_sim_clear_faults(strata_device_t *device);
/* Calls made so far that a fault of kind STRATA_DEVICE_CALLS would count (those that cost: not event_ready_at, host_view). */
uint64_t strata_sim_calls(strata_device_t *device);
/* The node of the host that a live block of PINNED or HOST memory was asked from; -1: none, or there is no such block. */
int strata_sim_host_node(strata_device_t *device, strata_address_t address);
/* Checks every structure of the world; E_CORRUPT says what is wrong. */
strata_status_t strata_sim_validate(strata_sim_t *world);

#endif

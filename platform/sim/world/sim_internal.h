/* The structures and functions that the files of the simulated device share.
 *
 * The simulator takes the place of the device and its driver, so its own bookkeeping is not the
 * library's host memory: it uses calloc() directly. It neither counts in strata_host_allocations() nor
 * can be failed by strata_host_fail_at(), and it may allocate with its lock held.
 *
 * One lock per world (rank DEVICE) guards everything below except the clocks of threads, which are
 * atomic. Functions named sim_* are called with that lock held unless their comment differs. */
#ifndef STRATA_PLATFORM_SIM_INTERNAL_H
#define STRATA_PLATFORM_SIM_INTERNAL_H

#include "platform/arithmetic.h"
#include "platform/sim/sim.h"
#include "platform/sim/world/sim_tree.h"

#define SIM_DEVICES_MAX     16
#define SIM_FAULTS_MAX      16
#define SIM_THREADS_HASH    64
#define SIM_TURNS           16
#define SIM_CAPTURE_STREAMS 32
#define SIM_FOLLOWED        16
#define SIM_ALIGNMENT       512
#define SIM_MIB             1048576.0
/* Simulated addresses are above every host address, so a value below SIM_BASE is the host's own memory. */
#define SIM_BASE        (UINT64_C(1) << 48)
#define SIM_DEVICE_SPAN (UINT64_C(1) << 52)
/* The first address with strata_sim_options_t.host_in_order: far from all addresses that a kernel
 * chooses, however large the memory is. */
#define SIM_HOST_BEGIN UINT64_C(0x300000000000)

/* The driver's numbers (CUresult). */
enum {
    SIM_CU_INVALID_VALUE = 1,
    SIM_CU_OUT_OF_MEMORY = 2,
    SIM_CU_INVALID_DEVICE = 101,
    SIM_CU_OPERATING_SYSTEM = 304, /* injected faults */
    SIM_CU_INVALID_HANDLE = 400,
    SIM_CU_ILLEGAL_STATE = 401,
    SIM_CU_ILLEGAL_ADDRESS = 700,
    SIM_CU_LAUNCH_FAILED = 719,
    SIM_CU_NOT_SUPPORTED = 801,
    SIM_CU_CAPTURE_UNSUPPORTED = 900,
    SIM_CU_CAPTURE_INVALIDATED = 901,
    SIM_CU_CAPTURE_MERGE = 902,
    SIM_CU_CAPTURE_UNMATCHED = 903,
    SIM_CU_CAPTURE_UNJOINED = 904,
    SIM_CU_CAPTURE_ISOLATION = 905,
    SIM_CU_CAPTURE_IMPLICIT = 906,
    SIM_CU_CAPTURED_EVENT = 907,
    SIM_CU_CAPTURE_WRONG_THREAD = 908
};

typedef struct sim_device sim_device_t;
typedef struct sim_capture sim_capture_t;
typedef struct sim_graph sim_graph_t;
typedef struct sim_pool sim_pool_t;

/* ---- handles (sim_handles.c): a slot of a table, with its kind, world and device in the value ---- */

typedef enum sim_handle_kind { SIM_STREAM = 0, SIM_EVENT, SIM_PHYSICAL, SIM_POOL, SIM_GRAPH, SIM_HANDLE_KINDS } sim_handle_kind_t;

typedef struct sim_slots {
    void **items; /* NULL if the slot is free */
    uint32_t *free; /* a stack: the slot that was freed last is reused first */
    uint32_t count, free_count, room;
} sim_slots_t;

bool sim_handle_new(sim_device_t *device, sim_handle_kind_t kind, void *item, uint64_t *handle);
/* Returns the item. On failure sets the error and returns NULL: E_DEVICE for another device's handle,
 * `dead` for a dead one. */
void *sim_handle_find(sim_device_t *device, sim_handle_kind_t kind, uint64_t handle, strata_status_t dead);
/* Returns the device of this world that issued `handle`, or NULL if none of the open ones did. */
sim_device_t *sim_handle_owner(strata_sim_t *world, uint64_t handle);
void sim_handle_drop(sim_device_t *device, sim_handle_kind_t kind, uint64_t handle);

/* ---- memory ---- */

typedef enum sim_region_kind {
    SIM_REGION_MALLOC,
    SIM_REGION_PIECE,
    SIM_REGION_MANAGED,
    SIM_REGION_PINNED,
    SIM_REGION_HOST,
    SIM_REGION_BLOCK,
    SIM_REGION_RESERVATION
} sim_region_kind_t;

/* A physical granule that serves several small requests. Its pieces are separated by gaps, in a window
 * of twice its size. */
typedef struct sim_granule {
    uint64_t address, taken, next; /* window, bytes given out, offset of the next piece */
    uint64_t pieces; /* live */
    uint8_t *host;
} sim_granule_t;

typedef struct sim_region {
    sim_node_t node; /* key: address; first */
    uint64_t size; /* as requested */
    uint64_t span; /* physical bytes, or the bytes of the host mapping if there is one */
    sim_region_kind_t kind;
    sim_device_t *device;
    sim_granule_t *granule; /* of a piece */
    uint32_t on_node; /* for PINNED and HOST: 1 + the requested node, or 0 if none was named */
    uint8_t *host; /* contents, or the memory itself of PINNED and HOST */
    sim_tree_t mappings; /* for a reservation: its mappings, by address */
} sim_region_t;

typedef struct sim_mapping sim_mapping_t;

typedef struct sim_physical {
    sim_node_t node; /* key: its number in the world, which finds shareable memory; first */
    sim_device_t *device; /* the device that provides it; NULL once that device is closed */
    uint64_t size, file_offset;
    int file; /* its own file if it was exported or is another process's; -1 if its contents are in the world's file */
    uint64_t handles, mappings; /* the memory is freed when both are 0 */
    sim_mapping_t *mapped; /* its mappings, the latest first */
    void *past; /* the checker's list of uses through mappings that no longer exist; may be NULL */
    bool shareable;
} sim_physical_t;

struct sim_mapping {
    sim_node_t node; /* key: address; first */
    uint64_t size;
    sim_physical_t *physical;
    sim_mapping_t *next; /* the next mapping of the same physical memory */
    uint32_t access; /* bit per device */
    uint64_t busy_until; /* end of the work that touches it */
};

/* ---- streams and events ---- */

typedef struct sim_followed {
    uint64_t stream_id, operations;
} sim_followed_t;

/* Priorities of streams, as an H100 has them. */
enum { SIM_PRIORITY_FIRST = -5, SIM_PRIORITY_LAST = 0 };

typedef struct sim_stream {
    sim_device_t *device;
    uint64_t id;
    uint64_t handle;
    strata_stream_flags_t flags;
    int priority; /* reported; the timelines do not use it */
    bool legacy;
    uint64_t end; /* end of all work submitted to it */
    uint64_t promised; /* end of work promised with strata_sim_stream_promise(); 0 if there is none */
    struct sim_stream *next_promised;
    uint64_t operations; /* number of operations submitted; for the order of pool frees */
    sim_followed_t followed[SIM_FOLLOWED]; /* the latest operation of other streams that it has waited for, latest first */
    uint64_t thread; /* for a thread's own default stream: the thread's number */
    struct sim_stream *next_own;
    sim_capture_t *capture;
    uint32_t capture_index;
    uint32_t actor; /* the checker's actor; 0 if there is none yet */
} sim_stream_t;

typedef struct sim_event {
    sim_device_t *device;
    uint64_t at; /* time at which it passes; 0 if it was never recorded */
    uint64_t stream_id, operations;
    /* For an event last recorded in a capture: the capture's id, and the operations that precede it there. */
    uint64_t capture_id;
    uint64_t capture_at;
    uint64_t seen[SIM_CAPTURE_STREAMS];
    struct sim_recorded *recorded; /* owned by the checker */
} sim_event_t;

typedef struct sim_thread sim_thread_t;
struct sim_thread {
    _Atomic uint64_t now;
    uint64_t number;
    uint32_t index; /* in the order in which threads entered this world */
    sim_thread_t *next;
    uint32_t actor; /* the checker's actor, guarded by the world's lock; 0 if there is none yet */
};

typedef struct sim_clock {
    strata_clock_t clock; /* first */
    sim_device_t *device;
} sim_clock_t;

typedef struct sim_observer {
    strata_lock_observer_t observer; /* first */
    strata_sim_t *world;
} sim_observer_t;

typedef struct sim_fault {
    strata_device_call_t call;
    uint64_t left; /* matching calls until the fault strikes; 0 if every call from now on */
    bool onward;
    strata_status_t status;
} sim_fault_t;

/* A thread's latest turn at the driver's lock. */
typedef struct sim_turn {
    uint64_t thread; /* the thread's number; 0 if the entry is unused */
    uint64_t end, held;
} sim_turn_t;

struct sim_device {
    strata_device_t base; /* first */
    strata_sim_t *world;
    sim_clock_t clock;
    uint64_t capacity;
    uint64_t used, peak_used; /* physical bytes; `used` without managed memory */
    uint64_t managed, peak_oversubscribed;
    uint64_t next_address;
    bool addresses_reused; /* the whole address range was used once, and addresses now repeat */
    sim_granule_t *open; /* the granule that new small requests fill */
    uint64_t granules; /* live granules of small requests */
    uint64_t reserved_addresses, mappings;
    uint32_t peers; /* bit per device with memory that this one may touch */
    sim_slots_t slots[SIM_HANDLE_KINDS];
    sim_stream_t legacy;
    sim_stream_t *own; /* the default streams of threads */
    uint64_t end; /* end of all work submitted */
    uint64_t blocking_end; /* end of all work submitted to blocking streams */
    sim_pool_t *pools, *default_pool;
    sim_pool_t *graph_pool; /* memory of graphs; NULL until there is some */
    sim_capture_t *captures;
    uint64_t blocking_captures;
    uint64_t device_call_ns, pool_return_ns, calls;
    _Atomic uint64_t stall_ns; /* clocks add to it without the lock */
    _Atomic uint64_t waits; /* number of waits for all work of the device; read without the lock */
    sim_turn_t turns[SIM_TURNS]; /* of the threads that called most recently */
    sim_fault_t faults[SIM_FAULTS_MAX];
    size_t fault_count;
    int64_t lost_code; /* the sticky error; 0 if there is none */
};

struct strata_sim {
    strata_lock_t lock;
    strata_sim_profile_t profile;
    uint64_t serial; /* never reused in a process */
    uint64_t secret; /* random number in exported handles; 0 until the first export */
    uint64_t process; /* the process that created it: a forked copy exchanges no memory */
    uint64_t capacity;
    uint64_t host_jitter; /* seed of the host's hold-ups; 0 if there are none */
    bool contents;
    uint64_t host_next; /* lowest address for the next pinned or host allocation; 0 if the host chooses it */
    bool dropped;
    uint32_t devices, open;
    sim_device_t *device[SIM_DEVICES_MAX]; /* NULL if it is not open */
    sim_tree_t regions; /* everything that has an address, by address */
    uint64_t next_physical, next_capture;
    struct sim_callback *callbacks; /* callbacks of destroyed graphs, run when the lock is released */
    sim_tree_t shared; /* shareable physical memory, by number */
    int file; /* contents of physical handles, one sparse file; -1 if there is none yet */
    uint64_t file_end;
    sim_observer_t observer;
    sim_thread_t *_Atomic threads[SIM_THREADS_HASH];
    sim_stream_t *promised; /* streams with promised work that is not submitted yet; only while there is one thread */
    sim_thread_t spare_thread; /* used for a thread that cannot be registered */
    _Atomic uint32_t thread_count;
    _Atomic(struct strata_checker *) checker; /* NULL if the world is not checked; set under the lock */
    bool was_checked;
};

/* ---- the frame of a call (sim_world.c) ---- */

static inline sim_device_t *sim_of(strata_device_t *device) { return (sim_device_t *)device; }
/* Takes the lock and counts the call. If a fault strikes, releases the lock and returns its status.
 * Called without the lock. */
strata_status_t sim_begin(sim_device_t *device, strata_device_call_t call);
/* Releases the lock, runs the callbacks that are due, and returns `status`. */
strata_status_t sim_end(sim_device_t *device, strata_status_t status);
extern const strata_device_operations_t sim_operations;

/* ---- faults (sim_faults.c) ---- */

strata_status_t sim_inject_fault(sim_device_t *device, strata_device_call_t call);
/* Marks the device as lost. Every later call fails with `code`. */
void sim_mark_lost(sim_device_t *device, int64_t code);
strata_status_t sim_out_of_memory(sim_device_t *device, const char *what, uint64_t size);
strata_status_t sim_no_host_memory(void);

/* ---- time (sim_threads.c): these functions need no lock ---- */

sim_thread_t *sim_thread(strata_sim_t *world);
uint64_t sim_thread_number(void);
uint64_t sim_now(sim_device_t *device);
/* Advances the calling thread's clock to `until` if that is later. The difference counts as stall. */
void sim_stall(sim_device_t *device, uint64_t until);
void sim_threads_init(strata_sim_t *world);
void sim_threads_end(strata_sim_t *world);
void sim_clock_init(sim_device_t *device);
/* Charges the calling thread for a call, and for the wait for the driver's lock if the profile has one.
 * Needs the lock. */
void sim_charge(sim_device_t *device, const strata_sim_cost_t *cost, uint64_t size);

/* ---- a host that stumbles (sim_jitter.c): these functions need no lock ---- */

/* Return the calling thread's time after it computed from `from` to `until`, waited until then, or
 * slept until then. */
uint64_t sim_after_work(strata_sim_t *world, uint64_t from, uint64_t until);
uint64_t sim_after_wait(strata_sim_t *world, uint64_t from, uint64_t until);
uint64_t sim_after_sleep(strata_sim_t *world, uint64_t from, uint64_t until);

/* ---- addresses and physical memory (sim_memory.c, sim_host.c, sim_contents.c) ---- */

/* Reserves `span` bytes of address space with a gap after it. Returns 0 if none is left. */
strata_address_t sim_address(sim_device_t *device, uint64_t span, uint64_t alignment);
bool sim_claim(sim_device_t *device, uint64_t bytes);
void sim_unclaim(sim_device_t *device, uint64_t bytes);
/* Rounds up to granules. Returns false if the result does not fit in 64 bits. */
bool sim_granules(const sim_device_t *device, uint64_t size, uint64_t *bytes);
sim_region_t *sim_region_new(sim_device_t *device, sim_region_kind_t kind, strata_address_t address, uint64_t size);
void sim_region_drop(sim_region_t *region);
/* Returns the region that contains `address`, or NULL. */
sim_region_t *sim_region_at(strata_sim_t *world, strata_address_t address);
/* Returns this device's region that begins at `address`, or NULL with the error set. */
sim_region_t *sim_region_find(sim_device_t *device, strata_address_t address);
/* Frees all memory that a device still has. */
void sim_memory_end(sim_device_t *device);
/* Free a region and its memory: device and managed memory, or host memory. */
void sim_region_end(sim_region_t *region);
void sim_host_end(sim_region_t *region);
/* Returns the physical bytes in use, including managed memory as far as it fits. */
uint64_t sim_used(const sim_device_t *device);

/* Contents. A function sets a NULL host pointer if the world has no contents. It returns false if the
 * host has no memory. */
bool sim_contents_new(strata_sim_t *world, uint64_t size, uint8_t **host);
void sim_contents_drop(uint8_t *host, uint64_t size);
bool sim_contents_reserve(strata_sim_t *world, uint64_t size, uint8_t **host);
bool sim_contents_file(strata_sim_t *world, uint64_t size, uint64_t *offset);
void sim_contents_punch(strata_sim_t *world, uint64_t offset, uint64_t size);
bool sim_contents_map(int file, uint8_t *host, uint64_t size, uint64_t offset);
/* Copies all data that a file has in [offset, offset + size) to the beginning of another file. */
bool sim_contents_copy(int from, uint64_t offset, uint64_t size, int to);
void sim_contents_unmap(uint8_t *host, uint64_t size);
/* Overwrites bytes that were unmapped under running work. */
void sim_contents_kill(uint8_t *host, uint64_t size);
/* Returns the host's address of a range, or NULL if the host cannot see it. */
uint8_t *sim_view(strata_sim_t *world, strata_address_t address, uint64_t size);
/* Returns true if `device` may touch a range, and marks its mappings as busy until `end`. False means
 * an illegal address. */
bool sim_touch(sim_device_t *device, strata_address_t address, uint64_t size, uint64_t end);

/* ---- streams (sim_streams.c) ---- */

/* Returns the stream of a handle, or NULL with the error set. */
sim_stream_t *sim_stream(sim_device_t *device, strata_handle_t handle);
/* Returns it as above, for a call that submits work: fails for the legacy stream while a blocking
 * stream is captured. */
sim_stream_t *sim_stream_for_work(sim_device_t *device, strata_handle_t handle);
/* Makes the calling thread wait for all work submitted to the device so far. The second waits only if
 * the profile requires it, and returns true if it did. */
void sim_device_wait(sim_device_t *device);
bool sim_free_wait(sim_device_t *device);
/* Returns the time at which all work is done that must precede the stream's next operation. */
uint64_t sim_stream_order(const sim_stream_t *stream);
/* Submits `duration` of work and returns the time at which it ends. */
uint64_t sim_submit(sim_stream_t *stream, uint64_t duration);
/* Submits all promised work. Must be called before the work of any stream is read. */
void sim_streams_submit_promised(strata_sim_t *world);
void sim_stream_extend(sim_stream_t *stream, uint64_t end);
void sim_stream_init(sim_device_t *device, sim_stream_t *stream, strata_stream_flags_t flags);
void sim_stream_follow(sim_stream_t *stream, uint64_t stream_id, uint64_t operations);
void sim_streams_end(sim_device_t *device);
/* Shrinks the pools to their release thresholds, as a wait for the device does. */
void sim_pools_synchronised(sim_device_t *device);

/* ---- capture (sim_capture.c) ---- */

strata_status_t sim_capture_refuse(sim_stream_t *stream, const char *what);
strata_status_t sim_capture_refuse_device(sim_device_t *device, const char *what);
strata_status_t sim_capture_record(sim_stream_t *stream, sim_event_t *event);
strata_status_t sim_capture_wait(sim_stream_t *stream, const sim_event_t *event);
strata_status_t sim_capture_work(sim_stream_t *stream, uint64_t duration, const strata_access_t *accesses, size_t count);
strata_status_t sim_capture_fill(sim_stream_t *stream, strata_address_t address, uint8_t byte, uint64_t size);
void sim_capture_stream_destroyed(sim_stream_t *stream);
void sim_captures_invalidate(sim_device_t *device, bool blocking_only);
void sim_captures_end(sim_device_t *device);

/* ---- the rest of the table ---- */

strata_status_t sim_pools_init(sim_device_t *device);
void sim_pools_end(sim_device_t *device);
/* Returns false, with the error set, if the region is memory of a graph that no launch has allocated. */
bool sim_pool_may_free(const sim_region_t *region);
/* Frees a block of a pool after a wait for the device. */
strata_status_t sim_pool_free(sim_region_t *region);
/* Returns true if the pool of a block allows another device to touch it. */
bool sim_pool_allows(const sim_region_t *region, const sim_device_t *device);
void sim_vmm_end(sim_device_t *device);
/* Returns the physical memory of a handle, or NULL with the error set. */
sim_physical_t *sim_physical(sim_device_t *device, strata_physical_t handle);
/* Frees the physical memory if it has neither a handle nor a mapping. */
void sim_physical_free_unused(strata_sim_t *world, sim_physical_t *physical);

strata_status_t sim_op_malloc(strata_device_t *, strata_memory_t, uint64_t, strata_address_t *);
strata_status_t sim_op_free(strata_device_t *, strata_memory_t, strata_address_t);
strata_status_t sim_op_host_alloc(strata_device_t *, strata_memory_t, uint64_t, uint64_t, uint32_t, strata_address_t *);
strata_status_t sim_op_host_free(strata_device_t *, strata_memory_t, strata_address_t);
strata_status_t sim_op_mem_info(strata_device_t *, uint64_t *, uint64_t *);
strata_status_t sim_op_malloc_async(strata_device_t *, strata_handle_t, uint64_t, strata_handle_t, strata_address_t *);
strata_status_t sim_op_free_async(strata_device_t *, strata_address_t, strata_handle_t);
strata_status_t sim_op_pool_create(strata_device_t *, uint64_t, bool, strata_handle_t *);
strata_status_t sim_op_pool_destroy(strata_device_t *, strata_handle_t);
strata_status_t sim_op_pool_default(strata_device_t *, strata_handle_t *);
strata_status_t sim_op_pool_set(strata_device_t *, strata_handle_t, strata_pool_attribute_t, uint64_t);
strata_status_t sim_op_pool_get(strata_device_t *, strata_handle_t, strata_pool_attribute_t, uint64_t *);
strata_status_t sim_op_pool_trim(strata_device_t *, strata_handle_t, uint64_t);
strata_status_t sim_op_pool_set_access(strata_device_t *, strata_handle_t, uint32_t);
strata_status_t sim_op_reserve(strata_device_t *, uint64_t, uint64_t, strata_address_t *);
strata_status_t sim_op_unreserve(strata_device_t *, strata_address_t, uint64_t);
strata_status_t sim_op_create(strata_device_t *, uint64_t, bool, strata_physical_t *);
strata_status_t sim_op_release(strata_device_t *, strata_physical_t);
strata_status_t sim_op_map(strata_device_t *, strata_address_t, uint64_t, strata_physical_t);
strata_status_t sim_op_unmap(strata_device_t *, strata_address_t, uint64_t);
strata_status_t sim_op_set_access(strata_device_t *, strata_address_t, uint64_t, const uint32_t *, size_t);
strata_status_t sim_op_stream_create(strata_device_t *, strata_stream_flags_t, int priority, strata_handle_t *);
strata_status_t sim_op_stream_destroy(strata_device_t *, strata_handle_t);
strata_status_t sim_op_stream_query(strata_device_t *, strata_handle_t);
strata_status_t sim_op_stream_synchronise(strata_device_t *, strata_handle_t);
strata_status_t sim_op_stream_wait(strata_device_t *, strata_handle_t, strata_handle_t);
strata_status_t sim_op_stream_id(strata_device_t *, strata_handle_t, uint64_t *);
strata_status_t sim_op_synchronise(strata_device_t *);
strata_status_t sim_op_event_create(strata_device_t *, strata_handle_t *);
strata_status_t sim_op_event_destroy(strata_device_t *, strata_handle_t);
strata_status_t sim_op_event_record(strata_device_t *, strata_handle_t, strata_handle_t);
strata_status_t sim_op_event_query(strata_device_t *, strata_handle_t);
strata_status_t sim_op_event_synchronise(strata_device_t *, strata_handle_t);
uint64_t sim_op_event_ready_at(strata_device_t *, strata_handle_t);
bool sim_op_event_is_captured(strata_device_t *, strata_handle_t);
strata_status_t sim_op_fill(strata_device_t *, strata_address_t, uint8_t, uint64_t, strata_handle_t);
strata_status_t sim_op_copy(strata_device_t *, strata_address_t, void *, uint64_t, bool, strata_handle_t);
void *sim_op_host_view(strata_device_t *, strata_address_t, uint64_t);
strata_status_t sim_op_prefetch(strata_device_t *, strata_address_t, uint64_t, bool, strata_handle_t);
strata_status_t sim_op_advise(strata_device_t *, strata_address_t, uint64_t, strata_advice_t, bool);
strata_status_t sim_op_capture_begin(strata_device_t *, strata_handle_t, strata_capture_mode_t);
strata_status_t sim_op_capture_end(strata_device_t *, strata_handle_t, strata_handle_t *);
strata_status_t sim_op_capture_status(strata_device_t *, strata_handle_t, strata_capture_status_t *, uint64_t *);
strata_status_t sim_op_capture_follows(strata_device_t *, strata_handle_t, strata_handle_t, uint64_t *);
strata_status_t sim_op_graph_on_destroy(strata_device_t *, strata_handle_t, void (*)(void *), void *);
strata_status_t sim_op_graph_launch(strata_device_t *, strata_handle_t, strata_handle_t);
strata_status_t sim_op_graph_destroy(strata_device_t *, strata_handle_t);
strata_status_t sim_op_can_access_peer(strata_device_t *, uint32_t, bool *);
strata_status_t sim_op_enable_peer(strata_device_t *, uint32_t);
strata_status_t sim_op_export_memory(strata_device_t *, strata_physical_t, int *);
strata_status_t sim_op_import_memory(strata_device_t *, int, strata_physical_t *);
strata_status_t sim_op_work(strata_device_t *, strata_handle_t, uint64_t, const strata_access_t *, size_t);

#endif

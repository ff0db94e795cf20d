/* Strata builds GPU memory allocators from layers. This header is the manual of the facade, the object that programs call.
 *
 *     program -> facade -> the stack of a place and stream (decorators -> cache -> source) -> device
 *
 * A place is a kind of memory and a device. A strategy describes the stack of layers for each place and stream. It comes from a
 * YAML file, a preset or a string.
 *
 *     strata_t s;
 *     strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .preset = "strata"}, &s);
 *     strata_block_t b;
 *     if (strata_allocate(s, strata_gpu(0), stream, 1 << 20, &b) != STRATA_OK) puts(strata_last_error()->text);
 *     ... launch work on b.ptr ...
 *     strata_free(s, b.ref);
 *
 * Units       Sizes are in bytes and times in nanoseconds, unless a name has another unit.
 * Errors      Every function that can fail returns a strata_status_t, and strata_last_error() has the reason in words. A call that
 *             fails leaves its outputs untouched, unless its comment states otherwise. A NULL pointer where none is allowed, a
 *             struct_size of no version and an unknown flag are E_INVALID. The text names the argument, and nothing happens.
 * NULL        A comment marks where NULL is allowed: "`name` (may be NULL)". NULL is also allowed for every stream, as the legacy
 *             default stream, and for every `context`, which is passed on unchanged.
 * Threads     Every function may be called from any thread at any time, also from callbacks, unless its comment forbids it
 *             (strata_close(), strata_change_strategy(), strata_pause(), strata_resume()).
 * Ownership   The caller owns a block until one strata_free*(). Strings and structs passed in are copied before the return.
 * Streams     A stream is the driver's handle (cudaStream_t and CUstream are the same pointer). NULL is the legacy default stream
 *             of the place's device, and (void *)2 is the calling thread's own default stream. Memory freed on its owner stream may
 *             be served to that stream at once. No other stream gets it before the work submitted until then is done.
 * Versions    The caller sets struct_size, the first field of many structs, to sizeof(the struct), so that older callers keep
 *             working with newer libraries. Options of a newer caller are E_UNSUPPORTED unless all fields that this library lacks
 *             are 0. A result is filled up to its struct_size, at least sizeof(size_t). Fields of a newer caller beyond that become
 *             0. Other structs (blocks, arguments of callbacks, the last error) keep their layout within an ABI version.
 * Fork, exit  After fork() all calls of the child return STRATA_E_FORKED. At process exit no device call is made once the driver
 *             reports that it is shutting down.
 *
 * Functions marked "not yet" return STRATA_E_UNSUPPORTED in this version. */
#ifndef STRATA_STRATA_H
#define STRATA_STRATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strata/log.h"
#include "strata/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STRATA_VERSION_MAJOR 0
#define STRATA_VERSION_MINOR 1
#define STRATA_VERSION_PATCH 0
#define STRATA_ABI_VERSION   1

/* Returns "0.1.0". */
STRATA_API const char *strata_version(void);
/* Returns STRATA_ABI_VERSION of the loaded library, for comparison with the header's. */
STRATA_API uint32_t strata_abi_version(void);

/* ---- names of things ------------------------------------------------------------------------------------------------ */

/* A facade. It is a value, not a pointer: use after strata_close() returns STRATA_E_STALE. 0 is no facade. */
typedef uint64_t strata_t;
/* The name of a live allocation: {stack 12 bits, slot 24, generation 28}. It is a value, so its use after the free returns
 * STRATA_E_STALE. The text of that error names the stack of the allocation. It also has the tag and operator, until the slot serves
 * another request that has them. 0 is no allocation. */
typedef uint64_t strata_ref_t;
/* The driver's stream handle. */
typedef void *strata_stream_t;

/* A place: a kind of memory and a device. The functions below make one. */
typedef uint32_t strata_place_t;
typedef enum strata_place_kind {
    STRATA_PLACE_GPU = 0, /* memory of one device */
    STRATA_PLACE_MANAGED = 1, /* migrates between the host and one device on demand */
    STRATA_PLACE_PINNED = 2, /* page-locked host memory. Blocks have no owner stream: every stream that uses a block borrows it */
    STRATA_PLACE_HOST = 3, /* plain host memory; no owner stream */
    STRATA_PLACE_KINDS = 4
} strata_place_kind_t;

static inline strata_place_t strata_place(strata_place_kind_t kind, uint32_t device) {
    return ((uint32_t)kind << 16) | (device & 0xffffu);
}
static inline strata_place_t strata_gpu(uint32_t device) { return strata_place(STRATA_PLACE_GPU, device); }
static inline strata_place_t strata_managed(uint32_t device) { return strata_place(STRATA_PLACE_MANAGED, device); }
static inline strata_place_t strata_pinned(void) { return strata_place(STRATA_PLACE_PINNED, 0); }
static inline strata_place_t strata_host(void) { return strata_place(STRATA_PLACE_HOST, 0); }
static inline strata_place_kind_t strata_place_kind(strata_place_t place) { return (strata_place_kind_t)(place >> 16); }
static inline uint32_t strata_place_device(strata_place_t place) { return place & 0xffffu; }

/* A served request. A request of 0 bytes is also served, without a device call: {NULL, 0, a ref that must be freed}. */
typedef struct strata_block {
    void *ptr; /* a device address; in pinned and host places a host address */
    size_t size; /* bytes granted, at least the bytes requested */
    strata_ref_t ref; /* its name in all later calls */
} strata_block_t;

/* ---- open and close ------------------------------------------------------------------------------------------------- */

enum {
    STRATA_OPEN_IGNORE_ENVIRONMENT = 1u << 0, /* do not read STRATA_STRATEGY and STRATA_SET */
    /* For tests: every call that names a stream of a place asks the driver for the stream's id (one driver call each). The call
     * returns STRATA_E_UNKNOWN_STREAM, and nothing happens, if a handle was destroyed without strata_stream_forget() and the driver
     * reused it. It misses a handle after which 1,024 others were used and not forgotten, and streams on which only the program
     * launches or waits. It finds nothing if the driver has no ids. */
    STRATA_OPEN_CHECK_STREAM_IDS = 1u << 1,
    /* Lets the strategy load shared objects with layers (`load: [./libmine.so]`, beside its file) and so run their code. Without
     * this flag such a strategy is E_STRATEGY. */
    STRATA_OPEN_ALLOW_CODE = 1u << 2,
    /* Every request asks the driver if its stream is being captured, and fails if no pool was begun for the capture
     * (strata/graph.h). A hit then also takes the time of that driver call, 0.1 to 0.7 us on a GPU. Without the flag only requests
     * while a pool is begun, and caches that grow, ask the driver. */
    STRATA_OPEN_CHECK_CAPTURES = 1u << 3
};

typedef struct strata_open_options {
    size_t struct_size;
    /* At most one of preset, file and text. If all are NULL, STRATA_STRATEGY of the environment decides, else the preset "strata".
     *
     * A preset is a name of strata_strategy_name(), or "import:pytorch", "import:paddle" or "import:tensorflow". An import reads
     * that framework's variables in the environment (PYTORCH_CUDA_ALLOC_CONF, FLAGS_*, TF_*, XLA_*), as of a version if one is
     * appended ("import:pytorch@2.9"). It reads them under STRATA_OPEN_IGNORE_ENVIRONMENT too, because the name requests them. A
     * key that the framework does not have is E_STRATEGY with the variable's name, line and column. A setting without an equivalent
     * is a warning (strata_set_log()). STRATA_STRATEGY and `extends:` also accept these names. docs/import.md lists every key. */
    const char *preset;
    const char *file; /* path of a YAML strategy file */
    const char *text; /* the YAML itself */
    const char *const *set; /* "auto_growth.chunk_size=32MiB", ...: these override everything else */
    size_t set_count;
    const char *devices; /* replaces the strategy's devices unless NULL: "gpu", "gpu:0", "sim", "sim:a100", "sim:my-gpu.yaml" */
    uint32_t flags; /* STRATA_OPEN_* */
} strata_open_options_t;

/* Opens a facade. If `options` (may be NULL) is NULL, no option is set. Builds the stack of the default stream for every place of
 * the named devices. `gpu` without a number opens device 0 now and the others at their first use.
 *
 * Returns E_HOST_MEMORY, E_STRATEGY with file:line:column, and E_NO_DEVICE with the driver's code (the library never falls back to
 * the simulator). Returns E_LIMIT above 256 facades or 4,095 stacks per process, or 16 devices per facade. Unknown flags are
 * E_INVALID. */
STRATA_API strata_status_t strata_open(const strata_open_options_t *options, strata_t *facade);

typedef enum strata_close_mode {
    STRATA_CLOSE_BUSY = 0, /* returns E_BUSY, and nothing happens, if a block, graph or import is live, or a free is deferred */
    STRATA_CLOSE_WAIT = 1, /* waits for the device first, then returns E_BUSY if a block, graph or import is live */
    STRATA_CLOSE_FORCE = 2 /* waits, then gives everything back, including live blocks (their refs become stale) */
} strata_close_mode_t;

typedef struct strata_leak {
    strata_place_t place;
    strata_stream_t stream;
    strata_block_t block;
    size_t requested;
    /* The program's notes about the request, "" and 0 if it made none. Valid during the call. */
    const char *tag; /* strata_allocate_options_t.tag */
    const char *operator_name; /* strata_annotate() */
    uint64_t step; /* number of strata_step() calls before it */
    const char *pool; /* its named pool, or "" if it has none */
} strata_leak_t;
/* Called once for each block that is still live, with no lock held. */
typedef void (*strata_leak_fn)(const strata_leak_t *leak, void *context);

/* Closes a facade. `report` (may be NULL) is called for every live block, in all three modes. The caller must make sure that no
 * other thread is inside a call of this facade. Later calls with the handle are E_STALE.
 *
 * Returns E_BUSY, and nothing happens, if the mode refuses or if called inside a callback of this facade. Those are observers,
 * free-memory callbacks, the leak report, and rows of metrics and of snapshots. They may close another facade. Returns E_IO or
 * E_HOST_MEMORY if a file that a layer writes (`trace`) could not be written. The facade is closed then, and the file, which the
 * text names, is as it was before. Returns E_INVALID for an unknown mode. */
STRATA_API strata_status_t strata_close(strata_t facade, strata_close_mode_t mode, strata_leak_fn report, void *context);

/* Replaces the strategy of a facade in which no block is live. `options` (may be NULL) are as for strata_open(), flags included.
 * Waits for the device first. The handle, the devices and their streams, callbacks, names, limits, default streams and counts of
 * frees stay, and already apply while the new layers preallocate. Caches go back to the device, metrics begin at 0, and old refs
 * become E_STALE. No other thread may be inside a call of this facade.
 *
 * Returns E_BUSY, and nothing happens, if a block or captured graph is live (the text has the number), or inside a callback.
 * Returns E_UNSUPPORTED if options->devices names other devices. Every error of strata_open() is possible, and E_NO_MEMORY if a
 * limit refuses a preallocation. The old strategy then stays, with empty caches. */
STRATA_API strata_status_t strata_change_strategy(strata_t facade, const strata_open_options_t *options);

/* ---- allocate and free ---------------------------------------------------------------------------------------------- */

/* Serves `size` bytes in `place` for `stream`, the owner, aligned to 256 bytes (64 in the host place). Work submitted to `stream`
 * after the return may use them. Pinned and host places have no owner stream. There `stream` is the first borrower, and NULL is
 * none.
 *
 * Returns E_NO_MEMORY after all steps that the strategy takes against it. The text has the reason and a remedy. Returns E_INVALID
 * if the strategy does not serve the place, for a size above 2^48 or an unknown pool. Returns E_BUSY if the pool is paused
 * (strata/pause.h). Also returns E_DEVICE, E_DEVICE_LOST and E_STALE. */
STRATA_API strata_status_t strata_allocate(strata_t facade, strata_place_t place, strata_stream_t stream, size_t size,
                                           strata_block_t *block);

enum {
    STRATA_NO_RETRY = 1u << 0, /* fail at the first out-of-memory, without reclaiming or waiting */
    STRATA_NO_GROW = 1u << 1, /* serve from the caches or fail, and never ask the device for more */
    /* Zeroed on `stream`: work submitted to it after the return reads zeros. In pinned and host places the bytes are zero at the
     * return. If the device refuses, the request fails. */
    STRATA_ZERO = 1u << 2,
    /* On E_NO_MEMORY the error and the observers get one line instead of the report, because the report walks every block of the
     * place. For programs that try, and then request less. */
    STRATA_NO_REPORT = 1u << 3
};
typedef struct strata_allocate_options {
    size_t struct_size;
    size_t size;
    /* A power of two, or 0 for the alignment of the place. A larger one needs the layer `aligned`, or a layer that aligns its
     * blocks so (auto_growth with such an `alignment`, bfc, system in host places). Otherwise the request is E_UNSUPPORTED with the
     * layer to add. */
    size_t alignment;
    uint32_t flags; /* STRATA_NO_RETRY | ... */
    uint64_t pool; /* one of strata_pool(), STRATA_POOL_ORDINARY, or 0 for the thread's current pool (strata_pool_begin()) */
    /* The requester, for reports: NULL, or a name of which 127 bytes are kept. A facade distinguishes 65,536 names. NULL costs
     * nothing. A block with a tag is freed on the slow path. */
    const char *tag;
    /* For frees that carry counts (below). The caller guarantees that the work up to this count is over. Memory freed up to it may
     * be served, even if no frontier has passed it. The value 0 allows all such memory, to another stream after a wait on the
     * host. */
    uint64_t freed_before;
} strata_allocate_options_t;
/* Does the work of strata_allocate() for a request with options. */
STRATA_API strata_status_t strata_allocate_with(strata_t facade, strata_place_t place, strata_stream_t stream,
                                                const strata_allocate_options_t *options, strata_block_t *block);

/* Frees a block. The memory is reused only after the work that was submitted before to the owner stream and to every borrower. The
 * call cannot fail if the ref is valid. Otherwise it returns E_STALE, and nothing happens. */
STRATA_API strata_status_t strata_free(strata_t facade, strata_ref_t ref);
/* Frees a block after a last use on `stream`, which need not be the owner. */
STRATA_API strata_status_t strata_free_on(strata_t facade, strata_ref_t ref, strata_stream_t stream);
/* Frees by address. If `ptr` (may be NULL) is NULL, nothing happens. A double free is E_UNKNOWN_POINTER until the address is served
 * again. The first such free in a facade creates a table of addresses. It takes address space, 1/32 of the reserved bytes (1/8 in
 * the host place). If the process may not map that much, each free searches all stacks for the block. */
STRATA_API strata_status_t strata_free_pointer(strata_t facade, void *ptr);

/* Adds an owner (shared ownership). Each owner frees once, by any strata_free*(). The last free gives the block back. Its reuse
 * also waits for the uses that earlier owners announced by strata_free_on(). Errors: E_STALE, E_LIMIT (2^32 owners),
 * E_HOST_MEMORY. */
STRATA_API strata_status_t strata_retain(strata_t facade, strata_ref_t ref);
/* Does the same as strata_free(), under the name that pairs with strata_retain(). */
STRATA_API strata_status_t strata_release_ref(strata_t facade, strata_ref_t ref);

/* Frees that carry a count. In layers with the option `timestamps` (bfc) every free takes the next count of its place's counter.
 * The program reports the count up to which the GPU has done its work. Memory freed at a smaller count may then be served to any
 * stream without a wait. The program takes a count when it submits work, and sets the frontier when that work is over:
 *
 *     strata_next_count(s, place, &mine);         // all earlier frees have smaller counts, all later ones larger
 *     ... launch; later, when the work is over ...
 *     strata_set_safe_frontier(s, place, mine);   // memory freed at smaller counts coalesces and may serve any stream
 *
 * Requests that wait for memory look again when the frontier moves. A frontier below the last one is ignored. The program is
 * responsible for its frontiers. strata_set_safe_frontier() returns E_UNSUPPORTED if no layer of the place has such frees. */
STRATA_API strata_status_t strata_next_count(strata_t facade, strata_place_t place, uint64_t *count);
STRATA_API strata_status_t strata_set_safe_frontier(strata_t facade, strata_place_t place, uint64_t count);

/* Finds the live block that begins at `ptr` (may be NULL, where none begins). Returns E_UNKNOWN_POINTER if there is none. */
STRATA_API strata_status_t strata_block_of(strata_t facade, const void *ptr, strata_block_t *block);
/* Finds the live block that contains the address `interior` (may be NULL, which none contains). Finds the chunk, then walks its
 * blocks. Returns E_UNKNOWN_POINTER if there is none. */
STRATA_API strata_status_t strata_base_pointer(strata_t facade, const void *interior, strata_block_t *block);

/* Writes the layers that took part in an allocation, outermost first, then those of its chunk: "retry > stream_safe > auto_growth |
 * system". At most `capacity` bytes, the terminating zero included, go to `text` (may be NULL if `capacity` is 0). */
STRATA_API strata_status_t strata_allocation_route(strata_t facade, strata_ref_t ref, char *text, size_t capacity);

/* ---- streams -------------------------------------------------------------------------------------------------------- */

/* Records that `stream`, which is not the owner, uses the block. The memory is reused only after all work submitted to `stream`
 * before strata_free(), under every strategy. If no layer of the stack handles borrows, the free waits on the host for that stream,
 * and the metric borrows_waited counts this call. Returns E_LIMIT or E_HOST_MEMORY if the use could not be recorded. In that case
 * wait for the stream before the free, or free with strata_free_on(). */
STRATA_API strata_status_t strata_record_stream(strata_t facade, strata_ref_t ref, strata_stream_t stream);
/* Takes a borrow back. The caller guarantees that the work on `stream` is done, or ordered before the owner's next work. If no use
 * by `stream` is recorded, nothing happens, and that is no error. */
STRATA_API strata_status_t strata_erase_stream(strata_t facade, strata_ref_t ref, strata_stream_t stream);
/* Must be called before a stream is destroyed, for each place in which it was used. The memory of its stack serves others or goes
 * back once the work on the stream is done. Live blocks stay valid until they are freed. After that the driver may recycle the
 * handle. Returns E_INVALID for a default stream, because it is never destroyed. */
STRATA_API strata_status_t strata_stream_forget(strata_t facade, strata_place_t place, strata_stream_t stream);
/* Returns the owner stream of a block. Returns E_UNSUPPORTED in pinned and host places, which have no owners, and for a block from
 * the memory of a forgotten stream. Also returns it for another thread's own default stream, because its name, 0x2, would mean the
 * caller's. */
STRATA_API strata_status_t strata_stream_of(strata_t facade, strata_ref_t ref, strata_stream_t *stream);
/* Sets *same if one stack serves both streams. */
STRATA_API strata_status_t strata_same_stream(strata_t facade, strata_place_t place, strata_stream_t a, strata_stream_t b,
                                              bool *same);
/* Makes NULL mean `stream` in this place, instead of the legacy default stream, which still owns the blocks served before. It can
 * be set once: another stream is E_BUSY, because blocks served for NULL now belong to the first. The stream must live as long as
 * the facade and cannot be forgotten. Returns E_UNSUPPORTED in pinned and host places, which have no owner stream. */
STRATA_API strata_status_t strata_set_default_stream(strata_t facade, strata_place_t place, strata_stream_t stream);

/* Names a stream, before its first request in a place. The first pattern under the strategy's `streams:` that matches the name
 * (`streams: {"copy*": {stack: [...]}}`) gives the stream its stack. If none matches, the place's own stack serves it. Reports show
 * the name. Names are kept as tags are.
 *
 *     strata_stream_name(s, strata_gpu(0), upload, "copy0");
 *
 * The name lasts until the stream is forgotten. Returns E_BUSY if the stream was already served, outside pools, under another name
 * or none. Returns E_INVALID for an empty name or a default stream of the driver. Returns E_UNSUPPORTED in pinned and host places,
 * where all streams share one stack. Returns E_LIMIT above 4,096 named streams, or 65,536 names of all kinds, in a facade. */
STRATA_API strata_status_t strata_stream_name(strata_t facade, strata_place_t place, strata_stream_t stream, const char *name);

/* Streams for programs that use no runtime besides Strata, mostly with simulated devices. They are the driver's non-blocking
 * streams. Forget a stream before you destroy it. `priority` is CUDA's: 0 is the default, and lower numbers come first. A number
 * outside the device's range is clamped. A simulated device keeps the priority, but does not schedule by it. */
STRATA_API strata_status_t strata_stream_create(strata_t facade, strata_place_t place, int priority, strata_stream_t *stream);
STRATA_API strata_status_t strata_stream_destroy(strata_t facade, strata_place_t place, strata_stream_t stream);
/* Waits on the host for all work submitted to `stream`. */
STRATA_API strata_status_t strata_stream_synchronize(strata_t facade, strata_place_t place, strata_stream_t stream);
/* Simulates a kernel of `duration_ns` on `stream` that uses `refs` (may be NULL if `count` is 0). E_UNSUPPORTED on real devices. */
STRATA_API strata_status_t strata_stream_work(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t duration_ns,
                                              const strata_ref_t *refs, size_t count);

/* ---- memory kept in the caches -------------------------------------------------------------------------------------- */

/* Gives every idle chunk of a place back to the device, but for pools with `keep: true`. *released (may be NULL) gets the bytes. */
STRATA_API strata_status_t strata_release(strata_t facade, strata_place_t place, uint64_t *released);
/* Releases idle chunks until at most `keep` idle bytes are left in the place, or until no chunk is wholly idle. The largest of each
 * stream go first. Pools with `keep: true` are neither released nor counted. *released (may be NULL) receives the bytes. */
STRATA_API strata_status_t strata_trim(strata_t facade, strata_place_t place, uint64_t keep, uint64_t *released);

typedef struct strata_mem_info {
    size_t struct_size;
    uint64_t free; /* as the device reports it */
    uint64_t total;
    uint64_t cached; /* reserved by Strata and not allocated */
    uint64_t limit; /* strata_set_limit(), or STRATA_UNLIMITED */
} strata_mem_info_t;
STRATA_API strata_status_t strata_mem_info(strata_t facade, strata_place_t place, strata_mem_info_t *info);
#define STRATA_UNLIMITED UINT64_MAX
/* Limits the bytes that may be reserved in a place, all its streams together, under every strategy. From the return on they never
 * exceed it. A request that would exceed the limit runs out of memory as if the device were that small. The strategy reclaims
 * memory, without asking the device, and returns E_NO_MEMORY if that is not enough. A hit costs nothing more.
 *
 * The limit may change at any time. It may be below the bytes reserved now: idle chunks go back as by strata_trim(), live blocks
 * stay, and nothing grows until enough is freed. Until then a chunk goes back as soon as it is wholly idle, and serves no request.
 * Free parts of chunks that hold live blocks may still be served, since that reserves nothing. When the limit is raised, requests
 * that wait for memory try at once. A `limit` layer of the strategy applies in addition. For a fraction of the device, as other
 * frameworks have it, multiply `total` of strata_mem_info(). */
STRATA_API strata_status_t strata_set_limit(strata_t facade, strata_place_t place, uint64_t limit);

/* ---- metrics -------------------------------------------------------------------------------------------------------- */

/* X(field, unit, counter or gauge, meaning): a counter only grows. This table generates the struct, the text and the JSON. The
 * fields that every call touches come first: with struct_size they are one cache line. */
#define STRATA_STATISTICS_MAP(X)                                                                                                   \
    X(requested_bytes, "bytes", gauge, "bytes that callers requested, of live allocations")                                        \
    X(allocated_bytes, "bytes", gauge, "live blocks, rounding included")                                                           \
    X(peak_requested_bytes, "bytes", gauge, "highest requested_bytes of the place, over all streams")                              \
    X(peak_allocated_bytes, "bytes", gauge, "highest allocated_bytes of the place, over all streams")                              \
    X(allocations, "count", counter, "requests served")                                                                            \
    X(frees, "count", counter, "allocations freed")                                                                                \
    X(cache_hits, "count", counter, "requests served without asking the layer below the cache")                                    \
    X(reserved_bytes, "bytes", gauge, "live chunks from the device")                                                               \
    X(deferred_bytes, "bytes", gauge, "freed by the caller, but still in use by other streams")                                    \
    X(peak_reserved_bytes, "bytes", gauge, "highest reserved_bytes of the place, over all streams")                                \
    X(live_allocations, "count", gauge, "allocations not freed yet")                                                               \
    X(growths, "count", counter, "chunks that caches got from the layer below")                                                    \
    X(chunks, "count", gauge, "current chunks")                                                                                    \
    X(borrows, "count", counter, "recorded record_stream calls")                                                                   \
    X(deferred_frees, "count", counter, "frees that had to wait for another stream")                                               \
    X(recoveries, "count", counter, "requests that ran out of memory and ran recovery")                                            \
    X(out_of_memory, "count", counter, "requests that finally failed for lack of memory")                                          \
    X(host_waits, "count", counter, "frees that waited on the host because no layer handles borrows")                              \
    X(quarantined_bytes, "bytes", gauge, "blocks given up because the device failed while they were freed")                        \
    X(borrows_waited, "count", counter, "record_stream calls that no layer handled: the free of the block waits on the host")      \
    X(paused_bytes, "bytes", gauge, "live chunks that the device has back until strata_resume(); not in reserved_bytes")           \
    X(sent_blocks, "count", gauge, "blocks sent to other processes, which use them or may still use them")                         \
    X(sent_bytes, "bytes", gauge, "bytes of those blocks")                                                                         \
    X(limbo_bytes, "bytes", gauge, "freed by the caller, but in use by other processes at the last check")

typedef struct strata_statistics {
    size_t struct_size;
#define STRATA_STATISTICS_FIELD(name, unit, kind, meaning) uint64_t name;
    STRATA_STATISTICS_MAP(STRATA_STATISTICS_FIELD)
#undef STRATA_STATISTICS_FIELD
} strata_statistics_t;
/* Statistics of a place. strata_statistics() has those of one stream's stack outside pools, or zeros if there is none. If every
 * thread has its own stack, it is the calling thread's. The fields recoveries, out_of_memory and paused_bytes are not counted by
 * stream, and a stream's reserved_bytes include its paused bytes. The function strata_statistics_all() sums all stacks, including
 * those of forgotten streams and of pools. It is exact when no other thread is inside a call. But the peaks of live bytes may be 1
 * part in 128 too low with several streams, and are upper bounds with more than 64. */
STRATA_API strata_status_t strata_statistics(strata_t facade, strata_place_t place, strata_stream_t stream,
                                             strata_statistics_t *statistics);
STRATA_API strata_status_t strata_statistics_all(strata_t facade, strata_place_t place, strata_statistics_t *statistics);
/* Statistics of a named pool in a place, over all its streams, or of all stacks outside pools for STRATA_POOL_ORDINARY. If `pool`
 * is 0, it is the calling thread's current pool. reserved_bytes is from the device. Peaks are sums of the stacks' peaks. */
STRATA_API strata_status_t strata_statistics_pool(strata_t facade, strata_place_t place, uint64_t pool,
                                                  strata_statistics_t *statistics);
/* Sets every peak of a place to the present value, to measure a part of a program. This covers peaks of the place, of its streams
 * and pools, and of layers (`peak_bytes`, and the oversubscription that `system` counts). Nothing else changes. */
STRATA_API strata_status_t strata_reset_peaks(strata_t facade, strata_place_t place);
/* A metric that a layer counts itself. docs/layers.md and `strata layers` explain each. Texts are valid during the call. */
typedef struct strata_layer_figure {
    const char *layer; /* its name in the strategy */
    const char *type; /* the layer's own name, as in strata_layer_name() */
    uint32_t number; /* its position in the place's stack: the outermost is 1, and branches of a router are numbered in order */
    bool shared; /* one instance for all streams of the place */
    strata_stream_t stream; /* the stream of its stack; NULL if it is shared */
    uint64_t thread; /* the number of the only thread that it serves, or that owns the stream as its own default stream; else 0 */
    bool forgotten; /* strata_stream_forget() was called */
    const char *name, *unit, *meaning;
    uint64_t value;
    uint64_t pool; /* the pool of its stack, or 0 */
} strata_layer_figure_t;
typedef void (*strata_layer_figure_fn)(const strata_layer_figure_t *figure, void *context);
/* Calls `figure` for the metrics of every layer of a place, stream by stream, and once for a shared layer. One layer's metrics are
 * of one moment. A cache reports its idle bytes (idle_bytes). Ended streams are left out. `figure` runs with no lock held. */
STRATA_API strata_status_t strata_layer_figures(strata_t facade, strata_place_t place, strata_layer_figure_fn figure,
                                                void *context);
/* Writes the statistics of every open place as JSON:
 *     {"places": [{"place": "gpu:0", "total": {"requested_bytes": 0, ...},
 *       "streams": [{"stream": "0x0", "thread": 0, "forgotten": false, "requested_bytes": 0, ..., "layers": [{"layer":
 *         "auto_growth", "type": "auto_growth", "number": 3, "figures": {"idle_bytes": 0}}, ...]}, ...],
 *       "layers": [...], "pools": [{"pool": "weights", "requested_bytes": 0, ..., "layers": [...]}, ...]}, ...]}
 * `thread` is the number of the thread that has the stream as its own default stream. A named stream has "name", and its stack in a
 * pool has "pool". "layers" of a place or pool are those that its streams share. Writes at most `capacity` bytes, the terminating
 * zero included, to `text` (may be NULL if `capacity` is 0). *needed (may be NULL) receives the whole length. */
STRATA_API strata_status_t strata_statistics_json(strata_t facade, char *text, size_t capacity, size_t *needed);
/* Writes the same totals in Prometheus' text format: strata_requested_bytes{place="gpu:0"} 0, ... Metrics that only grow are
 * counters and end in _total. Each pool that was used has strata_pool_requested_bytes{place="gpu:0",pool="weights"} 0, ... Metrics
 * of layers are sums over the streams: strata_layer_limit_used_bytes{place="gpu:0",layer="limit",number="4"} 0, ... (a sum of peaks
 * is not a peak). Those of pools and of streams by name also have the label pool or streams. `text` (may be NULL if `capacity` is
 * 0) and *needed (may be NULL) are as above. */
STRATA_API strata_status_t strata_statistics_prometheus(strata_t facade, char *text, size_t capacity, size_t *needed);
/* Writes the stacks of the facade as text, as `strata explain` prints them. At most `capacity` bytes, the terminating zero
 * included, go to `text` (may be NULL if `capacity` is 0). *needed (may be NULL) receives the whole length. */
STRATA_API strata_status_t strata_explain(strata_t facade, char *text, size_t capacity, size_t *needed);
/* A block of a place. */
typedef struct strata_snapshot_row {
    strata_block_t block; /* its ref is 0 unless it is live */
    uint64_t chunk; /* the address of its chunk, or of the block itself if it is not in a chunk */
    size_t requested; /* 0 unless it is live */
    strata_stream_t stream; /* the stream of the stack that has it; NULL in pinned and host places */
    uint32_t state; /* 0 free, 1 live, 2 deferred: freed but still in use by other streams */
    uint64_t pool; /* as from strata_pool(), or 0 */
} strata_snapshot_row_t;
typedef void (*strata_snapshot_fn)(const strata_snapshot_row_t *row, void *context);
/* Calls `row` for every block of a place in address order, all as of one moment. Makes no device call. Requests in the place wait
 * while the rows are copied (about 30 ns per block). `row` is called with no lock held. Returns E_HOST_MEMORY on failure. */
STRATA_API strata_status_t strata_snapshot(strata_t facade, strata_place_t place, strata_snapshot_fn row, void *context);
/* Writes the chunks of a place and their blocks as text, to show which blocks keep a chunk from going back:
 *     chunk 0x7f0000000000 20MiB, stream 0x0: used 6MiB (2), free 14MiB (2), largest free 12MiB
 *       0x7f0000000000 12MiB free
 *       0x7f0000c00000 4MiB live, asked 4194000
 *       ...
 * The order is by address, all as of one moment (strata_snapshot()). Writes at most `capacity` bytes, the terminating zero
 * included, to `text` (may be NULL if `capacity` is 0). *needed (may be NULL) receives the whole length. After E_HOST_MEMORY `text`
 * may be written. */
STRATA_API strata_status_t strata_chunks_text(strata_t facade, strata_place_t place, char *text, size_t capacity, size_t *needed);
/* The cache, or else the source, below the decorators that serve a stream of a place in the thread's current pool. */
typedef struct strata_cache {
    size_t struct_size;
    uint64_t id; /* of the instance: equal for two streams exactly if one instance serves both; never reused */
    uint64_t used_bytes; /* bytes that it has handed out, including blocks that wait for other streams */
    uint64_t idle_bytes; /* free bytes that it keeps */
    char name[64]; /* its name in the strategy: "auto_growth", or the name given there */
    char layer[64]; /* the layer: "auto_growth" */
} strata_cache_t;
/* `index` is 0. With routers there are several caches, from 0 upward in the order of their stacks. Returns E_INVALID if there are
 * fewer. Builds the stream's stack if there is none. Walks every block of the cache. */
STRATA_API strata_status_t strata_cache_below(strata_t facade, strata_place_t place, strata_stream_t stream, size_t index,
                                              strata_cache_t *cache);
/* Checks every data structure of the facade, taking the lock of each stack in turn. E_CORRUPT names the fault. */
STRATA_API strata_status_t strata_validate(strata_t facade);

/* ---- out of memory -------------------------------------------------------------------------------------------------- */

/* Why a request failed for memory, as far as the statistics of the place show it: X(NAME, number, name, meaning). Numbers are part
 * of the ABI: never reuse one. The report begins with the name and a sentence. Advice and metrics follow. */
#define STRATA_CAUSE_MAP(X)                                                                                                        \
    X(UNKNOWN, 0, "unknown", "not examined: the report is turned off (STRATA_NO_REPORT, `report: short`)")                         \
    X(TOO_LARGE, 1, "too_large", "the request is larger than what a program can get from the device")                              \
    X(BOUND, 2, "bound", "an option of a layer limits it: limit.bytes, bfc.memory_limit, system.cap, ...")                         \
    X(PLACE_LIMIT, 3, "place_limit", "strata_set_limit() limits it")                                                               \
    X(NO_GROWTH, 4, "no_growth", "the request forbids growth (STRATA_NO_GROW), and no free block serves it")                       \
    X(NO_RETRY, 5, "no_retry", "the request forbids the steps that could have made room (STRATA_NO_RETRY)")                        \
    X(WAITING, 6, "waiting", "enough is freed but still in use by other streams")                                                  \
    X(FORGOTTEN, 7, "forgotten", "memory of a forgotten stream is not free until its work is done")                                \
    X(CAPTURED, 8, "captured", "idle memory is kept for captured graphs")                                                          \
    X(COUNTED, 9, "counted", "freed memory has counts that no frontier has passed")                                                \
    X(KEPT, 10, "kept", "idle memory is in pools that keep their chunks")                                                          \
    X(IDLE_IN_POOL, 11, "idle_in_pool", "enough is idle in other pools' caches")                                                   \
    X(IDLE_IN_THREAD, 12, "idle_in_thread", "enough is idle in other threads' caches")                                             \
    X(IDLE_IN_STREAM, 13, "idle_in_stream", "enough is idle in other streams' caches")                                             \
    X(SIZES, 14, "sizes", "enough is idle where a cache serves requests of other sizes")                                           \
    X(UNSPLIT, 15, "unsplit", "enough is idle in blocks that may not be split for the request")                                    \
    X(FRAGMENTATION, 16, "fragmentation", "enough is idle in the caches that serve the request, but in pieces that are too small") \
    X(CHUNK, 17, "chunk", "the device has enough for the request, but not for the chunk that the cache needs")                     \
    X(OTHERS, 18, "others", "other programs, or other allocators in this one, hold the device's memory")                           \
    X(LEAK, 19, "leak", "one tag or operator holds most of it, and requests more in every step")                                   \
    X(TIMED_OUT, 20, "timed_out", "live blocks hold all memory, and no other thread freed enough in time")                         \
    X(FULL, 21, "full", "live blocks hold all memory")                                                                             \
    X(HOST, 22, "host", "the host is out of memory")                                                                               \
    X(LAYER, 23, "layer", "a layer refused the request; the report has its reason")                                                \
    X(DEVICE, 24, "device", "the device refused although it reports enough free memory")                                           \
    X(LIMBO, 25, "limbo", "enough is freed but still in use by other processes")
typedef enum strata_cause {
#define STRATA_CAUSE_ENUM(name, number, text, meaning) STRATA_CAUSE_##name = number,
    STRATA_CAUSE_MAP(STRATA_CAUSE_ENUM)
#undef STRATA_CAUSE_ENUM
} strata_cause_t;
/* Returns "fragmentation" and the like, or "unknown" for an unknown number. Any thread. */
STRATA_API const char *strata_cause_name(strata_cause_t cause);

typedef struct strata_out_of_memory {
    size_t struct_size;
    strata_place_t place;
    strata_stream_t stream;
    size_t size; /* bytes requested */
    uint64_t device_free; /* as the device reports it */
    uint64_t device_total;
    const char *text; /* the whole report; valid during the call */
    strata_cause_t cause;
    const char *tag; /* the tag of the request, or "" if it has none; valid during the call */
    const char *operator_name; /* the thread's last strata_annotate(), or "" if there is none; valid during the call */
    uint64_t step; /* calls of strata_step() until now */
} strata_out_of_memory_t;
/* Called for every request that fails for memory in the end. No lock is held, and it may call any function. Requests that the
 * observer makes itself and that fail for memory call no observer. */
typedef void (*strata_out_of_memory_fn)(const strata_out_of_memory_t *event, void *context);
/* Asks the program to free memory of its own when a request is out of memory. Returns the bytes that it freed by strata_free()
 * within the call. It may call any function. Its own requests call no callback, and one that exceeds its device need not. */
typedef uint64_t (*strata_free_memory_fn)(strata_place_t place, size_t size, void *context);

/* Callbacks run in the order in which they were added. *id (may be NULL) receives a number for strata_remove_callback(). Returns
 * E_LIMIT above 32 callbacks of both kinds in a facade. */
STRATA_API strata_status_t strata_add_out_of_memory_observer(strata_t facade, strata_out_of_memory_fn observer, void *context,
                                                             uint32_t *id);
STRATA_API strata_status_t strata_add_free_memory_callback(strata_t facade, strata_free_memory_fn callback, void *context,
                                                           uint32_t *id);
/* Requests that begin after the return no longer call the callback. */
STRATA_API strata_status_t strata_remove_callback(strata_t facade, uint32_t id);

/* ---- named pools ---------------------------------------------------------------------------------------------------- */

/* A strategy may name pools (`pools: {weights: {stack: [...]}}`). A pool is separate from all other memory and has layers of its
 * own. It has its own stacks in every place, one per stream, and its caches serve no other request. Reclaim, strata_release() and
 * strata_stream_forget() treat them like all stacks of the place. The exception is a pool with `keep: true`: its idle chunks go
 * back only for its own requests, by strata_release_pool() and strata_trim_pool(), and at the end. Functions that take a ref need
 * no pool: any thread may free, borrow and share a block.
 *
 *     uint64_t weights;
 *     strata_pool(s, "weights", &weights);
 *     strata_pool_begin(s, strata_gpu(0), weights);    // this thread's requests in gpu:0, whatever code makes them
 *     load_model();
 *     strata_pool_end(s, strata_gpu(0));
 */

/* Selects no pool, whatever pool the thread has begun. */
#define STRATA_POOL_ORDINARY 1ull

/* Finds the pool that the strategy calls `name`. It is valid until the facade is closed. Returns E_INVALID if there is none, with
 * the nearest name in the text. Returns E_LIMIT above 65,536 names in the facade, and E_HOST_MEMORY. */
STRATA_API strata_status_t strata_pool(strata_t facade, const char *name, uint64_t *pool);
/* Sends requests of the calling thread in this place that name no pool themselves to `pool`, until the matching end.
 * STRATA_POOL_ORDINARY sends them to none. Pools nest: the innermost one applies, and an end returns to the one before. Other
 * threads and places are not affected. A thread that has begun none pays nothing. Returns E_INVALID for an unknown pool, and
 * E_LIMIT above 16 pools begun by one thread. */
STRATA_API strata_status_t strata_pool_begin(strata_t facade, strata_place_t place, uint64_t pool);
/* Ends the last begin of the thread in this place. Returns E_INVALID if there is none. */
STRATA_API strata_status_t strata_pool_end(strata_t facade, strata_place_t place);
/* Returns the calling thread's current pool in a place, or STRATA_POOL_ORDINARY. A helper thread can begin the same pool. */
STRATA_API strata_status_t strata_pool_current(strata_t facade, strata_place_t place, uint64_t *pool);
/* Gives every idle chunk of a pool in a place back to the device, even with `keep: true`. STRATA_POOL_ORDINARY selects chunks
 * outside pools, 0 the thread's current pool. *released (may be NULL) receives the bytes. Returns E_INVALID for an unknown pool. */
STRATA_API strata_status_t strata_release_pool(strata_t facade, strata_place_t place, uint64_t pool, uint64_t *released);
/* Returns the pool of a block, or STRATA_POOL_ORDINARY. */
STRATA_API strata_status_t strata_pool_of(strata_t facade, strata_ref_t ref, uint64_t *pool);

/* ---- notes of the program ------------------------------------------------------------------------------------------------ */

/* Ends a step of the program (an iteration, a batch) and notifies every layer. Allocations with a tag or an operator keep the
 * number of steps before them. */
STRATA_API strata_status_t strata_step(strata_t facade);
/* Assigns later requests of the calling thread to the operator `operator_name` (may be NULL, which ends that), until the next call.
 * The leak report and the out-of-memory report show it. Such requests take the slow path. Others cost nothing more. Names are kept
 * as tags are. Returns E_LIMIT if the thread is inside operators of four facades, and E_HOST_MEMORY. */
STRATA_API strata_status_t strata_annotate(strata_t facade, const char *operator_name);

/* ---- shadow: not yet, E_UNSUPPORTED ---------------------------------------------------------------------------------------- */

/* Replays every call through a second strategy on a simulated device in the background. */
STRATA_API strata_status_t strata_shadow_start(strata_t facade, const strata_open_options_t *strategy);
/* Ends the replay and writes the results to `report` (may be NULL if `capacity` is 0). */
STRATA_API strata_status_t strata_shadow_stop(strata_t facade, char *report, size_t capacity);

/* ---- lists ----------------------------------------------------------------------------------------------------------- */
/* Return the names of the presets and of the layers, index 0 upward, and NULL after the last. */
STRATA_API const char *strata_strategy_name(size_t index);
STRATA_API const char *strata_layer_name(size_t index);

#ifdef __cplusplus
}
#endif
#include "strata/allocator.h"
#include "strata/eviction.h"
#include "strata/graph.h"
#include "strata/pause.h"
#include "strata/share.h"
#include "strata/trim.h"
#endif

/* Strata: GPU memory allocators built out of layers. This header is the manual of the facade.
 *
 * One facade serves many places. A place is a kind of memory and a device. For each place and stream the strategy describes a stack
 * of layers; it comes from a YAML file, a preset or a string.
 *
 *     strata_t s;
 *     strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .preset = "strata"}, &s);
 *     strata_block_t b;
 *     if (strata_allocate(s, strata_gpu(0), stream, 1 << 20, &b) != STRATA_OK) puts(strata_last_error()->text);
 *     ... launch work on b.ptr ...
 *     strata_free(s, b.ref);
 *
 * Units       Sizes are bytes and times are nanoseconds, unless a name says otherwise.
 * Errors      Every function that can fail returns a strata_status_t; strata_last_error() has the reason in words. On failure
 *             outputs are left untouched, unless the function says otherwise. A NULL pointer where none is allowed, a struct_size
 *             of no version and an unknown flag are E_INVALID; the text names the argument, and nothing happens.
 * NULL        A comment says where NULL is allowed: "`name` (may be NULL)". It is allowed besides for every stream, as the legacy
 *             default stream, and for every `context`, which is passed on as it is.
 * Threads     Every function may be called from any thread at any time, also from callbacks, unless it says otherwise
 *             (strata_close(), strata_change_strategy()).
 * Ownership   A block belongs to the caller until one strata_free*(). Strings and structs passed in are copied before the return.
 * Streams     A stream is the driver's handle (cudaStream_t and CUstream are the same pointer). NULL is the legacy default stream
 *             of the place's device; (void *)2 is the calling thread's own default stream. Memory freed on its owner stream may be
 *             served to that stream at once. Nobody else gets it before the work submitted until then is done.
 * Versions    Structs that begin with struct_size are given sizeof(the struct) by whoever creates them, so older callers keep
 *             working with newer libraries. Options of a newer caller are E_UNSUPPORTED, unless all that this library does not know
 *             is 0. A result is filled up to its struct_size, at least sizeof(size_t); what a newer caller has beyond it becomes 0.
 *             The other structs (blocks, what a callback receives, the last error) keep their layout within an ABI version.
 * Fork, exit  After fork() all calls of the child return STRATA_E_FORKED. At process exit no device call is made once the driver
 *             says that it is shutting down.
 *
 * Functions marked "not yet" answer STRATA_E_UNSUPPORTED in this version.
 */
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

/* "0.1.0". */
STRATA_API const char *strata_version(void);
/* STRATA_ABI_VERSION of the loaded library, to be compared with that of the header. */
STRATA_API uint32_t strata_abi_version(void);

/* ---- names of things ------------------------------------------------------------------------------------------------ */

/* A facade. It is a value, not a pointer: use after strata_close() is STRATA_E_STALE. 0 names none. */
typedef uint64_t strata_t;
/* The name of a live allocation: {stack 12 bits, slot 24, generation 28}. It is a value: after the free it is STRATA_E_STALE. 0
 * names none. The text of that error names the stack of the allocation, and its tag and operator until the slot serves another
 * request that has them. */
typedef uint64_t strata_ref_t;
/* The driver's stream handle. */
typedef void *strata_stream_t;

/* A place: a kind of memory and a device. Make one with the functions below. */
typedef uint32_t strata_place_t;
typedef enum strata_place_kind {
    STRATA_PLACE_GPU = 0, /* memory of one device */
    STRATA_PLACE_MANAGED = 1, /* migrates between the host and one device on demand */
    STRATA_PLACE_PINNED = 2, /* page-locked host memory. Blocks have no owner stream; every stream that uses one borrows it */
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

/* A served request. A request of 0 bytes is served too, without a device call: {NULL, 0, a ref that must be freed}. */
typedef struct strata_block {
    void *ptr; /* a device address; in pinned and host places a host address */
    size_t size; /* bytes granted: at least as many as were asked for */
    strata_ref_t ref; /* its name in all later calls */
} strata_block_t;

/* ---- open and close ------------------------------------------------------------------------------------------------- */

enum {
    STRATA_OPEN_IGNORE_ENVIRONMENT = 1u << 0, /* do not read STRATA_STRATEGY and STRATA_SET */
    /* For tests: asks the driver for the stream's id in every call that names a stream of a place (one driver call each). If a
     * handle was destroyed without strata_stream_forget() and the driver gave it out again, that is STRATA_E_UNKNOWN_STREAM, and
     * nothing has happened. Not found: a handle after which 1,024 others were used and not forgotten; streams that the program
     * itself launches on or waits for; anything if the driver does not provide ids. */
    STRATA_OPEN_CHECK_STREAM_IDS = 1u << 1,
    /* The strategy may load shared objects with layers (`load: [./libmine.so]`, beside its file) and so run their code. Without
     * this flag that is E_STRATEGY. */
    STRATA_OPEN_ALLOW_CODE = 1u << 2,
    /* Every request asks the driver whether its stream is being captured, and is refused if no pool was begun for the capture
     * (strata/graph.h). Hits then take as long as such a question, 0.1 to 0.7 us on a GPU. Without the flag the question is asked
     * while a pool is begun, and when a cache grows. */
    STRATA_OPEN_CHECK_CAPTURES = 1u << 3
};

typedef struct strata_open_options {
    size_t struct_size;
    /* At most one of preset, file and text. If all are NULL, STRATA_STRATEGY of the environment decides, else the preset "strata".
     *
     * A preset is a name of strata_strategy_name(). It may also be "import:pytorch", "import:paddle" or "import:tensorflow": then
     * the strategy comes from that framework's variables in the environment (PYTORCH_CUDA_ALLOC_CONF, FLAGS_*, TF_*, XLA_*), as of
     * a version if one is appended ("import:pytorch@2.9"). They are read under STRATA_OPEN_IGNORE_ENVIRONMENT too, because the name
     * asks for them. A key that the framework does not have is E_STRATEGY with the variable's name, line and column. A setting
     * without an equivalent is a warning (strata_set_log()). The same names are allowed in STRATA_STRATEGY and in `extends:` of a
     * file. docs/import.md lists every key. */
    const char *preset;
    const char *file; /* path of a YAML strategy file */
    const char *text; /* the YAML itself */
    const char *const *set; /* "auto_growth.chunk_size=32MiB", ...: these override everything else */
    size_t set_count;
    const char *devices; /* overrides the strategy's: "gpu", "gpu:0", "sim", "sim:a100", "sim:my-gpu.yaml"; NULL: does not */
    uint32_t flags; /* STRATA_OPEN_* */
} strata_open_options_t;

/* Opens a facade. `options` (may be NULL): none is given. Builds the stack of the default stream for every place of the named
 * devices. `gpu` without a number opens device 0 now and the others at their first use.
 *
 * Errors: E_STRATEGY with file:line:column; E_NO_DEVICE with the driver's code (the library never falls back to the simulator);
 * E_HOST_MEMORY; E_LIMIT (256 facades or 4,095 stacks per process, 16 devices per facade); E_INVALID (an unknown flag). */
STRATA_API strata_status_t strata_open(const strata_open_options_t *options, strata_t *facade);

typedef enum strata_close_mode {
    STRATA_CLOSE_BUSY = 0, /* if anything is live or waits for the device: E_BUSY, and nothing happens */
    STRATA_CLOSE_WAIT = 1, /* waits for the device first; E_BUSY if anything is live after that */
    STRATA_CLOSE_FORCE = 2 /* waits, then gives everything back, live blocks included (their refs become stale) */
} strata_close_mode_t;

typedef struct strata_leak {
    strata_place_t place;
    strata_stream_t stream;
    strata_block_t block;
    size_t requested;
    /* What the program said about the request, "" and 0 where it said nothing. Valid during the call. */
    const char *tag; /* strata_allocate_options_t.tag */
    const char *operator_name; /* strata_annotate() */
    uint64_t step; /* number of strata_step() calls before it */
    const char *pool; /* its named pool; "": none */
} strata_leak_t;
/* Called once per block that is still live, with no lock held. */
typedef void (*strata_leak_fn)(const strata_leak_t *leak, void *context);

/* Closes a facade. `report` (may be NULL) is called for every live block, in all three modes. The caller must make sure that no
 * other thread is inside a call of this facade. Later calls with the handle are E_STALE.
 *
 * E_BUSY, and nothing happens: see the modes; also from inside any callback of this facade (observers, free-memory callbacks, the
 * leak report, rows of figures and of snapshots). Another facade may be closed there. E_IO, E_HOST_MEMORY: the facade is closed,
 * but a file that a layer writes (`trace`) could not be written; the text names it, and the file is as it was before. E_INVALID: no
 * such mode. */
STRATA_API strata_status_t strata_close(strata_t facade, strata_close_mode_t mode, strata_leak_fn report, void *context);

/* Replaces the strategy of a facade in which nothing is live. `options` (may be NULL) are as for strata_open(), flags
 * included. Waits for the device first. Kept are the handle, the devices and their streams, callbacks, names, limits, default
 * streams and counts of frees; they already hold while the new layers preallocate. Caches go back to the device, figures begin at
 * 0, and old refs become E_STALE. As with strata_close(), no other thread may be inside a call of this facade.
 *
 * E_BUSY, and nothing happens: something is live (the text has the number), or the call comes from a callback. E_UNSUPPORTED:
 * options->devices names other devices. Every error of strata_open() is possible, and E_NO_MEMORY if a limit refuses a
 * preallocation; then the old strategy stays, with empty caches. */
STRATA_API strata_status_t strata_change_strategy(strata_t facade, const strata_open_options_t *options);

/* ---- allocate and free ---------------------------------------------------------------------------------------------- */

/* Serves `size` bytes in `place` for `stream`, the owner, aligned to 256 bytes (64 in the host place). Work submitted to `stream`
 * after the return may use them. Pinned and host places have no owner stream: there `stream` is the first borrower (NULL: there is
 * none).
 *
 * Errors: E_NO_MEMORY, after everything that the strategy does against it (the text says why, and what helps); E_DEVICE;
 * E_DEVICE_LOST; E_STALE; E_INVALID (the strategy does not serve the place, a size above 2^48, no such pool); E_BUSY (the pool is
 * paused: strata/pause.h). */
STRATA_API strata_status_t strata_allocate(strata_t facade, strata_place_t place, strata_stream_t stream, size_t size,
                                           strata_block_t *block);

enum {
    STRATA_NO_RETRY = 1u << 0, /* fail at the first out-of-memory: nothing is reclaimed, nobody waits */
    STRATA_NO_GROW = 1u << 1, /* serve from what is cached, or fail; never ask the device for more */
    /* Zeroed on `stream`: work submitted to it after the return finds zeros. In pinned and host places zeroed at the return. If the
     * device refuses, the request fails. */
    STRATA_ZERO = 1u << 2,
    /* On E_NO_MEMORY the error and the observers get one line instead of the report, which looks at every block of the place. For
     * programs that try, and then ask for less. */
    STRATA_NO_REPORT = 1u << 3
};
typedef struct strata_allocate_options {
    size_t struct_size;
    size_t size;
    /* 0: the place's; else a power of two. More than the place's needs the layer `aligned` in the stack, or a layer whose blocks
     * are aligned so (auto_growth with such an `alignment`, bfc, system in host places). Otherwise E_UNSUPPORTED, and the text
     * names the layer to add. */
    size_t alignment;
    uint32_t flags; /* STRATA_NO_RETRY | ... */
    uint64_t pool; /* 0: the thread's current one (strata_pool_begin()); STRATA_POOL_ORDINARY; or one of strata_pool() */
    /* Who asks, for reports: NULL, or a name of which 127 bytes are kept. A facade distinguishes 65,536 names. NULL costs nothing;
     * a block with a tag is freed in the slower way. */
    const char *tag;
    /* For frees that carry counts (below). The caller knows that the work up to this count is over: memory that was freed up to it
     * may be served, even if no frontier has passed it. 0: all such memory may be served, to another stream after a wait on the
     * host. */
    uint64_t freed_before;
} strata_allocate_options_t;
/* strata_allocate() with everything that can be said about a request. */
STRATA_API strata_status_t strata_allocate_with(strata_t facade, strata_place_t place, strata_stream_t stream,
                                                const strata_allocate_options_t *options, strata_block_t *block);

/* Gives a block back. The memory is reused only after the work that was submitted before to the owner stream and to every borrower.
 * Cannot fail if the ref is valid. E_STALE: it is not, and nothing happens. */
STRATA_API strata_status_t strata_free(strata_t facade, strata_ref_t ref);
/* The same. The last use was on `stream`, which need not be the owner. */
STRATA_API strata_status_t strata_free_on(strata_t facade, strata_ref_t ref, strata_stream_t stream);
/* The same by address. `ptr` (may be NULL: nothing happens). A double free is E_UNKNOWN_POINTER until the address is served
 * again. The first such free in a facade creates a table of addresses; it takes 1/32 of the reserved bytes in address space (1/8
 * in the host place). If the process may not map that much, each block is searched in all stacks. */
STRATA_API strata_status_t strata_free_pointer(strata_t facade, void *ptr);

/* Shared ownership: adds an owner. Each owner frees once, by any strata_free*(). The last of them gives the block back; uses that
 * earlier ones announced by strata_free_on() are then respected too. E_STALE, E_LIMIT (2^32 owners), E_HOST_MEMORY. */
STRATA_API strata_status_t strata_retain(strata_t facade, strata_ref_t ref);
/* strata_free() by the name that goes with strata_retain(). */
STRATA_API strata_status_t strata_release_ref(strata_t facade, strata_ref_t ref);

/* Frees that carry a count. In layers with the option `timestamps` (bfc) every free takes the next count of its place's counter.
 * The program says up to which count the GPU has done its work; memory freed at a smaller count may then be served to any stream
 * without a wait. The program takes a count when it submits work, and sets the frontier when that work is over:
 *
 *     strata_next_count(s, place, &mine);         // all earlier frees have smaller counts, all later ones larger
 *     ... launch; later, when the work is over ...
 *     strata_set_safe_frontier(s, place, mine);   // what was freed at smaller counts merges and may serve anybody
 *
 * Requests that wait for memory look again when the frontier moves. A frontier below the last one is ignored. The program is
 * responsible for what it says. strata_set_safe_frontier() is E_UNSUPPORTED if no layer of the place has such frees. */
STRATA_API strata_status_t strata_next_count(strata_t facade, strata_place_t place, uint64_t *count);
STRATA_API strata_status_t strata_set_safe_frontier(strata_t facade, strata_place_t place, uint64_t count);

/* The live block that begins at `ptr` (may be NULL, where none begins). E_UNKNOWN_POINTER. */
STRATA_API strata_status_t strata_block_of(strata_t facade, const void *ptr, strata_block_t *block);
/* The live block that contains the address `interior` (may be NULL, which none contains). Finds the chunk, then walks its blocks.
 * E_UNKNOWN_POINTER. */
STRATA_API strata_status_t strata_base_pointer(strata_t facade, const void *interior, strata_block_t *block);

/* The layers that took part in an allocation, the outermost first, then those of the chunk it lies in: "retry > stream_safe >
 * auto_growth | system". Writes at most `capacity` bytes, the terminating zero included, to `text` (may be NULL if `capacity` is
 * 0). */
STRATA_API strata_status_t strata_allocation_route(strata_t facade, strata_ref_t ref, char *text, size_t capacity);

/* ---- streams -------------------------------------------------------------------------------------------------------- */

/* `stream`, which is not the owner, uses the block. The memory is reused only after all work submitted to `stream` before
 * strata_free(), under every strategy. If no layer of the stack handles borrows, the free waits on the host for that stream, and
 * the figure borrows_waited counts this call. E_LIMIT, E_HOST_MEMORY: the use could not be noted; wait for the stream before the
 * free, or free with strata_free_on(). */
STRATA_API strata_status_t strata_record_stream(strata_t facade, strata_ref_t ref, strata_stream_t stream);
/* Takes a borrow back: the caller knows that the work on `stream` is done, or ordered before the owner's next work. If no use by
 * `stream` is noted, nothing happens, and that is no error. */
STRATA_API strata_status_t strata_erase_stream(strata_t facade, strata_ref_t ref, strata_stream_t stream);
/* Must be called before a stream is destroyed, for each place in which it was used. What its stack holds serves others or goes back
 * once the work on the stream is done; live blocks stay valid until they are freed. After that the driver may recycle the handle.
 * E_INVALID: a default stream, which is never destroyed. */
STRATA_API strata_status_t strata_stream_forget(strata_t facade, strata_place_t place, strata_stream_t stream);
/* The owner stream of a block. E_UNSUPPORTED: pinned and host places, which have none; a block that came from the memory of a
 * forgotten stream; an owner that is another thread's own default stream (its name, 0x2, would mean the caller's). */
STRATA_API strata_status_t strata_stream_of(strata_t facade, strata_ref_t ref, strata_stream_t *stream);
/* Whether both are served by one stack. */
STRATA_API strata_status_t strata_same_stream(strata_t facade, strata_place_t place, strata_stream_t a, strata_stream_t b,
                                              bool *same);
/* From now on NULL means `stream` in this place, instead of the legacy default stream. Blocks served before stay the legacy
 * stream's. It can be set once: another stream is E_BUSY, because blocks served for NULL now belong to the first. The stream must
 * live as long as the facade and cannot be forgotten. E_UNSUPPORTED: pinned and host places, which have no owner stream. */
STRATA_API strata_status_t strata_set_default_stream(strata_t facade, strata_place_t place, strata_stream_t stream);

/* Names a stream, before its first request in a place. The stream is then served by the stack of the first pattern under the
 * strategy's `streams:` that matches the name (`streams: {"copy*": {stack: [...]}}`), or by the place's own stack if none does.
 * Reports show the name; names are kept as tags are.
 *
 *     strata_stream_name(s, strata_gpu(0), upload, "copy0");
 *
 * The name lasts until the stream is forgotten. E_BUSY: the stream was already served, outside pools, under another name or none.
 * E_INVALID: an empty name, or one of the driver's default streams. E_UNSUPPORTED: pinned and host places, which have one stack for
 * all streams. E_LIMIT: 4,096 named streams, or 65,536 names of all kinds, in a facade. */
STRATA_API strata_status_t strata_stream_name(strata_t facade, strata_place_t place, strata_stream_t stream, const char *name);

/* Streams for programs that use no runtime besides Strata, mostly with simulated devices. They are the driver's non-blocking
 * streams. Forget a stream before you destroy it. `priority` is CUDA's: 0 is the default, lower numbers come first; a number
 * outside the device's range is clamped. A simulated device keeps it, but does not schedule by it. */
STRATA_API strata_status_t strata_stream_create(strata_t facade, strata_place_t place, int priority, strata_stream_t *stream);
STRATA_API strata_status_t strata_stream_destroy(strata_t facade, strata_place_t place, strata_stream_t stream);
/* The host waits for all work submitted to `stream`. */
STRATA_API strata_status_t strata_stream_synchronize(strata_t facade, strata_place_t place, strata_stream_t stream);
/* Keeps `stream` busy for `duration_ns`, as if a kernel used the blocks `refs` (may be NULL if `count` is 0). Only on simulated
 * devices; elsewhere E_UNSUPPORTED. */
STRATA_API strata_status_t strata_stream_work(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t duration_ns,
                                              const strata_ref_t *refs, size_t count);

/* ---- memory kept in the caches -------------------------------------------------------------------------------------- */

/* Gives every idle chunk of a place back to the device: those of all its streams and pools, except pools with `keep: true`.
 * *released (may be NULL) receives the bytes. */
STRATA_API strata_status_t strata_release(strata_t facade, strata_place_t place, uint64_t *released);
/* Releases idle chunks, the largest of each stream first, until at most `keep` idle bytes are left in the place, or until no chunk
 * is wholly idle. Pools with `keep: true` are neither released nor counted. *released (may be NULL) receives the bytes. */
STRATA_API strata_status_t strata_trim(strata_t facade, strata_place_t place, uint64_t keep, uint64_t *released);

typedef struct strata_mem_info {
    size_t struct_size;
    uint64_t free; /* as the device says */
    uint64_t total;
    uint64_t cached; /* reserved by Strata and not allocated */
    uint64_t limit; /* strata_set_limit(); STRATA_UNLIMITED: none */
} strata_mem_info_t;
STRATA_API strata_status_t strata_mem_info(strata_t facade, strata_place_t place, strata_mem_info_t *info);
#define STRATA_UNLIMITED UINT64_MAX
/* Limits the bytes that may be reserved in a place, all its streams together, under every strategy. From the return on it is never
 * exceeded. A request that would exceed it runs out of memory as if the device were that small: the strategy reclaims what it can,
 * without asking the device, then the answer is E_NO_MEMORY. A hit costs nothing more.
 *
 * The limit may be changed at any time. Set below what is reserved, it is no error: idle chunks go back as by strata_trim(), live
 * blocks stay, and nothing grows until enough is freed. Until then a chunk goes back as soon as it is wholly idle, and nobody is
 * served from it. Free parts of chunks that hold live blocks may still be served, since that reserves nothing. When the limit is
 * raised, requests that wait for memory try at once. A `limit` layer of the strategy holds in addition. For a fraction of the
 * device, as other frameworks have it, multiply `total` of strata_mem_info(). */
STRATA_API strata_status_t strata_set_limit(strata_t facade, strata_place_t place, uint64_t limit);

/* ---- figures -------------------------------------------------------------------------------------------------------- */

/* X(field, unit, counter or gauge, meaning): a counter only grows. The struct, the text and the JSON come from this table. The
 * fields that every call touches come first: with struct_size they are one cache line. */
#define STRATA_STATISTICS_MAP(X)                                                                                                   \
    X(requested_bytes, "bytes", gauge, "what the callers asked for, of live allocations")                                          \
    X(allocated_bytes, "bytes", gauge, "live blocks, rounding included")                                                           \
    X(peak_requested_bytes, "bytes", gauge, "highest requested_bytes at one moment, over all streams of the place")                \
    X(peak_allocated_bytes, "bytes", gauge, "highest allocated_bytes at one moment, over all streams of the place")                \
    X(allocations, "count", counter, "requests served")                                                                            \
    X(frees, "count", counter, "allocations given back")                                                                           \
    X(cache_hits, "count", counter, "requests served without asking the layer below the cache")                                    \
    X(reserved_bytes, "bytes", gauge, "live chunks got from the device")                                                           \
    X(deferred_bytes, "bytes", gauge, "freed by the caller, waiting for other streams")                                            \
    X(peak_reserved_bytes, "bytes", gauge, "highest reserved_bytes of the place, all streams")                                     \
    X(live_allocations, "count", gauge, "allocations not freed yet")                                                               \
    X(growths, "count", counter, "chunks got from the layer below a cache")                                                        \
    X(chunks, "count", gauge, "chunks held now")                                                                                   \
    X(borrows, "count", counter, "record_stream calls that were noted")                                                            \
    X(deferred_frees, "count", counter, "frees that had to wait for another stream")                                               \
    X(ladders, "count", counter, "requests that met out-of-memory and ran the reclaim ladder")                                     \
    X(out_of_memory, "count", counter, "requests that failed for memory at last")                                                  \
    X(host_waits, "count", counter, "frees that waited on the host because no layer handles borrows")                              \
    X(quarantined_bytes, "bytes", gauge, "blocks given up because the device failed while they were freed")                        \
    X(borrows_waited, "count", counter, "record_stream calls that no layer handled: the free of the block waits on the host")      \
    X(paused_bytes, "bytes", gauge, "of live chunks, not in reserved_bytes: the device has them until strata_resume()")            \
    X(sent_blocks, "count", gauge, "blocks that other processes were sent and use, or may still use")                              \
    X(sent_bytes, "bytes", gauge, "of those blocks")                                                                               \
    X(limbo_bytes, "bytes", gauge, "freed by the caller, kept because other processes used the block when that was last looked at")

typedef struct strata_statistics {
    size_t struct_size;
#define STRATA_STATISTICS_FIELD(name, unit, kind, meaning) uint64_t name;
    STRATA_STATISTICS_MAP(STRATA_STATISTICS_FIELD)
#undef STRATA_STATISTICS_FIELD
} strata_statistics_t;
/* Figures of a place. strata_statistics() has those of one stream's stack outside pools; zeros if there is none. If every thread
 * has its own stack, it is the calling thread's. ladders, out_of_memory and paused_bytes are not counted by stream, and a
 * stream's reserved_bytes are with what is paused of them. strata_statistics_all() has the figures of all stacks, those of
 * forgotten streams and of pools included. Exact when no other thread is inside a call; but of several
 * streams the peaks of live bytes may be 1 part in 128 too low, and of more than 64 they are upper bounds. */
STRATA_API strata_status_t strata_statistics(strata_t facade, strata_place_t place, strata_stream_t stream,
                                             strata_statistics_t *statistics);
STRATA_API strata_status_t strata_statistics_all(strata_t facade, strata_place_t place, strata_statistics_t *statistics);
/* The figures of a named pool in a place, over all its streams. reserved_bytes is what its stacks got from the device; the peaks
 * are the sums of their peaks. STRATA_POOL_ORDINARY: all stacks outside pools. 0: the calling thread's current pool. */
STRATA_API strata_status_t strata_statistics_pool(strata_t facade, strata_place_t place, uint64_t pool,
                                                  strata_statistics_t *statistics);
/* Sets every peak of a place to the present value, to measure a part of a program: peaks of the place, of its streams and pools,
 * and of layers (`peak_bytes`, and the oversubscription that `system` counts). Nothing else changes. */
STRATA_API strata_status_t strata_reset_peaks(strata_t facade, strata_place_t place);
/* A figure that a layer counts itself; docs/layers.md and `strata layers` explain each. Texts are valid during the call. */
typedef struct strata_layer_figure {
    const char *layer; /* its name in the strategy */
    const char *type; /* what layer it is */
    uint32_t number; /* its position in the place's stack; the outermost is 1; branches of a router are numbered in order */
    bool shared; /* one instance for all streams of the place */
    strata_stream_t stream; /* the stream of its stack; NULL if it is shared */
    uint64_t thread; /* the number of the thread whose own default stream that is, or the only one that it serves; else 0 */
    bool forgotten; /* strata_stream_forget() was called */
    const char *name, *unit, *meaning;
    uint64_t value;
    uint64_t pool; /* the pool of its stack; 0: none */
} strata_layer_figure_t;
typedef void (*strata_layer_figure_fn)(const strata_layer_figure_t *figure, void *context);
/* Calls `figure` for the figures of every layer of a place, stream by stream, a shared layer once. The figures of one layer are of
 * one moment. A cache has what it holds idle (idle_bytes). Layers of streams that are gone are not included. `figure` is called
 * with no lock held. */
STRATA_API strata_status_t strata_layer_figures(strata_t facade, strata_place_t place, strata_layer_figure_fn figure,
                                                void *context);
/* The figures of every open place as JSON: {"places": [{"place": "gpu:0", "total": {"requested_bytes": 0, ...}, "streams":
 * [{"stream": "0x0", "thread": 0, "forgotten": false, "requested_bytes": 0, ..., "layers": [{"layer": "auto_growth", "type":
 * "auto_growth", "number": 3, "figures": {"idle_bytes": 0}}, ...]}, ...], "layers": [...], "pools": [{"pool": "weights",
 * "requested_bytes": 0, ..., "layers": [...]}, ...]}, ...]}. `thread` is the number of the thread whose own default stream it is. A
 * named stream has "name"; its stack in a pool has "pool". "layers" of a place are those that its streams share, of a pool those
 * that the pool's streams share. Writes at most `capacity` bytes, the terminating zero included, to `text` (may be NULL if
 * `capacity` is 0); *needed (may be NULL) receives the whole length. */
STRATA_API strata_status_t strata_statistics_json(strata_t facade, char *text, size_t capacity, size_t *needed);
/* The same totals in the text format that Prometheus reads: strata_requested_bytes{place="gpu:0"} 0, ... Figures that only grow
 * are counters and end in _total. Each pool that was used has strata_pool_requested_bytes{place="gpu:0",pool="weights"} 0, ...
 * Figures of layers are sums over the streams: strata_layer_limit_used_bytes{place="gpu:0",layer="limit",number="4"} 0, ... (a
 * sum of peaks is not a peak). Those of pools and of streams by name also have the label pool or streams. `text` (may be NULL if
 * `capacity` is 0) and *needed (may be NULL) are as above. */
STRATA_API strata_status_t strata_statistics_prometheus(strata_t facade, char *text, size_t capacity, size_t *needed);
/* The stacks of the facade as text, as `strata explain` prints them. Writes at most `capacity` bytes, the terminating zero
 * included, to `text` (may be NULL if `capacity` is 0); *needed (may be NULL) receives the whole length. */
STRATA_API strata_status_t strata_explain(strata_t facade, char *text, size_t capacity, size_t *needed);
/* A block of a place. */
typedef struct strata_snapshot_row {
    strata_block_t block; /* its ref is 0 unless it is live */
    uint64_t chunk; /* the address of its chunk; a block that is not in a chunk is its own */
    size_t requested; /* 0 unless it is live */
    strata_stream_t stream; /* the stream whose stack holds it; NULL in pinned and host places */
    uint32_t state; /* 0 free, 1 live, 2 freed and waiting for other streams */
    uint64_t pool; /* as from strata_pool(); 0: none */
} strata_snapshot_row_t;
typedef void (*strata_snapshot_fn)(const strata_snapshot_row_t *row, void *context);
/* Calls `row` for every block of a place in address order, all as of one moment. Makes no device call. Requests in the place wait
 * while the rows are copied (about 30 ns per block); `row` is called with no lock held. E_HOST_MEMORY. */
STRATA_API strata_status_t strata_snapshot(strata_t facade, strata_place_t place, strata_snapshot_fn row, void *context);
/* The chunks of a place and their blocks as text, for people: which blocks keep a chunk from going back?
 *     chunk 0x7f0000000000 20MiB, stream 0x0: used 6MiB (2), free 14MiB (2), largest free 12MiB
 *       0x7f0000000000 12MiB free
 *       0x7f0000c00000 4MiB live, asked 4194000
 *       ...
 * In address order and of one moment, as strata_snapshot(). Writes at most `capacity` bytes, the terminating zero included, to
 * `text` (may be NULL if `capacity` is 0); *needed (may be NULL) receives the whole length. E_HOST_MEMORY: `text` may have been
 * written. */
STRATA_API strata_status_t strata_chunks_text(strata_t facade, strata_place_t place, char *text, size_t capacity, size_t *needed);
/* The cache that serves a stream of a place, in the thread's current pool, below the decorators. In a stack without a cache it is
 * the source. */
typedef struct strata_cache {
    size_t struct_size;
    uint64_t id; /* of the instance: equal for two streams exactly if one instance serves both; never used again later */
    uint64_t used_bytes; /* what it has handed out, blocks that wait for other streams included */
    uint64_t idle_bytes; /* what it keeps */
    char name[64]; /* in the strategy: "auto_growth", or the name given there */
    char layer[64]; /* the layer: "auto_growth" */
} strata_cache_t;
/* `index` is 0; with routers there are several, from 0 upward in the order of their stacks. E_INVALID: there are fewer. Builds the
 * stream's stack if there is none. Looks at every block of the cache. */
STRATA_API strata_status_t strata_cache_below(strata_t facade, strata_place_t place, strata_stream_t stream, size_t index,
                                              strata_cache_t *cache);
/* Checks every data structure of the facade, taking the lock of each stack in turn. E_CORRUPT: the text says what is wrong. */
STRATA_API strata_status_t strata_validate(strata_t facade);

/* ---- out of memory -------------------------------------------------------------------------------------------------- */

/* Why a request failed for memory, as far as the figures of the place show it: X(NAME, number, name, meaning). Numbers are part of
 * the ABI: never reuse one. The report begins with the name and a sentence; then come advice and figures. */
#define STRATA_CAUSE_MAP(X)                                                                                                        \
    X(UNKNOWN, 0, "unknown", "not examined: the report is turned off (STRATA_NO_REPORT, `report: short`)")                         \
    X(TOO_LARGE, 1, "too_large", "the request is larger than what a program can get from the device")                              \
    X(BOUND, 2, "bound", "an option of a layer limits it: limit.bytes, bfc.memory_limit, system.cap, ...")                         \
    X(PLACE_LIMIT, 3, "place_limit", "strata_set_limit() limits it")                                                               \
    X(NO_GROWTH, 4, "no_growth", "the request forbids growth (STRATA_NO_GROW), and no free block serves it")                       \
    X(NO_RETRY, 5, "no_retry", "the request forbids the steps that could have made room (STRATA_NO_RETRY)")                        \
    X(WAITING, 6, "waiting", "enough is freed and still in use on other streams")                                                  \
    X(FORGOTTEN, 7, "forgotten", "what a forgotten stream left is not free before its work is over")                               \
    X(CAPTURED, 8, "captured", "what lies idle is kept for captured graphs")                                                       \
    X(COUNTED, 9, "counted", "what was freed carries counts that no frontier has passed")                                          \
    X(KEPT, 10, "kept", "pools that keep their chunks hold it")                                                                    \
    X(IDLE_IN_POOL, 11, "idle_in_pool", "it lies idle in other pools' caches")                                                     \
    X(IDLE_IN_THREAD, 12, "idle_in_thread", "it lies idle in other threads' caches")                                               \
    X(IDLE_IN_STREAM, 13, "idle_in_stream", "it lies idle in other streams' caches")                                               \
    X(SIZES, 14, "sizes", "it lies idle where a cache serves requests of other sizes")                                             \
    X(UNSPLIT, 15, "unsplit", "it lies idle in blocks that may not be cut for the request")                                        \
    X(FRAGMENTATION, 16, "fragmentation", "enough lies idle in the caches that serve the request, in pieces too small")            \
    X(CHUNK, 17, "chunk", "the device has what was asked, but not the chunk that the cache asks for")                              \
    X(OTHERS, 18, "others", "other programs, or others in this one, hold the device's memory")                                     \
    X(LEAK, 19, "leak", "one tag or operator holds most of it, asked for step after step")                                         \
    X(TIMED_OUT, 20, "timed_out", "live blocks hold it, and no other thread freed enough in time")                                 \
    X(FULL, 21, "full", "live blocks hold it")                                                                                     \
    X(HOST, 22, "host", "the host has no more to give")                                                                            \
    X(LAYER, 23, "layer", "a layer refused for a reason of its own, which the report tells")                                       \
    X(DEVICE, 24, "device", "the device refused although it says that it has enough")                                              \
    X(LIMBO, 25, "limbo", "enough is freed and still in use by other processes")
typedef enum strata_cause {
#define STRATA_CAUSE_ENUM(name, number, text, meaning) STRATA_CAUSE_##name = number,
    STRATA_CAUSE_MAP(STRATA_CAUSE_ENUM)
#undef STRATA_CAUSE_ENUM
} strata_cause_t;
/* "fragmentation"; "unknown" of a number that is none. Any thread. */
STRATA_API const char *strata_cause_name(strata_cause_t cause);

typedef struct strata_out_of_memory {
    size_t struct_size;
    strata_place_t place;
    strata_stream_t stream;
    size_t size; /* bytes asked for */
    uint64_t device_free; /* as the device says */
    uint64_t device_total;
    const char *text; /* the whole report; valid during the call */
    strata_cause_t cause;
    const char *tag; /* the tag of the request, or "" if it has none; valid during the call */
    const char *operator_name; /* the thread's last strata_annotate(), or "" if there is none; valid during the call */
    uint64_t step; /* calls of strata_step() so far */
} strata_out_of_memory_t;
/* Called for every request that fails for memory at last. No lock is held, and it may call any function. Requests that it makes
 * itself and that fail for memory are not reported to anybody. */
typedef void (*strata_out_of_memory_fn)(const strata_out_of_memory_t *event, void *context);
/* Asks the program to free memory of its own when a request is out of memory. Returns the bytes that it freed by strata_free()
 * within the call. It may call any function; requests that it makes itself call no callback. */
typedef uint64_t (*strata_free_memory_fn)(strata_place_t place, size_t size, void *context);

/* Callbacks run in the order in which they were added. *id (may be NULL) receives a number for strata_remove_callback(). E_LIMIT:
 * 32 callbacks of both kinds in a facade. */
STRATA_API strata_status_t strata_add_out_of_memory_observer(strata_t facade, strata_out_of_memory_fn observer, void *context,
                                                             uint32_t *id);
STRATA_API strata_status_t strata_add_free_memory_callback(strata_t facade, strata_free_memory_fn callback, void *context,
                                                           uint32_t *id);
/* Requests that begin after the return no longer call the callback. */
STRATA_API strata_status_t strata_remove_callback(strata_t facade, uint32_t id);

/* ---- named pools ---------------------------------------------------------------------------------------------------- */

/* A strategy may name pools (`pools: {weights: {stack: [...]}}`): memory that is kept apart from all other memory, under layers of
 * its own. A pool has its own stacks in every place, one per stream, and its caches serve nobody else. When memory is reclaimed,
 * and for strata_release() and strata_stream_forget(), they are stacks of the place like all others. The exception is a pool with
 * `keep: true`: its idle chunks go back only for its own requests, by strata_release_pool(), and at the end. Functions that take a
 * ref need no pool: free, borrow and share a block from anywhere.
 *
 *     uint64_t weights;
 *     strata_pool(s, "weights", &weights);
 *     strata_pool_begin(s, strata_gpu(0), weights);    // this thread's requests in gpu:0, whatever code makes them
 *     load_model();
 *     strata_pool_end(s, strata_gpu(0));
 */

/* For requests outside pools, whatever the thread has begun. */
#define STRATA_POOL_ORDINARY 1ull

/* The pool that the strategy calls `name`. Valid for this facade as long as it is open. E_INVALID: there is none; the text has the
 * nearest name. E_LIMIT: 65,536 names in the facade. E_HOST_MEMORY. */
STRATA_API strata_status_t strata_pool(strata_t facade, const char *name, uint64_t *pool);
/* Until the matching end, requests of the calling thread in this place that name no pool themselves go to `pool`
 * (STRATA_POOL_ORDINARY: to none). Pools nest: the innermost counts, and an end returns to the one before. Other threads and places
 * are not affected. A thread that has begun none pays nothing. E_INVALID: no such pool. E_LIMIT: 16 pools begun by one thread. */
STRATA_API strata_status_t strata_pool_begin(strata_t facade, strata_place_t place, uint64_t pool);
/* E_INVALID: the calling thread has begun none in this place. */
STRATA_API strata_status_t strata_pool_end(strata_t facade, strata_place_t place);
/* Where requests of the calling thread in a place go now: STRATA_POOL_ORDINARY or a pool. A helper thread can begin the same. */
STRATA_API strata_status_t strata_pool_current(strata_t facade, strata_place_t place, uint64_t *pool);
/* Gives every idle chunk of a pool in a place back to the device, even with `keep: true`. STRATA_POOL_ORDINARY: chunks outside
 * pools. 0: the thread's current pool. *released (may be NULL) receives the bytes. E_INVALID: no such pool. */
STRATA_API strata_status_t strata_release_pool(strata_t facade, strata_place_t place, uint64_t pool, uint64_t *released);
/* The pool of a block; STRATA_POOL_ORDINARY: none. */
STRATA_API strata_status_t strata_pool_of(strata_t facade, strata_ref_t ref, uint64_t *pool);

/* ---- notes of the program ------------------------------------------------------------------------------------------------ */

/* A step of the program ends (an iteration of training, a batch). Every layer is told. Allocations with a tag or an operator are
 * noted with the number of steps before them. */
STRATA_API strata_status_t strata_step(strata_t facade);
/* Until the next call, requests of the calling thread belong to the operator `operator_name` (may be NULL, which ends that). The
 * leak report and the out-of-memory report show it. Such requests are served in the slower way; others cost nothing more. Names
 * are kept as tags are. E_LIMIT: the thread is inside operators of four facades. E_HOST_MEMORY. */
STRATA_API strata_status_t strata_annotate(strata_t facade, const char *operator_name);

/* ---- shadow: not yet, E_UNSUPPORTED ---------------------------------------------------------------------------------------- */

/* Replays every call through a second strategy on a simulated device in the background. */
STRATA_API strata_status_t strata_shadow_start(strata_t facade, const strata_open_options_t *strategy);
/* Ends it and writes the results to `report` (may be NULL if `capacity` is 0). */
STRATA_API strata_status_t strata_shadow_stop(strata_t facade, char *report, size_t capacity);

/* ---- lists ----------------------------------------------------------------------------------------------------------- */
/* Names of the presets and of the layers, index 0 upward; NULL after the last. */
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
#endif

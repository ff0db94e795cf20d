/* Strata: GPU memory allocators built out of layers. The facade.
 *
 * One facade serves many places (a kind of memory and a device) by a strategy: per place and stream a stack of layers that a
 * YAML file, a preset or a string describes.
 *
 *     strata_t s;
 *     strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .preset = "strata"}, &s);
 *     strata_block_t b;
 *     if (strata_allocate(s, strata_gpu(0), stream, 1 << 20, &b) != STRATA_OK) puts(strata_last_error()->text);
 *     ... launch work on b.ptr ...
 *     strata_free(s, b.ref);
 *
 * Units       Sizes are bytes, times are nanoseconds, unless a name says otherwise.
 * Errors      Every function that can fail returns a strata_status_t; strata_last_error() has the reason in words. On failure
 *             outputs are left untouched unless the function says otherwise. A pointer that is NULL where the function does not
 *             allow it, a struct_size of no version, and an unknown flag are E_INVALID by name, and nothing happens.
 * Threads     Every function may be called from any thread at any time, callbacks included, unless it says otherwise
 *             (strata_close(), strata_change_strategy()).
 * Ownership   A block belongs to the caller until one strata_free*(); strings and structs passed in are copied before return.
 * Streams     A stream is the driver's handle (cudaStream_t and CUstream are the same pointer). NULL is the legacy default
 *             stream of the place's device, (void *)2 the calling thread's own default stream. Memory freed on its owner
 *             stream may be served to that stream at once, and to nobody else before the work submitted until then is done.
 * Versions    Structs that begin with struct_size are given sizeof(the struct) by whoever makes them: older callers keep working
 *             with newer libraries. The others (blocks, what a callback is told, the last error) keep their layout within an ABI.
 * Fork, exit  After fork() the child's calls return STRATA_E_FORKED. At process exit no device call is made once the driver
 *             says that it is shutting down.
 *
 * What is declared here and answers STRATA_E_UNSUPPORTED in this version says so in its comment ("not yet").
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
/* STRATA_ABI_VERSION of the library that is loaded; a program compares it with the header's. */
STRATA_API uint32_t strata_abi_version(void);

/* ---- names of things ------------------------------------------------------------------------------------------------ */

/* A facade. A value, never a pointer: use after strata_close() is STRATA_E_STALE. 0 names none. */
typedef uint64_t strata_t;
/* A live allocation's name: {stack 12 bits, slot 24, generation 28}. A value: a freed one is STRATA_E_STALE. 0 names none.
 * The error's text tells its stack; its tag and operator until the slot is served again to a request that has any. */
typedef uint64_t strata_ref_t;
/* The driver's stream handle. */
typedef void *strata_stream_t;

/* A place: a kind of memory and a device. Make one with the functions below. */
typedef uint32_t strata_place_t;
typedef enum strata_place_kind {
    STRATA_PLACE_GPU = 0, /* memory of one device */
    STRATA_PLACE_MANAGED = 1, /* moves between host and one device on demand */
    STRATA_PLACE_PINNED = 2, /* page-locked host memory; its blocks have no owner stream, every stream is a borrower */
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

/* A served request. A request of 0 bytes is served too: {NULL, 0, a ref that must be freed}, without a device call. */
typedef struct strata_block {
    void *ptr; /* device address, or host address for pinned and host places */
    size_t size; /* bytes granted: at least what was asked */
    strata_ref_t ref; /* its name, for every later call */
} strata_block_t;

/* ---- open and close ------------------------------------------------------------------------------------------------- */

enum {
    STRATA_OPEN_IGNORE_ENVIRONMENT = 1u << 0, /* do not read STRATA_STRATEGY and STRATA_SET */
    STRATA_OPEN_CHECK_STREAM_IDS = 1u << 1, /* ask the driver for the stream's id at every allocation, borrow, strata_free_on() and
                                                 what else names a stream of a place: a recycled handle that the place was told of
                                                 and never forgot is STRATA_E_UNKNOWN_STREAM, and nothing has happened. For tests: a
                                                 driver call each. Not found: a handle behind 1,024 later ones that were not
                                                 forgotten either; what the program itself launches and waits for; anything where
                                                 the driver does not tell ids */
    STRATA_OPEN_ALLOW_CODE = 1u << 2 /* the strategy may load shared objects with layers (`load: [./libmine.so]`,
                                                 beside its file), and so run their code; without it that is E_STRATEGY */
};

typedef struct strata_open_options {
    size_t struct_size;
    /* At most one of the three; none: STRATA_STRATEGY of the environment, else the preset "strata". */
    const char *preset; /* a name of strata_strategy_name(); or "import:pytorch", "import:paddle", "import:tensorflow": what
                                those frameworks' variables in the environment say (PYTORCH_CUDA_ALLOC_CONF, FLAGS_*, TF_*,
                                XLA_*), as of a version where one stands behind it ("import:pytorch@2.9"). The same names may
                                stand in STRATA_STRATEGY and in a file's `extends:`. A key that the framework has not is
                                E_STRATEGY with the variable's name, line and column; what has no equivalent is told as a
                                warning, a line each (strata_set_log()). These variables are read under STRATA_OPEN_IGNORE_ENVIRONMENT too: the name
                                asks for them. docs/import.md lists every key */
    const char *file; /* path of a YAML strategy file */
    const char *text; /* the YAML itself */
    const char *const *set; /* "auto_growth.chunk_size=32MiB", ...: over everything else */
    size_t set_count;
    const char *devices; /* over the strategy's `devices:`: "gpu", "gpu:0", "sim", "sim:a100" ...; NULL: as the strategy says */
    uint32_t flags; /* STRATA_OPEN_* */
} strata_open_options_t;

/* Opens a facade. Builds the default stream's stack of every place of the named devices; `gpu` without a number opens device
 * 0 now and others at their first use. Errors: E_STRATEGY with file:line:column, E_NO_DEVICE with the driver's code (the
 * library never falls back to the simulator), E_HOST_MEMORY, E_LIMIT (256 facades or 4,095 stacks in the process, 16 devices in a
 * facade), E_INVALID (an unknown flag). */
STRATA_API strata_status_t strata_open(const strata_open_options_t *options, strata_t *facade);

typedef enum strata_close_mode {
    STRATA_CLOSE_BUSY = 0, /* E_BUSY, and nothing happens, if anything is live or waits for the device */
    STRATA_CLOSE_WAIT = 1, /* waits for the device first; E_BUSY if anything is live then */
    STRATA_CLOSE_FORCE = 2 /* waits, then gives back everything, live blocks included (their refs become stale) */
} strata_close_mode_t;

typedef struct strata_leak {
    strata_place_t place;
    strata_stream_t stream;
    strata_block_t block;
    size_t requested;
    /* What was said when it was asked for: "" and 0 where nothing was. Valid during the call. */
    const char *tag; /* strata_allocate_options_t.tag */
    const char *operator_name; /* strata_annotate() */
    uint64_t step; /* strata_step() calls before it */
    const char *pool; /* the named pool that it is of; "": none */
} strata_leak_t;
/* Called once per block that is still live, no lock held. */
typedef void (*strata_leak_fn)(const strata_leak_t *leak, void *context);

/* Closes a facade. `report` (may be NULL) hears of every live block, in all three modes. The caller makes sure that no other
 * thread is inside a call of this facade; later calls with the handle are E_STALE. E_IO, E_HOST_MEMORY: it is closed all the
 * same, but a file that a layer writes (`trace`) could not be written; the text names it, and what stood there stands there
 * still. E_BUSY, and nothing happens, from inside any callback of this facade: observers, free-memory callbacks, the leak report,
 * rows of figures and of snapshots. Another facade may be closed there. E_INVALID: no such mode. */
STRATA_API strata_status_t strata_close(strata_t facade, strata_close_mode_t mode, strata_leak_fn report, void *context);

/* Another strategy from now on, when nothing is live: `options` as for strata_open(), flags included. The handle, the devices and
 * their streams, callbacks, names, limits, default streams and counts of frees stay, and hold for what the new layers get ahead;
 * caches go back to the device, figures begin at 0, refs of before are E_STALE. Waits for the device first. E_BUSY with the count,
 * and nothing happens, if anything is live; E_UNSUPPORTED: options->devices names others; whatever else strata_open() may answer,
 * E_NO_MEMORY too where a limit refuses what is got ahead: then the old strategy stays, with empty caches. As for strata_close()
 * the caller makes sure that no other thread is inside a call of this facade, and inside a callback it is E_BUSY. */
STRATA_API strata_status_t strata_change_strategy(strata_t facade, const strata_open_options_t *options);

/* ---- allocate and free ---------------------------------------------------------------------------------------------- */

/* Serves `size` bytes in `place` for `stream` (the owner), aligned to 256 bytes (64 in the host place). Work submitted to
 * `stream` after the return may use them. In pinned and host places there is no owner: a stream given is the first borrower (NULL: none is).
 * Errors: E_NO_MEMORY after the strategy's whole ladder (the text says who holds what), E_DEVICE, E_DEVICE_LOST, E_STALE,
 * E_INVALID (place not served, size above 2^48, no such pool). */
STRATA_API strata_status_t strata_allocate(strata_t facade, strata_place_t place, strata_stream_t stream, size_t size,
                                           strata_block_t *block);

enum {
    STRATA_NO_RETRY = 1u << 0, /* fail at the first out-of-memory: no ladder, no waiting */
    STRATA_NO_GROW = 1u << 1, /* serve from what is cached, or fail; never asks the device for more */
    STRATA_ZERO = 1u << 2, /* zeroed on `stream`: work submitted to it after the return finds zeros. In pinned
                                    and host places zeroed at the return. A device that refuses fails the request */
    STRATA_NO_REPORT = 1u << 3 /* where it fails for memory the error and the observers get one line instead of the report, whose
                                  making looks at every block of the place: for programs that try, and ask for less */
};
typedef struct strata_allocate_options {
    size_t struct_size;
    size_t size;
    size_t alignment; /* 0: the place's; else a power of two. Larger than the place's where the stack has the layer `aligned`, or
                         layers whose blocks lie so (auto_growth with such an `alignment`, bfc, system in host places);
                         elsewhere E_UNSUPPORTED, with the layer to put in */
    uint32_t flags; /* STRATA_NO_RETRY | ... */
    uint64_t pool; /* 0: where the thread's requests go (strata_pool_begin()); STRATA_POOL_ORDINARY; one of strata_pool() */
    const char *tag; /* who asks, for reports: NULL, or a name of which 127 bytes are kept; 65,536 names in a facade are told
                         apart. Costs nothing where it is NULL; a block with one is freed the slower way */
    uint64_t freed_before; /* where frees carry counts (below): of memory whose count no frontier has passed, only what was freed
                              up to this count may be served, as the caller knows that work to be over; 0: any, which another
                              stream gets after a wait of the host */
} strata_allocate_options_t;
/* strata_allocate() with everything that can be said of a request. */
STRATA_API strata_status_t strata_allocate_with(strata_t facade, strata_place_t place, strata_stream_t stream,
                                                const strata_allocate_options_t *options, strata_block_t *block);

/* Gives a block back. Cannot fail once the ref is valid (a ref that is not is E_STALE, and nothing happens): work submitted
 * before to the owner stream and to every borrower is respected. */
STRATA_API strata_status_t strata_free(strata_t facade, strata_ref_t ref);
/* The same; the last use was on `stream`, which need not be the owner. */
STRATA_API strata_status_t strata_free_on(strata_t facade, strata_ref_t ref, strata_stream_t stream);
/* The same by address. A double free is E_UNKNOWN_POINTER until the address is served again. NULL is ignored. The first in a facade
 * makes a table of addresses, 1/32 of what is reserved in address space (1/8 in the host place); where the process may not map so
 * much every block is looked for in all stacks. */
STRATA_API strata_status_t strata_free_pointer(strata_t facade, void *ptr);

/* Shared ownership: one owner more. Each owner frees once, by any strata_free*(); the last of them gives the block back, and the
 * uses that earlier ones told by strata_free_on() are respected then. E_STALE, E_LIMIT (2^32 owners), E_HOST_MEMORY. */
STRATA_API strata_status_t strata_retain(strata_t facade, strata_ref_t ref);
/* strata_free(), under the name that goes with strata_retain(). */
STRATA_API strata_status_t strata_release_ref(strata_t facade, strata_ref_t ref);

/* Frees that carry a count: memory is free now, and anybody's once the program says that the GPU has come so far. In layers with the
 * option `timestamps` (bfc) every free takes the next count of its place's counter. A program takes a count as it submits work, and
 * says when that work is over:
 *
 *     strata_next_count(s, place, &mine);         all frees before have smaller counts, all later ones larger
 *     ... launch; later, when it is over ...
 *     strata_set_safe_frontier(s, place, mine);   what was freed at smaller counts merges and is anybody's; requests that wait
 *                                                 for memory look again. A frontier below the last one is ignored
 *
 * The program answers for what it says. E_UNSUPPORTED from the latter: no layer of the place has such frees. */
STRATA_API strata_status_t strata_next_count(strata_t facade, strata_place_t place, uint64_t *count);
STRATA_API strata_status_t strata_set_safe_frontier(strata_t facade, strata_place_t place, uint64_t count);

/* The live block that begins at `ptr`. E_UNKNOWN_POINTER. */
STRATA_API strata_status_t strata_block_of(strata_t facade, const void *ptr, strata_block_t *block);
/* The live block that holds an address. Finds the chunk, then walks its blocks. E_UNKNOWN_POINTER. */
STRATA_API strata_status_t strata_base_pointer(strata_t facade, const void *interior, strata_block_t *block);

/* The layers that took part in an allocation, outermost first, then those of the chunk it lies in: "retry > stream_safe >
 * auto_growth | system". Writes at most `capacity` bytes with the closing zero. */
STRATA_API strata_status_t strata_allocation_route(strata_t facade, strata_ref_t ref, char *text, size_t capacity);

/* ---- streams -------------------------------------------------------------------------------------------------------- */

/* `stream` (not the owner) uses the block. All work submitted to `stream` before strata_free() is respected, under every
 * strategy: where no layer knows borrows the free waits on the host for that stream, and the figure borrows_waited tells it. E_LIMIT,
 * E_HOST_MEMORY: it could not be noted; wait for the stream before the free, or free with strata_free_on(). */
STRATA_API strata_status_t strata_record_stream(strata_t facade, strata_ref_t ref, strata_stream_t stream);
/* Takes a borrow back: the caller knows that the work on `stream` is done, or ordered before the owner's next work. Where
 * `stream` has no use noted nothing happens, and that is no error. */
STRATA_API strata_status_t strata_erase_stream(strata_t facade, strata_ref_t ref, strata_stream_t stream);
/* To be called before a stream is destroyed, for each place it was used in: what its stack holds goes back (once the work on
 * it is done), live blocks stay valid until they are freed, and the handle may be recycled by the driver. E_INVALID: a default
 * stream, which is never destroyed. */
STRATA_API strata_status_t strata_stream_forget(strata_t facade, strata_place_t place, strata_stream_t stream);
/* The owner stream of a block; E_UNSUPPORTED for pinned and host places, which have none, for a block that was served from what a
 * forgotten stream left behind, and where the owner is another thread's own default stream: its name, 0x2, means the caller's. */
STRATA_API strata_status_t strata_stream_of(strata_t facade, strata_ref_t ref, strata_stream_t *stream);
/* Whether both are served by one stack. */
STRATA_API strata_status_t strata_same_stream(strata_t facade, strata_place_t place, strata_stream_t a, strata_stream_t b,
                                              bool *same);
/* The stream that NULL stands for in a place, instead of the legacy one, from now on. Once: what was served for NULL meanwhile
 * belongs to that stream, so another one is refused (E_BUSY); blocks served before stay the legacy stream's. It lives as long as
 * the facade: it cannot be forgotten. E_UNSUPPORTED for pinned and host places, which have no owner stream. */
STRATA_API strata_status_t strata_set_default_stream(strata_t facade, strata_place_t place, strata_stream_t stream);

/* Says what a stream is for, before its first request in a place: it is served by the stack of the strategy's first `streams:`
 * pattern that fits the name (`streams: {"copy*": {stack: [...]}}`), by the place's own where none does. Reports show the name;
 * names are kept as tags are.
 *
 *     strata_stream_name(s, strata_gpu(0), upload, "copy0");
 *
 * It lasts until the stream is forgotten. E_BUSY: the stream was served already, without a pool, under another name or none.
 * E_INVALID: an empty name, a default stream of the driver's; E_UNSUPPORTED: pinned and host places, which have one stack for all
 * streams; E_LIMIT: 4,096 streams with names, or 65,536 names of all kinds in a facade. */
STRATA_API strata_status_t strata_stream_name(strata_t facade, strata_place_t place, strata_stream_t stream, const char *name);

/* Streams of the facade's own device, for programs that have no runtime beside Strata (simulated devices above all). The
 * driver's non-blocking streams; forget a stream before destroying it. `priority` is CUDA's: 0 the ordinary one, a lower number is
 * served before it; one beyond what the device has is taken to its end. A simulated device keeps it, and its timelines do not
 * know it. */
STRATA_API strata_status_t strata_stream_create(strata_t facade, strata_place_t place, int priority, strata_stream_t *stream);
STRATA_API strata_status_t strata_stream_destroy(strata_t facade, strata_place_t place, strata_stream_t stream);
/* The host waits for all work submitted to `stream`. */
STRATA_API strata_status_t strata_stream_synchronize(strata_t facade, strata_place_t place, strata_stream_t stream);
/* Keeps `stream` busy for `duration_ns` as if a kernel used the blocks. Simulated devices only; elsewhere E_UNSUPPORTED. */
STRATA_API strata_status_t strata_stream_work(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t duration_ns,
                                              const strata_ref_t *refs, size_t count);

/* ---- memory kept in the caches -------------------------------------------------------------------------------------- */

/* Gives every idle chunk of a place (all its streams and pools, but for pools that keep theirs: `keep: true`) back to the device;
 * *released (may be NULL) gets the bytes. */
STRATA_API strata_status_t strata_release(strata_t facade, strata_place_t place, uint64_t *released);
/* Releases idle chunks, the largest of each stream's first, until at most `keep` idle bytes stay in the place, or until none is idle
 * as a whole; pools that keep their chunks are not concerned, nor counted. *released (may be NULL) gets the bytes. */
STRATA_API strata_status_t strata_trim(strata_t facade, strata_place_t place, uint64_t keep, uint64_t *released);

typedef struct strata_mem_info {
    size_t struct_size;
    uint64_t free; /* what the device says */
    uint64_t total;
    uint64_t cached; /* reserved by Strata and allocated to nobody */
    uint64_t limit; /* strata_set_limit(); STRATA_UNLIMITED: none */
} strata_mem_info_t;
STRATA_API strata_status_t strata_mem_info(strata_t facade, strata_place_t place, strata_mem_info_t *info);
#define STRATA_UNLIMITED UINT64_MAX
/* Bytes that may be reserved in a place, all its streams together, from the return on, under every strategy: never one more. What
 * would break it meets out-of-memory as if the device were that small: the ladder, without asking the device, then E_NO_MEMORY.
 * May be changed at any time. A limit below what is reserved is no error: idle chunks go back to the device as strata_trim() gives
 * them, live blocks stay, and nothing grows until enough of them are freed. Until then what is freed goes back too, as soon as its
 * chunk is idle as a whole: nobody is served from it. What is free in a chunk that holds live blocks may be served, since that
 * reserves nothing. A higher one is tried at once by requests that wait
 * for memory. A `limit` layer of the strategy holds beside it. Costs nothing on a hit. A part of the device, as other frameworks
 * take it: total of strata_mem_info() x the fraction. */
STRATA_API strata_status_t strata_set_limit(strata_t facade, strata_place_t place, uint64_t limit);

/* ---- figures -------------------------------------------------------------------------------------------------------- */

/* X(field, unit, meaning). One table: the struct, the text and the JSON. What every call
 * touches stands first: with struct_size one cache line. */
#define STRATA_STATISTICS_MAP(X)                                                                                                   \
    X(requested_bytes, "bytes", "what the callers asked for, of live allocations")                                                 \
    X(allocated_bytes, "bytes", "live blocks, rounding included")                                                                  \
    X(peak_requested_bytes, "bytes", "highest requested_bytes; over several stacks the sum of their peaks")                        \
    X(peak_allocated_bytes, "bytes", "highest allocated_bytes; over several stacks the sum of their peaks")                        \
    X(allocations, "count", "requests served")                                                                                     \
    X(frees, "count", "allocations given back")                                                                                    \
    X(cache_hits, "count", "requests served without asking the layer below the cache")                                             \
    X(reserved_bytes, "bytes", "live chunks got from the device")                                                                  \
    X(deferred_bytes, "bytes", "freed by the caller, waiting for other streams")                                                   \
    X(peak_reserved_bytes, "bytes", "highest reserved_bytes of the place, all streams")                                            \
    X(live_allocations, "count", "allocations not freed yet")                                                                      \
    X(growths, "count", "chunks got from the layer below a cache")                                                                 \
    X(chunks, "count", "chunks held now")                                                                                          \
    X(borrows, "count", "record_stream calls that were noted")                                                                     \
    X(deferred_frees, "count", "frees that had to wait for another stream")                                                        \
    X(ladders, "count", "requests that met out-of-memory and ran the reclaim ladder")                                              \
    X(out_of_memory, "count", "requests that failed for memory at last")                                                           \
    X(host_waits, "count", "frees that waited on the host for want of a layer that knows borrows")                                 \
    X(quarantined_bytes, "bytes", "blocks given up because the device failed while they were freed")                               \
    X(borrows_waited, "count", "record_stream calls that no layer knew: the block's free waits on the host")

typedef struct strata_statistics {
    size_t struct_size;
#define STRATA_STATISTICS_FIELD(name, unit, meaning) uint64_t name;
    STRATA_STATISTICS_MAP(STRATA_STATISTICS_FIELD)
#undef STRATA_STATISTICS_FIELD
} strata_statistics_t;

/* Figures of a place: of one stream's stack in no pool (where every thread has its own, the calling one's; zeros if there is none;
 * ladders and out_of_memory are not counted by stream), or of all of them, those of forgotten streams and of pools included. Exact
 * when no other thread is inside a call. */
STRATA_API strata_status_t strata_statistics(strata_t facade, strata_place_t place, strata_stream_t stream,
                                             strata_statistics_t *statistics);
STRATA_API strata_status_t strata_statistics_all(strata_t facade, strata_place_t place, strata_statistics_t *statistics);
/* The figures of a named pool in a place, all its streams: reserved_bytes is what its stacks got from the device, the peaks are the
 * sums of their peaks. Of STRATA_POOL_ORDINARY: of all stacks that are of no pool. 0: of the calling thread's current one. */
STRATA_API strata_status_t strata_statistics_pool(strata_t facade, strata_place_t place, uint64_t pool,
                                                  strata_statistics_t *statistics);
/* Every peak of a place begins at what is now: of the place, of its streams and pools, and of layers (`peak_bytes`, what `system` says
 * of oversubscription). All else stays. For peaks of a part of a program. */
STRATA_API strata_status_t strata_reset_peaks(strata_t facade, strata_place_t place);
/* A figure that a layer counts for itself; docs/layers.md and strata layers explain each. Texts are valid during the call. */
typedef struct strata_layer_figure {
    const char *layer; /* its name in the strategy */
    const char *type; /* what layer it is */
    uint32_t number; /* where it stands in the place's stack, 1 the outermost; branches of a router are counted through */
    bool shared; /* one instance for all streams of the place */
    strata_stream_t stream; /* whose stack it stands in; NULL where it is shared */
    uint64_t thread; /* whose own default stream that is, or which alone it serves, numbered; else 0 */
    bool forgotten; /* strata_stream_forget() was called */
    const char *name, *unit, *meaning;
    uint64_t value;
    uint64_t pool; /* whose stacks it stands in; 0: of none */
} strata_layer_figure_t;
typedef void (*strata_layer_figure_fn)(const strata_layer_figure_t *figure, void *context);
/* Tells the figures of every layer of a place, stream by stream, a shared layer once; those of one layer are of one moment. A
 * cache tells what it holds idle (idle_bytes). What layers of streams that are gone had counted is told no more. `figure` is
 * called with no lock held. */
STRATA_API strata_status_t strata_layer_figures(strata_t facade, strata_place_t place, strata_layer_figure_fn figure,
                                                void *context);
/* The figures of every place that was opened, as JSON: {"places": [{"place": "gpu:0", "total": {"requested_bytes": 0, ...},
 * "streams": [{"stream": "0x0", "thread": 0, "forgotten": false, "requested_bytes": 0, ..., "layers": [{"layer": "auto_growth",
 * "type": "auto_growth", "number": 3, "figures": {"idle_bytes": 0}}, ...]}, ...], "layers": [...],
 * "pools": [{"pool": "weights", "requested_bytes": 0, ..., "layers": [...]}, ...]}, ...]}. `thread` numbers whose own default stream it is; a
 * stream that has a name has "name", its stack in a pool has "pool". A place's own "layers" are those that its streams share, a
 * pool's those that the pool's share. Writes at most `capacity` bytes with the closing zero; *needed (may be NULL) gets the whole
 * length. */
STRATA_API strata_status_t strata_statistics_json(strata_t facade, char *text, size_t capacity, size_t *needed);
/* The same totals in the text format that Prometheus reads: strata_requested_bytes{place="gpu:0"} 0, ...; what only grows is a
 * counter and ends in _total. Of each pool that was used strata_pool_requested_bytes{place="gpu:0",pool="weights"} 0, ... Layers' own
 * figures are sums over the streams: strata_layer_limit_used_bytes{place="gpu:0",layer="limit",number="4"} 0, ... (a sum of peaks
 * is no peak); those of pools and of streams by name have the label pool or streams too. */
STRATA_API strata_status_t strata_statistics_prometheus(strata_t facade, char *text, size_t capacity, size_t *needed);
/* The stacks of the facade as text, as `strata explain` prints them. Writes at most `capacity` bytes with the closing zero;
 * *needed (may be NULL) gets the whole length. */
STRATA_API strata_status_t strata_explain(strata_t facade, char *text, size_t capacity, size_t *needed);
/* A block of a place. */
typedef struct strata_snapshot_row {
    strata_block_t block; /* its ref is 0 unless it is live */
    uint64_t chunk; /* where the chunk that it lies in begins; a block that lies in none is its own */
    size_t requested; /* 0 unless it is live */
    strata_stream_t stream; /* whose stack holds it; NULL in pinned and host places */
    uint32_t state; /* 0 free, 1 live, 2 freed and waiting for other streams */
    uint64_t pool; /* strata_pool()'s number; 0: it is of no pool */
} strata_snapshot_row_t;
typedef void (*strata_snapshot_fn)(const strata_snapshot_row_t *row, void *context);
/* Tells every block of a place in address order, as they all were at one moment. Makes no device call; the place's streams wait
 * while the rows are copied (about 30 ns a block), `row` is called with no lock held. E_HOST_MEMORY. */
STRATA_API strata_status_t strata_snapshot(strata_t facade, strata_place_t place, strata_snapshot_fn row, void *context);
/* The chunks of a place and the blocks in them as text, for people: who sits in a chunk that does not go back?
 *     chunk 0x7f0000000000 20MiB, stream 0x0: used 6MiB (2), free 14MiB (2), largest free 12MiB
 *       0x7f0000000000 12MiB free
 *       0x7f0000c00000 4MiB live, asked 4194000
 *       ...
 * In address order, of one moment, as strata_snapshot() is. Writes at most `capacity` bytes with the closing zero; *needed (may
 * be NULL) gets the whole length. E_HOST_MEMORY: `text` may have been written. */
STRATA_API strata_status_t strata_chunks_text(strata_t facade, strata_place_t place, char *text, size_t capacity, size_t *needed);
/* The cache below: what serves a stream of a place, in the thread's current pool, under its decorators, a cache or, where there is none, the source. */
typedef struct strata_cache {
    size_t struct_size;
    uint64_t id; /* of the instance: the same for two streams exactly if one serves both; no later one ever has it */
    uint64_t used_bytes; /* it has handed out, what waits for other streams included */
    uint64_t idle_bytes; /* it keeps */
    char name[64]; /* in the strategy: "auto_growth", or the name that it was given there */
    char layer[64]; /* its layer: "auto_growth" */
} strata_cache_t;
/* `index` 0, and with routers 0 upward in the order of their stacks; E_INVALID after the last. Makes the stream's stack if it has
 * none. Looks at every block of the cache. */
STRATA_API strata_status_t strata_cache_below(strata_t facade, strata_place_t place, strata_stream_t stream, size_t index,
                                              strata_cache_t *cache);
/* Checks every structure of the facade; E_CORRUPT says what is wrong. Takes every stack's lock in turn. */
STRATA_API strata_status_t strata_validate(strata_t facade);

/* ---- out of memory -------------------------------------------------------------------------------------------------- */

/* Why a request failed for memory, as far as the place's figures tell: X(NAME, number, name, meaning). Numbers are part of the ABI:
 * never reuse one. The report begins with the name and a sentence, then says what helps, then the figures. */
#define STRATA_CAUSE_MAP(X)                                                                                                        \
    X(UNKNOWN, 0, "unknown", "nobody looked: the report is turned off (STRATA_NO_REPORT, `report: short`)")                        \
    X(TOO_LARGE, 1, "too_large", "the request is larger than what a program gets of the device")                                   \
    X(BOUND, 2, "bound", "an option of a layer bounds it: limit.bytes, bfc.memory_limit, system.cap, ...")                         \
    X(PLACE_LIMIT, 3, "place_limit", "strata_set_limit() bounds it")                                                               \
    X(NO_GROWTH, 4, "no_growth", "the request forbids growth (STRATA_NO_GROW), and no free block serves it")                       \
    X(NO_RETRY, 5, "no_retry", "the request forbids the steps that could have made room (STRATA_NO_RETRY)")                        \
    X(WAITING, 6, "waiting", "enough is freed and still in use on other streams")                                                  \
    X(FORGOTTEN, 7, "forgotten", "what a forgotten stream left is not free before its work is over")                               \
    X(CAPTURED, 8, "captured", "what lies idle stays while a stream is being captured")                                            \
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
    X(DEVICE, 24, "device", "the device refused although it says that it has enough")
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
    size_t size; /* bytes asked */
    uint64_t device_free; /* what the device says */
    uint64_t device_total;
    const char *text; /* the whole report; valid during the call */
    strata_cause_t cause;
} strata_out_of_memory_t;
/* Hears of every request that fails for memory at last. No lock is held: it may call any function; out-of-memory that it meets
 * itself is told to nobody. */
typedef void (*strata_out_of_memory_fn)(const strata_out_of_memory_t *event, void *context);
/* Asked by the ladder to free memory of the caller's own: returns the bytes it freed (by strata_free, from this very call). It may
 * call any function; requests that it makes itself ask no callback. */
typedef uint64_t (*strata_free_memory_fn)(strata_place_t place, size_t size, void *context);

/* *id (may be NULL) names the registration for the function below; callbacks run in the order in which they were added. E_LIMIT: 32
 * callbacks of both kinds in the facade. */
STRATA_API strata_status_t strata_add_out_of_memory_observer(strata_t facade, strata_out_of_memory_fn observer, void *context,
                                                             uint32_t *id);
STRATA_API strata_status_t strata_add_free_memory_callback(strata_t facade, strata_free_memory_fn callback, void *context,
                                                           uint32_t *id);
/* After the return the callback is not called again by requests that begin later. */
STRATA_API strata_status_t strata_remove_callback(strata_t facade, uint32_t id);

/* ---- named pools ------------------------------------------------------------------------------------------------------- *
 *
 * A strategy may name pools (`pools: {weights: {stack: [...]}}`): memory that is to lie apart from all other, under layers of its
 * own. A pool has stacks of its own in every place, one a stream; its caches serve nobody else. To the reclaim ladder, to
 * strata_release() and to strata_stream_forget() they are stacks of the place as all others; but what a pool with `keep: true` holds
 * idle goes back for its own requests, by strata_release_pool() and at the end alone. What concerns a block goes by its ref
 * and knows no pool: free, borrow, share and ask from anywhere.
 *
 *     uint64_t weights;
 *     strata_pool(s, "weights", &weights);
 *     strata_pool_begin(s, strata_gpu(0), weights);    // this thread's requests in gpu:0, whoever makes them
 *     load_model();
 *     strata_pool_end(s, strata_gpu(0));
 */

/* Requests that go to no pool, whatever the thread has begun. */
#define STRATA_POOL_ORDINARY 1ull

/* The pool that the strategy calls `name`, for this facade as long as it is open. E_INVALID, with the nearest name: there is none;
 * E_LIMIT: 65,536 names in the facade; E_HOST_MEMORY. */
STRATA_API strata_status_t strata_pool(strata_t facade, const char *name, uint64_t *pool);
/* From now on requests of the calling thread in this place that name no pool themselves go to `pool` (STRATA_POOL_ORDINARY: to
 * none), until the matching end. Pools nest: the innermost counts, and an end goes back to the one before. Other threads and
 * places are not concerned. A thread that has begun none pays nothing. E_INVALID: no such pool; E_LIMIT: 16 begun by one thread. */
STRATA_API strata_status_t strata_pool_begin(strata_t facade, strata_place_t place, uint64_t pool);
/* E_INVALID: the calling thread has begun none in this place. */
STRATA_API strata_status_t strata_pool_end(strata_t facade, strata_place_t place);
/* Where the calling thread's requests in a place go now, STRATA_POOL_ORDINARY or a pool: what a helper thread is told to begin. */
STRATA_API strata_status_t strata_pool_current(strata_t facade, strata_place_t place, uint64_t *pool);
/* Gives every idle chunk of a pool in a place back to the device, whether it keeps them or not; STRATA_POOL_ORDINARY: those of no
 * pool; 0: of the thread's current one. *released (may be NULL) gets the bytes. E_INVALID: no such pool. */
STRATA_API strata_status_t strata_release_pool(strata_t facade, strata_place_t place, uint64_t pool, uint64_t *released);
/* The pool of a block; STRATA_POOL_ORDINARY: none. */
STRATA_API strata_status_t strata_pool_of(strata_t facade, strata_ref_t ref, uint64_t *pool);

/* ---- graphs, peers: not yet, all E_UNSUPPORTED ----------------------------------------------------------------------- */

/* Capture of a graph: requests of `stream` between begin and end come from the graph's private pool. */
STRATA_API strata_status_t strata_graph_pool_begin(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t *pool);
STRATA_API strata_status_t strata_graph_pool_end(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t pool);
STRATA_API strata_status_t strata_graph_pool_remove(strata_t facade, strata_place_t place, uint64_t pool);
STRATA_API strata_status_t strata_enable_peer(strata_t facade, uint32_t device, uint32_t peer);
STRATA_API strata_status_t strata_export(strata_t facade, strata_ref_t ref, void *handle, size_t *handle_size);
STRATA_API strata_status_t strata_import(strata_t facade, strata_place_t place, const void *handle, size_t handle_size,
                                         strata_block_t *block);

/* ---- notes of the program ------------------------------------------------------------------------------------------------ */

/* A step of the program ends (an iteration of training, a batch). Every layer hears of it; allocations that carry a tag or an
 * operator are noted with the number of steps before them. */
STRATA_API strata_status_t strata_step(strata_t facade);
/* Requests of the calling thread belong to this operator until the next call; NULL ends it. They are shown with it in the leak
 * report and in the out-of-memory report, and are served the slower way meanwhile; without, nothing costs anything. Names as for
 * tags. E_LIMIT: the thread is inside operators of four facades; E_HOST_MEMORY. */
STRATA_API strata_status_t strata_annotate(strata_t facade, const char *operator_name);

/* ---- eviction ------------------------------------------------------------------------------------------------------------ */

typedef struct strata_neighbours {
    size_t struct_size;
    uint64_t free_before; /* free bytes that touch the block */
    uint64_t free_behind;
    uint64_t run; /* free bytes that there would be in one piece with the block free too */
    strata_block_t block; /* the block itself */
} strata_neighbours_t;
/* A live block and what lies beside it in its chunk. O(1). What a decorator laid around the block counts to the run. */
STRATA_API strata_status_t strata_neighbours(strata_t facade, strata_ref_t ref, strata_neighbours_t *neighbours);
/* The cheapest set of live blocks of a place, in the thread's current pool, whose freeing makes a run of `size` bytes in one
 * chunk: the fewest bytes, then the fewest blocks. *count gets how many they are (0: such a run is free already), `victims` the
 * first `capacity` of them in address order. Looks at every block; a block around which a decorator laid something (guard,
 * aligned) is taken alone. E_NO_MEMORY: no chunk has so much that could be freed;
 * `victims` may have been written. */
STRATA_API strata_status_t strata_best_victims(strata_t facade, strata_place_t place, size_t size, strata_ref_t *victims,
                                               size_t capacity, size_t *count);
/* ---- shadow: not yet, E_UNSUPPORTED ---------------------------------------------------------------------------------------- */

/* Replays every call through a second strategy on a simulated device, in the background. */
STRATA_API strata_status_t strata_shadow_start(strata_t facade, const strata_open_options_t *strategy);
STRATA_API strata_status_t strata_shadow_stop(strata_t facade, char *report, size_t capacity);

/* ---- lists ----------------------------------------------------------------------------------------------------------- */

/* Names of the presets and of the layers, index 0 upward; NULL after the last. */
STRATA_API const char *strata_strategy_name(size_t index);
STRATA_API const char *strata_layer_name(size_t index);

#ifdef __cplusplus
}
#endif
#endif

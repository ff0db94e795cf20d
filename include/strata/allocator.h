/* Allocator objects, the same as bare functions, and the place of a block. strata/strata.h includes this header.
 *
 * An allocator is one value that names a facade, a place, a stream and a pool. A component that is handed its memory holds one.
 * It is obtained once, passed on and copied freely. It owns nothing and is never given back. A request through it needs no
 * look-up.
 *
 *     strata_allocator_t weights;
 *     strata_allocator_get(s, strata_gpu(0), stream, 0, &weights);
 *     ... in the component, which has only `weights` ...
 *     strata_block_t b;
 *     strata_allocator_allocate(weights, 1 << 20, &b);
 *     strata_allocator_free(weights, b.ref);
 *
 * Life        An allocator names the stack that serves the stream when it is obtained. It ends with that stack: at
 *             strata_stream_forget() of the stream, strata_change_strategy() and strata_close(). One that was obtained for NULL
 *             also ends when strata_set_default_stream() gives NULL another meaning. One of a graph pool also ends when another
 *             stream is captured into the pool and gets the stack (docs/graphs.md). After its end its calls return
 *             STRATA_E_STALE and nothing happens, even if another stream gets the same handle. Obtain it again then. The blocks
 *             that it served stay valid, and it still frees them. A stream may be forgotten while another thread is inside a call
 *             of its allocator.
 * Threads     Any number of threads may use one allocator at the same time. If each thread has memory of its own (the layer
 *             `thread_local`, the stream 0x2), a request of another thread is served from that thread's own memory, after a
 *             look-up. This requires that the thread that obtained the allocator still lives. It is better if each thread obtains
 *             its own.
 * Streams     Pinned and host places have no owner streams. The stream given is the first borrower of each block, as in
 *             strata_allocate(). */
#ifndef STRATA_ALLOCATOR_H
#define STRATA_ALLOCATOR_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_allocator {
    uint64_t stack; /* the library's own, or 0 if it names none */
    strata_stream_t stream;
} strata_allocator_t;

/* Makes an allocator. `pool` is one of strata_pool(), STRATA_POOL_ORDINARY, or 0 for the thread's current pool. Creates the
 * stream's stack if it has none. Returns the errors of strata_allocate(), with E_NO_MEMORY only from layers that preallocate. */
STRATA_API strata_status_t strata_allocator_get(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t pool,
                                                strata_allocator_t *allocator);
/* Does strata_allocate() for the allocator's place, stream and pool. The thread's current pool does not matter. */
STRATA_API strata_status_t strata_allocator_allocate(strata_allocator_t allocator, size_t size, strata_block_t *block);
/* Does strata_allocate_with() for it. Returns E_INVALID unless options->pool is 0, because the allocator has a pool. */
STRATA_API strata_status_t strata_allocator_allocate_with(strata_allocator_t allocator, const strata_allocate_options_t *options,
                                                          strata_block_t *block);
/* Frees any block of the facade, as strata_free() does. Blocks that this allocator served are fastest. A stale allocator also
 * frees. */
STRATA_API strata_status_t strata_allocator_free(strata_allocator_t allocator, strata_ref_t ref);
/* Gives the idle chunks of its own stack back to the device, and no others. *released (may be NULL) receives the bytes. A cache
 * that several streams share (`pytorch`, `tensorflow`) is not touched. Use strata_release() for it. */
STRATA_API strata_status_t strata_allocator_release(strata_allocator_t allocator, uint64_t *released);
/* Returns the statistics of its stack, as strata_statistics() does. */
STRATA_API strata_status_t strata_allocator_statistics(strata_allocator_t allocator, strata_statistics_t *statistics);
/* The parts of an allocator. */
typedef struct strata_allocator_info {
    size_t struct_size;
    strata_t facade;
    strata_place_t place;
    strata_stream_t stream; /* the owner of its blocks; in pinned and host places the first borrower */
    uint64_t pool; /* a pool, or STRATA_POOL_ORDINARY */
} strata_allocator_info_t;
STRATA_API strata_status_t strata_allocator_describe(strata_allocator_t allocator, strata_allocator_info_t *info);

/* ---- bare functions ---- */

/* An allocator as two functions without a context. Some libraries take only the addresses of an allocation and a free function,
 * such as ONNX Runtime's `gpu_external_alloc`. A request of 0 bytes returns NULL. One that fails also returns NULL, and logs the
 * reason at STRATA_LOG_WARNING, because the caller has no place for it. A free of NULL does nothing, and a free of a wrong
 * address also logs a warning. Any thread. */
typedef struct strata_functions {
    void *(*allocate)(size_t size);
    void (*free)(void *address);
} strata_functions_t;
/* Returns the functions of an allocator, the same ones at each call. They may be called until the process ends. After the end of
 * the allocator requests fail, and its blocks are freed as before until the facade is closed. Returns E_STALE, and E_LIMIT above
 * STRATA_FUNCTIONS_MAX different allocators of the process. */
STRATA_API strata_status_t strata_allocator_functions(strata_allocator_t allocator, strata_functions_t *functions);
enum { STRATA_FUNCTIONS_MAX = 64 };

/* ---- the place of a block ---- */

/* Returns the place of a block. */
STRATA_API strata_status_t strata_place_of(strata_t facade, strata_ref_t ref, strata_place_t *place);
/* Returns the first address and the bytes of the device memory that contains a block, or {NULL, 0} for a block of 0 bytes. Some
 * driver calls need all of that memory (IPC handles, advice, registration). A block that is not part of a chunk is all of its
 * memory. Returns E_UNSUPPORTED if the cache coalesces adjacent regions (bfc's coalesce_regions) and the block is not in the
 * first of them. */
STRATA_API strata_status_t strata_base_of(strata_t facade, strata_ref_t ref, void **base, size_t *size);

#ifdef __cplusplus
}
#endif
#endif

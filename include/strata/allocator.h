/* Allocator objects, and where a block lies. strata/strata.h includes this header.
 *
 * A component that is handed its memory holds an allocator: one value that stands for a facade, a place, a stream and a pool. It is
 * obtained once, passed on and copied freely. It owns nothing and is never given back. A request through it needs no look-up.
 *
 *     strata_allocator_t weights;
 *     strata_allocator_get(s, strata_gpu(0), stream, 0, &weights);
 *     ... in the component, which knows `weights` alone ...
 *     strata_block_t b;
 *     strata_allocator_allocate(weights, 1 << 20, &b);
 *     strata_allocator_free(weights, b.ref);
 *
 * Life        An allocator names the stack that serves the stream when it is obtained. It ends with that stack: at
 *             strata_stream_forget() of the stream, strata_change_strategy() and strata_close(). One that was obtained for NULL also
 *             ends when strata_set_default_stream() gives NULL another meaning. From then on its calls are STRATA_E_STALE and nothing
 *             happens, even if another stream gets the same handle: obtain it again. The blocks that it served stay valid, and it
 *             still frees them. A stream may be forgotten while another thread is inside a call of its allocator.
 * Threads     Any number of threads may use one allocator at the same time. Where each thread has memory of its own (the layer
 *             `thread_local`, the stream 0x2) a request of another thread is served from that thread's own memory, after a look-up,
 *             as long as the thread that obtained the allocator lives. There it is better if each thread obtains its own.
 * Streams     Pinned and host places have no owner streams. The stream given is the first borrower of each block, as in
 *             strata_allocate(). */
#ifndef STRATA_ALLOCATOR_H
#define STRATA_ALLOCATOR_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_allocator {
    uint64_t stack; /* the library's own; 0: names none */
    strata_stream_t stream;
} strata_allocator_t;

/* `pool`: 0: where the thread's requests go now; STRATA_POOL_ORDINARY; one of strata_pool(). Creates the stream's stack if it has none.
 * Errors: those of strata_allocate(); E_NO_MEMORY only from layers that allocate in advance. */
STRATA_API strata_status_t strata_allocator_get(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t pool,
                                                strata_allocator_t *allocator);
/* strata_allocate() for what the allocator names, whatever pool the thread has begun. */
STRATA_API strata_status_t strata_allocator_allocate(strata_allocator_t allocator, size_t size, strata_block_t *block);
/* strata_allocate_with(); options->pool is 0, since the allocator has one (E_INVALID). */
STRATA_API strata_status_t strata_allocator_allocate_with(strata_allocator_t allocator, const strata_allocate_options_t *options,
                                                          strata_block_t *block);
/* strata_free() of any block of the facade. Fastest for one that this allocator served. A stale allocator frees too. */
STRATA_API strata_status_t strata_allocator_free(strata_allocator_t allocator, strata_ref_t ref);
/* Gives the idle chunks of its own stack back to the device, and no others. *released (may be NULL) gets the bytes. A cache that
 * several streams share (`pytorch`, `tensorflow`) is not touched: strata_release(). */
STRATA_API strata_status_t strata_allocator_release(strata_allocator_t allocator, uint64_t *released);
/* The figures of its stack, as strata_statistics() tells them. */
STRATA_API strata_status_t strata_allocator_statistics(strata_allocator_t allocator, strata_statistics_t *statistics);
/* What it names. */
typedef struct strata_allocator_info {
    size_t struct_size;
    strata_t facade;
    strata_place_t place;
    strata_stream_t stream; /* the owner of what it serves; in pinned and host places the first borrower */
    uint64_t pool; /* STRATA_POOL_ORDINARY: none */
} strata_allocator_info_t;
STRATA_API strata_status_t strata_allocator_describe(strata_allocator_t allocator, strata_allocator_info_t *info);

/* ---- bare functions ---- */

/* An allocator as two functions without a context, for libraries that take the mere addresses of an allocation and a free, such as ONNX
 * Runtime's `gpu_external_alloc`. A request of 0 bytes answers NULL. One that fails answers NULL too, and the reason is told as a message of
 * STRATA_LOG_WARNING, since the caller has no place for it. NULL is freed by doing nothing; a wrong address is told likewise. Any thread. */
typedef struct strata_functions {
    void *(*allocate)(size_t size);
    void (*free)(void *address);
} strata_functions_t;
/* The functions of an allocator: the same ones whenever it is asked for. They may be called as long as the process lives. After the
 * allocator has ended requests fail, and its blocks are freed as before until the facade is closed. E_LIMIT: STRATA_FUNCTIONS_MOST different allocators of the process have some. E_STALE. */
STRATA_API strata_status_t strata_allocator_functions(strata_allocator_t allocator, strata_functions_t *functions);
enum { STRATA_FUNCTIONS_MOST = 64 };

/* ---- where a block lies ---- */

/* The place of a block. */
STRATA_API strata_status_t strata_place_of(strata_t facade, strata_ref_t ref, strata_place_t *place);
/* The piece of memory obtained from the device in which a block lies: its first address and its bytes. For driver calls that want all
 * of it (IPC handles, advice, registration). A block that no cache has cut is a piece of its own. {NULL, 0} for a block of 0 bytes.
 * E_UNSUPPORTED: the cache uses several adjacent pieces as one (bfc's coalesce_regions) and the block does not lie in the first. */
STRATA_API strata_status_t strata_base_of(strata_t facade, strata_ref_t ref, void **base, size_t *size);

#ifdef __cplusplus
}
#endif
#endif

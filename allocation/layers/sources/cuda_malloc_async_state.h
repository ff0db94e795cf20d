/* The state that the files of cuda_malloc_async share.
 *
 *     cuda_malloc_async.c          the layer: allocate, free, borrows, release
 *     cuda_malloc_async_pool.c     the pool that it serves from
 *     cuda_malloc_async_records.c  records, pending frees, kept blocks
 *     cuda_malloc_async_graphs.c   graph pools */
#ifndef STRATA_ALLOCATION_LAYER_CUDA_MALLOC_ASYNC_STATE_H
#define STRATA_ALLOCATION_LAYER_CUDA_MALLOC_ASYNC_STATE_H

#include "allocation/domain/layer.h"
#include "allocation/layers/sources/default_pool.h"
#include "allocation/mechanism/spans.h"
#include "allocation/uses/free_stream.h"

enum { STRATA_ASYNC_POOL_DEFAULT, STRATA_ASYNC_POOL_OWN };
/* `pool` of a record; free by pointer does not find an UNBOOKED one. */
enum { STRATA_ASYNC_BOOKED, STRATA_ASYNC_UNBOOKED };

typedef struct async_options {
    uint64_t max_size;
    uint64_t release_threshold;
    double throttle;
    uint32_t pool;
    bool reuse_follow_events, reuse_opportunistic, reuse_internal;
} async_options_t;

typedef struct async_layer {
    strata_layer_t base;
    strata_uses_t uses; /* a record's `user` is its owner */
    strata_free_stream_t frees;
    strata_spans_t pending; /* addresses of bytes that wait for the free stream; each span belongs to a use */
    uint32_t waiting; /* frees that wait for the free stream, or are in progress */
    uint32_t frees_begun; /* the number of borrowed frees that have begun */
    bool started;
    bool serves_graphs; /* its group is that of a graph pool */
    strata_handle_t pool;
    strata_handle_t spare; /* an own pool that could neither be set up nor destroyed, or NULL */
    strata_pool_sharer_t sharer; /* of the default pool */
    uint64_t limit; /* bytes above which requests are throttled */
    uint64_t live_bytes, borrowed_frees, throttled;
    uint32_t kept; /* last slot of the freed blocks that a graph or a capture keeps; linked by `next` */
    uint64_t kept_bytes;
} async_layer_t;

static inline const async_options_t *async_options_of(const async_layer_t *self) { return self->base.options; }

static inline strata_device_t *async_device_of(const async_layer_t *self) { return self->base.domain->device; }

static inline void async_lock(async_layer_t *self) { strata_stack_lock_own(self->base.stack); }

static inline void async_unlock(async_layer_t *self) { strata_unlock(&self->base.stack->lock); }

/* Ensures that the pool exists; it is created at the first request. Any thread, no lock held. */
strata_status_t strata_async_start(async_layer_t *self);
/* Destroys the pool after the last block, whether or not it was started. */
void strata_async_end_pool(async_layer_t *self);

/* ---- records; the lock is held, and released during device calls ---- */

/* Makes a record of booked memory from the pool. Returns NULL on E_LIMIT. */
strata_record_t *strata_async_make_record(async_layer_t *self, const strata_request_t *request, strata_address_t address);
/* Frees a block in stream order, or once all users are done. Returns false if the device refuses, and
 * nothing has changed. */
bool strata_async_give_back(async_layer_t *self, strata_record_t *record, bool in_order, strata_stream_t stream,
                            strata_call_t *call);
static inline bool strata_async_is_released(strata_status_t status) { return status == STRATA_OK || status == STRATA_E_SHUTDOWN; }

/* ---- freed blocks that wait for the free stream ---- */

/* A free in progress. Its bytes become pending before the driver gets the block, since the driver may serve
 * it to another thread immediately. */
typedef struct async_free {
    uint32_t owner; /* of its span, until the use exists */
    bool has_span; /* false if the table was full; bytes that are served again then count twice */
    uint64_t bytes;
} async_free_t;

async_free_t strata_async_begin_free(async_layer_t *self, const strata_record_t *record);
/* Bytes that no other thread got remain pending as a use until the free stream reaches it. Without such a
 * use they are no longer pending. The locks may be released in between. */
void strata_async_end_free(async_layer_t *self, const async_free_t *pending_free, bool gone, bool has_free_stream,
                           strata_call_t *call);
void strata_async_end_wait(async_layer_t *self, uint32_t use, uint64_t bytes);
/* The pool served [address, address + bytes). Bytes that are pending there, in any instance of the place,
 * become live. No lock is held. */
void strata_async_end_pending(async_layer_t *self, uint64_t address, uint64_t bytes);

/* ---- freed blocks that are kept for now ---- */

/* Keeps a freed block, which counts as deferred. The caller owns the record exclusively. */
void strata_async_keep(async_layer_t *self, strata_record_t *record);
/* Take all kept blocks as a list, and then one after the other off that list. NULL after the last. */
uint32_t strata_async_detach_kept(async_layer_t *self);
strata_record_t *strata_async_next_kept(async_layer_t *self, uint32_t *list);

/* ---- in a graph pool ---- */

/* The request's bytes are claimed. */
strata_status_t strata_async_allocate_for_graphs(async_layer_t *self, const strata_request_t *request, strata_record_t **record);
void strata_async_free_for_graphs(async_layer_t *self, strata_record_t *record, strata_call_t *call);
/* Returns kept blocks to the driver once nothing keeps the pool. Returns the bytes that no pool of the
 * driver keeps. */
uint64_t strata_async_free_kept(async_layer_t *self, strata_call_t *call);
/* Releases all free graph memory of the driver. No lock is held. */
void strata_async_trim_graphs(async_layer_t *self);
/* Returns, at the end of the layer, whether the memory of a remaining record may still exist. */
bool strata_async_may_exist(const async_layer_t *self, const strata_record_t *record);

#endif

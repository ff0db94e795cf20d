/* What the parts of cuda_malloc_async share: its state, the pool that it serves from (cuda_malloc_async_pool.c), and what it does for
 * captured graphs (cuda_malloc_async_graphs.c). */
#ifndef STRATA_ALLOCATION_LAYER_CUDA_MALLOC_ASYNC_STATE_H
#define STRATA_ALLOCATION_LAYER_CUDA_MALLOC_ASYNC_STATE_H

#include "allocation/domain/layer.h"
#include "allocation/layers/sources/default_pool.h"
#include "allocation/mechanism/spans.h"
#include "allocation/uses/free_stream.h"

enum { STRATA_ASYNC_POOL_DEFAULT, STRATA_ASYNC_POOL_OWN };
/* `pool` of a record; UNBOOKED: nobody finds it by its address. */
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
    strata_uses_t uses; /* in `user` of a record who owns it */
    strata_free_stream_t frees;
    strata_spans_t pending; /* the addresses of bytes that wait for the free stream; each span belongs to a use */
    uint32_t waiting; /* frees that wait for the free stream, or are under way */
    uint32_t leavings; /* frees of borrowed blocks that were begun */
    bool started;
    bool serves_graphs; /* its group is that of a pool of graphs */
    strata_handle_t pool;
    strata_handle_t spare; /* a pool of its own that could neither be set up nor destroyed; NULL: none */
    strata_pool_sharer_t sharer; /* of the default pool */
    uint64_t limit; /* bytes above which requests are throttled */
    uint64_t live_bytes, borrowed_frees, throttled;
    uint32_t kept; /* freed blocks that a graph or a capture keeps: the slot of the last; each has that of the one before in `next` */
    uint64_t kept_bytes;
} async_layer_t;

static inline const async_options_t *async_options_of(const async_layer_t *self) { return self->base.options; }

static inline strata_device_t *async_device_of(const async_layer_t *self) { return self->base.domain->device; }

static inline void async_lock(async_layer_t *self) { strata_stack_take(self->base.stack); }

static inline void async_unlock(async_layer_t *self) { strata_unlock(&self->base.stack->lock); }

/* The pool exists, made at the first request. Any thread, no lock held. */
strata_status_t strata_async_start(async_layer_t *self);
/* After the last block, whether it was started or not. */
void strata_async_end_pool(async_layer_t *self);

/* ---- records; the lock is held, and open while the device is called ---- */

/* A record of what the pool gave and what is booked; NULL: E_LIMIT. */
strata_record_t *strata_async_make_record(async_layer_t *self, const strata_request_t *request, strata_address_t address);
/* In the order of a stream, or once all users are done. False: the device refuses, and everything is as before. */
bool strata_async_give_back(async_layer_t *self, strata_record_t *record, bool in_order, strata_stream_t stream,
                            strata_call_t *call);
static inline bool strata_async_has_gone(strata_status_t status) { return status == STRATA_OK || status == STRATA_E_SHUTDOWN; }

/* ---- freed blocks that wait for the free stream ---- */

/* A free that is under way. Its bytes are pending before the driver has the block, since the driver may give it to another thread at once. */
typedef struct async_leaving {
    uint32_t owner; /* of its span, until there is a use */
    bool has_span; /* If false, the table was full, and bytes that are served again count twice. */
    uint64_t bytes;
} async_leaving_t;

async_leaving_t strata_async_begin_leaving(async_layer_t *self, const strata_record_t *record);
/* The bytes that no other thread got are pending as a use until the free stream reaches it, or no longer. The locks may be opened. */
void strata_async_end_leaving(async_layer_t *self, const async_leaving_t *leaving, bool gone, bool has_free_stream,
                              strata_call_t *call);
void strata_async_wait_no_more(async_layer_t *self, uint32_t use, uint64_t bytes);
/* The pool served [address, address + bytes). Bytes that are pending there, in any instance of the place, become live. No lock is held. */
void strata_async_pass_on(async_layer_t *self, uint64_t address, uint64_t bytes);

/* ---- freed blocks that are kept for now ---- */

/* The record is nobody's but ours. It counts as deferred. */
void strata_async_keep(async_layer_t *self, strata_record_t *record);
/* Takes all of them, and then one after the other off that list; NULL after the last. */
uint32_t strata_async_take_kept(async_layer_t *self);
strata_record_t *strata_async_next_kept(async_layer_t *self, uint32_t *list);

/* ---- in a pool of graphs ---- */

/* The request's bytes are claimed. */
strata_status_t strata_async_allocate_for_graphs(async_layer_t *self, const strata_request_t *request, strata_record_t **record);
void strata_async_free_for_graphs(async_layer_t *self, strata_record_t *record, strata_call_t *call);
/* Nothing keeps the pool: what was kept for its graphs goes back. Returns the bytes that no pool of the driver keeps. */
uint64_t strata_async_give_kept(async_layer_t *self, strata_call_t *call);
/* Nothing that is free of what graphs had stays with the driver. No lock is held. */
void strata_async_trim_graphs(async_layer_t *self);
/* At the end of the layer: whether there may be memory behind a record that is left. */
bool strata_async_may_be_there(const async_layer_t *self, const strata_record_t *record);

#endif

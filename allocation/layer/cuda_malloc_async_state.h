/* What the parts of cuda_malloc_async share: its state, and the pool that it serves from (cuda_malloc_async_pool.c). */
#ifndef STRATA_ALLOCATION_LAYER_CUDA_MALLOC_ASYNC_STATE_H
#define STRATA_ALLOCATION_LAYER_CUDA_MALLOC_ASYNC_STATE_H

#include "allocation/layer/default_pool.h"
#include "allocation/stack/layer.h"
#include "allocation/uses/free_stream.h"

enum { STRATA_ASYNC_POOL_DEFAULT, STRATA_ASYNC_POOL_OWN };

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
    bool started;
    strata_handle_t pool;
    strata_handle_t spare; /* a pool of its own that could neither be set up nor destroyed; NULL: none */
    strata_pool_sharer_t sharer; /* of the default pool */
    uint64_t limit; /* bytes above which requests are throttled */
    uint64_t live_bytes, borrowed_frees, throttled;
} async_layer_t;

static inline const async_options_t *async_options_of(const async_layer_t *self) { return self->base.options; }

static inline strata_device_t *async_device_of(const async_layer_t *self) { return self->base.domain->device; }

static inline void async_lock(async_layer_t *self) { strata_lock(&self->base.stack->lock); }

static inline void async_unlock(async_layer_t *self) { strata_unlock(&self->base.stack->lock); }

/* The pool exists, made at the first request. Any thread, no lock held. */
strata_status_t strata_async_start(async_layer_t *self);
/* After the last block, whether it was started or not. */
void strata_async_end_pool(async_layer_t *self);

#endif

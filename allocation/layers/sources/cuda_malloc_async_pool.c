/* The pool of cuda_malloc_async: the device's default pool, with the layer's settings while the layer
 * exists, or one of its own. No lock is held here. */
#include "allocation/layers/sources/cuda_malloc_async_state.h"
#include "platform/arithmetic.h"

static strata_status_t configure(async_layer_t *self, strata_handle_t pool) {
    const async_options_t *o = async_options_of(self);
    const uint64_t values[STRATA_POOL_SETTINGS] = {o->reuse_follow_events, o->reuse_opportunistic, o->reuse_internal,
                                                   o->release_threshold};
    if (o->pool == STRATA_ASYNC_POOL_OWN) return strata_pool_set_all(async_device_of(self), pool, values);
    return strata_default_pool_attach(&self->sharer, async_device_of(self), values);
}

/* Stores `pool` as the spare. Returns the previous spare. */
static strata_handle_t exchange_spare(async_layer_t *self, strata_handle_t pool) {
    async_lock(self);
    strata_handle_t spare = self->spare;
    self->spare = pool;
    async_unlock(self);
    return spare;
}

static strata_status_t make_pool(async_layer_t *self, strata_handle_t *pool) {
    const async_options_t *o = async_options_of(self);
    if (o->pool == STRATA_ASYNC_POOL_DEFAULT) return strata_device_pool_default(async_device_of(self), pool);
    *pool = exchange_spare(self, NULL);
    if (*pool) return STRATA_OK;
    return strata_device_pool_create(async_device_of(self), o->max_size == UINT64_MAX ? 0 : o->max_size, false, pool);
}

/* Keeps a pool that the device refuses to destroy for the next try. */
static void drop_pool(async_layer_t *self, strata_handle_t pool) {
    if (async_options_of(self)->pool != STRATA_ASYNC_POOL_OWN ||
        strata_device_pool_destroy(async_device_of(self), pool) == STRATA_OK)
        return;
    strata_handle_t spare = exchange_spare(self, pool);
    if (spare) (void)strata_device_pool_destroy(async_device_of(self), spare);
}

/* Gives access to peers of the domain that do not have it. *given is the mask of peers with access. */
static strata_status_t give_access(async_layer_t *self, strata_handle_t pool, uint32_t *given) {
    uint32_t missing = atomic_load(&self->base.domain->peers) & ~*given;
    for (uint32_t peer = 0; missing >> peer; peer++) {
        if (!(missing >> peer & 1)) continue;
        strata_status_t status = strata_device_pool_set_access(async_device_of(self), pool, peer);
        if (status != STRATA_OK) return status;
        *given |= UINT32_C(1) << peer;
    }
    return STRATA_OK;
}

/* If two threads start concurrently, one drops the pool that it made. */
strata_status_t strata_async_start(async_layer_t *self) {
    async_lock(self);
    bool started = self->started;
    async_unlock(self);
    if (started) return STRATA_OK;
    if (!async_device_of(self)->capabilities.pools)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s has no memory pools, which cuda_malloc_async needs; write system instead",
                           async_device_of(self)->name);
    strata_handle_t pool;
    uint64_t free_bytes, total;
    uint32_t peers = 0;
    strata_status_t status = strata_device_mem_info(async_device_of(self), &free_bytes, &total);
    if (status == STRATA_OK) status = make_pool(self, &pool);
    if (status != STRATA_OK) return status;
    status = configure(self, pool);
    if (status == STRATA_OK) status = give_access(self, pool, &peers);
    async_lock(self);
    bool mine = status == STRATA_OK && !self->started;
    if (mine) {
        self->pool = pool;
        self->limit = strata_share(total, async_options_of(self)->throttle);
        self->started = true;
    }
    async_unlock(self);
    if (!mine) drop_pool(self, pool);
    /* A peer may have been added before the pool was visible. */
    return mine ? give_access(self, pool, &peers) : status;
}

/* ---- the end ---- */

static void destroy_pool(strata_device_t *device, strata_handle_t pool) {
    if (strata_device_pool_destroy(device, pool) != STRATA_OK) (void)strata_device_pool_destroy(device, pool);
}

/* The default pool remains. The last sharer restores its original settings, and trims the memory that this
 * layer made it keep. */
void strata_async_end_pool(async_layer_t *self) {
    strata_device_t *device = async_device_of(self);
    if (self->started && async_options_of(self)->pool == STRATA_ASYNC_POOL_OWN) {
        destroy_pool(device, self->pool);
    } else if (self->started) {
        if (strata_device_pool_trim(device, self->pool, 0) != STRATA_OK) (void)strata_device_pool_trim(device, self->pool, 0);
        strata_default_pool_detach(&self->sharer);
    }
    if (self->spare) destroy_pool(device, self->spare);
}

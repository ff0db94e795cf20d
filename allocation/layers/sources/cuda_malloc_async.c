/* cuda_malloc_async: the driver's stream-ordered pool (cudaMallocAsync, cudaFreeAsync).
 *
 * A block is allocated and freed in the order of the stream that requested it. A borrowed block is freed on
 * a stream of the layer's own, the free stream, which is created at the first such free. It waits for the
 * owner and every borrower as of the free. Until it gets there the block's bytes are pending. A request
 * that would raise live plus pending bytes above `throttle` of the device's memory first makes its stream
 * wait for the free stream. The pool may then serve that memory to it. A block's bytes count once, live or
 * pending (PyTorch's backend counts a freed borrowed block in both). The pool may serve pending memory in
 * stream order before its free completes. From then on those bytes are live and no longer pending; only the
 * throttle still counts them.
 *
 * Every stream that owns or borrows is a `user`. Before it is destroyed the free stream waits for its work,
 * and its blocks are freed there.
 *
 * Nothing is freed on a stream while it is being captured. The free would become a node of the program's
 * graph, and a free of memory that no graph allocated breaks the capture. Such a block is kept, and freed
 * once no capture is in progress. Graph pools have instances of their own (cuda_malloc_async_graphs.c). */
#include "allocation/graphs/graphs.h"
#include "allocation/layers/sources/cuda_malloc_async_state.h"
#include "allocation/report/outcome.h"

static const strata_option_row_t options[] = {
    {"pool", STRATA_OPTION_CHOICE, offsetof(async_options_t, pool), "default", 0, 0, "default|own",
     "`default`: the device's pool, shared with other libraries, with this layer's settings while the layer exists; `own`: a "
     "new pool"},
    {"max_size", STRATA_OPTION_SIZE, offsetof(async_options_t, max_size), "unlimited", 0, 0, NULL,
     "max size of an own pool (needs a driver of CUDA 12.2 or newer)"},
    {"release_threshold", STRATA_OPTION_SIZE, offsetof(async_options_t, release_threshold), "unlimited", 0, 0, NULL,
     "bytes that the pool keeps when the host waits for the device"},
    {"reuse_follow_events", STRATA_OPTION_BOOL, offsetof(async_options_t, reuse_follow_events), "true", 0, 0, NULL,
     "a block may serve a stream that has waited for its free"},
    {"reuse_opportunistic", STRATA_OPTION_BOOL, offsetof(async_options_t, reuse_opportunistic), "true", 0, 0, NULL,
     "a block may serve any stream once its free is done; the choice varies between runs"},
    {"reuse_internal", STRATA_OPTION_BOOL, offsetof(async_options_t, reuse_internal), "true", 0, 0, NULL,
     "a pool that cannot grow makes a stream wait for another stream's free"},
    {"throttle", STRATA_OPTION_FRACTION, offsetof(async_options_t, throttle), "0.8", 10000, 1000000, NULL,
     "share of device memory above which requests wait, in stream order, for frees of borrowed blocks"},
    {0},
};

static const strata_stat_row_t stats[] = {
    {"live_bytes", "bytes", offsetof(async_layer_t, live_bytes), "live blocks"},
    {"pending_bytes", "bytes", offsetof(async_layer_t, uses.pending_bytes), "freed borrowed blocks whose streams are not done"},
    {"borrowed_frees", "count", offsetof(async_layer_t, borrowed_frees), "frees on the free stream"},
    {"throttled", "count", offsetof(async_layer_t, throttled), "requests whose stream waited for the free stream"},
    {"kept_bytes", "bytes", offsetof(async_layer_t, kept_bytes),
     "freed blocks that captured graphs may use, or whose streams are being captured"},
    {0},
};

static void retry_kept(async_layer_t *self, strata_call_t *call);

/* ---- pending frees ---- */

static uint64_t collect(async_layer_t *self) {
    strata_record_t *none;
    uint64_t bytes, freed = 0;
    uint32_t done = self->uses.first ? strata_uses_poll(&self->uses) : 0;
    for (uint32_t use = done; strata_uses_pop_done(&self->uses, &done, &none, &bytes); use = done, freed += bytes)
        strata_async_end_wait(self, use, bytes);
    return freed;
}

static void poll(strata_layer_t *base, strata_call_t *call, strata_pending_t *pending) {
    async_layer_t *self = (async_layer_t *)base;
    retry_kept(self, call);
    pending->freed_bytes += collect(self);
    strata_uses_add_pending(&self->uses, pending);
}

/* ---- streams that are captured ---- */

/* Also true for the legacy stream if its use would break another stream's capture. It is only queried while
 * a graph pool is open: a program that uses it during an unannounced capture has broken that capture
 * itself. */
static bool is_captured(const async_layer_t *self, strata_stream_t stream) {
    bool legacy = stream == NULL || stream == STRATA_STREAM_LEGACY;
    if (legacy && !strata_captures_any_open()) return false;
    return strata_domain_refuse_captured(self->base.domain, stream) == STRATA_E_CAPTURE;
}

/* The core has already checked every other stream. */
static strata_status_t refuse_legacy(const async_layer_t *self, strata_stream_t stream) {
    bool legacy = stream == NULL || stream == STRATA_STREAM_LEGACY;
    if (!legacy || self->serves_graphs || !is_captured(self, stream)) return STRATA_OK;
    return strata_fail(
        STRATA_E_CAPTURE, 0,
        "the legacy stream synchronizes with a stream that is being captured: a request on it would break the capture");
}

/* ---- allocate ---- */

/* Makes the stream of a request wait for every pending free, unless it already does. Returns false if it
 * cannot, or if it is captured: a wait for earlier work would break the capture. */
static bool wait_in_order(async_layer_t *self, strata_stream_t stream) {
    uint32_t node = strata_uses_user(&self->uses, stream);
    if (node == 0 || !async_options_of(self)->reuse_follow_events) return false;
    strata_user_t *user = strata_user_at(&self->uses.users, node);
    if (user->count == self->frees.frees) return true;
    if (strata_domain_refuse_captured(self->base.domain, stream) != STRATA_OK) return false;
    if (strata_device_stream_wait(async_device_of(self), stream, strata_free_stream_last(&self->frees)) != STRATA_OK) return false;
    user->count = self->frees.frees;
    self->throttled++;
    return true;
}

/* The request counts as live from here on, so at least one of two concurrent threads sees the other's.
 * Pending bytes count until their free completes, even if a stream already waits for it, because no other
 * stream can get them. */
static void throttle(async_layer_t *self, const strata_request_t *request) {
    (void)collect(self);
    self->live_bytes += request->size;
    /* Reused memory counts twice here: no other stream can get it, so the pool grows for the other streams. */
    const strata_uses_t *uses = &self->uses;
    bool above = uses->first != 0 && self->live_bytes + uses->pending_bytes + uses->reduced_bytes > self->limit;
    bool on_host = above && !wait_in_order(self, request->stream);
    self->throttled += on_host;
    if (on_host) {
        strata_free_stream_synchronise(&self->frees, request->call);
        (void)collect(self);
    }
}

/* Returns an unserved block immediately. If the device refuses it, the block is quarantined. The earlier
 * reason stays. */
static strata_status_t free_unserved(async_layer_t *self, const strata_request_t *request, strata_address_t address, bool booked) {
    strata_error_t reason = *strata_last_error();
    strata_domain_t *domain = self->base.domain;
    if (booked) strata_domain_uncover(domain, address, request->size);
    if (!strata_async_is_released(strata_device_free_async(domain->device, address, request->stream))) {
        if (!booked) strata_domain_count(domain, request->size);
        strata_domain_quarantine(domain, STRATA_MEMORY_DEVICE, address, request->size, true);
    } else if (booked) {
        strata_domain_discount(domain, request->size);
    } else {
        strata_domain_unclaim(domain, request->size);
    }
    return strata_fail_again(&reason);
}

/* No lock is held. Pending bytes at these addresses must stop counting before the block starts to count. */
static strata_status_t ask_pool(async_layer_t *self, const strata_request_t *request, strata_address_t *address) {
    strata_status_t status = strata_device_malloc_async(async_device_of(self), self->pool, request->size, request->stream, address);
    if (status == STRATA_E_NO_MEMORY) strata_refused_by_device(request, request->size);
    if (status != STRATA_OK) {
        strata_domain_unclaim(self->base.domain, request->size);
        return status;
    }
    strata_async_end_pending(self, *address, request->size);
    bool booked = strata_domain_book(self->base.domain, *address, request->size) == STRATA_OK;
    return booked ? STRATA_OK : free_unserved(self, request, *address, false);
}

static strata_status_t allocate_record(async_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_address_t address;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = ask_pool(self, request, &address);
    strata_call_lock(request->call, opened);
    strata_record_t *made = status == STRATA_OK ? strata_async_make_record(self, request, address) : NULL;
    if (made) {
        *record = made;
        return STRATA_OK;
    }
    self->live_bytes -= request->size;
    if (status != STRATA_OK) return status;
    opened = strata_call_unlock(request->call);
    status = free_unserved(self, request, address, true);
    strata_call_lock(request->call, opened);
    return status;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    async_layer_t *self = (async_layer_t *)base;
    if (request->flags & STRATA_NO_GROW)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "the driver's pool may grow at any request, and this request forbids growth");
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = refuse_legacy(self, request->stream);
    if (status == STRATA_OK) status = strata_async_start(self);
    if (status == STRATA_OK) status = strata_domain_claim(base->domain, request, request->size);
    strata_call_lock(request->call, opened);
    if (status != STRATA_OK) return status;
    if (self->serves_graphs) return strata_async_allocate_for_graphs(self, request, record);
    retry_kept(self, request->call);
    throttle(self, request);
    return allocate_record(self, request, record);
}

/* ---- borrows ---- */

static strata_status_t record_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    async_layer_t *self = (async_layer_t *)base;
    bool entered = strata_call_enter(call, base);
    uint32_t user = strata_uses_user(&self->uses, stream);
    strata_status_t status = user ? STRATA_OK : STRATA_E_LIMIT;
    if (user && user != record->user)
        status = strata_uses_note(&self->uses, &record->borrows, user, call->purpose == STRATA_FOR_FIRST_USE);
    strata_call_exit(call, base, entered);
    return status;
}

static strata_status_t erase_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    bool entered = strata_call_enter(call, base);
    strata_uses_erase(&((async_layer_t *)base)->uses, &record->borrows, stream);
    strata_call_exit(call, base, entered);
    return STRATA_OK;
}

/* ---- free: while the lock is released, only this free uses the record ---- */

/* Makes the free stream, or else the host, wait for a user. Returns false if neither is possible. */
static bool cover(async_layer_t *self, uint32_t node, bool has_free_stream, strata_call_t *call) {
    const strata_user_t *user = strata_user_at(&self->uses.users, node);
    bool covered = has_free_stream && user->state == STRATA_USER_DESTROYED;
    if (!covered && has_free_stream && strata_uses_enter_handle(&self->uses, node)) {
        strata_stream_t stream = user->stream;
        strata_unlocked_t opened = strata_call_unlock(call);
        covered = strata_free_stream_wait_for(&self->frees, stream);
        strata_call_lock(call, opened);
        strata_uses_exit_handle(&self->uses, node);
    }
    return covered || strata_uses_wait_for_user(&self->uses, node, call);
}

/* If the device did not take the block, it is counted, never reused, and offered again when the shared
 * stack is destroyed. */
static void finish_free(async_layer_t *self, strata_record_t *record, bool gone) {
    strata_users_release(&self->uses.users, record->user);
    if (gone) {
        strata_record_delete(&self->base, record);
        return;
    }
    self->base.stack->figures.quarantined_bytes += record->size;
    record->state = STRATA_RECORD_DEFERRED;
    record->route = self->base.number;
}

/* Without a free stream the host has waited for all users, and the block is freed by an ordinary device
 * free. Otherwise its bytes change from live to pending in one step, so that no other thread's request
 * misses them. */
static void free_after_users(async_layer_t *self, strata_record_t *record, strata_call_t *call) {
    bool has_free_stream = strata_free_stream_make(&self->frees, call);
    uint64_t bytes = record->size;
    bool covered = cover(self, record->user, has_free_stream, call);
    for (uint32_t node = record->borrows; node; node = strata_use_at(&self->uses, node)->next)
        covered = cover(self, strata_use_at(&self->uses, node)->user, has_free_stream, call) && covered;
    strata_uses_drop_all(&self->uses, &record->borrows);
    async_free_t pending_free = {0};
    if (covered) pending_free = strata_async_begin_free(self, record);
    bool gone = covered && strata_async_give_back(self, record, has_free_stream, self->frees.stream, call);
    finish_free(self, record, gone);
    if (covered) strata_async_end_free(self, &pending_free, gone, has_free_stream, call);
    self->live_bytes -= bytes;
    self->borrowed_frees++;
}

static void free_in_order(async_layer_t *self, strata_record_t *record, strata_call_t *call) {
    uint64_t bytes = record->size;
    bool gone = strata_async_give_back(self, record, true, strata_user_at(&self->uses.users, record->user)->stream, call);
    strata_uses_exit_handle(&self->uses, record->user);
    finish_free(self, record, gone);
    self->live_bytes -= bytes;
    if (gone) strata_domain_discount(self->base.domain, bytes);
}

/* In an unannounced capture the free would become a node of its graph, and the program may have freed the
 * block there for that reason. The block is then never reused. */
static bool is_captured_unannounced(const async_layer_t *self, const strata_record_t *record) {
    const strata_user_t *owner = strata_user_at(&self->uses.users, record->user);
    return strata_user_is_nameable(owner) && is_captured(self, owner->stream);
}

/* No pool is open, and none opens before strata_captures_end_uncaptured(). */
static void free_uncaptured(async_layer_t *self, strata_record_t *record, strata_call_t *call) {
    if (is_captured_unannounced(self, record)) {
        self->live_bytes -= record->size;
        strata_uses_drop_all(&self->uses, &record->borrows);
        finish_free(self, record, false);
    } else if (record->borrows == 0 && strata_uses_enter_handle(&self->uses, record->user)) {
        free_in_order(self, record, call);
    } else {
        free_after_users(self, record, call);
    }
}

/* During an announced capture the block is kept, whichever stream uses it, since any stream may join the
 * capture between a query and the free. The graph's pool owns the blocks that the graph uses, so this block
 * is not one of them. */
static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    async_layer_t *self = (async_layer_t *)base;
    if (self->serves_graphs) {
        strata_async_free_for_graphs(self, record, call);
    } else if (strata_captures_begin_uncaptured()) {
        free_uncaptured(self, record, call);
        strata_captures_end_uncaptured();
    } else {
        self->live_bytes -= record->size;
        strata_async_keep(self, record);
    }
}

/* Completes frees that a capture has deferred. The owner of such a block may be in an unannounced capture. The
 * block was freed before it and is not part of it, so it is kept. */
static void retry_kept(async_layer_t *self, strata_call_t *call) {
    strata_record_t *record;
    if (self->kept == 0 || self->serves_graphs || !strata_captures_begin_uncaptured()) return;
    for (uint32_t list = strata_async_detach_kept(self); (record = strata_async_next_kept(self, &list)) != NULL;) {
        if (is_captured_unannounced(self, record)) {
            strata_async_keep(self, record);
            continue;
        }
        self->live_bytes += record->size;
        free_uncaptured(self, record, call);
    }
    strata_captures_end_uncaptured();
}

/* ---- end of streams, captures ---- */

/* The stream's handle is valid until the free stream waits for its work. */
static void stream_gone(async_layer_t *self, strata_stream_t stream, strata_call_t *call) {
    uint32_t node = strata_users_find(&self->uses.users, stream);
    if (node == 0) return;
    /* Holds the user: its last block may be freed while the locks are released, which would delete it. */
    bool used = strata_user_at(&self->uses.users, node)->holds++ > 0;
    /* Frees in a graph pool wait for all streams, so they need no wait here. */
    bool completion_known = !used || self->serves_graphs || cover(self, node, strata_free_stream_make(&self->frees, call), call);
    strata_uses_detach(&self->uses, node, completion_known, call);
}

static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    async_layer_t *self = (async_layer_t *)base;
    if (notice->kind == STRATA_NOTICE_STREAM_DESTROYED) {
        stream_gone(self, notice->stream, call);
        return;
    }
    /* If the capture is announced in advance, the driver's pool is set up before it. */
    self->serves_graphs = true;
    strata_unlocked_t opened = strata_call_unlock(call);
    (void)strata_async_start(self);
    strata_call_lock(call, opened);
}

/* ---- release ---- */

static uint64_t sum(uint64_t a, uint64_t b) { return a < UINT64_MAX - b ? a + b : UINT64_MAX; }

/* A pool releases only memory that the host has seen freed. So this waits for the device, like any device
 * free. No lock is held. */
static uint64_t shrink(async_layer_t *self, uint64_t keep, uint64_t live) {
    uint64_t before = 0, after = 0, used = 0;
    strata_device_t *device = async_device_of(self);
    if (strata_device_pool_get(device, self->pool, STRATA_POOL_RESERVED_CURRENT, &before) != STRATA_OK) return 0;
    if (before <= sum(live, keep) || strata_device_synchronise(device) != STRATA_OK) return 0;
    async_lock(self);
    (void)collect(self);
    async_unlock(self);
    /* Bytes in use, also by other libraries, remain in the pool in any case, so `keep` is added to them. */
    if (keep && strata_device_pool_get(device, self->pool, STRATA_POOL_USED_CURRENT, &used) != STRATA_OK) used = live;
    (void)strata_device_pool_trim(device, self->pool, keep ? sum(used, keep) : 0);
    if (strata_device_pool_get(device, self->pool, STRATA_POOL_RESERVED_CURRENT, &after) != STRATA_OK) return 0;
    uint64_t given = after < before ? before - after : 0;
    atomic_fetch_add(&self->base.domain->returned_bytes, given);
    return given;
}

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    async_layer_t *self = (async_layer_t *)base;
    if (!self->started) return 0;
    retry_kept(self, call);
    uint64_t given = self->serves_graphs ? strata_async_free_kept(self, call) : 0, live = self->live_bytes;
    strata_unlocked_t opened = strata_call_unlock(call);
    /* Nothing is released while a stream may be captured. */
    if (!strata_domain_may_capture(base->domain) && strata_captures_begin_uncaptured()) {
        given += shrink(self, keep, live);
        strata_captures_end_uncaptured();
    }
    strata_call_lock(call, opened);
    return given;
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) { return trim(base, 0, call); }

static void *driver_pool(strata_layer_t *base) {
    async_layer_t *self = (async_layer_t *)base;
    async_lock(self);
    strata_handle_t pool = self->started ? self->pool : NULL;
    async_unlock(self);
    return pool;
}

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    async_layer_t *self = (async_layer_t *)base;
    self->frees.uses = &self->uses;
    strata_status_t status = strata_uses_init(&self->uses, base->stack, STRATA_USES_BY_STREAM);
    if (status != STRATA_OK) return status;
    status = strata_spans_init(&self->pending, STRATA_USES);
    if (status != STRATA_OK) strata_uses_destroy(&self->uses);
    return status;
}

/* A free piece of a cache in the same slab may still have the route of the earlier record in its slot. */
static bool is_ours(const async_layer_t *self, const strata_record_t *record) {
    uint64_t route = record->route;
    while (route >> STRATA_ROUTE_BITS) route >>= STRATA_ROUTE_BITS;
    bool held = record->state != STRATA_RECORD_UNUSED && record->state != STRATA_RECORD_FREE;
    return held && route == self->base.number;
}

/* Frees a block that the device refused to take, that was kept, or that its last holder left. Each is
 * offered twice, like the pool, because it has no owner after the layer's end. */
static void give_back_left(async_layer_t *self, const strata_record_t *record) {
    strata_device_t *device = async_device_of(self);
    if (record->pool == STRATA_ASYNC_BOOKED) strata_domain_uncover(self->base.domain, record->ptr, record->size);
    bool gone = !strata_async_may_exist(self, record);
    for (int offers = 0; offers < 2 && !gone; offers++)
        gone = strata_device_free(device, STRATA_MEMORY_DEVICE, record->ptr) == STRATA_OK;
    strata_domain_unbook(self->base.domain, record->size);
}

static void destroy(strata_layer_t *base) {
    async_layer_t *self = (async_layer_t *)base;
    strata_slab_t *slab = &base->stack->slab;
    if (self->started) {
        (void)strata_device_synchronise(async_device_of(self));
        for (uint32_t slot = 1; slot < slab->used; slot++) {
            strata_record_t *record = strata_slab_record(slab, slot);
            if (is_ours(self, record)) give_back_left(self, record);
        }
        if (self->serves_graphs) strata_async_trim_graphs(self);
    }
    strata_domain_discount(base->domain, self->uses.pending_bytes);
    atomic_fetch_sub(&base->domain->pool_frees, self->waiting);
    strata_async_end_pool(self);
    strata_free_stream_destroy(&self->frees);
    strata_spans_destroy(&self->pending);
    strata_uses_destroy(&self->uses);
}

static strata_status_t validate(strata_layer_t *base) {
    async_layer_t *self = (async_layer_t *)base;
    uint64_t kept = 0;
    for (uint32_t slot = self->kept; slot; slot = strata_record_at(base, slot)->next) kept += strata_record_at(base, slot)->size;
    if (kept != self->kept_bytes)
        return strata_fail(STRATA_E_CORRUPT, 0, "cuda_malloc_async: %llu bytes are kept, %llu are counted",
                           (unsigned long long)kept, (unsigned long long)self->kept_bytes);
    strata_status_t status = strata_spans_validate(&self->pending);
    return status == STRATA_OK ? strata_uses_validate(&self->uses, "cuda_malloc_async") : status;
}

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    const async_options_t *o = filled;
    if (place != STRATA_PLACE_GPU)
        return strata_fail(STRATA_E_STRATEGY, 0, "the driver's pools serve only the place gpu; write system for this place");
    *option = "max_size";
    if (o->pool == STRATA_ASYNC_POOL_DEFAULT && o->max_size != UINT64_MAX)
        return strata_fail(STRATA_E_STRATEGY, 0, "the default pool has no maximum size; write pool: own beside it");
    return STRATA_OK;
}

const strata_layer_type_t strata_cuda_malloc_async_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "cuda_malloc_async",
    .doc = "allocates from the driver's stream-ordered pool; frees borrowed blocks on a stream that waits for their users",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_CROSS_STREAM_SAFE | STRATA_TRAIT_EXACT_SIZE,
    .guarded = true,
    .state_size = sizeof(async_layer_t),
    .options_size = sizeof(async_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .release = release,
    .poll = poll,
    .record_stream = record_stream,
    .erase_stream = erase_stream,
    .notices = 1u << STRATA_NOTICE_STREAM_DESTROYED | 1u << STRATA_NOTICE_CAPTURE_BEGIN,
    .notify = notify,
    .trim = trim,
    .driver_pool = driver_pool,
    .validate = validate,
    .check = check,
};

/* cuda_malloc_async: the driver's stream-ordered pool (cudaMallocAsync, cudaFreeAsync).
 *
 * A block is got and freed in the order of the stream that asked for it. A borrowed one is freed on a stream of the layer's own,
 * the free stream, made at the first such free: it waits for the owner and every borrower as they are at the free. Until it gets
 * there the block's bytes are pending: a request that would bring what is live and what is pending above `throttle` of the
 * device's memory first makes its stream wait for the free stream, whose memory the pool may then serve to it. A block's bytes
 * count once, live or pending (the system that this follows counts a freed borrowed block in both).
 *
 * Every stream that owns or borrows is a `user`. When it is to be destroyed the free stream is put behind its work, and its
 * blocks are freed there. The layer's own state is guarded by its stack's lock, which it takes itself, for quick calls alone.
 */
#include "allocation/layer/cuda_malloc_async.h"
#include "allocation/reclaim/refusal.h"

enum { BORROWS = 1 << 20 };

static const strata_option_row_t options[] = {
    {"pool", STRATA_OPTION_CHOICE, offsetof(async_options_t, pool), "default", 0, 0, "default|own",
     "`default`: the device's pool, which other libraries may use too, with this layer's settings while it is there; `own`: one "
     "made for this layer"},
    {"max_size", STRATA_OPTION_SIZE, offsetof(async_options_t, max_size), "unlimited", 0, 0, NULL,
     "what an own pool may grow to (needs a driver of CUDA 12.2 or newer)"},
    {"release_threshold", STRATA_OPTION_SIZE, offsetof(async_options_t, release_threshold), "unlimited", 0, 0, NULL,
     "bytes that the pool keeps when the host waits for the device"},
    {"reuse_follow_events", STRATA_OPTION_BOOL, offsetof(async_options_t, reuse_follow_events), "true", 0, 0, NULL,
     "the pool serves a block to a stream that has waited for its free"},
    {"reuse_opportunistic", STRATA_OPTION_BOOL, offsetof(async_options_t, reuse_opportunistic), "true", 0, 0, NULL,
     "the pool serves a block to any stream once its free is done; which one it is differs from run to run"},
    {"reuse_internal", STRATA_OPTION_BOOL, offsetof(async_options_t, reuse_internal), "true", 0, 0, NULL,
     "a pool that cannot grow lets the stream wait for another stream's free"},
    {"throttle", STRATA_OPTION_FRACTION, offsetof(async_options_t, throttle), "0.8", 10000, 1000000, NULL,
     "share of the device's memory above which a request waits, in stream order, for the frees of borrowed blocks"},
    {0},
};

typedef struct borrow {
    uint32_t user;
    uint32_t next;
    uint64_t owning; /* whether it is by the block's owner, which its stack has not: it ends at free alone */
} borrow_t;

static const strata_stat_row_t stats[] = {
    {"live_bytes", "bytes", offsetof(async_layer_t, live_bytes), "blocks handed out"},
    {"pending_bytes", "bytes", offsetof(async_layer_t, frees.pending_bytes), "borrowed blocks freed, whose streams are not done"},
    {"borrowed_frees", "count", offsetof(async_layer_t, borrowed_frees), "frees that went to the free stream"},
    {"throttled", "count", offsetof(async_layer_t, throttled), "requests whose stream was made to wait for the free stream"},
    {0},
};

static borrow_t *borrow_at(const async_layer_t *self, uint32_t node) { return strata_node(&self->borrows, node); }

/* ---- handles of users ---- */

/* The handle of a user for a call that is made with no lock held; false: it has none that is good here. */
static bool use_handle(async_layer_t *self, uint32_t node, strata_user_t *copy) {
    async_lock(self);
    strata_user_t *user = strata_user_at(&self->users, node);
    bool nameable = strata_user_is_nameable(user);
    if (nameable) user->busy++;
    *copy = *user;
    async_unlock(self);
    return nameable;
}

static void leave_handle(async_layer_t *self, uint32_t node) {
    async_lock(self);
    strata_user_at(&self->users, node)->busy--;
    strata_condition_broadcast(&self->left);
    async_unlock(self);
}

/* ---- pending frees ---- */

static void poll(strata_layer_t *base, strata_call_t *call, strata_pending_t *pending) {
    async_layer_t *self = (async_layer_t *)base;
    (void)call;
    async_lock(self);
    pending->freed_bytes += strata_free_stream_collect(&self->frees);
    pending->pending_bytes += self->frees.pending_bytes;
    uint64_t at = strata_free_stream_ready_at(&self->frees);
    async_unlock(self);
    if (at < pending->ready_at) pending->ready_at = at;
}

/* ---- allocate ---- */

static bool is_above_limit(const async_layer_t *self) {
    return self->frees.first != 0 && self->live_bytes + self->frees.pending_bytes > self->limit;
}

/* Under the lock: the stream of a request waits for every pending free, unless it does already. False: it cannot, or is captured: a wait
 * for work of before would break the capture. */
static bool wait_in_order(async_layer_t *self, strata_stream_t stream) {
    const strata_pending_free_t *last = strata_free_stream_last(&self->frees);
    uint32_t node = strata_users_make(&self->users, stream);
    if (node == 0 || !async_options_of(self)->reuse_follow_events) return false;
    strata_user_t *user = strata_user_at(&self->users, node);
    if (user->waited == last->number) return true;
    if (strata_domain_refuse_captured(self->base.domain, stream) != STRATA_OK) return false;
    if (strata_device_stream_wait(async_device_of(self), stream, last->event) != STRATA_OK) return false;
    user->waited = last->number;
    self->throttled++;
    return true;
}

/* The request counts as live from here on, so that of two threads one sees the other's. What is pending keeps counting until it
 * is over, also when a stream already waits for it: another stream cannot have it. */
static void throttle(async_layer_t *self, const strata_request_t *request) {
    async_lock(self);
    if (self->frees.first) (void)strata_free_stream_collect(&self->frees);
    self->live_bytes += request->size;
    bool on_host = is_above_limit(self) && !wait_in_order(self, request->stream);
    self->throttled += on_host;
    async_unlock(self);
    if (on_host) strata_free_stream_wait(&self->frees);
}

static void end_live(async_layer_t *self, uint64_t bytes) {
    async_lock(self);
    self->live_bytes -= bytes;
    async_unlock(self);
}

static bool has_gone(strata_status_t status) { return status == STRATA_OK || status == STRATA_E_SHUTDOWN; }

/* What could not be served goes back at once; what the device refuses even then is the domain's. The reason of before stays. */
static strata_status_t give_unserved(async_layer_t *self, const strata_request_t *request, strata_address_t address, bool booked) {
    strata_error_t reason = *strata_last_error();
    strata_domain_t *domain = self->base.domain;
    if (booked) strata_domain_uncover(domain, address, request->size);
    if (!has_gone(strata_device_free_async(domain->device, address, request->stream))) {
        if (!booked) strata_domain_count(domain, request->size);
        strata_domain_quarantine(domain, STRATA_MEMORY_DEVICE, address, request->size, true);
    } else if (booked) {
        strata_domain_discount(domain, request->size);
    } else {
        strata_domain_unclaim(domain, request->size);
    }
    return strata_fail_again(&reason);
}

/* Books what the pool gave and makes its record. */
static strata_status_t take_in(async_layer_t *self, const strata_request_t *request, strata_address_t address,
                               strata_record_t **out) {
    strata_layer_t *base = &self->base;
    if (strata_domain_book(base->domain, address, request->size) != STRATA_OK) return give_unserved(self, request, address, false);
    async_lock(self);
    uint32_t user = strata_users_make(&self->users, request->stream);
    strata_record_t *record = user ? strata_record_new(base, request, address, request->size) : NULL;
    if (record) {
        strata_user_at(&self->users, user)->holds++;
        record->bin_next = user;
    }
    async_unlock(self);
    if (!record) return give_unserved(self, request, address, true);
    *out = record;
    return STRATA_OK;
}

static strata_status_t get(async_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_address_t address;
    strata_status_t status = strata_domain_claim(self->base.domain, request->size);
    if (status != STRATA_OK) return status;
    throttle(self, request);
    status = strata_device_malloc_async(async_device_of(self), self->pool, request->size, request->stream, &address);
    if (status == STRATA_OK) status = take_in(self, request, address, record);
    else strata_domain_unclaim(self->base.domain, request->size);
    if (status == STRATA_E_NO_MEMORY)
        strata_refusal_note(&(strata_refusal_t){.by = STRATA_REFUSED_BY_DEVICE, .asked = request->size});
    if (status != STRATA_OK) end_live(self, request->size);
    return status;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    async_layer_t *self = (async_layer_t *)base;
    if (request->flags & STRATA_NO_GROW)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "the driver's pool may grow at any request, and this one forbids it");
    strata_opened_t opened = strata_call_unlock(request->call);
    strata_status_t status = strata_async_start(self);
    if (status == STRATA_OK) status = get(self, request, record);
    strata_call_lock(request->call, opened);
    return status;
}

/* ---- borrows ---- */

static uint32_t *find_borrow(const async_layer_t *self, strata_record_t *record, uint32_t user) {
    uint32_t *link = &record->borrows;
    while (*link && borrow_at(self, *link)->user != user) link = &borrow_at(self, *link)->next;
    return link;
}

static strata_status_t note_borrow(async_layer_t *self, strata_record_t *record, strata_stream_t stream, bool owning) {
    uint32_t user = strata_users_make(&self->users, stream);
    if (user == 0) return STRATA_E_LIMIT;
    if (user == record->bin_next) return STRATA_OK;
    uint32_t *link = find_borrow(self, record, user);
    if (*link) {
        borrow_at(self, *link)->owning |= owning;
        return STRATA_OK;
    }
    uint32_t node = strata_nodes_take(&self->borrows);
    if (node == 0) return strata_fail(STRATA_E_LIMIT, 0, "cuda_malloc_async notes %d borrows at a time, its most", BORROWS - 1);
    *borrow_at(self, node) = (borrow_t){.user = user, .owning = owning};
    *link = node;
    strata_user_at(&self->users, user)->holds++;
    self->base.stack->figures.borrows++;
    return STRATA_OK;
}

static strata_status_t record_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    async_layer_t *self = (async_layer_t *)base;
    async_lock(self);
    strata_status_t status = note_borrow(self, record, stream, call->owning);
    async_unlock(self);
    return status;
}

/* Under the lock. */
static void drop_borrow(async_layer_t *self, uint32_t *link) {
    uint32_t node = *link;
    *link = borrow_at(self, node)->next;
    strata_users_let_go(&self->users, borrow_at(self, node)->user);
    strata_nodes_give(&self->borrows, node);
}

static strata_status_t erase_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    async_layer_t *self = (async_layer_t *)base;
    (void)call;
    async_lock(self);
    uint32_t user = strata_users_find(&self->users, stream);
    uint32_t *link = user ? find_borrow(self, record, user) : NULL;
    if (link && *link && !borrow_at(self, *link)->owning) drop_borrow(self, link);
    async_unlock(self);
    return STRATA_OK;
}

/* ---- free: the record is ours alone, no lock is held ---- */

/* The free stream stands behind a user, or the host waits for it; false: neither can be had. */
static bool cover(async_layer_t *self, uint32_t node, bool has_free_stream) {
    strata_user_t user;
    if (!use_handle(self, node, &user))
        return (user.state == STRATA_USER_BEHIND && has_free_stream) || strata_domain_wait_for_all(self->base.domain);
    bool covered = has_free_stream && strata_free_stream_stand_behind(&self->frees, user.stream);
    covered = covered || strata_domain_wait_for(self->base.domain, user.stream);
    leave_handle(self, node);
    return covered;
}

static bool cover_all(async_layer_t *self, strata_record_t *record, bool has_free_stream) {
    bool covered = cover(self, record->bin_next, has_free_stream);
    while (record->borrows) {
        uint32_t node = record->borrows;
        covered = cover(self, borrow_at(self, node)->user, has_free_stream) && covered;
        async_lock(self);
        drop_borrow(self, &record->borrows);
        async_unlock(self);
    }
    return covered;
}

/* The device has it, or nobody ever will again: the latter is counted, never reused, and offered again when the shared stack ends. Its
 * bytes are live until the caller takes them off. */
static void finish_free(async_layer_t *self, strata_record_t *record, uint64_t size, bool gone) {
    async_lock(self);
    record->size = size;
    strata_users_let_go(&self->users, record->bin_next);
    if (gone) {
        strata_record_delete(&self->base, record);
    } else {
        self->base.stack->figures.quarantined_bytes += record->size;
        record->state = STRATA_RECORD_DEFERRED;
        record->route = self->base.number;
    }
    async_unlock(self);
}

/* Unbooked first: once the device has it back, another thread may be given the same address. */
static bool give_back(async_layer_t *self, strata_record_t *record, bool in_order, strata_stream_t stream) {
    strata_domain_t *domain = self->base.domain;
    uint64_t size = strata_record_withdraw(&self->base, record);
    strata_domain_uncover(domain, record->ptr, size);
    bool gone = has_gone(in_order ? strata_device_free_async(domain->device, record->ptr, stream)
                                  : strata_device_free(domain->device, STRATA_MEMORY_DEVICE, record->ptr));
    if (!gone) strata_domain_recover(domain, record->ptr, size);
    return gone;
}

/* Without a free stream the host has waited for everybody, and the block is freed as the device frees any. Else its bytes go from
 * live to pending in one step: no other thread's request sees them in neither. */
static void free_after(async_layer_t *self, strata_record_t *record) {
    bool has_free_stream = strata_free_stream_make(&self->frees) == STRATA_OK;
    uint64_t bytes = record->size;
    bool gone = cover_all(self, record, has_free_stream) && give_back(self, record, has_free_stream, self->frees.stream);
    finish_free(self, record, bytes, gone);
    if (gone && has_free_stream) strata_free_stream_note(&self->frees, bytes, &self->live_bytes);
    else end_live(self, bytes);
    if (gone && !has_free_stream) strata_domain_discount(self->base.domain, bytes);
    async_lock(self);
    self->borrowed_frees++;
    async_unlock(self);
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    async_layer_t *self = (async_layer_t *)base;
    strata_opened_t opened = strata_call_unlock(call);
    uint32_t owner = record->bin_next;
    strata_user_t user;
    bool usable = use_handle(self, owner, &user);
    if (usable && record->borrows == 0) {
        uint64_t bytes = record->size;
        bool gone = give_back(self, record, true, user.stream);
        leave_handle(self, owner);
        finish_free(self, record, bytes, gone);
        end_live(self, bytes);
        if (gone) strata_domain_discount(base->domain, bytes);
    } else {
        if (usable) leave_handle(self, owner);
        free_after(self, record);
    }
    strata_call_lock(call, opened);
}

/* ---- streams that end, captures ---- */

/* Until the free stream stands behind the stream's work its handle is good; then the calls that still use it are waited for. */
static void stream_gone(strata_layer_t *base, strata_stream_t stream, strata_call_t *call) {
    async_layer_t *self = (async_layer_t *)base;
    (void)call;
    async_lock(self);
    uint32_t node = strata_users_find(&self->users, stream);
    bool holds = node && strata_user_at(&self->users, node)->holds > 0;
    if (node && !holds) strata_users_end(&self->users, node);
    /* Held here too: the last block may go while the locks are open, and would end it. */
    if (holds) strata_user_at(&self->users, node)->holds++;
    async_unlock(self);
    if (!holds) return;
    bool covered = cover(self, node, strata_free_stream_make(&self->frees) == STRATA_OK);
    async_lock(self);
    const strata_user_t *user = strata_user_at(&self->users, node);
    strata_users_leave(&self->users, node, covered ? STRATA_USER_BEHIND : STRATA_USER_LOST);
    while (user->busy > 0) strata_condition_wait(&self->left, &base->stack->lock, UINT64_MAX);
    strata_users_let_go(&self->users, node);
    async_unlock(self);
}

/* Nothing of the free stream's past may be waited for inside a capture. */
static void capture_begin(strata_layer_t *base, uint64_t pool, strata_call_t *call) {
    async_layer_t *self = (async_layer_t *)base;
    (void)pool;
    strata_opened_t opened = strata_call_unlock(call);
    strata_free_stream_wait(&self->frees);
    strata_call_lock(call, opened);
}

/* ---- release ---- */

static uint64_t sum(uint64_t a, uint64_t b) { return a < UINT64_MAX - b ? a + b : UINT64_MAX; }

/* What is used of a pool, by other libraries too, stays in it whatever is kept: it counts beside. */
static void shrink_pool(async_layer_t *self, uint64_t keep, uint64_t live) {
    uint64_t used = 0;
    if (keep && strata_device_pool_get(async_device_of(self), self->pool, STRATA_POOL_USED_CURRENT, &used) != STRATA_OK)
        used = live;
    (void)strata_device_pool_trim(async_device_of(self), self->pool, keep ? sum(used, keep) : 0);
}

/* A pool gives back only what the host has seen freed, so the device is waited for, as by any device free. */
static uint64_t shrink(async_layer_t *self, uint64_t keep) {
    uint64_t before = 0, after = 0;
    async_lock(self);
    bool started = self->started;
    uint64_t live = self->live_bytes;
    async_unlock(self);
    if (!started) return 0;
    strata_device_t *device = async_device_of(self);
    if (strata_device_pool_get(device, self->pool, STRATA_POOL_RESERVED_CURRENT, &before) != STRATA_OK) return 0;
    if (before <= sum(live, keep) || strata_device_synchronise(device) != STRATA_OK) return 0;
    async_lock(self);
    (void)strata_free_stream_collect(&self->frees);
    async_unlock(self);
    shrink_pool(self, keep, live);
    if (strata_device_pool_get(device, self->pool, STRATA_POOL_RESERVED_CURRENT, &after) != STRATA_OK) return 0;
    uint64_t given = after < before ? before - after : 0;
    atomic_fetch_add(&self->base.domain->given_bytes, given);
    return given;
}

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    (void)call;
    return shrink((async_layer_t *)base, keep);
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) { return trim(base, 0, call); }

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    async_layer_t *self = (async_layer_t *)base;
    strata_status_t status = strata_users_init(&self->users, sizeof(strata_user_t));
    if (status == STRATA_OK) status = strata_nodes_init(&self->borrows, sizeof(borrow_t), BORROWS);
    if (status == STRATA_OK) status = strata_free_stream_init(&self->frees, base->stack);
    if (status == STRATA_OK) {
        strata_condition_init(&self->left);
        return STRATA_OK;
    }
    strata_users_destroy(&self->users);
    strata_nodes_destroy(&self->borrows);
    return status;
}

static bool is_ours(const async_layer_t *self, const strata_record_t *record) {
    uint64_t route = record->route;
    while (route >> 8) route >>= 8;
    return record->state != STRATA_RECORD_UNUSED && route == self->base.number;
}

/* What the device refused to take back, and what its last holder left behind. Each is offered twice, as is the pool: behind the
 * layer's end nobody has it. */
static void give_back_all(async_layer_t *self) {
    strata_slab_t *slab = &self->base.stack->slab;
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        strata_record_t *record = strata_slab_record(slab, slot);
        if (!is_ours(self, record)) continue;
        strata_domain_uncover(self->base.domain, record->ptr, record->size);
        for (int offers = 0; offers < 2; offers++)
            if (strata_device_free(async_device_of(self), STRATA_MEMORY_DEVICE, record->ptr) == STRATA_OK) break;
        strata_domain_unbook(self->base.domain, record->size);
    }
}

static void destroy(strata_layer_t *base) {
    async_layer_t *self = (async_layer_t *)base;
    if (self->started) {
        (void)strata_device_synchronise(async_device_of(self));
        give_back_all(self);
    }
    strata_async_end_pool(self);
    strata_free_stream_destroy(&self->frees);
    strata_condition_destroy(&self->left);
    strata_users_destroy(&self->users);
    strata_nodes_destroy(&self->borrows);
}

static strata_status_t validate(strata_layer_t *base) {
    async_layer_t *self = (async_layer_t *)base;
    strata_status_t status = strata_users_validate(&self->users);
    if (status == STRATA_OK) status = strata_nodes_validate(&self->borrows);
    return status == STRATA_OK ? strata_free_stream_validate(&self->frees) : status;
}

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    const async_options_t *o = filled;
    if (place != STRATA_PLACE_GPU)
        return strata_fail(STRATA_E_STRATEGY, 0, "the driver's pools serve the place gpu alone; write system for this place");
    *option = "max_size";
    if (o->pool == STRATA_ASYNC_POOL_DEFAULT && o->max_size != UINT64_MAX)
        return strata_fail(STRATA_E_STRATEGY, 0, "the default pool has no largest size; write pool: own beside it");
    return STRATA_OK;
}

const strata_layer_type_t strata_cuda_malloc_async_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "cuda_malloc_async",
    .doc = "asks the driver's stream-ordered pool; borrowed blocks are freed on a stream that waits for their users",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_CROSS_STREAM_SAFE | STRATA_TRAIT_EXACT_SIZE,
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
    .stream_gone = stream_gone,
    .capture_begin = capture_begin,
    .trim = trim,
    .validate = validate,
    .check = check,
};

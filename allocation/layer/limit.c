/* limit: no more than so many bytes are asked from the layer below, on one device.
 *
 * Bytes are reserved by compare-and-swap before the layer below is asked, and given back when it fails: the sum is never above
 * the limit, not for a moment, and what does not fit reserves nothing. A request that would fit but for others that are still
 * under way below waits until those are settled: a large one that fails there never makes a small one fail.
 */
#include "allocation/layer.h"
#include "platform/arithmetic.h"

enum { LOOK_AGAIN_NS = 1000 * 1000 };

typedef struct limit_options {
    uint64_t bytes;
    double fraction;
} limit_options_t;

static const strata_option_row_t options[] = {
    {"bytes", STRATA_OPTION_SIZE, offsetof(limit_options_t, bytes), "unlimited", 0, 0, NULL,
     "the most that may be asked from the layer below, all streams together"},
    {"fraction", STRATA_OPTION_FRACTION, offsetof(limit_options_t, fraction), "0", 0, 1000000, NULL,
     "the same as a part of the device's memory; the smaller of both holds; 0: no part is named"},
    {0},
};

typedef struct limit_layer {
    strata_layer_t base;
    _Atomic uint64_t limit;
    _Atomic uint64_t used;   /* reserved: served, or under way below */
    _Atomic uint64_t served; /* of these, what the layer below has served: goes up behind `used` and down before it */
    _Atomic uint64_t peak;
    _Atomic uint64_t refused;
    _Atomic uint32_t waiting; /* threads that sleep on `settled`, with the lock of the layer's stack */
    strata_condition_t settled;
} limit_layer_t;

static const strata_stat_row_t stats[] = {
    {"limit_bytes", "bytes", offsetof(limit_layer_t, limit), "the most that may be asked from below"},
    {"used_bytes", "bytes", offsetof(limit_layer_t, used), "asked from below and not given back, calls under way included"},
    {"peak_bytes", "bytes", offsetof(limit_layer_t, peak), "highest used_bytes"},
    {"refused", "count", offsetof(limit_layer_t, refused), "requests refused without asking below"},
    {0},
};

static void raise_peak(limit_layer_t *self, uint64_t used) {
    uint64_t peak = atomic_load(&self->peak);
    while (used > peak && !atomic_compare_exchange_weak(&self->peak, &peak, used)) continue;
}

static bool reserve(limit_layer_t *self, uint64_t size) {
    uint64_t limit = atomic_load(&self->limit), used = atomic_load(&self->used);
    do {
        if (used > limit || size > limit - used) return false;
    } while (!atomic_compare_exchange_weak(&self->used, &used, used + size));
    raise_peak(self, used + size);
    return true;
}

/* Whether `size` would fit if every call that is under way below failed. */
static bool may_fit(limit_layer_t *self, uint64_t size) {
    uint64_t limit = atomic_load(&self->limit), served = atomic_load(&self->served);
    return served <= limit && size <= limit - served;
}

/* Reserves once calls under way are settled, with every lock of the path open meanwhile. */
static bool reserve_in_time(limit_layer_t *self, uint64_t size, strata_path_t *path) {
    bool reserved = reserve(self, size);
    if (reserved || !may_fit(self, size)) return reserved;
    strata_lock_t *lock = &self->base.stack->lock;
    strata_opened_t opened = strata_path_unlock(path);
    strata_lock(lock);
    atomic_fetch_add(&self->waiting, 1);
    while (!(reserved = reserve(self, size)) && may_fit(self, size))
        strata_condition_wait(&self->settled, lock, LOOK_AGAIN_NS);
    atomic_fetch_sub(&self->waiting, 1);
    strata_unlock(lock);
    strata_path_lock(path, opened);
    return reserved;
}

static void tell_waiters(limit_layer_t *self, strata_path_t *path) {
    if (atomic_load(&self->waiting) == 0) return;
    strata_opened_t opened = strata_path_unlock(path);
    strata_lock(&self->base.stack->lock);
    strata_condition_broadcast(&self->settled);
    strata_unlock(&self->base.stack->lock);
    strata_path_lock(path, opened);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    limit_layer_t *self = (limit_layer_t *)base;
    if (!reserve_in_time(self, request->size, request->path)) {
        atomic_fetch_add(&self->refused, 1);
        return strata_fail(STRATA_E_NO_MEMORY, 0, "limit: %llu bytes asked, %llu of %llu are used",
                           (unsigned long long)request->size, (unsigned long long)atomic_load(&self->used),
                           (unsigned long long)atomic_load(&self->limit));
    }
    strata_status_t status = strata_below_allocate(base, request, record);
    if (status == STRATA_OK) atomic_fetch_add(&self->served, request->size);
    else atomic_fetch_sub(&self->used, request->size);
    tell_waiters(self, request->path);
    return status;
}

/* Below first: what is refunded may be asked for at once. */
static void free_record(strata_layer_t *base, strata_record_t *record, strata_path_t *path) {
    limit_layer_t *self = (limit_layer_t *)base;
    uint64_t asked = strata_record_requested(record);
    strata_below_free(record, path);
    atomic_fetch_sub(&self->served, asked);
    atomic_fetch_sub(&self->used, asked);
    tell_waiters(self, path);
}

static strata_status_t create(strata_layer_t *base) {
    limit_layer_t *self = (limit_layer_t *)base;
    const limit_options_t *o = base->options;
    uint64_t limit = o->bytes;
    if (o->fraction > 0) {
        uint64_t available, total;
        strata_status_t status = strata_device_mem_info(base->domain->device, &available, &total);
        if (status != STRATA_OK) return status;
        limit = strata_min(limit, (uint64_t)((double)total * o->fraction));
    }
    atomic_store(&self->limit, limit);
    strata_condition_init(&self->settled);
    return STRATA_OK;
}

static void destroy(strata_layer_t *base) {
    strata_condition_destroy(&((limit_layer_t *)base)->settled);
}

static strata_status_t validate(strata_layer_t *base) {
    limit_layer_t *self = (limit_layer_t *)base;
    /* The two move one behind the other: between threads at work neither says anything of the other. */
    if (atomic_load(&self->used) > INT64_MAX || atomic_load(&self->served) > INT64_MAX)
        return strata_fail(STRATA_E_CORRUPT, 0, "limit: more was refunded than reserved");
    return STRATA_OK;
}

const strata_layer_type_t strata_limit_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "limit",
    .doc = "no more than so many bytes are asked from the layer below, all streams of the device together",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_DEVICE,
    .passes = ~0u,
    .state_size = sizeof(limit_layer_t),
    .options_size = sizeof(limit_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .validate = validate,
};

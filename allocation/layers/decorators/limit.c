/* limit: bounds the bytes that are requested from the layer below, on one device. Counting is in
 * allocation/domain/quota.h: the limit is never exceeded, and a large request that fails below never makes
 * a small one fail. */
#include "allocation/domain/layer.h"
#include "allocation/domain/quota.h"
#include "allocation/report/outcome.h"
#include "platform/arithmetic.h"

typedef struct limit_options {
    uint64_t bytes;
    double fraction;
} limit_options_t;

static const strata_option_row_t options[] = {
    {"bytes", STRATA_OPTION_SIZE, offsetof(limit_options_t, bytes), "unlimited", 0, 0, NULL,
     "max bytes to request from the layer below, over all streams"},
    {"fraction", STRATA_OPTION_FRACTION, offsetof(limit_options_t, fraction), "0", 0, 1000000, NULL,
     "the same as a share of device memory; the lower limit applies; 0 for none"},
    {0},
};

typedef struct limit_layer {
    strata_layer_t base;
    strata_quota_t quota; /* with the lock of the layer's stack */
    _Atomic uint64_t refused;
} limit_layer_t;

static const strata_stat_row_t stats[] = {
    {"limit_bytes", "bytes", offsetof(limit_layer_t, quota.limit), "max bytes to request from below"},
    {"used_bytes", "bytes", offsetof(limit_layer_t, quota.used), "bytes held from below, including calls in progress"},
    {"peak_bytes", "bytes", offsetof(limit_layer_t, quota.peak), "highest used_bytes"},
    {"refused", "count", offsetof(limit_layer_t, refused), "requests failed without a call below"},
    {0},
};

/* A claim that must wait does so with all locks of the call released, and only briefly while a request
 * waits in a callback. That request's own claim may be one of those in progress, in this very thread. */
static bool claim(limit_layer_t *self, uint64_t size, strata_call_t *call) {
    if (strata_quota_claim(&self->quota, size)) return true;
    if (!strata_quota_may_fit(&self->quota, size)) return false;
    strata_unlocked_t opened = strata_call_unlock(call);
    bool claimed = strata_quota_claim_in_time(&self->quota, size, &self->base.stack->lock, &self->base.domain->blocked);
    strata_call_lock(call, opened);
    return claimed;
}

static void wake_waiters(limit_layer_t *self, strata_call_t *call) {
    if (!strata_quota_has_waiters(&self->quota)) return;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_quota_wake(&self->quota, &self->base.stack->lock);
    strata_call_lock(call, opened);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    limit_layer_t *self = (limit_layer_t *)base;
    if (!claim(self, request->size, request->call)) {
        atomic_fetch_add(&self->refused, 1);
        const limit_options_t *o = base->options;
        uint64_t limit = atomic_load(&self->quota.limit);
        return strata_refuse_by_bound(base, request, limit == o->bytes ? "bytes" : "fraction", request->size,
                                      atomic_load(&self->quota.used), limit);
    }
    strata_status_t status = strata_below_allocate(base, request, record);
    if (status == STRATA_OK) strata_quota_serve(&self->quota, request->size);
    else strata_quota_unclaim(&self->quota, request->size);
    wake_waiters(self, request->call);
    return status;
}

/* Frees below first: refunded bytes may be requested immediately. */
static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    limit_layer_t *self = (limit_layer_t *)base;
    uint64_t asked = strata_record_requested(record);
    strata_below_free(record, call);
    strata_quota_return(&self->quota, asked);
    wake_waiters(self, call);
}

static strata_status_t create(strata_layer_t *base) {
    limit_layer_t *self = (limit_layer_t *)base;
    const limit_options_t *o = base->options;
    uint64_t limit = o->bytes;
    if (o->fraction > 0) {
        uint64_t available, total;
        strata_status_t status = strata_device_mem_info(base->domain->device, &available, &total);
        if (status != STRATA_OK) return status;
        limit = strata_min(limit, strata_share(total, o->fraction));
    }
    strata_quota_init(&self->quota, limit);
    return STRATA_OK;
}

static void destroy(strata_layer_t *base) { strata_quota_destroy(&((limit_layer_t *)base)->quota); }

static strata_status_t validate(strata_layer_t *base) {
    limit_layer_t *self = (limit_layer_t *)base;
    /* The two counters change one after the other, so while threads run they cannot be compared. */
    if (atomic_load(&self->quota.used) > INT64_MAX || atomic_load(&self->quota.served) > INT64_MAX)
        return strata_fail(STRATA_E_CORRUPT, 0, "limit: more was refunded than reserved");
    return STRATA_OK;
}

/* Resets the peaks. */
static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    (void)notice, (void)call;
    strata_quota_reset_peak(&((limit_layer_t *)base)->quota);
}

const strata_layer_type_t strata_limit_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "limit",
    .doc = "caps the bytes requested from the layer below, over all streams of the device",
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
    .notices = 1u << STRATA_NOTICE_PEAKS,
    .notify = notify,
};

/* stat: measures the live bytes and blocks at its position in the stack, their peak, and the number of
 * allocations.
 *
 * Above a cache that serves hits, with only layers in between that hits skip, it costs nothing. The stack
 * itself counts the same requests, so the layer reports the stack's metrics (which also count requests of 0
 * bytes, which reach no layer). Anywhere else it counts requests in a few atomic words. It takes no lock,
 * and may be above a layer that waits, like the peer's. */
#include "allocation/domain/layer.h"

typedef struct stat_layer {
    strata_layer_t base;
    _Atomic uint64_t current;
    _Atomic uint64_t peak;
    _Atomic uint64_t live;
    _Atomic uint64_t served;
} stat_layer_t;

static const strata_stat_row_t stats[] = {
    {"current_bytes", "bytes", offsetof(stat_layer_t, current), "live bytes served here, rounding included"},
    {"peak_bytes", "bytes", offsetof(stat_layer_t, peak), "highest current_bytes"},
    {"live", "count", offsetof(stat_layer_t, live), "live allocations served here"},
    {"served", "count", offsetof(stat_layer_t, served), "allocations served here"},
    {0},
};

/* Returns whether hits skip the layer. The stack then counts all requests that pass here. */
static bool is_left_out(const strata_layer_t *self) {
    uint64_t route = self->stack->route;
    while (route && (route & STRATA_ROUTE_MASK) != self->number) route >>= STRATA_ROUTE_BITS;
    return route != 0;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    stat_layer_t *self = (stat_layer_t *)base;
    strata_status_t status = strata_below_allocate(base, request, record);
    if (status != STRATA_OK || is_left_out(base)) return status;
    uint64_t now = atomic_fetch_add(&self->current, (*record)->size) + (*record)->size, peak = atomic_load(&self->peak);
    while (now > peak && !atomic_compare_exchange_weak(&self->peak, &peak, now)) continue;
    atomic_fetch_add(&self->live, 1);
    atomic_fetch_add(&self->served, 1);
    return STRATA_OK;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    stat_layer_t *self = (stat_layer_t *)base;
    if (!is_left_out(base)) {
        atomic_fetch_sub(&self->current, record->size);
        atomic_fetch_sub(&self->live, 1);
    }
    strata_below_free(record, call);
}

static void figures(strata_layer_t *base) {
    stat_layer_t *self = (stat_layer_t *)base;
    const strata_statistics_t *f = &base->stack->figures;
    if (!is_left_out(base)) return;
    self->current = f->allocated_bytes;
    self->peak = f->peak_allocated_bytes;
    self->live = f->allocations - f->frees;
    self->served = f->allocations;
}

/* If hits skip the layer, the stack's own peak is used, which is reset first. */
static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    stat_layer_t *self = (stat_layer_t *)base;
    (void)call;
    figures(base);
    if (notice->kind == STRATA_NOTICE_PEAKS) atomic_store(&self->peak, atomic_load(&self->current));
}

static strata_status_t validate(strata_layer_t *base) {
    stat_layer_t *self = (stat_layer_t *)base;
    figures(base);
    uint64_t current = atomic_load(&self->current), live = atomic_load(&self->live);
    if (current > INT64_MAX || live > INT64_MAX) return strata_fail(STRATA_E_CORRUPT, 0, "stat: more was freed than served");
    return STRATA_OK;
}

static strata_status_t create(strata_layer_t *self) {
    (void)self;
    return STRATA_OK;
}

static void destroy(strata_layer_t *self) { (void)self; }

const strata_layer_type_t strata_stat_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "stat",
    .doc = "counts live allocations at its position in the stack; where hits bypass it, it reports the stack's own counts",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u,
    .idle = true,
    .state_size = sizeof(stat_layer_t),
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .validate = validate,
    .notices = 1u << STRATA_NOTICE_FIGURES | 1u << STRATA_NOTICE_PEAKS,
    .notify = notify,
};

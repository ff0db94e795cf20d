/* stat: what is live at its place of the stack: now, at most, how many, how often.
 *
 * Above a cache that serves hits, with nothing in between that has work at a hit, it costs nothing: what passes there is what
 * the stack itself books, and its figures are the stack's. Anywhere else it counts what passes, a few words under the lock.
 */
#include "allocation/layer.h"

typedef struct stat_layer {
    strata_layer_t base;
    uint64_t current;
    uint64_t peak;
    uint64_t live;
    uint64_t served;
} stat_layer_t;

static const strata_stat_row_t stats[] = {
    {"current_bytes", "bytes", offsetof(stat_layer_t, current), "served through this layer and not freed, rounding included"},
    {"peak_bytes", "bytes", offsetof(stat_layer_t, peak), "highest current_bytes"},
    {"live", "count", offsetof(stat_layer_t, live), "allocations served through this layer and not freed"},
    {"served", "count", offsetof(stat_layer_t, served), "allocations served through this layer"},
    {0},
};

/* Whether hits leave the layer out: then the stack books all that passes here. */
static bool is_left_out(const strata_layer_t *self) {
    uint64_t path = self->stack->path;
    while (path && (path & 0xff) != self->number) path >>= 8;
    return path != 0;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    stat_layer_t *self = (stat_layer_t *)base;
    strata_status_t status = strata_below_allocate(base, request, record);
    if (status != STRATA_OK || is_left_out(base)) return status;
    self->current += (*record)->size;
    self->live++;
    self->served++;
    if (self->current > self->peak) self->peak = self->current;
    return STRATA_OK;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_path_t *path) {
    stat_layer_t *self = (stat_layer_t *)base;
    if (!is_left_out(base)) {
        self->current -= record->size;
        self->live--;
    }
    strata_below_free(record, path);
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

static strata_status_t validate(strata_layer_t *base) {
    stat_layer_t *self = (stat_layer_t *)base;
    figures(base);
    if (self->live > self->served || self->current > self->peak || (self->live == 0 && self->current != 0))
        return strata_fail(STRATA_E_CORRUPT, 0, "stat: %llu bytes in %llu allocations are live, of %llu, at most %llu bytes",
                           (unsigned long long)self->current, (unsigned long long)self->live, (unsigned long long)self->served,
                           (unsigned long long)self->peak);
    return STRATA_OK;
}

static strata_status_t create(strata_layer_t *self) {
    (void)self;
    return STRATA_OK;
}

static void destroy(strata_layer_t *self) {
    (void)self;
}

const strata_layer_type_t strata_stat_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "stat",
    .doc = "counts what is live at its place of the stack (left out of hits, it counts what the callers hold)",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u,
    .guarded = true,
    .idle = true,
    .state_size = sizeof(stat_layer_t),
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .validate = validate,
    .figures = figures,
};

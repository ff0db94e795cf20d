/* The sizes of the pool's chunks.
 *
 * On a device, the usable memory is 95 % of the memory that is available now and below the limit
 * (strata_set_limit()). The first chunk has `initial` bytes or the share `fraction` of the usable memory. A
 * later chunk has `reallocate` bytes or that share of the memory that is usable then. Each has at least the
 * size of the request. A request is huge if it is larger than the first chunks could have been.
 *
 * In host memory, a chunk is the share `fraction` of all memory, divided by `parts`, and at most `initial`
 * bytes. */
#include "allocation/cache/policies/naive/naive_best_fit_state.h"
#include "allocation/options/option.h"
#include "allocation/report/outcome.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

enum { USABLE_PERCENT = 95, MIN_USABLE = 256 };

static bool is_host_memory(const naive_t *self) { return strata_place_is_ownerless(strata_place_kind(self->base.domain->place)); }

static strata_status_t usable_of(const naive_t *self, uint64_t *usable) {
    uint64_t available, total;
    strata_status_t status = strata_domain_memory(self->base.domain, &available, &total);
    if (status != STRATA_OK) return status;
    available = strata_min(available, strata_domain_headroom(self->base.domain));
    *usable = available / 100 * USABLE_PERCENT + available % 100 * USABLE_PERCENT / 100;
    if (*usable < MIN_USABLE) *usable = 0;
    return STRATA_OK;
}

/* Returns in *size the option's value, or the share `fraction` if that is 0. Fails with E_NO_MEMORY if it
 * exceeds the usable memory. */
static strata_status_t chunk_of_device(const naive_t *self, const strata_request_t *request, uint64_t usable, uint64_t said,
                                       const char *option, uint64_t *size) {
    *size = said ? said : strata_share(usable, naive_options_of(self)->fraction);
    if (*size <= usable) return STRATA_OK;
    char asked[64], most[64];
    strata_refused_by_device(request, *size);
    strata_print_size(said, asked, sizeof asked);
    strata_print_size(usable, most, sizeof most);
    return strata_fail(STRATA_E_NO_MEMORY, 0, "%s.%s: %s is more than the %s that may be used", self->base.type->name, option,
                       asked, most);
}

static uint64_t host_share(const naive_t *self) {
    const naive_options_t *o = naive_options_of(self);
    return strata_share(o->memory ? o->memory : strata_host_memory_size(), o->fraction);
}

/* Computes the max size of a pool block. No lock is held. */
static strata_status_t largest_block(const naive_t *self, const strata_request_t *request, uint64_t *largest) {
    const naive_options_t *o = naive_options_of(self);
    if (is_host_memory(self)) {
        *largest = host_share(self) / o->parts;
        if (o->initial) *largest = strata_min(*largest, o->initial);
        return STRATA_OK;
    }
    uint64_t usable, first = 0, later = 0;
    strata_status_t status = usable_of(self, &usable);
    if (status == STRATA_OK) status = chunk_of_device(self, request, usable, o->initial, "initial", &first);
    if (status == STRATA_OK) status = chunk_of_device(self, request, usable, o->reallocate, "reallocate", &later);
    *largest = strata_max(first, later);
    return status;
}

strata_status_t strata_naive_size(naive_t *self, const strata_request_t *request) {
    if (self->sized) return STRATA_OK;
    uint64_t largest;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = largest_block(self, request, &largest);
    strata_call_lock(request->call, opened);
    if (status != STRATA_OK || self->sized) return status;
    self->max_block = largest;
    self->sized = true;
    self->hits = !strata_repeats_are_on(&self->chunks.repeats);
    return STRATA_OK;
}

/* No lock is held. */
static strata_status_t refill_of_device(const naive_t *self, const strata_request_t *request, bool first, uint64_t *size) {
    const naive_options_t *o = naive_options_of(self);
    uint64_t usable;
    *size = o->reallocate;
    if (!first && o->reallocate) return STRATA_OK;
    strata_status_t status = usable_of(self, &usable);
    if (status != STRATA_OK) return status;
    return chunk_of_device(self, request, usable, first ? o->initial : 0, "initial", size);
}

/* All programs share the machine's pinned memory, so the pool and its huge blocks together stay within their
 * share. */
static strata_status_t check_share(const naive_t *self, const strata_request_t *request, uint64_t size) {
    if (strata_place_kind(self->base.domain->place) != STRATA_PLACE_PINNED) return STRATA_OK;
    uint64_t most = host_share(self), held = self->chunks.held;
    if (size <= most && held <= most - size) return STRATA_OK;
    return strata_refuse_by_bound(&self->base, request, "fraction", size, held, most);
}

strata_status_t strata_naive_growth(naive_t *self, uint64_t rounded, const strata_request_t *request, uint64_t *size) {
    bool first = naive_pool_bytes(self) == 0;
    strata_status_t status = STRATA_OK;
    *size = rounded;
    if (rounded > self->max_block) return check_share(self, request, rounded);
    if (is_host_memory(self)) {
        *size = self->max_block;
    } else {
        strata_unlocked_t opened = strata_call_unlock(request->call);
        status = refill_of_device(self, request, first, size);
        strata_call_lock(request->call, opened);
        *size = strata_max(*size, rounded);
    }
    return status == STRATA_OK ? check_share(self, request, *size) : status;
}

/* What is deferred in a place by the clock: a sum and its peak, for a few blocks. */
#ifndef STRATA_TESTS_FACADE_DEFERRAL_H
#define STRATA_TESTS_FACADE_DEFERRAL_H

#include "allocation/domain/domain.h"

enum { DEFERRALS = 8 };

typedef struct deferral {
    strata_deferral_t base; /* first */
    uint64_t ready_at[DEFERRALS], bytes[DEFERRALS], peak;
    uint32_t count;
} deferral_t;

static inline void deferral_add(strata_deferral_t *base, uint64_t now, uint64_t ready_at, uint64_t bytes) {
    deferral_t *self = (deferral_t *)base;
    uint64_t sum = 0;
    if (ready_at <= now || self->count == DEFERRALS) return;
    self->ready_at[self->count] = ready_at;
    self->bytes[self->count++] = bytes;
    for (uint32_t i = 0; i < self->count; i++) sum += self->ready_at[i] > now ? self->bytes[i] : 0;
    if (sum > self->peak) self->peak = sum;
}

static inline void deferral_cut(strata_deferral_t *base, uint64_t now, uint64_t ready_at, uint64_t bytes) {
    deferral_t *self = (deferral_t *)base;
    for (uint32_t i = 0; i < self->count && now < ready_at; i++) {
        if (self->ready_at[i] != ready_at || self->bytes[i] < bytes) continue;
        self->bytes[i] -= bytes;
        return;
    }
}

#endif

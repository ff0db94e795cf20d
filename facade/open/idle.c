/* The idle thread. A facade has one only if a stack of its strategy sets `idle:`. The thread sleeps for a
 * part of the shortest `after`. It shares with the fast path only the lock of each stack, which it takes
 * once per check. */
#include "facade/open/idle.h"

#include <string.h>

#include "allocation/reclaim/idle.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "facade/open/worker.h"
#include "facade/registry/plans.h"
#include "platform/arithmetic.h"

strata_clock_t *strata_facade_clock(const strata_facade_t *facade) {
    for (uint32_t i = 0; i < STRATA_FACADE_DEVICES; i++)
        if (facade->devices[i]) return facade->devices[i]->clock;
    return strata_real_clock();
}

static uint64_t check_domains(strata_facade_t *facade) {
    strata_clock_t *clock = strata_facade_clock(facade);
    uint64_t next = STRATA_NEVER;
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL)
        next = strata_min(next, strata_idle_check(domain, clock->now(clock)));
    strata_log_flush();
    return next;
}

uint64_t strata_facade_check_idle(strata_t handle) {
    strata_facade_t *facade = strata_facade_of(handle);
    return facade && facade->idle_after != STRATA_NEVER ? check_domains(facade) : STRATA_NEVER;
}

/* ---- the thread ---- */

static void *run_idle_thread(void *context) {
    strata_facade_t *facade = context;
    strata_clock_t *clock = strata_facade_clock(facade);
    strata_threads_enrol_internal();
    strata_lock(&facade->lock);
    while (!facade->idle.stops) {
        strata_unlock(&facade->lock);
        uint64_t next = check_domains(facade), now = clock->now(clock), nap = facade->idle_after / STRATA_IDLE_PARTS;
        if (next < now + nap) nap = next > now ? next - now : 0;
        strata_lock(&facade->lock);
        if (!facade->idle.stops && nap > 0) strata_condition_wait(&facade->idle.wakes, &facade->lock, nap);
    }
    strata_unlock(&facade->lock);
    return NULL;
}

void strata_idle_stop(strata_facade_t *facade) { strata_worker_stop(facade, &facade->idle); }

strata_status_t strata_idle_start(strata_facade_t *facade) {
    facade->idle_after = strata_plans_idle_after(facade);
    if (facade->idle_after == STRATA_NEVER || strata_facade_clock(facade)->is_virtual) return STRATA_OK;
    int failed = strata_worker_start(facade, &facade->idle, run_idle_thread);
    if (!failed) return STRATA_OK;
    return strata_fail(STRATA_E_HOST_MEMORY, 0, "cannot start the thread for `idle:`: %s", strerror(failed));
}

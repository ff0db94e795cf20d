/* The thread that looks for idleness: one a facade, only where a stack of its strategy says `idle:`. It sleeps for a part of the shortest
 * `after`, and touches nothing that a hit touches except the lock of each stack, once a look.
 *
 * A child of fork() has no such thread, and no call there waits for it. At the end of the process it stops before the driver does. */
#include "facade/open/idle.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "allocation/reclaim/idle.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "facade/open/plans.h"
#include "facade/serve/long_way.h"
#include "facade/serve/lookup.h"
#include "platform/arithmetic.h"

static strata_clock_t *clock_of(const strata_facade_t *facade) {
    for (uint32_t i = 0; i < STRATA_FACADE_DEVICES; i++)
        if (facade->devices[i]) return facade->devices[i]->clock;
    return strata_real_clock();
}

static uint64_t look(strata_facade_t *facade) {
    strata_clock_t *clock = clock_of(facade);
    uint64_t next = STRATA_NEVER;
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL)
        next = strata_min(next, strata_idle_look(domain, clock->now(clock)));
    strata_log_flush();
    return next;
}

uint64_t strata_facade_look_for_idleness(strata_t handle) {
    strata_facade_t *facade = strata_facade_of(handle);
    return facade && facade->idle_after != STRATA_NEVER ? look(facade) : STRATA_NEVER;
}

/* ---- the thread ---- */

static void *keep_looking(void *context) {
    strata_facade_t *facade = context;
    strata_clock_t *clock = clock_of(facade);
    strata_threads_stand_apart();
    strata_lock(&facade->lock);
    while (!facade->idle_stops) {
        strata_unlock(&facade->lock);
        uint64_t next = look(facade), now = clock->now(clock), nap = facade->idle_after / STRATA_IDLE_PARTS;
        if (next < now + nap) nap = next > now ? next - now : 0;
        strata_lock(&facade->lock);
        if (!facade->idle_stops && nap > 0) strata_condition_wait(&facade->idle_wakes, &facade->lock, nap);
    }
    strata_unlock(&facade->lock);
    return NULL;
}

/* The program's signals are not for this thread. */
static int start(strata_facade_t *facade) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&facade->idle_thread, NULL, keep_looking, facade);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

void strata_idle_stop(strata_facade_t *facade) {
    strata_lock(&facade->lock);
    bool runs = facade->idle_runs;
    facade->idle_runs = false;
    facade->idle_stops = true;
    strata_condition_broadcast(&facade->idle_wakes);
    strata_unlock(&facade->lock);
    if (runs) pthread_join(facade->idle_thread, NULL);
}

/* Registered after the driver was opened, so it runs before the driver's own. A facade that is open at the end of the process stays so. */
static void stop_all(void) {
    if (strata_lookup_forked()) return;
    for (uint32_t i = 0; i < STRATA_FACADES; i++) {
        strata_facade_t *facade = atomic_load(&strata_facades[i]);
        if (facade && facade->handle != 0) strata_idle_stop(facade);
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void stop_at_exit(void) { (void)atexit(stop_all); }

strata_status_t strata_idle_start(strata_facade_t *facade) {
    facade->idle_after = strata_plans_idle_after(facade);
    if (facade->idle_after == STRATA_NEVER || clock_of(facade)->is_virtual) return STRATA_OK;
    pthread_once(&once, stop_at_exit);
    facade->idle_stops = false;
    int failed = start(facade);
    facade->idle_runs = failed == 0;
    if (!failed) return STRATA_OK;
    return strata_fail(STRATA_E_HOST_MEMORY, 0, "the thread that `idle:` needs cannot be started: %s", strerror(failed));
}

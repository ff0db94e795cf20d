#include "facade/open/worker.h"

#include <signal.h>
#include <stdlib.h>

#include "facade/registry/lookup.h"
#include "facade/registry/registry.h"

void strata_worker_stop(strata_facade_t *facade, strata_worker_t *worker) {
    strata_lock(&facade->lock);
    bool runs = worker->runs;
    worker->runs = false;
    worker->stops = true;
    strata_condition_broadcast(&worker->wakes);
    strata_unlock(&facade->lock);
    if (runs) pthread_join(worker->thread, NULL);
}

/* Registered after the driver was opened, so it runs before the driver's own handler. A facade that is
 * open when the process ends stays open. */
static void stop_all(void) {
    if (strata_lookup_forked()) return;
    for (uint32_t i = 0; i < STRATA_FACADES; i++) {
        strata_facade_t *facade = atomic_load(&strata_facades[i]);
        if (facade && facade->handle != 0) strata_worker_stop(facade, &facade->idle);
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void stop_at_exit(void) { (void)atexit(stop_all); }

int strata_worker_start(strata_facade_t *facade, strata_worker_t *worker, void *(*body)(void *)) {
    pthread_once(&once, stop_at_exit);
    worker->stops = false;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&worker->thread, NULL, body, facade);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    strata_lock(&facade->lock);
    worker->runs = failed == 0;
    strata_unlock(&facade->lock);
    return failed;
}

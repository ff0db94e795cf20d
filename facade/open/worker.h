/* A thread of a facade's own, which sleeps until there is work for it. It has stopped before the facade's domains end, and
 * before the driver does at the end of the process. A child of fork() does not have it, and no call
 * there waits for it. */
#ifndef STRATA_FACADE_WORKER_H
#define STRATA_FACADE_WORKER_H

#include "facade/registry/facade.h"

/* Starts the thread; `body` gets the facade, and returns once worker->stops. The program's signals are not for it. Returns the system's
 * error number, 0: it runs. */
int strata_worker_start(strata_facade_t *facade, strata_worker_t *worker, void *(*body)(void *));
/* It has ended once this returns. No lock is held. */
void strata_worker_stop(strata_facade_t *facade, strata_worker_t *worker);

#endif
